/* touch: reads two fields and sets one, which is what a small filter does. */
#define WEIR_BUFFER 8192
#include "weir.h"

WEIR_PROCESS(void) {
    char kind[64];
    int32_t n = weir_get("message");
    int32_t m = weir_get_into("app_name", kind, 48);
    if (n < 0 || m < 0) return WEIR_FAILED;
    kind[m++] = '/';
    for (int32_t i = 0; i < n && i < 8 && weir_buf[i] != ' '; i++) kind[m++] = weir_buf[i];
    return weir_set_n("kind", kind, (size_t)m) < 0 ? WEIR_FAILED : WEIR_KEEP;
}
