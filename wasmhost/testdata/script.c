// Does to the message what the message says: four bytes an edit. The first message byte says how the call ends.
#include "weir.h"

static const char *const keys[] = {"message", "hostname", "app_name", "proc_id", "msg_id", "timestamp", "severity", "facility",
                                   "a", "b", "c", "d", "raw", "structured_data", "x y", "level"};
static unsigned char script[4096];
static char record[16384];

WEIR_PROCESS(void) {
    int32_t n = weir_field_get("message", 7, script, sizeof script);
    if (n < 1 || n > (int32_t)sizeof script) return WEIR_KEEP;
    for (int32_t i = 1; i + 4 <= n; i += 4) {
        const char *key = keys[script[i + 1] % 16];
        const char *param = keys[script[i + 1] / 16];
        int32_t from = script[i + 2] % n, len = script[i + 3] % 64;
        if (from + len > n) len = n - from;
        const char *val = (const char *)script + from;
        switch (script[i] % 9) {
        case 0: weir_set_n(key, val, len); break;
        case 1: weir_set_i64(key, from - len); break;
        case 2: weir_set_f64(key, from / 3.0); break;
        case 3: weir_unset(key); break;
        case 4: weir_field_set_json(key, weir_len(key), val, len); break;
        case 5: weir_sd_set(key, weir_len(key), param, weir_len(param), val, len); break;
        case 6: weir_sd_unset(key, weir_len(key), param, script[i + 3] % 2 ? weir_len(param) : 0); break;
        case 7: weir_record_set(val, len); break;
        case 8: {
            int32_t size = weir_record_get(record, sizeof record);
            if (size > 0 && size <= (int32_t)sizeof record && weir_record_set(record, size) != 0) __builtin_trap();
        }
        }
    }
    if (script[0] & 1) __builtin_trap();
    return script[0] & 2 ? WEIR_FAILED : WEIR_KEEP;
}
