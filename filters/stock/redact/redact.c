// redact masks card numbers, e-mail addresses, tokens and chosen fields, wherever a message carries text.
// README.md beside this file has the settings. Whatever it cannot inspect or cannot write is a failure, never kept.
#define WEIR_BUFFER 262144
#include "scan.h"
#include "weir.h"

enum { IN_MESSAGE = 1, IN_HEADER = 2, IN_SD = 4, IN_FIELDS = 8 };

enum { MAX_NAMES = 128, NAME_BYTES = 8192 };

typedef struct {
    const char *p;
    int32_t n;
} text;

typedef struct {
    text list[MAX_NAMES];
    int32_t count;
} names;

static struct {
    char mask;
    bool cards, emails, tokens;
    int32_t inspect;
    names fields, params;
} set = {'#', true, true, true, IN_MESSAGE | IN_HEADER | IN_SD | IN_FIELDS, {{{0, 0}}, 0}, {{{0, 0}}, 0}};

static char covered[8]; // what a chosen field shows, whatever its length was

// ---- configuration ----

static bool keep_name(weir_json v, names *to) {
    static char pool[NAME_BYTES];
    static int32_t used;
    int32_t n = weir_json_text(v, pool + used, (size_t)(NAME_BYTES - used));
    if (n < 1 || n > NAME_BYTES - used || to->count == MAX_NAMES) return false;
    to->list[to->count++] = (text){pool + used, n};
    used += n;
    return true;
}

static bool read_names(weir_json v, names *to) {
    if (weir_json_kind(v) == '"') return keep_name(v, to);
    if (weir_json_kind(v) != '[') return false;
    weir_json walk = weir_json_items(v), one;
    while (weir_json_element(&walk, &one))
        if (!keep_name(one, to)) return false;
    return true;
}

static bool same(text a, const char *b) {
    if (weir_len(b) != (size_t)a.n) return false;
    for (int32_t i = 0; i < a.n; i++)
        if (a.p[i] != b[i]) return false;
    return true;
}

static bool among(const names *all, const char *p, int32_t n) {
    for (int32_t k = 0; k < all->count; k++) {
        text one = all->list[k];
        int32_t i = 0;
        while (one.n == n && i < n && one.p[i] == p[i]) i++;
        if (one.n == n && i == n) return true;
    }
    return false;
}

static bool read_inspect(weir_json v) {
    static const struct {
        const char *word;
        int32_t bit;
    } places[] = {{"message", IN_MESSAGE}, {"header", IN_HEADER}, {"structured_data", IN_SD}, {"fields", IN_FIELDS}};
    set.inspect = 0;
    if (weir_json_kind(v) != '[') return false;
    weir_json walk = weir_json_items(v), one;
    while (weir_json_element(&walk, &one)) {
        int32_t bit = 0;
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            if (weir_json_is(one, places[i].word)) bit = places[i].bit;
        if (bit == 0) return false;
        set.inspect |= bit;
    }
    return true;
}

static const char *read_setting(weir_json key, weir_json v) {
    static const char *const refused[] = {"timestamp", "facility", "severity", "received_at", "structured_data", "raw",
                                          "source", "listener", "peer", "message_b64"};
    if (weir_json_is(key, "cards")) return weir_json_bool(v, &set.cards) < 0 ? "redact: cards must be true or false" : 0;
    if (weir_json_is(key, "emails")) return weir_json_bool(v, &set.emails) < 0 ? "redact: emails must be true or false" : 0;
    if (weir_json_is(key, "tokens")) return weir_json_bool(v, &set.tokens) < 0 ? "redact: tokens must be true or false" : 0;
    if (weir_json_is(key, "mask")) {
        bool ok = weir_json_text(v, &set.mask, 1) == 1 && set.mask > ' ' && set.mask < 0x7f && !is_digit(set.mask) && !is_one_of(set.mask, "\"\\");
        return ok ? 0 : "redact: mask must be one printable ASCII character, no digit, no quote, no backslash";
    }
    if (weir_json_is(key, "inspect"))
        return read_inspect(v) ? 0 : "redact: inspect must be a list of message, header, structured_data, fields";
    if (weir_json_is(key, "params"))
        return read_names(v, &set.params) ? 0 : "redact: params must be a list of at most 128 names, 8 KiB together";
    if (weir_json_is(key, "fields")) {
        if (!read_names(v, &set.fields)) return "redact: fields must be a list of at most 128 names, 8 KiB together";
        for (int32_t k = 0; k < set.fields.count; k++)
            for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
                if (same(set.fields.list[k], refused[i]))
                    return "redact: fields may not name timestamp, facility, severity or a read-only key (structured_data: use params)";
        return 0;
    }
    return "redact: unknown setting; there are mask, cards, emails, tokens, fields, params, inspect";
}

