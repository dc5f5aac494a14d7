// A plug-in for Extism, written without a kit, that does what the message's text says. Its config names the fields.
#include <stdint.h>
#include <string.h>
#define X(n) __attribute__((import_module("extism:host/env"), import_name(#n)))
X(input_offset) uint64_t input_offset(void);
X(input_length) uint64_t input_length(void);
X(input_load_u8) uint32_t input_load_u8(uint64_t at);
X(input_load_u64) uint64_t input_load_u64(uint64_t at);
X(alloc) uint64_t x_alloc(uint64_t n);
X(free) void x_free(uint64_t at);
X(length) uint64_t x_length(uint64_t at);
X(load_u8) uint32_t load_u8(uint64_t at);
X(load_u64) uint64_t load_u64(uint64_t at);
X(store_u8) void store_u8(uint64_t at, uint32_t v);
X(store_u64) void store_u64(uint64_t at, uint64_t v);
X(output_set) void output_set(uint64_t at, uint64_t n);
X(error_set) void error_set(uint64_t at);
X(config_get) uint64_t config_get(uint64_t key);
X(var_get) uint64_t var_get(uint64_t key);
X(var_set) void var_set(uint64_t key, uint64_t value);
X(http_request) uint64_t http_request(uint64_t request, uint64_t body);
X(http_status_code) int32_t http_status_code(void);
X(log_trace) void log_trace(uint64_t at);
X(log_info) void log_info(uint64_t at);
X(log_warn) void log_warn(uint64_t at);
X(get_log_level) int32_t get_log_level(void);

static int started;
__attribute__((constructor)) static void start(void) { started = 1; }

static uint64_t put_n(const char *s, uint64_t n) {
    uint64_t at = x_alloc(n), i = 0;
    for (uint64_t v; i + 8 <= n; i += 8) memcpy(&v, s + i, 8), store_u64(at + i, v);
    for (; i < n; i++) store_u8(at + i, (uint8_t)s[i]);
    return at;
}

static uint64_t put(const char *s) { return put_n(s, strlen(s)); }

static void out(const char *s) { output_set(put(s), strlen(s)); }

static char in[1 << 16];

static void read_input(void) {
    uint64_t n = input_length(), i = 0;
    if (n >= sizeof in) __builtin_trap();
    for (uint64_t v; i + 8 <= n; i += 8) v = input_load_u64(i), memcpy(in + i, &v, 8);
    for (; i < n; i++) in[i] = (char)input_load_u8(i);
    in[n] = 0;
}

static int has(const char *s) { return strstr(in, s) != 0; }

// concat is a text made of three, of which the middle is a block.
static void out_block(const char *before, uint64_t block, const char *after) {
    char text[256];
    size_t n = strlen(before);
    memcpy(text, before, n);
    for (uint64_t i = 0, m = x_length(block); i < m && n < 200; i++) text[n++] = (char)load_u8(block + i);
    strcpy(text + n, after);
    out(text);
}

static uint64_t handle;

__attribute__((export_name("filter"))) int32_t filter(void) {
    read_input();
    if (!started || x_length(input_offset()) != input_length()) return 99;
    if (has("keep")) return 0;
    if (has("empty")) return output_set(0, 0), 0;
    if (has("replace")) return out(" {\"message\":\"new\",\"hostname\":\"h\",\"n\":1}\n"), 0;
    if (has("split")) return out("[ {\"message\":\"one\",\"secret\":1} ,{\"message\":\"two ]}\\\"\"},{\"message\":\"three\"}]"), 0;
    if (has("none")) return out(" [ ] "), 0;
    if (has("null")) return out("null"), 0;
    if (has("refuse")) return 1;
    if (has("why")) return error_set(put("because")), 1;
    if (has("taken back")) return error_set(put("because")), error_set(0), 0;
    if (has("error but 0")) return error_set(put("because")), 0;
    if (has("seven")) return 7;
    if (has("number")) return out("17"), 0;
    if (has("half")) return out("[{\"message\":\"one\"},{\"message\":"), 0;
    if (has("tail")) return out("[{\"message\":\"one\"}]x"), 0;
    if (has("items")) return out("[{\"message\":\"one\"},2]"), 0;
    if (has("config")) return out_block("{\"message\":\"", config_get(put("name")), "\"}"), 0;
    if (has("absent")) return config_get(put("no such")) != 0 || config_get(put("nothing")) != 0;
    if (has("numeric")) return out_block("{\"message\":\"\",\"n\":", config_get(put("n")), "}"), 0;
    if (has("count")) {
        uint64_t old = var_get(put("n"));
        char n = old ? (char)(load_u8(old) + 1) : '1';
        var_set(put("n"), put_n(&n, 1));
        return out_block("{\"message\":\"\",\"n\":", var_get(put("n")), "}"), 0;
    }
    if (has("forget")) return var_set(put("n"), 0), var_get(put("n")) != 0;
    if (has("fill")) {
        for (char n = 'a';; n++) var_set(put_n(&n, 1), x_alloc(200000));
    }
    if (has("over")) {
        uint64_t key = put("k");
        for (int i = 0; i < 100; i++) {
            uint64_t v = x_alloc(100000);
            var_set(key, v), x_free(v);
        }
        return 0;
    }
    if (has("http")) return (int32_t)http_request(put("{\"url\":\"http://192.0.2.1\"}"), 0);
    if (has("status")) return http_status_code();
    if (has("log")) return log_trace(put("t")), log_info(put("said")), log_warn(put("warned")), get_log_level() != 0;
    if (has("much")) {
        for (;;) x_alloc(100000);
    }
    if (has("huge")) return x_alloc(~0ull) != 0;
    if (has("again")) {
        for (int i = 0; i < 20000; i++) x_free(put("a line that is freed when it was logged"));
        return 0;
    }
    if (has("wild store")) return store_u64(1ull << 40, 1), 0;
    if (has("zero store")) return store_u8(0, 1), 0;
    if (has("wild load")) return (int32_t)load_u64(~0ull - 3) & 0;
    if (has("wild output")) return output_set(input_offset(), 1 << 30), 0;
    if (has("no block")) return config_get(12345) != 0;
    if (has("old block")) return handle && x_length(handle) ? 7 : 0;
    if (has("hold")) return handle = x_alloc(4000), 0;
    if (has("spin")) {
        for (;;) load_u8(input_offset());
    }
    return 98;
}
