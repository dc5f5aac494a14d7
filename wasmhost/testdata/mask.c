// Drops debug messages and masks the digits of the others: two reads and a write.
#include "weir.h"

WEIR_PROCESS(void) {
    if (weir_equals("severity", "7")) return WEIR_DROP;
    int32_t n = weir_get("message");
    if (n < 0) return WEIR_FAILED;
    for (int32_t i = 0; i < n; i++)
        if (weir_buf[i] >= '0' && weir_buf[i] <= '9') weir_buf[i] = '#';
    return weir_set_n("message", weir_buf, n) < 0 ? WEIR_FAILED : WEIR_KEEP;
}
