// severity drops messages below a level:  config: {min: info}
// README.md beside this file has the settings.
#include "weir.h"

static int64_t min = 6; // the largest severity number that is kept: info

static const struct {
    const char *word;
    int64_t level;
} words[] = {
    {"emerg", 0}, {"panic", 0}, {"alert", 1}, {"crit", 2}, {"err", 3}, {"error", 3},
    {"warning", 4}, {"warn", 4}, {"notice", 5}, {"info", 6}, {"debug", 7},
};

static bool same(const char *text, int32_t n, const char *word) {
    if (weir_len(word) != (size_t)n) return false;
    for (int32_t i = 0; i < n; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'Z') c |= 0x20;
        if (c != word[i]) return false;
    }
    return true;
}

static bool level_of(weir_json v, int64_t *out) {
    if (weir_json_i64(v, out) == 0) return *out >= 0 && *out <= 7;
    char text[16];
    int32_t n = weir_json_text(v, text, sizeof text);
    if (n == 1 && text[0] >= '0' && text[0] <= '7') {
        *out = text[0] - '0';
        return true;
    }
    if (n < 0 || n > (int32_t)sizeof text) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (same(text, n, words[i].word)) {
            *out = words[i].level;
            return true;
        }
    }
    return false;
}

WEIR_INIT(void) {
    weir_json config = weir_config(), key, value;
    if (weir_json_kind(config) != '{') return weir_fail("severity: the configuration must be an object such as {min: info}"), 1;
    weir_json walk = weir_json_items(config);
    while (weir_json_member(&walk, &key, &value)) {
        if (!weir_json_is(key, "min")) return weir_fail("severity: unknown setting; there is only min"), 1;
        if (!level_of(value, &min))
            return weir_fail("severity: min must be 0 to 7 or one of emerg, alert, crit, err, warning, notice, info, debug"), 1;
    }
    return 0;
}

WEIR_PROCESS(void) {
    int64_t level;
    if (weir_get_i64("severity", &level) < 0) return WEIR_FAILED;
    return level > min ? WEIR_DROP : WEIR_KEEP;
}
