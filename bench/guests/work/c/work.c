/* work: reads two fields and sets one; a message of 1000 bytes or more is hashed sixteen times, which is a loop of 16 rounds
   a byte. The same in each language of the cost table. */
#define WEIR_BUFFER 8192
#include "weir.h"

WEIR_PROCESS(void) {
    char kind[64];
    int32_t n = weir_get("message");
    int32_t m = weir_get_into("app_name", kind, 48);
    if (n < 0 || m < 0) return WEIR_FAILED;
    kind[m++] = '/';
    for (int32_t i = 0; i < n && i < 8 && weir_buf[i] != ' '; i++) kind[m++] = weir_buf[i];
    if (n >= 1000) {
        uint32_t h = 2166136261u;
        for (int round = 0; round < 16; round++)
            for (int32_t i = 0; i < n; i++) h = (h ^ (uint8_t)weir_buf[i]) * 16777619u;
        kind[m++] = (char)('a' + h % 26);
    }
    return weir_set_n("kind", kind, (size_t)m) < 0 ? WEIR_FAILED : WEIR_KEEP;
}
