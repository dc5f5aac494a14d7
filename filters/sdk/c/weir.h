/* weir.h: write a filter for weir in C or C++, with one header and no library.
 *
 *     #include "weir.h"
 *
 *     WEIR_PROCESS(void) {
 *         int32_t n = weir_get("message");                 // into weir_buf
 *         if (n < 0) return n == WEIR_ABSENT ? WEIR_KEEP : WEIR_FAILED;
 *         for (int32_t i = 0; i < n; i++)
 *             if (weir_buf[i] >= '0' && weir_buf[i] <= '9') weir_buf[i] = '#';
 *         return weir_set_n("message", weir_buf, n) < 0 ? WEIR_FAILED : WEIR_KEEP;
 *     }
 *
 *     clang-14 --target=wasm32-wasi -mexec-model=reactor -O2 \
 *         -Wl,-z,stack-size=65536,--stack-first,--strip-debug -I filters/sdk/c -o mask.wasm mask.c
 *
 * -mexec-model=reactor makes a module that is called, not a program that runs. --stack-first puts the stack below the
 * data, so that an overflow traps instead of overwriting the data silently.
 *
 * The contract behind this header is filters/ABI.md. Only what a filter calls is imported; nothing needs WASI.
 * One module is one thread: the static buffers below are safe between calls of the host.
 */
#ifndef WEIR_H
#define WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The size of weir_buf, into which weir_get reads. Define it before the include to take longer values.
 * Longer ones are never handed over cut: weir_get answers WEIR_TOO_LONG, and a filter that must see the whole
 * value answers WEIR_FAILED then. A filter that kept what it could not inspect would be evaded by padding. */
#ifndef WEIR_BUFFER
#define WEIR_BUFFER 65536
#endif

/* The size of the buffer behind weir_config. */
#ifndef WEIR_CONFIG_BUFFER
#define WEIR_CONFIG_BUFFER 16384
#endif

/* Verdicts. Any other value is WEIR_FAILED: what the call edited, emitted and routed is undone, and the filter's on_error
 * decides. */
enum {
    WEIR_KEEP = 0,   /* goes on, with the edits made */
    WEIR_DROP = 1,   /* gone, counted as dropped; what was emitted behind it goes on */
    WEIR_SKIP = 2,   /* goes on with the edits made, past the rest of this route's filters */
    WEIR_REJECT = 3, /* to the dead letters, with the text given to weir_fail */
    WEIR_FAILED = -1
};

/* Errors. */
enum {
    WEIR_ABSENT = -1,        /* no such field, parameter, element, key or destination */
    WEIR_WRONG_TYPE = -2,    /* the value is of another type */
    WEIR_TOO_LONG = -3,      /* the key, value or text is over its limit, or over the filter's buffer */
    WEIR_NOT_PERMITTED = -4, /* the key is read-only */
    WEIR_INVALID = -5,       /* the key or the value is none */
    WEIR_TOO_MANY = -6,      /* a quota is used up, or no memory is free */
    WEIR_NOT_HERE = -7       /* not available in this function, such as a message in WEIR_INIT */
};

/* What weir_field_type answers. */
enum {
    WEIR_TYPE_ABSENT = 0,
    WEIR_TYPE_NULL = 1,
    WEIR_TYPE_BOOL = 2,
    WEIR_TYPE_INT = 3,
    WEIR_TYPE_FLOAT = 4,
    WEIR_TYPE_STRING = 5,
    WEIR_TYPE_BYTES = 6,
    WEIR_TYPE_ARRAY = 7,
    WEIR_TYPE_OBJECT = 8
};

enum { WEIR_TRACE = 0, WEIR_DEBUG = 1, WEIR_INFO = 2, WEIR_WARN = 3, WEIR_ERROR = 4 };

/* ---- exports -------------------------------------------------------------------------------------------------- */

#define WEIR_EXPORT(name) __attribute__((export_name(#name)))

#ifdef __cplusplus
#define WEIR_C extern "C"
#else
#define WEIR_C
#endif