WEIR_INIT(void) {
    weir_json config = weir_config(), key, value;
    if (weir_json_kind(config) != '{') return weir_fail("redact: the configuration must be an object, of at most 16 KiB"), 1;
    weir_json walk = weir_json_items(config);
    while (weir_json_member(&walk, &key, &value)) {
        const char *wrong = read_setting(key, value);
        if (wrong) return weir_fail(wrong), 1;
    }
    cover(covered, 0, sizeof covered, set.mask);
    return 0;
}

// ---- one message ----

static NOINLINE bool hide(char *t, int32_t n) {
    signs may = survey(t, n);
    bool found = false;
    if (set.tokens && may.tokens) found |= hide_tokens(t, n, set.mask);
    if (set.emails && may.emails) found |= hide_emails(t, n, set.mask);
    if (set.cards && may.cards) found |= hide_cards(t, n, set.mask);
    return found;
}

static bool too_long(const char *what, int32_t n) {
    static const char why[] = "redact: longer than 256 KiB and not inspected: ";
    char reason[sizeof why + 256];
    int32_t m = 0;
    for (int32_t i = 0; why[i]; i++) reason[m++] = why[i];
    for (int32_t i = 0; i < n && i < 256; i++) reason[m++] = what[i];
    return weir_fail_n(reason, (size_t)m), false;
}

// read_into returns the length of key's value, -1 when there is none, -2 when it does not fit or cannot be read.
static int32_t read_into(const char *key, int32_t kn, char *buf) {
    int32_t n = weir_field_get(key, (size_t)kn, buf, WEIR_BUFFER);
    if (n > WEIR_BUFFER) return too_long(key, kn), -2;
    return n < WEIR_ABSENT ? -2 : n;
}

static bool hide_text(const char *key, int32_t kn) {
    int32_t n = read_into(key, kn, weir_buf);
    if (n < 0) return n == -1;
    return !hide(weir_buf, n) || weir_field_set(key, (size_t)kn, weir_buf, (size_t)n) == 0;
}

static bool hide_number(const char *key, int32_t kn) {
    int32_t n = read_into(key, kn, weir_buf);
    if (n < 0) return n == -1;
    return n < 13 || !set.cards || !hide_cards(weir_buf, n, set.mask) || weir_field_set(key, (size_t)kn, weir_buf, (size_t)n) == 0;
}

static char unescaped[WEIR_BUFFER];

// hide_literal works on a JSON string's inside, t[from..to). With escapes in it all of it is covered: what stands for
// a character may not be cut.
static bool hide_literal(char *t, int32_t from, int32_t to) {
    bool escapes = false;
    for (int32_t i = from; i < to; i++) escapes |= t[i] == '\\';
    if (!escapes) return hide(t + from, to - from);
    weir_json v = {t + from - 1, t + to + 1};
    int32_t n = weir_json_text(v, unescaped, sizeof unescaped); // never longer than the literal
    if (!hide(unescaped, n)) return false;
    cover(t, from, to, set.mask);
    return true;
}

// hide_json masks the strings of a JSON text in place, and turns a card number into a string of the same length.
// Names of members stay.
static bool hide_json(char *t, int32_t n) {
    bool found = false;
    for (int32_t i = 0; i < n;) {
        int32_t from = i;
        if (t[i] == '"') {
            for (i++; i < n && t[i] != '"'; i++)
                if (t[i] == '\\') i++;
            int32_t to = i++;
            if (to > n) to = n;
            if (skip(t, n, i, " \t\r\n") < n && t[skip(t, n, i, " \t\r\n")] == ':') continue;
            found |= hide_literal(t, from + 1, to);
        } else if (is_digit(t[i])) {
            bool whole = true;
            for (; i < n && (is_digit(t[i]) || is_one_of(t[i], ".eE+-")); i++) whole &= is_digit(t[i]);
            if (!whole || !set.cards || i - from < 13 || !hide_cards(t + from, i - from, set.mask)) continue;
            if (from > 0 && t[from - 1] == '-') from--;
            cover(t, from, i, set.mask);
            t[from] = t[i - 1] = '"';
            found = true;
        } else {
            i++;
        }
    }
    return found;
}

