// cef turns events in ArcSight's CEF and IBM's LEEF into fields:
//     CEF:0|Acme|Wall|1.0|100|worm stopped|10|src=10.0.0.1 msg=all is well   ->   device_vendor … src, msg
//     LEEF:2.0|Acme|Wall|1.0|41|^|src=10.0.0.1^msg=all is well
// README.md beside this file has the settings.
#include "weir.h"

enum { MAX_PAIRS = 1000, MAX_KEY = 256, HEAD = 7, LOOK_FOR_START = 256 };

typedef struct {
    char *p;
    int32_t n;
} text;

typedef struct {
    text key, value;
} pair;

static struct {
    char prefix[64];
    int32_t prefix_len;
    bool numbers, labels, severity, strict;
} set = {{0}, 0, true, true, false, false};

static pair pairs[MAX_PAIRS];
static int32_t count;

static int32_t labelled[MAX_PAIRS]; // which of them are called …Label
static int32_t label_count;

// ---- configuration ----

static const char *read_setting(weir_json key, weir_json v) {
    if (weir_json_is(key, "prefix")) {
        set.prefix_len = weir_json_text(v, set.prefix, sizeof set.prefix);
        return set.prefix_len < 0 || set.prefix_len > (int32_t)sizeof set.prefix ? "cef: prefix must be a text of at most 64 bytes" : 0;
    }
    if (weir_json_is(key, "numbers")) return weir_json_bool(v, &set.numbers) < 0 ? "cef: numbers must be true or false" : 0;
    if (weir_json_is(key, "labels")) return weir_json_bool(v, &set.labels) < 0 ? "cef: labels must be true or false" : 0;
    if (weir_json_is(key, "severity")) return weir_json_bool(v, &set.severity) < 0 ? "cef: severity must be true or false" : 0;
    if (weir_json_is(key, "strict")) return weir_json_bool(v, &set.strict) < 0 ? "cef: strict must be true or false" : 0;
    return "cef: unknown setting; there are prefix, numbers, labels, severity, strict";
}

WEIR_INIT(void) {
    weir_json config = weir_config(), key, value;
    if (weir_json_kind(config) != '{') return weir_fail("cef: the configuration must be an object, of at most 16 KiB"), 1;
    weir_json walk = weir_json_items(config);
    while (weir_json_member(&walk, &key, &value)) {
        const char *wrong = read_setting(key, value);
        if (wrong) return weir_fail(wrong), 1;
    }
    return 0;
}

// ---- texts ----

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_key(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '[' || c == ']';
}

static bool same(text a, const char *p, int32_t n) {
    if (a.n != n) return false;
    for (int32_t i = 0; i < n; i++)
        if (a.p[i] != p[i]) return false;
    return true;
}

static bool is(text a, const char *want) { return same(a, want, (int32_t)weir_len(want)); }

