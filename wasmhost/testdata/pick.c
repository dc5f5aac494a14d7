// Reads two values and sets one: the first word of the message becomes the field "word".
#include "weir.h"

WEIR_PROCESS(void) {
    char host[256];
    int32_t h = weir_get_into("hostname", host, sizeof host);
    int32_t n = weir_get("message");
    if (n < 0) return WEIR_FAILED;
    if (h > 0 && host[0] == '-') return WEIR_DROP;
    int32_t i = 0;
    while (i < n && weir_buf[i] != ' ') i++;
    return weir_set_n("word", weir_buf, i) < 0 ? WEIR_FAILED : WEIR_KEEP;
}