static bool hide_fields(void) {
    static char name[4096];
    int32_t count = weir_field_count();
    for (int32_t i = 0; i < count; i++) {
        int32_t nn = weir_field_name(i, name, sizeof name), n;
        if (nn < 0 || nn > (int32_t)sizeof name) return false;
        switch (weir_field_type(name, (size_t)nn)) {
        case WEIR_TYPE_STRING:
        case WEIR_TYPE_BYTES:
            if (!hide_text(name, nn)) return false;
            break;
        case WEIR_TYPE_INT:
        case WEIR_TYPE_FLOAT:
            if (!hide_number(name, nn)) return false;
            break;
        case WEIR_TYPE_ARRAY:
        case WEIR_TYPE_OBJECT:
            n = read_into(name, nn, weir_buf);
            if (n < 0) return false;
            if (hide_json(weir_buf, n) && weir_field_set_json(name, (size_t)nn, weir_buf, (size_t)n) < 0) return false;
        }
    }
    return true;
}

// hide_param works on one parameter, or on all of that name: sd_set leaves one then, with their texts side by side.
static bool hide_param(text id, text param, weir_json value) {
    bool chosen = among(&set.params, param.p, param.n), found = chosen, repeated = weir_json_kind(value) == '[';
    if (!chosen && !(set.inspect & IN_SD)) return true;
    int32_t n = 0;
    if (!repeated) {
        n = weir_sd_get(id.p, (size_t)id.n, param.p, (size_t)param.n, weir_buf, WEIR_BUFFER); // the bytes; JSON has U+FFFD
        if (n < 0) return false;
        if (n > WEIR_BUFFER) return too_long(param.p, param.n);
        found |= hide(weir_buf, n);
    } else {
        weir_json walk = weir_json_items(value), one;
        while (weir_json_element(&walk, &one)) {
            if (n > 0) weir_buf[n++] = ',';
            int32_t m = weir_json_text(one, weir_buf + n, (size_t)(WEIR_BUFFER - n));
            if (m < 0 || m >= WEIR_BUFFER - n) return too_long(param.p, param.n);
            found |= hide(weir_buf + n, m);
            n += m;
        }
    }
    if (!found) return true;
    const char *put = chosen ? covered : weir_buf;
    return weir_sd_set(id.p, (size_t)id.n, param.p, (size_t)param.n, put, chosen ? sizeof covered : (size_t)n) == 0;
}

static bool hide_structured_data(void) {
    static char all[WEIR_BUFFER], id_text[4096], param_text[4096];
    int32_t n = read_into("structured_data", 15, all);
    if (n < 0) return n == -1;
    weir_json elements = weir_json_items(weir_json_of(all, (size_t)n)), id, element, param, value;
    while (weir_json_member(&elements, &id, &element)) {
        int32_t in = weir_json_text(id, id_text, sizeof id_text);
        if (in < 0 || in > (int32_t)sizeof id_text) return false;
        weir_json params = weir_json_items(element);
        while (weir_json_member(&params, &param, &value)) {
            int32_t pn = weir_json_text(param, param_text, sizeof param_text);
            if (pn < 0 || pn > (int32_t)sizeof param_text) return false;
            if (!hide_param((text){id_text, in}, (text){param_text, pn}, value)) return false;
        }
    }
    return true;
}

static bool hide_chosen(void) {
    for (int32_t k = 0; k < set.fields.count; k++) {
        text key = set.fields.list[k];
        int32_t type = weir_field_type(key.p, (size_t)key.n);
        if (type == WEIR_TYPE_ABSENT || type == WEIR_TYPE_NULL) continue;
        if (type < 0 || weir_field_set(key.p, (size_t)key.n, covered, sizeof covered) < 0) return false;
    }
    return true;
}

WEIR_PROCESS(void) {
    if (!hide_chosen()) return WEIR_FAILED;
    if (set.inspect & IN_MESSAGE && !hide_text("message", 7)) return WEIR_FAILED;
    if (set.inspect & IN_HEADER && (!hide_text("app_name", 8) || !hide_text("hostname", 8) || !hide_text("proc_id", 7) || !hide_text("msg_id", 6)))
        return WEIR_FAILED;
    if ((set.inspect & IN_SD || set.params.count > 0) && !hide_structured_data()) return WEIR_FAILED;
    if (set.inspect & IN_FIELDS && !hide_fields()) return WEIR_FAILED;
    return WEIR_KEEP;
}
