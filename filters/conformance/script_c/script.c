// The script guest on the C SDK: it does what a message lists in the field do, and puts what came of each step into the
// field did.
// ../README.md has the steps; ../script_go does the same on the Go SDK.
#define WEIR_BUFFER (3 << 20)
#include "weir.h"

static char line[1 << 16]; // of the step in hand
static size_t used;

static char did[1 << 18] = "["; // as JSON
static size_t did_used = 1;

static void put_n(const char *text, size_t n) {
    for (size_t i = 0; i < n && used < sizeof line; i++) line[used++] = text[i];
}

static void put(const char *text) { put_n(text, weir_len(text)); }

static void put_int(int64_t v) {
    char digits[20];
    size_t n = 0;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do digits[n++] = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0) put("-");
    while (n > 0) put_n(&digits[--n], 1);
}

// put_error writes what err means, or otherwise when it is no error.
static void put_error(int32_t err, const char *otherwise) {
    static const char *const words[] = {"absent", "wrong type", "too long", "not permitted", "invalid", "too many", "not available here"};
    if (err >= 0) put(otherwise);
    else if (err >= -7) put(words[-err - 1]);
    else put("unknown error");
}

static char arg[4][16384];
static size_t arg_len[4];
static int32_t args;

static bool is(const char *op) {
    if (weir_len(op) != arg_len[0]) return false;
    for (size_t i = 0; i < arg_len[0]; i++)
        if (op[i] != arg[0][i]) return false;
    return true;
}

static int64_t number(int32_t i) {
    int64_t v = 0;
    weir_json_i64(weir_json_of(arg[i], arg_len[i]), &v);
    return v;
}

static double thousandths(const char *text, int64_t n) {
    return text[0] == 'n' ? __builtin_nan("") : text[0] == 'i' ? __builtin_inf() : (double)n / 1000;
}

static char name[65536];

static const char *numbered(char prefix, int64_t i) {
    static char text[24];
    size_t n = 0, from = 0;
    char digits[20];
    do digits[n++] = (char)('0' + i % 10);
    while (i /= 10);
    text[from++] = prefix;
    while (n > 0) text[from++] = digits[--n];
    text[from] = 0;
    return text;
}

static int32_t emit_number(int64_t i) {
    char buf[64];
    weir_record r = weir_record_in(buf, sizeof buf);
    weir_put_i64(&r, "i", i);
    return weir_emit_record(&r);
}

