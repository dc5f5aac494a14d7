// acs_record reads log records in the XML of ALMA Common Software:
//     <Info TimeStamp="2006-03-28T00:26:29.238" Host="gas" Process="maciContainer" Line="1454"><![CDATA[ready]]></Info>
// The element becomes the severity, TimeStamp, Host and Process the message's own, the rest fields, the content the text.
// README.md beside this file has the settings.
#include "weir.h"

enum { MAX_PAIRS = 256, MAX_KEY = 256 };

typedef struct {
    char *p;
    int32_t n;
} text;

typedef struct {
    text key, value;
    bool data; // <Data Name="key">value</Data>, not an attribute
} pair;

static struct {
    char prefix[64];
    int32_t prefix_len;
    bool replace, strict;
} set = {{0}, 0, true, false};

static struct {
    int64_t severity;
    pair pairs[MAX_PAIRS];
    int32_t count;
    char body[WEIR_BUFFER]; // the content, decoded
    int32_t body_len;
} record;

// ---- configuration ----

WEIR_INIT(void) {
    weir_json config = weir_config(), key, value;
    if (weir_json_kind(config) != '{') return weir_fail("acs_record: the configuration must be an object, of at most 16 KiB"), 1;
    weir_json walk = weir_json_items(config);
    while (weir_json_member(&walk, &key, &value)) {
        if (weir_json_is(key, "prefix")) {
            set.prefix_len = weir_json_text(value, set.prefix, sizeof set.prefix);
            if (set.prefix_len < 0 || set.prefix_len > (int32_t)sizeof set.prefix) return weir_fail("acs_record: prefix must be a text of at most 64 bytes"), 1;
        } else if (weir_json_is(key, "replace")) {
            if (weir_json_bool(value, &set.replace) < 0) return weir_fail("acs_record: replace must be true or false"), 1;
        } else if (weir_json_is(key, "strict")) {
            if (weir_json_bool(value, &set.strict) < 0) return weir_fail("acs_record: strict must be true or false"), 1;
        } else {
            return weir_fail("acs_record: unknown setting; there are prefix, replace, strict"), 1;
        }
    }
    return 0;
}

// ---- texts ----

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == ':';
}

static text word(const char *s) { return (text){(char *)s, (int32_t)weir_len(s)}; }

static bool same(text a, text b) {
    if (a.n != b.n) return false;
    for (int32_t i = 0; i < a.n; i++)
        if (a.p[i] != b.p[i]) return false;
    return true;
}

// at tells whether what stands at the start of t.
static bool at(text t, const char *what) {
    text w = word(what);
    return t.n >= w.n && same((text){t.p, w.n}, w);
}

static void skip(text *t, int32_t n) { t->p += n, t->n -= n; }

static void skip_space(text *t) {
    while (t->n > 0 && is_space(*t->p)) skip(t, 1);
}

static int32_t put_rune(char *to, uint32_t u) {
    if (u < 0x80) return to[0] = (char)u, 1;
    if (u < 0x800) return to[0] = (char)(0xC0 | u >> 6), to[1] = (char)(0x80 | (u & 63)), 2;
    if (u < 0x10000) return to[0] = (char)(0xE0 | u >> 12), to[1] = (char)(0x80 | (u >> 6 & 63)), to[2] = (char)(0x80 | (u & 63)), 3;
    return to[0] = (char)(0xF0 | u >> 18), to[1] = (char)(0x80 | (u >> 12 & 63)), to[2] = (char)(0x80 | (u >> 6 & 63)), to[3] = (char)(0x80 | (u & 63)), 4;
}

// reference decodes &#65; and &#x41; at t into to and returns the length of the reference; 0 when it is none. The
// character never needs more bytes than its reference has.
static int32_t reference(text t, char *to, int32_t *written) {
    bool hex = at(t, "&#x");
    int32_t i = hex ? 3 : 2, from = i;
    uint32_t u = 0;
    for (; i < t.n && i < from + 7; i++) {
        char c = t.p[i], low = c | 0x20;
        if (c >= '0' && c <= '9') u = u * (hex ? 16 : 10) + (uint32_t)(c - '0');
        else if (hex && low >= 'a' && low <= 'f') u = u * 16 + (uint32_t)(low - 'a' + 10);
        else break;
    }
    if (i == from || i >= t.n || t.p[i] != ';' || u == 0 || u > 0x10FFFF || (u >= 0xD800 && u < 0xE000)) return 0;
    *written = put_rune(to, u);
    return i + 1;
}

