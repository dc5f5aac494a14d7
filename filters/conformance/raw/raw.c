// The raw guest calls the host's functions as ABI.md has them, without an SDK's manners: buffers that are too small,
// functions outside of their time, addresses outside of memory. ../README.md has the steps.
#include "weir.h"

static char line[8192];
static size_t used;

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

static char arg[6][4096];
static size_t arg_len[6];

static bool is(const char *op) {
    if (weir_len(op) != arg_len[0]) return false;
    for (size_t i = 0; i < arg_len[0]; i++)
        if (op[i] != arg[0][i]) return false;
    return true;
}

static int64_t number(int32_t i) {
    int64_t v = 0;
    weir_json_i64((weir_json){arg[i], arg[i] + arg_len[i]}, &v);
    return v;
}

static char buf[4096];

// show writes a get's result and what stands in the buffer, where untouched bytes are dots.
static void show(int32_t n, size_t cap) {
    put_int(n);
    put(" ");
    put_n(buf, cap < 64 ? cap : 64);
}

// The bad address: inside of memory only in its first bytes, so that a check without the length lets it by.
#define PAST ((char *)(__builtin_wasm_memory_size(0) * 65536 - 4))
#define WRAP ((size_t)0xfffffffcu)

// wild calls the named function with one bad address; "wrap" takes a length that wraps around instead.
static void wild(void) {
    char *p = PAST;
    size_t n = 8;
    if (arg[2][0] == 'w') p = buf, n = WRAP;
    arg_len[0] = arg_len[1];
    for (size_t i = 0; i <= arg_len[1]; i++) arg[0][i] = arg[1][i];
    if (is("field_get key")) weir_field_get(p, n, buf, 8);
    else if (is("field_get buf")) weir_field_get("absent", 6, p, n);
    else if (is("field_type")) weir_field_type(p, n);
    else if (is("field_get_i64 key")) weir_field_get_i64(p, n, (int64_t *)buf);
    else if (is("field_get_i64 out")) weir_field_get_i64("absent", 6, (int64_t *)PAST);
    else if (is("field_get_f64 out")) weir_field_get_f64("absent", 6, (double *)PAST);
    else if (is("field_set key")) weir_field_set(p, n, "v", 1);
    else if (is("field_set val")) weir_field_set("a", 1, p, n);
    else if (is("field_set_json val")) weir_field_set_json("a", 1, p, n);
    else if (is("field_set_i64")) weir_field_set_i64(p, n, 1);
    else if (is("field_set_f64")) weir_field_set_f64(p, n, 1);
    else if (is("field_unset")) weir_field_unset(p, n);
    else if (is("field_name")) weir_field_name(99, p, n);
    else if (is("sd_get id")) weir_sd_get(p, n, "p", 1, buf, 8);
    else if (is("sd_get param")) weir_sd_get("a", 1, p, n, buf, 8);
    else if (is("sd_get buf")) weir_sd_get("a", 1, "p", 1, p, n);
    else if (is("sd_set val")) weir_sd_set("a", 1, "p", 1, p, n);
    else if (is("sd_unset")) weir_sd_unset("a", 1, p, n);
    else if (is("record_get")) weir_record_get(p, n);
    else if (is("record_set")) weir_record_set(p, n);
    else if (is("config_get")) weir_config_get(p, n);
    else if (is("emit")) weir_emit_n(p, n);
    else if (is("route")) weir_route_n(p, n);
    else if (is("metric_add")) weir_metric_add_n(p, n, 1);
    else if (is("metric_set")) weir_metric_set_n(p, n, 1);
    else if (is("kv_get key")) weir_kv_get_n(p, n, buf, 8);
    else if (is("kv_get buf")) weir_kv_get_n("absent", 6, p, n);
    else if (is("kv_set key")) weir_kv_set_n(p, n, "v", 1, 0);
    else if (is("kv_set val")) weir_kv_set_n("a", 1, p, n, 0);
    else if (is("kv_del")) weir_kv_del_n(p, n);
    else if (is("kv_add key")) weir_kv_add_n(p, n, 1, (int64_t *)buf);
    else if (is("kv_add out")) weir_kv_add_n("a", 1, 1, (int64_t *)PAST);
    else if (is("log")) weir_log_n(WEIR_INFO, p, n);
    else if (is("fail")) weir_fail_n(p, n);
    else put("no such function");
}

