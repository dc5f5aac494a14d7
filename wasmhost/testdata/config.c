// Makes its configuration the message.
#include "weir.h"

WEIR_PROCESS(void) {
    int32_t n = weir_config_get(weir_buf, sizeof weir_buf);
    return weir_set_n("message", weir_buf, n) < 0 ? WEIR_FAILED : WEIR_KEEP;
}
