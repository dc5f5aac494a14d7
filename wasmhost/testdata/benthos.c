// A module for the wasm processor of Redpanda Connect that does what the message's text says.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define B(n) __attribute__((import_module("benthos_wasm"), import_name(#n)))
B(v0_msg_as_bytes) uint64_t as_bytes(void);
B(v0_msg_set_bytes) void set_bytes(const char *p, uint32_t n);
B(v0_msg_get_meta) uint64_t get_meta(const char *k, uint32_t kn);
B(v0_msg_set_meta) void set_meta(const char *k, uint32_t kn, const char *v, uint32_t vn);

static int open_allocations, started;
__attribute__((constructor)) static void start(void) { started = 1; }

__attribute__((export_name("malloc"))) void *allocate(uint32_t n) {
    open_allocations++;
    return malloc(n);
}
__attribute__((export_name("free"))) void release(void *p) {
    open_allocations--;
    free(p);
}

static void set(const char *s) { set_bytes(s, strlen(s)); }
static void meta(const char *k, const char *v) { set_meta(k, strlen(k), v, strlen(v)); }

static char buf[4096];
static const char *text(uint64_t lent) {
    memcpy(buf, (const char *)(uint32_t)(lent >> 32), (uint32_t)lent);
    buf[(uint32_t)lent] = 0;
    return buf;
}
static const char *get(const char *k) { return text(get_meta(k, strlen(k))); }

__attribute__((export_name("process"))) void process(void) {
    if (!started || open_allocations != 0) __builtin_trap(); // what the host allocated for the last message is freed
    uint64_t lent = as_bytes();
    char in[4096];
    strcpy(in, text(lent));
#define HAS(s) (strstr(in, s) != 0)
    if (HAS("replace")) set("{\"message\":\"new\",\"n\":1}\n");
    if (HAS("twice")) {
        set("no JSON");
        if (strcmp(text(as_bytes()), "no JSON")) __builtin_trap();
        meta("a", "1"), meta("b", ""), meta("a", "2");
        set("{\"message\":\"second\"}");
        if (strcmp(get("a"), "2") || strcmp(get("b"), "")) __builtin_trap();
    }
    if (HAS("origin")) meta("seen", get("peer"));
    if (HAS("nothing there")) meta("seen", get("no such"));
    if (HAS("own")) meta("hostname", "h9"), meta("severity", "err"), meta("facility", "99"), meta("peer", "me");
    if (HAS("bytes")) meta("b", "\xff");
    if (HAS("bad name")) meta("\xff", "x");
    if (HAS("empty")) set(" ");
    if (HAS("number")) set("17");
    if (HAS("many")) {
        for (int i = 0; i < 1001; i++) set_meta((const char *)&i, 4, "x", 1);
    }
    if (HAS("again")) {
        for (;;) as_bytes();
    }
    if (HAS("wild set")) set_bytes((const char *)0x7fffffff, 16);
    if (HAS("wild key")) get_meta((const char *)16, 0xfffffff0);
    if (HAS("spin")) {
        for (;;) get_meta("x", 1);
    }
}

// second is for the setting function:, and returns what nobody looks at.
__attribute__((export_name("second"))) int32_t second(void) {
    set("{\"message\":\"second\"}");
    return 5;
}