// decode resolves XML's references from t to to, which may be t.p, and returns the length. What is none stays.
static int32_t decode(text t, char *to) {
    static const struct {
        const char *name;
        char c;
    } named[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    int32_t n = 0;
    while (t.n > 0) {
        int32_t used = 0, written = 1;
        if (*t.p == '&') {
            for (size_t i = 0; i < sizeof named / sizeof *named && !used; i++)
                if (at(t, named[i].name)) used = (int32_t)weir_len(named[i].name), to[n] = named[i].c;
            if (!used && at(t, "&#")) used = reference(t, to + n, &written);
        }
        if (!used) used = 1, written = 1, to[n] = *t.p;
        n += written;
        skip(&t, used);
    }
    return n;
}

// ---- reading a record; every reader returns false where the text is no record ----

static bool level(text name) {
    static const struct {
        const char *name;
        int64_t severity;
    } levels[] = {{"Trace", 7}, {"Delouse", 7}, {"Debug", 7}, {"Info", 6}, {"Notice", 5}, {"Warning", 4},
                  {"Error", 3}, {"Critical", 2}, {"Alert", 1}, {"Emergency", 0}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (same(name, word(levels[i].name))) return record.severity = levels[i].severity, true;
    return false;
}

static bool read_name(text *t, text *name) {
    *name = (text){t->p, 0};
    while (t->n > 0 && is_name(*t->p)) skip(t, 1), name->n++;
    return name->n > 0;
}

static bool add(text key, text value, bool data) {
    if (record.count == MAX_PAIRS || key.n > MAX_KEY) return false;
    record.pairs[record.count++] = (pair){key, value, data};
    return true;
}

// read_tag reads attributes up to the end of the tag. Values stand in quotes.
static bool read_tag(text *t, bool data, bool *empty) {
    for (;;) {
        skip_space(t);
        *empty = at(*t, "/>");
        if (*empty || at(*t, ">")) return skip(t, *empty ? 2 : 1), true;
        text key, value;
        if (!read_name(t, &key)) return false;
        skip_space(t);
        if (!at(*t, "=")) return false;
        skip(t, 1);
        skip_space(t);
        if (!at(*t, "\"") && !at(*t, "'")) return false;
        char quote = *t->p;
        skip(t, 1);
        value = (text){t->p, 0};
        while (value.n < t->n && t->p[value.n] != quote) value.n++;
        if (value.n == t->n) return false;
        skip(t, value.n + 1);
        value.n = decode(value, value.p);
        if (!add(key, value, data)) return false;
    }
}

// cdata reads <![CDATA[…]]> at t; one without an end goes to the end of the text.
static text cdata(text *t) {
    skip(t, 9);
    text inside = {t->p, 0};
    while (t->n > 0 && !at(*t, "]]>")) skip(t, 1), inside.n++;
    skip(t, t->n > 0 ? 3 : 0);
    return inside;
}

// content reads text and CDATA up to the next other tag, to to, without the white space around it.
static int32_t content(text *t, char *to) {
    int32_t n = 0, solid = 0; // what CDATA gave is not trimmed
    while (t->n > 0) {
        if (at(*t, "<![CDATA[")) {
            text raw = cdata(t);
            for (int32_t i = 0; i < raw.n; i++) to[n++] = raw.p[i];
            solid = n;
            continue;
        }
        if (*t->p == '<') break;
        if (n == 0) skip_space(t);
        text plain = {t->p, 0};
        while (t->n > 0 && *t->p != '<') skip(t, 1), plain.n++;
        n += decode(plain, to + n);
    }
    while (n > solid && is_space(to[n - 1])) n--;
    return n;
}

// read_data reads <Data Name="key">value</Data>, whose value may be CDATA.
static bool read_data(text *t) {
    bool empty;
    int32_t before = record.count;
    skip(t, 5);
    if (!read_tag(t, true, &empty) || record.count != before + 1 || !same(record.pairs[before].key, word("Name"))) return false;
    record.pairs[before].key = record.pairs[before].value;
    record.pairs[before].value = (text){t->p, 0};
    if (empty) return true;
    char *to = t->p; // what is read stands further on
    record.pairs[before].value.n = content(t, to);
    if (!at(*t, "</Data>")) return false;
    skip(t, 7);
    return record.pairs[before].key.n <= MAX_KEY;
}

// read_body reads up to the end tag, behind which there may be nothing; a record that was cut may have none.
static bool read_body(text *t, text name) {
    while (t->n > 0) {
        if (at(*t, "</")) {
            skip(t, 2);
            if (t->n <= name.n || !same((text){t->p, name.n}, name) || t->p[name.n] != '>') return false;
            skip(t, name.n + 1);
            skip_space(t);
            return t->n == 0;
        }
        if (at(*t, "<Data") && t->n > 5 && is_space(t->p[5])) {
            if (!read_data(t)) return false;
            continue;
        }
        if (*t->p == '<' && !at(*t, "<![CDATA[")) return false;
        // A space stands for the Data between two pieces; its tag was longer than that.
        int32_t gap = record.body_len > 0, more;
        more = content(t, record.body + record.body_len + gap);
        if (more > 0 && gap) record.body[record.body_len] = ' ';
        record.body_len += more > 0 ? gap + more : 0;
    }
    return true;
}

static bool read(text t) {
    text name;
    bool empty, timed = false;
    record.count = record.body_len = 0;
    skip(&t, 1);
    if (!read_name(&t, &name) || !level(name) || t.n == 0 || !is_space(*t.p) || !read_tag(&t, false, &empty)) return false;
    for (int32_t i = 0; i < record.count; i++) timed |= same(record.pairs[i].key, word("TimeStamp"));
    if (!timed) return false;
    if (!empty) return read_body(&t, name);
    skip_space(&t);
    return t.n == 0;
}

// ---- writing it ----

static bool set_time(text value) {
    static char time[64];
    if (value.n < 1 || value.n >= (int32_t)sizeof time) return false;
    for (int32_t i = 0; i < value.n; i++) time[i] = value.p[i];
    time[value.n] = 'Z'; // ACS writes UTC without saying so
    return weir_set_n("timestamp", time, (size_t)value.n + 1) == 0 || weir_set_n("timestamp", time, (size_t)value.n) == 0;
}

static bool own_key(const pair *one) {
    if (one->data || one->value.n == 0) return false;
    if (same(one->key, word("TimeStamp"))) return set_time(one->value);
    if (same(one->key, word("Host"))) return weir_set_n("hostname", one->value.p, (size_t)one->value.n) == 0;
    if (same(one->key, word("Process"))) return weir_set_n("app_name", one->value.p, (size_t)one->value.n) == 0;
    return false;
}

// integer reads a whole number of at most 18 digits; 007 is a text.
static bool integer(text t, int64_t *out) {
    if (t.n < 1 || t.n > 18 || (t.p[0] == '0' && t.n > 1)) return false;
    *out = 0;
    for (int32_t k = 0; k < t.n; k++) {
        if (t.p[k] < '0' || t.p[k] > '9') return false;
        *out = *out * 10 + (t.p[k] - '0');
    }
    return true;
}

// put sets a field. A name that the message has itself gets _ behind it.
static int32_t put(const pair *one) {
    static const char *const own[] = {"timestamp", "facility", "severity", "hostname", "app_name", "proc_id", "msg_id", "message",
                                      "received_at", "structured_data", "raw", "source", "listener", "peer", "message_b64"};
    static char name[sizeof set.prefix + MAX_KEY + 8];
    int32_t n = 0;
    for (int32_t i = 0; i < set.prefix_len; i++) name[n++] = set.prefix[i];
    for (const char *s = one->data ? "Data." : ""; *s; s++) name[n++] = *s;
    for (int32_t i = 0; i < one->key.n; i++) name[n++] = one->key.p[i];
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (same((text){name, n}, word(own[i]))) {
            name[n++] = '_';
            break;
        }
    int64_t number;
    if (!one->data && integer(one->value, &number)) return weir_field_set_i64(name, (size_t)n, number);
    return weir_field_set(name, (size_t)n, one->value.p, (size_t)one->value.n);
}

WEIR_PROCESS(void) {
    int32_t n = weir_get("message");
    if (n < 0) return n == WEIR_ABSENT ? WEIR_KEEP : WEIR_FAILED;
    text t = {weir_buf, n};
    skip_space(&t);
    if (t.n < 2 || *t.p != '<' || !is_name(t.p[1])) return WEIR_KEEP;
    if (!read(t)) {
        if (!set.strict) return WEIR_KEEP;
        return weir_fail("acs_record: the text starts like a record and is none"), WEIR_REJECT;
    }
    if (weir_set_i64("severity", record.severity) < 0) return WEIR_FAILED;
    for (int32_t i = 0; i < record.count; i++) {
        if (own_key(&record.pairs[i])) continue;
        int32_t err = put(&record.pairs[i]);
        if (err < 0 && err != WEIR_INVALID) return weir_fail("acs_record: a field could not be set"), WEIR_FAILED;
    }
    return set.replace && weir_set_n("message", record.body, (size_t)record.body_len) < 0 ? WEIR_FAILED : WEIR_KEEP;
}