// result writes what the step comes to. It returns false for a step without one.
static bool result(void) {
    const char *key = arg[1];
    int32_t n;
    int64_t i64;
    double f64;
    if (is("get")) {
        n = weir_get(key);
        if (n < 0) put_error(n, "");
        else put_n(weir_buf, (size_t)n);
    } else if (is("equals")) {
        put(weir_equals(key, arg[2]) ? "true" : "false");
    } else if (is("size")) {
        n = weir_field_get(key, arg_len[1], weir_buf, 0);
        if (n < 0) put_error(n, "");
        else put_int(n);
    } else if (is("type")) {
        static const char *const types[] = {"absent", "null", "bool", "int", "float", "string", "bytes", "array", "object"};
        n = weir_type(key);
        if (n < 0) put_error(n, "");
        else put(types[n]);
    } else if (is("get_i64")) {
        n = weir_get_i64(key, &i64);
        if (n < 0) put_error(n, "");
        else put_int(i64);
    } else if (is("get_f64")) {
        n = weir_get_f64(key, &f64);
        if (n < 0) put_error(n, "");
        else put_int((int64_t)(f64 * 1000)), put("e-3");
    } else if (is("set")) {
        put_error(weir_field_set(key, arg_len[1], arg[2], arg_len[2]), "ok");
    } else if (is("set_bytes")) { // ~ is a byte that is not UTF-8
        for (n = 0; arg[2][n]; n++) weir_buf[n] = arg[2][n] == '~' ? (char)0xff : arg[2][n];
        put_error(weir_set_n(key, weir_buf, (size_t)n), "ok");
    } else if (is("copy")) {
        n = weir_get(key);
        put_error(n < 0 ? n : weir_set_n(arg[2], weir_buf, (size_t)n), "ok");
    } else if (is("set_json")) {
        put_error(weir_set_json(key, arg[2]), "ok");
    } else if (is("set_i64")) {
        put_error(weir_set_i64(key, number(2)), "ok");
    } else if (is("set_f64")) {
        put_error(weir_set_f64(key, thousandths(arg[2], number(2))), "ok");
    } else if (is("set_bool")) {
        put_error(weir_set_bool(key, arg[2][0] == 't'), "ok");
    } else if (is("unset")) {
        put_error(weir_unset(key), "ok");
    } else if (is("count")) {
        put_int(weir_field_count());
    } else if (is("names")) {
        for (int32_t i = 0; (n = weir_field_name(i, name, sizeof name)) >= 0; i++) {
            if (i > 0) put(",");
            put_n(name, (size_t)n);
        }
    } else if (is("param")) {
        n = weir_sd_get(key, arg_len[1], arg[2], arg_len[2], weir_buf, sizeof weir_buf);
        if (n < 0) put_error(n, "");
        else put_n(weir_buf, (size_t)n);
    } else if (is("set_param")) {
        put_error(weir_sd_set(key, arg_len[1], arg[2], arg_len[2], arg[3], arg_len[3]), "ok");
    } else if (is("unset_param")) {
        put_error(weir_sd_unset(key, arg_len[1], arg[2], arg_len[2]), "ok");
    } else if (is("unset_element")) {
        put_error(weir_sd_unset(key, arg_len[1], "", 0), "ok");
    } else if (is("record")) {
        n = weir_record_get(weir_buf, sizeof weir_buf);
        if (n < 0) put_error(n, "");
        else put_n(weir_buf, (size_t)n);
    } else if (is("set_record")) {
        put_error(weir_record_set(key, arg_len[1]), "ok");
    } else if (is("emit")) {
        put_error(weir_emit_n(key, arg_len[1]), "ok");
    } else if (is("route")) {
        put_error(weir_route(key), "ok");
    } else if (is("kv_get")) {
        n = weir_kv_get(key);
        if (n < 0) put_error(n, "");
        else put_n(weir_buf, (size_t)n);
    } else if (is("kv_set")) {
        put_error(weir_kv_set_n(key, arg_len[1], arg[2], arg_len[2], arg_len[3] ? number(3) : 0), "ok");
    } else if (is("kv_del")) {
        put_error(weir_kv_del_n(key, arg_len[1]), "ok");
    } else if (is("kv_add")) {
        n = weir_kv_add_n(key, arg_len[1], number(2), &i64);
        if (n < 0) put_error(n, "");
        else put_int(i64);
    } else if (is("metric_add")) {
        weir_metric_add(key, thousandths(arg[2], number(2)));
        put("ok");
    } else if (is("metric_set")) {
        weir_metric_set(key, thousandths(arg[2], number(2)));
        put("ok");
    } else if (is("enabled")) {
        put(weir_log_enabled((int32_t)number(1)) ? "true" : "false");
    } else if (is("now")) {
        put(weir_time_now() > 1577836800000000000 ? "ok" : "before 2020");
    } else if (is("random")) {
        put(weir_random() != weir_random() ? "ok" : "the same twice");
    } else if (is("wait")) {
        int64_t until = weir_time_now() + number(1) * 1000000;
        while (weir_time_now() < until) {}
        put("ok");
    } else if (is("long") || is("long_kv")) {
        size_t len = (size_t)number(2);
        for (size_t i = 0; i < len; i++) weir_buf[i] = 'x';
        put_error(is("long") ? weir_set_n(key, weir_buf, len) : weir_kv_set_n(key, arg_len[1], weir_buf, len, 0), "ok");
    } else if (is("long_key")) {
        for (int64_t i = 0; i < number(1); i++) name[i] = 'k';
        put_error(weir_field_set(name, (size_t)number(1), "v", 1), "ok");
    } else if (is("fill") || is("fill_params") || is("fill_kv") || is("fill_emits")) {
        int32_t err = 0;
        int64_t i = 0;
        for (; i < number(1) && err >= 0; i++) {
            const char *next = numbered('f', i);
            if (is("fill")) err = weir_set_i64(next, i);
            else if (is("fill_params")) err = weir_sd_set("fill@32473", 10, next, weir_len(next), "v", 1);
            else if (is("fill_kv")) err = weir_kv_set(next, "v", 0);
            else err = emit_number(i);
        }
        put_error(err, "ok");
        if (err < 0) put(" at "), put_int(i - 1);
    } else {
        return false;
    }
    return true;
}

