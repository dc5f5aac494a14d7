/* An Extism plug-in that does what touch.c does, on JSON: it finds two members and adds one. */
#include <stdint.h>
#include <string.h>
#define X(n) __attribute__((import_module("extism:host/env"), import_name(#n)))
X(input_length) uint64_t input_length(void);
X(input_load_u8) uint32_t input_load_u8(uint64_t at);
X(input_load_u64) uint64_t input_load_u64(uint64_t at);
X(alloc) uint64_t block(uint64_t n);
X(store_u8) void store_u8(uint64_t at, uint32_t v);
X(store_u64) void store_u64(uint64_t at, uint64_t v);
X(output_set) void output_set(uint64_t at, uint64_t n);

static char in[64 << 10], out[64 << 10];

__attribute__((export_name("filter"))) int32_t filter(void) {
    uint64_t n = input_length(), i = 0, v;
    if (n < 2 || n + 100 > sizeof in) return 1;
    for (; i + 8 <= n; i += 8) v = input_load_u64(i), memcpy(in + i, &v, 8);
    for (; i < n; i++) in[i] = (char)input_load_u8(i);
    in[n] = 0;
    const char *message = strstr(in, "\"message\":\""), *app = strstr(in, "\"app_name\":\"");
    if (!message || !app) return 1;
    memcpy(out, in, n - 1);
    char *to = out + n - 1;
    memcpy(to, ",\"kind\":\"", 9);
    to += 9;
    for (app += 12; *app != '"' && *app != '\\' && to < out + n + 60; app++) *to++ = *app;
    *to++ = '/';
    for (i = 11; i < 19 && message[i] != ' ' && message[i] != '"' && message[i] != '\\'; i++) *to++ = message[i];
    memcpy(to, "\"}", 2);
    n = (uint64_t)(to + 2 - out);
    uint64_t at = block(n);
    for (i = 0; i + 8 <= n; i += 8) memcpy(&v, out + i, 8), store_u64(at + i, v);
    for (; i < n; i++) store_u8(at + i, (uint8_t)out[i]);
    output_set(at, n);
    return 0;
}
