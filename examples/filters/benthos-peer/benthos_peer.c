// The sender's address becomes a field: a module for the wasm processor of Redpanda Connect.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define IMPORT(n) __attribute__((import_module("benthos_wasm"), import_name(#n)))
IMPORT(v0_msg_get_meta) uint64_t get_meta(const char *key, uint32_t kn);
IMPORT(v0_msg_set_meta) void set_meta(const char *key, uint32_t kn, const char *value, uint32_t vn);

// The host allocates what it hands over, and frees it after the message.
__attribute__((export_name("malloc"))) void *host_malloc(uint32_t n) { return malloc(n); }
__attribute__((export_name("free"))) void host_free(void *p) { free(p); }

static void set(const char *key, const char *value, uint32_t n) { set_meta(key, (uint32_t)strlen(key), value, n); }

// private reports whether an address is one of RFC 1918, of this machine, or of a unique local IPv6 network.
static bool private(const char *a, uint32_t n) {
    static const char *const begins[] = {"10.", "192.168.", "127.", "::1", "fc", "fd"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        uint32_t m = (uint32_t)strlen(begins[i]);
        if (n >= m && memcmp(a, begins[i], m) == 0) return true;
    }
    if (n < 7 || memcmp(a, "172.", 4) != 0 || a[6] != '.') return false;
    return (a[4] == '1' && a[5] >= '6' && a[5] <= '9') || a[4] == '2' || (a[4] == '3' && a[5] <= '1');
}

__attribute__((export_name("process"))) void process(void) {
    uint64_t lent = get_meta("peer", 4);
    const char *peer = (const char *)(uint32_t)(lent >> 32);
    uint32_t n = (uint32_t)lent;
    if (n == 0) return; // not from the network
    set("sender_address", peer, n);
    if (private(peer, n)) set("sender_network", "private", 7);
    else set("sender_network", "public", 6);
}