/* WEIR_PROCESS(void) { … return a verdict; }   once per message
 * WEIR_INIT(void)    { … return 0 or, after weir_fail, another number: the module is refused then; }   once per instance
 * WEIR_TICK(void)    { … }                     about once a second, and once more before WEIR_CLOSE; there is no message
 * WEIR_CLOSE(void)   { … }                     before the instance goes; not after a fault */
#define WEIR_PROCESS WEIR_C WEIR_EXPORT(weir_process) int32_t weir_process
#define WEIR_INIT WEIR_C WEIR_EXPORT(weir_init) int32_t weir_init
#define WEIR_TICK WEIR_C WEIR_EXPORT(weir_tick) void weir_tick
#define WEIR_CLOSE WEIR_C WEIR_EXPORT(weir_close) void weir_close

/* ---- the host's functions, as ABI.md has them ------------------------------------------------------------------ */

#define WEIR_IMPORT(name) __attribute__((import_module("weir_v1"), import_name(#name)))

/* A get returns the full length of the value, and writes it only if all of it fits into cap bytes. */
WEIR_IMPORT(field_get) int32_t weir_field_get(const char *key, size_t kn, void *buf, size_t cap);
WEIR_IMPORT(field_type) int32_t weir_field_type(const char *key, size_t kn);
WEIR_IMPORT(field_get_i64) int32_t weir_field_get_i64(const char *key, size_t kn, int64_t *out);
WEIR_IMPORT(field_get_f64) int32_t weir_field_get_f64(const char *key, size_t kn, double *out);
WEIR_IMPORT(field_set) int32_t weir_field_set(const char *key, size_t kn, const void *val, size_t vn);
WEIR_IMPORT(field_set_json) int32_t weir_field_set_json(const char *key, size_t kn, const char *val, size_t vn);
WEIR_IMPORT(field_set_i64) int32_t weir_field_set_i64(const char *key, size_t kn, int64_t val);
WEIR_IMPORT(field_set_f64) int32_t weir_field_set_f64(const char *key, size_t kn, double val);
WEIR_IMPORT(field_unset) int32_t weir_field_unset(const char *key, size_t kn);
WEIR_IMPORT(field_count) int32_t weir_field_count(void);
WEIR_IMPORT(field_name) int32_t weir_field_name(int32_t i, void *buf, size_t cap);
WEIR_IMPORT(sd_get) int32_t weir_sd_get(const char *id, size_t in, const char *param, size_t pn, void *buf, size_t cap);
WEIR_IMPORT(sd_set) int32_t weir_sd_set(const char *id, size_t in, const char *param, size_t pn, const void *val, size_t vn);
WEIR_IMPORT(sd_unset) int32_t weir_sd_unset(const char *id, size_t in, const char *param, size_t pn);
WEIR_IMPORT(record_get) int32_t weir_record_get(void *buf, size_t cap);
WEIR_IMPORT(record_set) int32_t weir_record_set(const void *json, size_t n);
WEIR_IMPORT(emit) int32_t weir_emit_n(const void *json, size_t n);
WEIR_IMPORT(route) int32_t weir_route_n(const char *name, size_t nn);
WEIR_IMPORT(config_get) int32_t weir_config_get(void *buf, size_t cap);
WEIR_IMPORT(log) void weir_log_n(int32_t level, const char *text, size_t n);
WEIR_IMPORT(log_enabled) int32_t weir_log_enabled(int32_t level);
WEIR_IMPORT(metric_add) void weir_metric_add_n(const char *name, size_t nn, double v);
WEIR_IMPORT(metric_set) void weir_metric_set_n(const char *name, size_t nn, double v);
WEIR_IMPORT(kv_get) int32_t weir_kv_get_n(const char *key, size_t kn, void *buf, size_t cap);
WEIR_IMPORT(kv_set) int32_t weir_kv_set_n(const char *key, size_t kn, const void *val, size_t vn, int64_t ttl_ms);
WEIR_IMPORT(kv_del) int32_t weir_kv_del_n(const char *key, size_t kn);
WEIR_IMPORT(kv_add) int32_t weir_kv_add_n(const char *key, size_t kn, int64_t delta, int64_t *out);
WEIR_IMPORT(time_now) int64_t weir_time_now(void);  /* ns since 1970 */
WEIR_IMPORT(random) int64_t weir_random(void);
WEIR_IMPORT(fail) void weir_fail_n(const char *text, size_t n);