static void step(void) {
    size_t cap = (size_t)number(4);
    for (size_t i = 0; i < sizeof buf; i++) buf[i] = '.';
    if (is("field_get")) cap = (size_t)number(2), show(weir_field_get(arg[1], arg_len[1], buf, cap), cap);
    else if (is("field_name")) cap = (size_t)number(2), show(weir_field_name((int32_t)number(1), buf, cap), cap);
    else if (is("sd_get")) cap = (size_t)number(3), show(weir_sd_get(arg[1], arg_len[1], arg[2], arg_len[2], buf, cap), cap);
    else if (is("record_get")) cap = (size_t)number(1), put_int(weir_record_get(buf, cap) > 0), put(" "), put_n(buf, cap);
    else if (is("config_get")) cap = (size_t)number(1), put_int(weir_config_get(buf, cap) > 0), put(" "), put_n(buf, cap);
    else if (is("field_type")) put_int(weir_field_type(arg[1], arg_len[1]));
    else if (is("field_get_i64")) put_int(weir_field_get_i64(arg[1], arg_len[1], (int64_t *)(buf + 1))); // not aligned
    else if (is("field_get_f64")) put_int(weir_field_get_f64(arg[1], arg_len[1], (double *)(buf + 1)));
    else if (is("field_set")) put_int(weir_field_set(arg[1], arg_len[1], arg[2], arg_len[2]));
    else if (is("field_set_json")) put_int(weir_field_set_json(arg[1], arg_len[1], arg[2], arg_len[2]));
    else if (is("field_set_i64")) put_int(weir_field_set_i64(arg[1], arg_len[1], number(2)));
    else if (is("field_set_f64")) put_int(weir_field_set_f64(arg[1], arg_len[1], (double)number(2)));
    else if (is("field_unset")) put_int(weir_field_unset(arg[1], arg_len[1]));
    else if (is("field_count")) put_int(weir_field_count());
    else if (is("sd_set")) put_int(weir_sd_set(arg[1], arg_len[1], arg[2], arg_len[2], arg[3], arg_len[3]));
    else if (is("sd_unset")) put_int(weir_sd_unset(arg[1], arg_len[1], arg[2], arg_len[2]));
    else if (is("record_set")) put_int(weir_record_set(arg[1], arg_len[1]));
    else if (is("emit")) put_int(weir_emit_n(arg[1], arg_len[1]));
    else if (is("route")) put_int(weir_route_n(arg[1], arg_len[1]));
    else if (is("kv_get")) cap = (size_t)number(2), show(weir_kv_get_n(arg[1], arg_len[1], buf, cap), cap);
    else if (is("kv_set")) put_int(weir_kv_set_n(arg[1], arg_len[1], arg[2], arg_len[2], number(3)));
    else if (is("kv_del")) put_int(weir_kv_del_n(arg[1], arg_len[1]));
    else if (is("kv_add")) put_int(weir_kv_add_n(arg[1], arg_len[1], number(2), (int64_t *)(buf + 1)));
    else if (is("metric_add")) weir_metric_add_n(arg[1], arg_len[1], (double)number(2));
    else if (is("metric_set")) weir_metric_set_n(arg[1], arg_len[1], (double)number(2));
    else if (is("log_enabled")) put_int(weir_log_enabled((int32_t)number(1)));
    else if (is("time_now")) put_int(weir_time_now() > 0);
    else if (is("random")) put_int(weir_random() != weir_random());
    else if (is("wild")) wild();
    else put("no such step");
}

static int32_t run(const char *list) {
    static weir_json config;
    config = weir_config();
    weir_json walk = weir_json_items(config), key, value, one, text;
    while (weir_json_member(&walk, &key, &value)) {
        if (!weir_json_is(key, list)) continue;
        weir_json steps = weir_json_items(value);
        while (weir_json_element(&steps, &one)) {
            weir_json words = weir_json_items(one);
            used = 0;
            for (int32_t i = 0; i < 6; i++) {
                arg_len[i] = 0;
                if (weir_json_element(&words, &text)) arg_len[i] = (size_t)weir_json_text(text, arg[i], sizeof arg[i] - 1);
                arg[i][arg_len[i]] = 0;
                if (i == 0) put(arg[0]), put(" = ");
            }
            step();
            weir_log_n(WEIR_INFO, line, used);
        }
    }
    return 0;
}

__attribute__((constructor)) static void started(void) { run("start"); }
WEIR_INIT(void) { return run("init"); }
WEIR_PROCESS(void) { return run("do"); }
WEIR_TICK(void) { run("tick"); }
WEIR_CLOSE(void) { run("close"); }
