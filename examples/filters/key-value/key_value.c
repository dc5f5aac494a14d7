// key_value turns the key=value pairs of a message into fields:
//     action=login user="Bob Smith" ms=12   ->   action, user, ms
// README.md beside this file has the settings.
#include "weir.h"

static char prefix[64];
static int32_t prefix_len;
static bool numbers = true;
static int64_t most = 64;

WEIR_INIT(void) {
    weir_json walk = weir_json_items(weir_config()), key, value;
    while (weir_json_member(&walk, &key, &value)) {
        if (weir_json_is(key, "prefix")) {
            prefix_len = weir_json_text(value, prefix, sizeof prefix);
            if (prefix_len < 0 || prefix_len > (int32_t)sizeof prefix) return weir_fail("key_value: prefix must be a text of at most 64 bytes"), 1;
        } else if (weir_json_is(key, "numbers")) {
            if (weir_json_bool(value, &numbers) < 0) return weir_fail("key_value: numbers must be true or false"), 1;
        } else if (weir_json_is(key, "most")) {
            if (weir_json_i64(value, &most) < 0 || most < 1 || most > 1000) return weir_fail("key_value: most must be 1 to 1000"), 1;
        } else {
            return weir_fail("key_value: unknown setting; there are prefix, numbers, most"), 1;
        }
    }
    return 0;
}

static bool is_key(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// integer reads t[0..n) as a whole number that fits into 18 digits; 007 is a text, not a number.
static bool integer(const char *t, int32_t n, int64_t *out) {
    int32_t i = n > 1 && t[0] == '-';
    if (n - i < 1 || n - i > 18 || (t[i] == '0' && n > 1)) return false;
    *out = 0;
    for (int32_t k = i; k < n; k++) {
        if (t[k] < '0' || t[k] > '9') return false;
        *out = *out * 10 + (t[k] - '0');
    }
    if (i) *out = -*out;
    return true;
}

// unquote resolves \" and \\ of a quoted value in place and returns its new length.
static int32_t unquote(char *t, int32_t n) {
    int32_t m = 0;
    for (int32_t i = 0; i < n; i++) {
        if (t[i] == '\\' && i + 1 < n && (t[i + 1] == '"' || t[i + 1] == '\\')) i++;
        t[m++] = t[i];
    }
    return m;
}

static bool is_message(const char *key) {
    const char *want = "message";
    for (int32_t i = 0; i < 7; i++)
        if (key[i] != want[i]) return false;
    return true;
}

static int32_t put(const char *key, int32_t kn, char *value, int32_t vn, bool quoted) {
    static char name[sizeof prefix + 256];
    int32_t n = 0;
    for (int32_t i = 0; i < prefix_len; i++) name[n++] = prefix[i];
    for (int32_t i = 0; i < kn; i++) name[n++] = key[i];
    int64_t number;
    if (numbers && !quoted && integer(value, vn, &number)) return weir_field_set_i64(name, (size_t)n, number);
    return weir_field_set(name, (size_t)n, value, (size_t)(quoted ? unquote(value, vn) : vn));
}

WEIR_PROCESS(void) {
    int32_t n = weir_get("message");
    if (n < 0) return n == WEIR_ABSENT ? WEIR_KEEP : WEIR_FAILED;
    char *t = weir_buf;
    int64_t found = 0;
    for (int32_t i = 0; i < n && found < most; i++) {
        int32_t key = i;
        if (!is_key(t[i]) || (i > 0 && t[i - 1] != ' ' && t[i - 1] != ',' && t[i - 1] != '(' && t[i - 1] != '[')) continue;
        while (i < n && is_key(t[i])) i++;
        if (i >= n || t[i] != '=' || i - key > 256) continue;
        int32_t key_end = i++;
        bool quoted = i < n && t[i] == '"';
        int32_t value = quoted ? ++i : i;
        if (quoted)
            for (; i < n && t[i] != '"'; i++) i += t[i] == '\\';
        else
            while (i < n && t[i] != ' ' && t[i] != ',' && t[i] != ')' && t[i] != ']') i++;
        if (i > n || (quoted && i >= n)) break; // no closing quote: the rest is no pair
        if (prefix_len == 0 && key_end - key == 7 && is_message(t + key)) continue; // it would replace the whole text
        // A key that is one of the message's own and does not fit there stays in the text: it is not an error.
        int32_t err = put(t + key, key_end - key, t + value, i - value, quoted);
        if (err == WEIR_TOO_MANY) return weir_fail("key_value: too many fields"), WEIR_FAILED;
        if (err == 0) found++;
    }
    return WEIR_KEEP;
}