/* ---- helpers with C strings ------------------------------------------------------------------------------------- */

static char weir_buf[WEIR_BUFFER];

static inline size_t weir_len(const char *s) {
    size_t n = 0;
    while (s[n]) n++;
    return n;
}

/* What a get of a value of n bytes comes to: WEIR_TOO_LONG, with the reason, when it is more than cap. */
static inline int32_t weir_fits_(const char *key, int32_t n, size_t cap) {
    if (n > 0 && (size_t)n > cap) {
        static const char why[] = "a value is longer than the filter's buffer: ";
        char text[sizeof why + 64];
        size_t m = 0;
        for (size_t i = 0; why[i]; i++) text[m++] = why[i];
        for (size_t i = 0; key[i] && i < 64; i++) text[m++] = key[i];
        weir_fail_n(text, m);
        return WEIR_TOO_LONG;
    }
    return n;
}

/* weir_get_into reads the value of key. Returns its length, or an error; WEIR_TOO_LONG, with nothing written and the
 * reason told to weir_fail, when the value is longer than cap. */
static inline int32_t weir_get_into(const char *key, void *buf, size_t cap) {
    return weir_fits_(key, weir_field_get(key, weir_len(key), buf, cap), cap);
}

/* weir_get reads the value of key into weir_buf, over what was there. Otherwise as weir_get_into. */
static inline int32_t weir_get(const char *key) { return weir_get_into(key, weir_buf, sizeof weir_buf); }

/* weir_equals tells whether key has exactly this text; numbers are compared as decimal text. want has at most 4096
 * bytes. weir_buf is left alone. */
static inline bool weir_equals(const char *key, const char *want) {
    static char have[4096];
    size_t n = weir_len(want);
    if (n > sizeof have) __builtin_trap();
    int32_t got = weir_field_get(key, weir_len(key), have, n);
    if (got < 0 || (size_t)got != n) return false;
    for (size_t i = 0; i < n; i++)
        if (have[i] != want[i]) return false;
    return true;
}

/* These return 0, or an error. */
static inline int32_t weir_get_i64(const char *key, int64_t *out) { return weir_field_get_i64(key, weir_len(key), out); }
static inline int32_t weir_get_f64(const char *key, double *out) { return weir_field_get_f64(key, weir_len(key), out); }
static inline int32_t weir_set(const char *key, const char *text) { return weir_field_set(key, weir_len(key), text, weir_len(text)); }
static inline int32_t weir_set_n(const char *key, const void *text, size_t n) { return weir_field_set(key, weir_len(key), text, n); }
static inline int32_t weir_set_json(const char *key, const char *json) { return weir_field_set_json(key, weir_len(key), json, weir_len(json)); }
static inline int32_t weir_set_i64(const char *key, int64_t v) { return weir_field_set_i64(key, weir_len(key), v); }
static inline int32_t weir_set_f64(const char *key, double v) { return weir_field_set_f64(key, weir_len(key), v); }
static inline int32_t weir_set_bool(const char *key, bool v) { return weir_set_json(key, v ? "true" : "false"); }
static inline int32_t weir_unset(const char *key) { return weir_field_unset(key, weir_len(key)); }

/* One of WEIR_TYPE_…. */
static inline int32_t weir_type(const char *key) { return weir_field_type(key, weir_len(key)); }

static inline void weir_log(int32_t level, const char *text) { weir_log_n(level, text, weir_len(text)); }

/* weir_fail gives the reason for WEIR_REJECT, WEIR_FAILED or a refusing WEIR_INIT; the last one counts. */
static inline void weir_fail(const char *text) { weir_fail_n(text, weir_len(text)); }

/* weir_route sends the message only to this destination of its route, and to those named before. WEIR_ABSENT: the route
 * has none of this name. It is undone when the call fails or rejects. */
static inline int32_t weir_route(const char *name) { return weir_route_n(name, weir_len(name)); }