static void did_put(char c) {
    if (did_used == sizeof did) __builtin_trap();
    did[did_used++] = c;
}

// note adds the line to what was done, as a JSON string.
static void note(void) {
    static const char hex[] = "0123456789abcdef";
    if (did_used > 1) did_put(',');
    did_put('"');
    for (size_t i = 0; i < used; i++) {
        unsigned char c = (unsigned char)line[i];
        if (c == '"' || c == '\\') did_put('\\'), did_put((char)c);
        else if (c >= ' ') did_put((char)c);
        else for (const char *p = "\\u00"; *p; p++) did_put(*p);
        if (c < ' ') did_put(hex[c >> 4]), did_put(hex[c & 15]);
    }
    did_put('"');
}

enum { NO_VERDICT = 1000 };

static int32_t step(weir_json list) {
    weir_json walk = weir_json_items(list), one;
    for (args = 0; args < 4 && weir_json_element(&walk, &one); args++) {
        int32_t n = weir_json_text(one, arg[args], sizeof arg[0] - 1);
        if (n < 0 || n >= (int32_t)sizeof arg[0]) __builtin_trap();
        arg[args][arg_len[args] = (size_t)n] = 0;
    }
    for (int32_t i = args; i < 4; i++) arg[i][arg_len[i] = 0] = 0;
    if (is("verdict")) return (int32_t)number(1);
    if (is("trap")) __builtin_trap();
    if (is("fail")) return weir_fail_n(arg[1], arg_len[1]), NO_VERDICT;
    if (is("log")) return weir_log_n((int32_t)number(1), arg[2], arg_len[2]), NO_VERDICT;
    if (is("tell")) return weir_log_n(WEIR_INFO, line, used), NO_VERDICT;
    used = 0;
    for (int32_t i = 0; i < args && i < 3; i++) {
        put_n(arg[i], arg_len[i]);
        put(" ");
    }
    put("= ");
    if (!result()) __builtin_trap();
    note();
    return NO_VERDICT;
}

static int32_t run(weir_json steps) {
    weir_json walk = weir_json_items(steps), one;
    while (weir_json_element(&walk, &one)) {
        int32_t verdict = step(one);
        if (verdict != NO_VERDICT) return verdict;
    }
    return 0;
}

static int32_t run_configured(const char *list) {
    weir_json walk = weir_json_items(weir_config()), key, value;
    while (weir_json_member(&walk, &key, &value))
        if (weir_json_is(key, list)) return run(value);
    return 0;
}

WEIR_INIT(void) { return run_configured("init"); }
WEIR_TICK(void) { run_configured("tick"); }
WEIR_CLOSE(void) { run_configured("close"); }

WEIR_PROCESS(void) {
    static char steps[1 << 18];
    int32_t n = weir_get_into("do", steps, sizeof steps), verdict = 0;
    if (n >= 0) {
        weir_unset("do");
        verdict = run(weir_json_of(steps, (size_t)n));
    }
    did_put(']');
    int32_t err = did_used > 2 ? weir_field_set_json("did", 3, did, did_used) : 0;
    did_used = 1;
    if (err < 0) __builtin_trap();
    return verdict;
}