static text trim(text t) {
    while (t.n > 0 && (*t.p == ' ' || *t.p == '\t')) t.p++, t.n--;
    while (t.n > 0 && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t' || t.p[t.n - 1] == '\r' || t.p[t.n - 1] == '\n')) t.n--;
    return t;
}

// unescape resolves \\ and a backslash before one of these characters, and \n and \r where lines may be. Any other
// backslash stays. It works in place: nothing grows.
static text unescape(text t, const char *these, bool lines) {
    int32_t m = 0;
    for (int32_t i = 0; i < t.n; i++) {
        char c = t.p[i], next = i + 1 < t.n ? t.p[i + 1] : 0;
        bool known = next == '\\';
        for (const char *s = these; *s; s++) known |= next == *s;
        if (c == '\\' && known) c = next, i++;
        else if (c == '\\' && lines && next == 'n') c = '\n', i++;
        else if (c == '\\' && lines && next == 'r') c = '\r', i++;
        t.p[m++] = c;
    }
    t.n = m;
    return t;
}

// integer reads a whole number of at most 18 digits; 007 is a text, not a number.
static bool integer(text t, int64_t *out) {
    int32_t i = t.n > 1 && t.p[0] == '-';
    if (t.n - i < 1 || t.n - i > 18 || (t.p[i] == '0' && t.n > 1)) return false;
    *out = 0;
    for (int32_t k = i; k < t.n; k++) {
        if (!is_digit(t.p[k])) return false;
        *out = *out * 10 + (t.p[k] - '0');
    }
    if (i) *out = -*out;
    return true;
}

// ---- reading an event ----

// starts tells whether "CEF:0|" or "LEEF:2.0|" stands at t; *at becomes the place of the version.
static bool starts(text t, const char *name, int32_t *at) {
    int32_t n = (int32_t)weir_len(name), i = n;
    if (t.n < n || !same((text){t.p, n}, name, n)) return false;
    while (i < t.n && t.p[i] == ' ') i++; // "CEF: 0|"
    *at = i;
    if (i >= t.n || !is_digit(t.p[i])) return false;
    while (i < t.n && (is_digit(t.p[i]) || t.p[i] == '.')) i++;
    return i < t.n && t.p[i] == '|';
}

// find returns the event from its version on. The name may stand behind a header that the parser left in the text, or
// have become the program's name ("CEF: 0|…" behind a host name).
static bool find(text t, bool *leef, text *event) {
    int32_t at;
    *leef = weir_equals("app_name", "LEEF");
    if ((*leef || weir_equals("app_name", "CEF")) && starts((text){t.p, t.n}, "", &at)) {
        *event = (text){t.p + at, t.n - at};
        return true;
    }
    for (int32_t i = 0; i < t.n && i < LOOK_FOR_START; i++) {
        if (i > 0 && t.p[i - 1] != ' ') continue;
        text rest = {t.p + i, t.n - i};
        *leef = starts(rest, "LEEF:", &at);
        if (!*leef && !starts(rest, "CEF:", &at)) continue;
        *event = (text){rest.p + at, rest.n - at};
        return true;
    }
    return false;
}

// cut takes the text up to the next bar that is not escaped off rest. The last part may end without one.
static text cut(text *rest) {
    int32_t i = 0;
    while (i < rest->n && rest->p[i] != '|') i += 1 + (rest->p[i] == '\\');
    if (i > rest->n) i = rest->n;
    text part = {rest->p, i};
    int32_t used = i < rest->n ? i + 1 : i;
    rest->p += used, rest->n -= used;
    return part;
}

static bool add(text key, text value) {
    if (key.n < 1 || key.n > MAX_KEY) return true;
    if (count == MAX_PAIRS) return weir_fail("cef: more than 1000 attributes"), false;
    pairs[count++] = (pair){key, value};
    return true;
}

// read_spaced takes key=value pairs apart whose values may have spaces: a key is a word before an equal sign that is
// not escaped. A word that cannot be a key belongs to the value (request=http://a/?b=c).
static bool read_spaced(text t, bool escapes) {
    int32_t word = 0, key = -1, key_end = 0, value = 0;
    bool plain = true;
    for (int32_t i = 0; i <= t.n; i++) {
        char c = i < t.n ? t.p[i] : 0;
        bool opens = c == '=' && plain && i > word;
        if ((opens || i == t.n) && key >= 0) {
            text v = trim((text){t.p + value, (opens ? word : t.n) - value});
            if (!add((text){t.p + key, key_end - key}, escapes ? unescape(v, "=|", true) : v)) return false;
        }
        if (opens) key = word, key_end = i, value = i + 1;
        if (c == ' ' || c == '\t') word = i + 1, plain = true;
        else plain = plain && is_key(c);
        if (c == '\\' && escapes && i + 1 < t.n) i++;
    }
    return true;
}

static bool at(text t, int32_t i, text what) {
    return t.n - i >= what.n && same((text){t.p + i, what.n}, what.p, what.n);
}

static bool has(text t, text what) {
    for (int32_t i = 0; i < t.n; i++)
        if (at(t, i, what)) return true;
    return false;
}

static bool read_delimited(text t, text delimiter) {
    for (int32_t from = 0, i = 0; i <= t.n; i++) {
        if (i < t.n && !at(t, i, delimiter)) continue;
        int32_t eq = from;
        while (eq < i && t.p[eq] != '=') eq++;
        if (eq < i && !add(trim((text){t.p + from, eq - from}), trim((text){t.p + eq + 1, i - eq - 1}))) return false;
        from = i + delimiter.n;
        if (i < t.n) i = from - 1;
    }
    return true;
}

static int32_t hex(char c) {
    if (is_digit(c)) return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// delimiter reads the part of LEEF 2.0 that names it: a character itself, or 0x5E, or x5E. A part that is none is the
// first of the attributes: some senders leave it out.
static bool delimiter(text part, text *out) {
    static char one;
    int32_t x = part.n > 1 && part.p[0] == '0' ? 1 : 0;
    if (part.n - x > 1 && part.n - x <= 3 && (part.p[x] == 'x' || part.p[x] == 'X')) {
        int32_t high = part.n - x == 3 ? hex(part.p[x + 1]) : 0, low = hex(part.p[part.n - 1]);
        if (high >= 0 && low >= 0) {
            one = (char)(high << 4 | low);
            *out = (text){&one, 1};
            return true;
        }
    }
    if (part.n > 4) return false;
    for (int32_t i = 0; i < part.n; i++)
        if (part.p[i] == '=' || part.p[i] == ' ') return false;
    if (part.n > 0) *out = part; // a character of up to four bytes
    return true;
}

static bool read_leef(text version, text rest) {
    static char tab = '\t', escaped_tab[] = "#011"; // the second is what rsyslog makes of it
    text by = {&tab, 1}, before = rest;
    if (version.p[0] != '1') {
        text part = cut(&rest);
        if (part.p + part.n >= before.p + before.n || !delimiter(part, &by)) rest = before;
    }
    if (by.p == &tab && !has(rest, by)) {
        by = (text){escaped_tab, 4};
        if (!has(rest, by)) return read_spaced(rest, false); // a relay made spaces of the tabs
    }
    return read_delimited(rest, by);
}

// ---- writing fields ----

// put sets a field. A name of the message's own gets _ behind it: the sender may not write there.
static bool put(text key, text value, bool number) {
    static const char *const own[] = {"timestamp", "facility", "severity", "hostname", "app_name", "proc_id", "msg_id", "message",
                                      "received_at", "structured_data", "raw", "source", "listener", "peer", "message_b64"};
    static char name[sizeof set.prefix + MAX_KEY + 1];
    int32_t n = 0, err;
    for (int32_t i = 0; i < set.prefix_len; i++) name[n++] = set.prefix[i];
    for (int32_t i = 0; i < key.n; i++) name[n++] = key.p[i];
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (is((text){name, n}, own[i])) {
            name[n++] = '_';
            break;
        }
    int64_t whole;
    if (number && set.numbers && integer(value, &whole)) err = weir_field_set_i64(name, (size_t)n, whole);
    else err = weir_field_set(name, (size_t)n, value.p, (size_t)value.n);
    if (err == WEIR_INVALID) return true; // a label that is no key: the text still has it
    if (err < 0) weir_fail(err == WEIR_TOO_MANY ? "cef: too many fields" : "cef: a field could not be set");
    return err == 0;
}

static text literal(const char *s) { return (text){(char *)s, (int32_t)weir_len(s)}; }

static bool is_label(text key) { return key.n > 5 && is((text){key.p + key.n - 5, 5}, "Label"); }

// label returns the text of the attribute that is called like key with Label behind it: cs1Label names cs1.
static text label(text key) {
    for (int32_t i = 0; i < label_count; i++) {
        pair one = pairs[labelled[i]];
        if (same((text){one.key.p, one.key.n - 5}, key.p, key.n) && one.value.n > 0 && one.value.n <= MAX_KEY) return one.value;
    }
    return key;
}

static bool names_another(text key) {
    if (!set.labels || !is_label(key)) return false;
    for (int32_t i = 0; i < count; i++)
        if (same(pairs[i].key, key.p, key.n - 5)) return true;
    return false;
}

// level makes a syslog severity of 0 to 10 or a word; -1 when it is neither.
static int64_t level(text t) {
    static const struct {
        const char *word;
        int64_t level;
    } words[] = {{"Low", 6}, {"Medium", 4}, {"High", 3}, {"Very-High", 2}};
    int64_t n;
    if (integer(t, &n)) return n < 0 || n > 10 ? -1 : n <= 3 ? 6 : n <= 6 ? 4 : n <= 8 ? 3 : 2;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(t, words[i].word)) return words[i].level;
    return -1;
}

static bool write(bool leef, text version, const text *head) {
    static const char *const names[] = {0, "device_vendor", "device_product", "device_version", "event_id", "event_name", "event_severity"};
    static char format[64];
    text kind = literal(leef ? "LEEF:" : "CEF:"), grade = leef ? (text){0, 0} : head[HEAD - 1];
    int32_t n = 0;
    for (int32_t i = 0; i < kind.n; i++) format[n++] = kind.p[i];
    for (int32_t i = 0; i < version.n && n < (int32_t)sizeof format; i++) format[n++] = version.p[i];
    if (!put(literal("event_format"), (text){format, n}, false)) return false;
    for (int32_t i = 1; i < (leef ? 5 : HEAD); i++)
        if (!put(literal(names[i]), head[i], i == HEAD - 1)) return false;
    label_count = 0;
    for (int32_t i = 0; set.labels && i < count; i++)
        if (is_label(pairs[i].key)) labelled[label_count++] = i;
    for (int32_t i = 0; i < count; i++) {
        if (leef && is(pairs[i].key, "sev")) grade = pairs[i].value;
        if (!names_another(pairs[i].key) && !put(label(pairs[i].key), pairs[i].value, true)) return false;
    }
    int64_t severity = set.severity ? level(grade) : -1;
    return severity < 0 || weir_set_i64("severity", severity) == 0;
}

WEIR_PROCESS(void) {
    int32_t n = weir_get("message");
    if (n < 0) return n == WEIR_ABSENT ? WEIR_KEEP : WEIR_FAILED;
    bool leef;
    text rest, head[HEAD];
    if (!find((text){weir_buf, n}, &leef, &rest)) return WEIR_KEEP;
    int32_t parts = leef ? 5 : HEAD, got = 0;
    while (got < parts && rest.n > 0) head[got++] = cut(&rest);
    if (got < parts) {
        if (!set.strict) return WEIR_KEEP;
        return weir_fail("cef: the event's header ends early"), WEIR_REJECT;
    }
    for (int32_t i = 0; i < parts; i++) head[i] = trim(unescape(head[i], "|", false));
    count = 0;
    if (!(leef ? read_leef(head[0], rest) : read_spaced(rest, true))) return WEIR_FAILED;
    return write(leef, head[0], head) ? WEIR_KEEP : WEIR_FAILED;
}