/* The filter's own metrics, weir_filter_user_<name>{filter="…"}, where a name is [a-zA-Z_][a-zA-Z0-9_]*; others, and NaN,
 * are ignored and logged once. At most 1000 names a filter. */
static inline void weir_metric_add(const char *name, double v) { weir_metric_add_n(name, weir_len(name), v); }
static inline void weir_metric_set(const char *name, double v) { weir_metric_set_n(name, weir_len(name), v); }

/* A store of keys and values that all instances of the filter share, and that lasts until weir ends: at most 10 000 keys
 * and 16 MiB a filter. It is not undone when a call fails. */

/* weir_kv_get reads a value into weir_buf, otherwise as weir_get. A number that weir_kv_add made is decimal text. */
static inline int32_t weir_kv_get(const char *key) {
    return weir_fits_(key, weir_kv_get_n(key, weir_len(key), weir_buf, sizeof weir_buf), sizeof weir_buf);
}

/* weir_kv_set keeps a text for ttl_ms; 0: without an end. Setting it again renews it. WEIR_TOO_MANY: no room. */
static inline int32_t weir_kv_set(const char *key, const char *text, int64_t ttl_ms) {
    return weir_kv_set_n(key, weir_len(key), text, weir_len(text), ttl_ms);
}

static inline int32_t weir_kv_del(const char *key) { return weir_kv_del_n(key, weir_len(key)); }

/* weir_kv_add adds to a number, at once for all instances, and writes the sum. What is absent starts at 0; the time that
 * the key has left stays as it is; beyond 64 bits it wraps. WEIR_WRONG_TYPE: the value is no number. */
static inline int32_t weir_kv_add(const char *key, int64_t delta, int64_t *sum) {
    return weir_kv_add_n(key, weir_len(key), delta, sum);
}

/* ---- one more message -------------------------------------------------------------------------------------------- */

/* weir_emit creates one more message behind this one, from record JSON (filters/ABI.md). What it leaves out is inherited
 * from the message as it stands now; in WEIR_TICK and WEIR_CLOSE nothing is, and a missing timestamp is the time, a
 * missing hostname weir's, a missing app_name the filter's name. It goes on at the next filter, also when the message
 * itself is dropped. When the call fails or rejects, it is gone. WEIR_INVALID: some part of it is wrong, nothing was
 * emitted. WEIR_TOO_MANY: over 1000 in a call, or no memory is free. */
static inline int32_t weir_emit(const char *json) { return weir_emit_n(json, weir_len(json)); }

/* A record under way, in a buffer of the caller's. Of a key that is given twice the last counts.
 *
 *     static char buf[65536];
 *     weir_record r = weir_record_in(buf, sizeof buf);
 *     weir_put_text(&r, "message", second, second_len);
 *     weir_put_i64(&r, "part", 2);
 *     if (weir_emit_record(&r) < 0) return WEIR_FAILED;
 */
typedef struct {
    char *buf;
    size_t cap, n; /* n > cap: it did not fit */
} weir_record;

static inline void weir_put_c_(weir_record *r, char c) {
    if (r->n < r->cap) r->buf[r->n++] = c;
    else r->n = r->cap + 1;
}

static inline void weir_put_quoted_(weir_record *r, const char *text, size_t n) {
    static const char hex[] = "0123456789abcdef";
    weir_put_c_(r, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ') {
            for (const char *p = "\\u00"; *p; p++) weir_put_c_(r, *p);
            weir_put_c_(r, hex[c >> 4]);
            weir_put_c_(r, hex[c & 15]);
            continue;
        }
        if (c == '"' || c == '\\') weir_put_c_(r, '\\');
        weir_put_c_(r, (char)c);
    }
    weir_put_c_(r, '"');
}

static inline void weir_put_key_(weir_record *r, const char *key) {
    weir_put_c_(r, r->n == 0 ? '{' : ',');
    weir_put_quoted_(r, key, weir_len(key));
    weir_put_c_(r, ':');
}

static inline weir_record weir_record_in(char *buf, size_t cap) {
    weir_record r = {buf, cap, 0};
    return r;
}

