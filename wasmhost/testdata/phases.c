// Calls what is not available while it starts, and tells what it was answered.
#include "weir.h"

static int32_t early[8];
static int n;

static void try_all(void) {
    char b[8];
    int64_t out;
    early[n++] = weir_field_get("message", 7, b, sizeof b);
    early[n++] = weir_set("x", "y");
    early[n++] = weir_record_get(b, sizeof b);
    early[n++] = weir_field_get_i64("severity", 8, &out);
}

__attribute__((constructor)) static void construct(void) { try_all(); }

WEIR_INIT(void) {
    try_all();
    return weir_config_get(0, 0) == 2 ? 0 : 1;
}

WEIR_CLOSE(void) { weir_log(WEIR_WARN, "closed"); }

WEIR_PROCESS(void) {
    for (int i = 0; i < 8; i++)
        if (early[i] != WEIR_NOT_HERE) return WEIR_FAILED;
    return WEIR_DROP;
}
