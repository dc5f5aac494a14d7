// Each line of a text becomes a message of its own: an Extism plug-in without a development kit.
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define IMPORT(n) __attribute__((import_module("extism:host/env"), import_name(#n)))
IMPORT(input_length) uint64_t input_length(void);
IMPORT(input_load_u8) uint32_t input_load_u8(uint64_t at);
IMPORT(input_load_u64) uint64_t input_load_u64(uint64_t at);
IMPORT(alloc) uint64_t host_alloc(uint64_t n);
IMPORT(store_u8) void store_u8(uint64_t at, uint32_t byte);
IMPORT(store_u64) void store_u64(uint64_t at, uint64_t bytes);
IMPORT(output_set) void output_set(uint64_t at, uint64_t n);
IMPORT(error_set) void error_set(uint64_t at);
IMPORT(config_get) uint64_t config_get(uint64_t key);
IMPORT(length) uint64_t length(uint64_t at);
IMPORT(load_u8) uint32_t load_u8(uint64_t at);

#define MOST (256 * 1024)
static char in[MOST], out[4 * MOST];
static uint32_t used; // of out; over its size when it did not suffice

// give puts n bytes into memory of the host's and returns where.
static uint64_t give(const char *bytes, uint32_t n) {
    uint64_t at = host_alloc(n), i = 0;
    for (uint64_t v; i + 8 <= n; i += 8) memcpy(&v, bytes + i, 8), store_u64(at + i, v);
    for (; i < n; i++) store_u8(at + i, (uint8_t)bytes[i]);
    return at;
}

static int32_t fail(const char *why) {
    error_set(give(why, (uint32_t)strlen(why)));
    return 1;
}

static void put(const char *bytes, uint32_t n) {
    if (used + n <= sizeof out) memcpy(out + used, bytes, n);
    used = used + n <= sizeof out ? used + n : sizeof out + 1;
}

// text finds the value of the record's own "message": from is behind the quote before it, to is the one behind it.
static bool text(const char *json, uint32_t n, uint32_t *from, uint32_t *to) {
    static const char key[] = "\"message\":\"";
    int depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        char c = json[i];
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (c != '"') continue;
        bool found = depth == 1 && i + sizeof key - 1 < n && memcmp(json + i, key, sizeof key - 1) == 0;
        if (found) i += sizeof key - 2; // at the quote of the value
        uint32_t start = i + 1;
        for (i++; i < n && json[i] != '"'; i++) i += json[i] == '\\';
        if (found) return *from = start, *to = i, true;
    }
    return false;
}

// blank reports whether there is nothing but spaces in a line.
static bool blank(const char *line, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (line[i] != ' ') return false;
    return true;
}

__attribute__((export_name("lines"))) int32_t lines(void) {
    uint64_t n = input_length(), i = 0;
    if (n > MOST) return fail("the record is longer than the plug-in's buffer");
    for (uint64_t v; i + 8 <= n; i += 8) v = input_load_u64(i), memcpy(in + i, &v, 8);
    for (; i < n; i++) in[i] = (char)input_load_u8(i);

    uint64_t setting = config_get(give("blank", 5));
    bool keep_blank = setting != 0 && length(setting) == 4 && load_u8(setting) == 'k'; // keep

    uint32_t from, to;
    if (!text(in, (uint32_t)n, &from, &to)) return 0;
    uint32_t found = 0;
    used = 0;
    put("[", 1);
    for (uint32_t line = from, end = from;; end += in[end] == '\\' ? 2 : 1) {
        if (end < to && !(in[end] == '\\' && in[end + 1] == 'n')) continue;
        uint32_t m = end - line;
        if (m >= 2 && memcmp(in + end - 2, "\\r", 2) == 0) m -= 2;
        if (keep_blank || !blank(in + line, m)) {
            if (found++ > 0) put(",", 1);
            put(in, from), put(in + line, m), put(in + to, (uint32_t)n - to);
        }
        if (end >= to) break;
        line = end + 2;
    }
    put("]", 1);
    if (used > sizeof out) return fail("the lines are longer than the plug-in's buffer");
    if (found == 1 || found == 0) return 0; // as it came
    output_set(give(out, used), used);
    return 0;
}