/* Bytes that are not UTF-8 are kept as they are. */
static inline void weir_put_text(weir_record *r, const char *key, const char *text, size_t n) {
    weir_put_key_(r, key);
    weir_put_quoted_(r, text, n);
}

static inline void weir_put_i64(weir_record *r, const char *key, int64_t v) {
    char digits[20];
    size_t n = 0;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do digits[n++] = (char)('0' + u % 10);
    while (u /= 10);
    weir_put_key_(r, key);
    if (v < 0) weir_put_c_(r, '-');
    while (n > 0) weir_put_c_(r, digits[--n]);
}

/* Any JSON value, also one that weir_get gave for an array or an object. */
static inline void weir_put_json(weir_record *r, const char *key, const char *json, size_t n) {
    weir_put_key_(r, key);
    for (size_t i = 0; i < n; i++) weir_put_c_(r, json[i]);
}

/* weir_emit_record emits it, as weir_emit does; WEIR_TOO_LONG, with the reason told to weir_fail, when it did not fit. */
static inline int32_t weir_emit_record(weir_record *r) {
    if (r->n == 0) weir_put_c_(r, '{');
    weir_put_c_(r, '}');
    if (r->n > r->cap) {
        weir_fail("a record is longer than the filter's buffer");
        return WEIR_TOO_LONG;
    }
    return weir_emit_n(r->buf, r->n);
}

/* ---- a reader for the filter's configuration, and for other JSON ------------------------------------------------- */

/* One JSON value inside a text that somebody else holds. It walks, it does not check: the host hands over JSON only. */
typedef struct {
    const char *p, *end;
} weir_json;

static inline const char *weir_json_space_(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* The place behind the value at p. Not recursive: depth costs no stack. */
static inline const char *weir_json_skip_(const char *p, const char *end) {
    int32_t depth = 0;
    while (p < end) {
        char c = *p;
        if (c == '"') {
            for (p++; p < end && *p != '"'; p++)
                if (*p == '\\') p++;
            if (p < end) p++;
            if (p > end) p = end;
        } else if (c == '{' || c == '[') {
            depth++;
            p++;
            continue;
        } else if (c == '}' || c == ']') {
            if (depth == 0) return p;
            depth--;
            p++;
        } else if (c == ',' || c == ':' || c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            if (depth == 0) return p;
            p++;
            continue;
        } else {
            while (p < end && *p != ',' && *p != '}' && *p != ']' && *p != ':' && *p != ' ' && *p != '\t' && *p != '\n' && *p != '\r') p++;
        }
        if (depth == 0) return p;
    }
    return end;
}

static inline weir_json weir_json_of(const char *text, size_t n) {
    weir_json v = {weir_json_space_(text, text + n), text + n};
    v.end = weir_json_skip_(v.p, v.end);
    return v;
}

/* weir_config returns the filter's `config:`; {} when there is none. One longer than WEIR_CONFIG_BUFFER gives an empty
 * value (weir_json_kind 0), and its reason goes to weir_fail. The text is read at each call and stays until the next. */
static inline weir_json weir_config(void) {
    static char text[WEIR_CONFIG_BUFFER];
    int32_t n = weir_config_get(text, sizeof text);
    if (n < 0 || (size_t)n > sizeof text) {
        weir_fail("the configuration is longer than the filter's buffer");
        n = 0;
    }
    return weir_json_of(text, (size_t)n);
}

/* weir_json_kind is '{' '[' '"' 't' 'f' 'n', '0' for a number, 0 for nothing. */
static inline char weir_json_kind(weir_json v) {
    if (v.p >= v.end) return 0;
    return *v.p == '-' || (*v.p >= '0' && *v.p <= '9') ? '0' : *v.p;
}

/* weir_json_items begins a walk over an object's members or an array's elements; of anything else there are none.
 *
 *     weir_json walk = weir_json_items(weir_config()), key, value;
 *     while (weir_json_member(&walk, &key, &value)) …        // objects
 *     while (weir_json_element(&walk, &value)) …             // arrays
 */
static inline weir_json weir_json_items(weir_json v) {
    char k = weir_json_kind(v);
    if (k != '{' && k != '[') v.end = v.p;
    else v.p++;
    return v;
}

static inline bool weir_json_element(weir_json *walk, weir_json *value) {
    const char *p = walk->p;
    while (p < walk->end && (*p == ',' || *p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    if (p >= walk->end || *p == ']' || *p == '}') return false;
    value->p = p;
    value->end = walk->p = weir_json_skip_(p, walk->end);
    return value->end > value->p;
}

static inline bool weir_json_member(weir_json *walk, weir_json *key, weir_json *value) {
    if (!weir_json_element(walk, key)) return false;
    const char *p = weir_json_space_(walk->p, walk->end);
    if (p >= walk->end || *p != ':') return false;
    p = weir_json_space_(p + 1, walk->end);
    value->p = p;
    value->end = walk->p = weir_json_skip_(p, walk->end);
    return value->end > value->p;
}

static inline int32_t weir_hex4_(const char *p, const char *end) {
    int32_t v = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i], d = c | 0x20;
        if (c >= '0' && c <= '9') v = v * 16 + (c - '0');
        else if (d >= 'a' && d <= 'f') v = v * 16 + (d - 'a' + 10);
        else return -1;
    }
    return v;
}

/* weir_json_text writes a string's text, escapes resolved, a lone surrogate as U+FFFD. Returns its full length, or
 * WEIR_WRONG_TYPE; what does not fit into cap is not written, so a length over cap means cut. */
static inline int32_t weir_json_text(weir_json v, char *buf, size_t cap) {
    if (weir_json_kind(v) != '"') return WEIR_WRONG_TYPE;
    size_t n = 0;
#define WEIR_PUT_(c) do { if (n < cap) buf[n] = (char)(c); n++; } while (0)
    for (const char *p = v.p + 1; p < v.end && *p != '"'; p++) {
        if (*p != '\\' || p + 1 >= v.end) {
            WEIR_PUT_(*p);
            continue;
        }
        int32_t u = -1;
        switch (*++p) {
        case 'b': WEIR_PUT_('\b'); continue;
        case 'f': WEIR_PUT_('\f'); continue;
        case 'n': WEIR_PUT_('\n'); continue;
        case 'r': WEIR_PUT_('\r'); continue;
        case 't': WEIR_PUT_('\t'); continue;
        case 'u':
            u = weir_hex4_(p + 1, v.end);
            if (u < 0) continue;
            p += 4;
            break;
        default: WEIR_PUT_(*p); continue;
        }
        if (u >= 0xD800 && u < 0xDC00 && v.end - p > 6 && p[1] == '\\' && p[2] == 'u') {
            int32_t low = weir_hex4_(p + 3, v.end);
            if (low >= 0xDC00 && low < 0xE000) {
                u = 0x10000 + ((u - 0xD800) << 10) + (low - 0xDC00);
                p += 6;
            }
        }
        if (u >= 0xD800 && u < 0xE000) u = 0xFFFD;
        if (u < 0x80) {
            WEIR_PUT_(u);
        } else if (u < 0x800) {
            WEIR_PUT_(0xC0 | u >> 6);
            WEIR_PUT_(0x80 | (u & 63));
        } else if (u < 0x10000) {
            WEIR_PUT_(0xE0 | u >> 12);
            WEIR_PUT_(0x80 | (u >> 6 & 63));
            WEIR_PUT_(0x80 | (u & 63));
        } else {
            WEIR_PUT_(0xF0 | u >> 18);
            WEIR_PUT_(0x80 | (u >> 12 & 63));
            WEIR_PUT_(0x80 | (u >> 6 & 63));
            WEIR_PUT_(0x80 | (u & 63));
        }
    }
#undef WEIR_PUT_
    return (int32_t)n;
}

/* weir_json_is tells whether v is the string want (for names: want without escapes in v). */
static inline bool weir_json_is(weir_json v, const char *want) {
    size_t n = weir_len(want);
    if (weir_json_kind(v) != '"' || (size_t)(v.end - v.p) != n + 2) return false;
    for (size_t i = 0; i < n; i++)
        if (v.p[i + 1] != want[i]) return false;
    return true;
}

/* weir_json_bool and weir_json_i64 return 0, or WEIR_WRONG_TYPE; an integer beyond int64 is WEIR_INVALID. */
static inline int32_t weir_json_bool(weir_json v, bool *out) {
    char k = weir_json_kind(v);
    if (k != 't' && k != 'f') return WEIR_WRONG_TYPE;
    *out = k == 't';
    return 0;
}

static inline int32_t weir_json_i64(weir_json v, int64_t *out) {
    if (weir_json_kind(v) != '0') return WEIR_WRONG_TYPE;
    const char *p = v.p;
    bool minus = *p == '-';
    uint64_t n = 0, most = minus ? (uint64_t)1 << 63 : INT64_MAX;
    for (p += minus; p < v.end; p++) {
        if (*p < '0' || *p > '9') return WEIR_WRONG_TYPE; /* a fraction or an exponent */
        uint64_t d = (uint64_t)(*p - '0');
        if (n > (most - d) / 10) return WEIR_INVALID;
        n = n * 10 + d;
    }
    *out = (int64_t)(minus ? 0 - n : n);
    return 0;
}

/* ---- the configuration into a struct ------------------------------------------------------------------------------ */

/* One setting: its name, and the variable that takes it and holds what counts when it is left out.
 *
 *     static struct { int64_t limit; bool strict; char field[64]; } set = {100, false, "message"};
 *     static const weir_setting settings[] = {
 *         WEIR_SETTING_I64("limit", set.limit),
 *         WEIR_SETTING_BOOL("strict", set.strict),
 *         WEIR_SETTING_TEXT("field", set.field),      // an array of char; the text ends with a NUL
 *     };
 *     WEIR_INIT(void) { return weir_settings(settings, sizeof settings / sizeof *settings); }
 */
typedef struct {
    const char *name;
    char kind;
    void *to;
    size_t cap;
} weir_setting;

#define WEIR_SETTING_I64(name, to) {name, 'i', &(to), sizeof(int64_t)}
#define WEIR_SETTING_BOOL(name, to) {name, 'b', &(to), sizeof(bool)}
#define WEIR_SETTING_TEXT(name, to) {name, 't', (to), sizeof(to)}

static inline void weir_wrong_(const char *a, const char *name, size_t n, const char *b) {
    char text[256];
    size_t m = 0;
    while (*a) text[m++] = *a++;
    for (size_t i = 0; i < n && i < 64; i++) text[m++] = name[i];
    while (*b && m < sizeof text) text[m++] = *b++;
    weir_fail_n(text, m);
}

/* weir_settings reads the filter's configuration. Returns 0; or 1 after weir_fail, for WEIR_INIT to return, when a setting
 * is of another type, does not fit, or is none of these. */
static inline int32_t weir_settings(const weir_setting *all, size_t count) {
    weir_json config = weir_config(), walk = weir_json_items(config), key, value;
    if (!weir_json_kind(config)) return 1; /* too long, and told */
    while (weir_json_member(&walk, &key, &value)) {
        const weir_setting *s = all;
        while (s < all + count && !weir_json_is(key, s->name)) s++;
        if (s == all + count) return weir_wrong_("config: there is no setting ", key.p, (size_t)(key.end - key.p), ""), 1;
        size_t n = weir_len(s->name);
        if (s->kind == 'i') {
            if (weir_json_i64(value, (int64_t *)s->to) < 0) return weir_wrong_("config: ", s->name, n, " must be an integer"), 1;
        } else if (s->kind == 'b') {
            if (weir_json_bool(value, (bool *)s->to) < 0) return weir_wrong_("config: ", s->name, n, " must be true or false"), 1;
        } else {
            int32_t len = weir_json_text(value, (char *)s->to, s->cap);
            if (len < 0) return weir_wrong_("config: ", s->name, n, " must be a text"), 1;
            if ((size_t)len >= s->cap) return weir_wrong_("config: ", s->name, n, " is too long a text"), 1;
            ((char *)s->to)[len] = 0;
        }
    }
    return 0;
}

#ifdef __cplusplus
}
#endif
#endif
