// access_lines turns the access lines of nginx and Apache (common and combined format, and what may follow) into fields:
//     192.0.2.7 - bob [30/Nov/2026:12:00:00 +0000] "GET /a?b=1 HTTP/1.1" 200 612 "-" "curl/7.88"
// README.md beside this file has the settings.
#include "weir.h"

namespace {

constexpr int32_t most_extra = 32, name_bytes = 64;

// A text is a part of the message in hand, which is in weir_buf.
struct text {
    char *p = nullptr;
    int32_t n = 0;

    char operator[](int32_t i) const { return i < n ? p[i] : '\0'; }
    text from(int32_t i) const { return {p + i, n - i}; }
    text until(int32_t i) const { return {p, i}; }
    int32_t find(char c) const {
        int32_t i = 0;
        while (i < n && p[i] != c) i++;
        return i;
    }
    bool is(const char *want) const {
        if (weir_len(want) != static_cast<size_t>(n)) return false;
        for (int32_t i = 0; i < n; i++)
            if (p[i] != want[i]) return false;
        return true;
    }
    bool none() const { return is("-"); }
};

struct {
    char prefix[name_bytes];
    int32_t prefix_len = 0;
    bool vhost = false, timestamp = false, severity = false, strict = false;
    struct {
        char p[name_bytes];
        int32_t n;
    } extra[most_extra];
    int32_t extras = 0;
} settings;

// What a line says. A text whose p is null was not there.
struct line {
    text vhost, client, ident, user, time, request, status, bytes, referer, agent, extra[most_extra];
    bool quoted[most_extra] = {};
    int32_t extras = 0;
};

bool digit(char c) { return c >= '0' && c <= '9'; }

// ---- reading; every reader takes its part off the line and returns false where the line is no access line ----

bool skip(text &t, char c) {
    if (t[0] != c) return false;
    t = t.from(1);
    return true;
}

bool word(text &t, text &to) {
    int32_t i = t.find(' ');
    to = t.until(i);
    t = t.from(i);
    return i > 0;
}

bool number(const text &t) {
    for (int32_t i = 0; i < t.n; i++)
        if (!digit(t.p[i])) return false;
    return t.n > 0 && t.n <= 18;
}

// quoted takes "…" with its escapes.
bool quoted(text &t, text &to) {
    if (!skip(t, '"')) return false;
    int32_t i = 0;
    while (i < t.n && t.p[i] != '"') i += t.p[i] == '\\' ? 2 : 1;
    if (i >= t.n) return false;
    to = t.until(i);
    t = t.from(i + 1);
    return true;
}

// bracketed takes [30/Nov/2026:12:00:00 +0000], only by its shape. Not inlined: it would make each turn of user's loop longer.
__attribute__((noinline)) bool bracketed(text &t, text &to) {
    constexpr const char *shape = "[00/Aaa/0000:00:00:00 +0000]";
    for (int32_t i = 0; shape[i]; i++) {
        char c = t[i];
        bool ok = shape[i] == '0' ? digit(c) : shape[i] == 'A' ? c >= 'A' && c <= 'Z' : shape[i] == 'a' ? c >= 'a' && c <= 'z'
                                           : shape[i] == '+' ? c == '+' || c == '-' : c == shape[i];
        if (!ok) return false;
    }
    to = t.from(1).until(26);
    t = t.from(28);
    return true;
}

// A user's name may have spaces: it ends before the time.
bool user(text &t, text &name, text &time) {
    for (int32_t i = 0; i < t.n; i++) {
        if (t.p[i] != ' ' || t[i + 1] != '[') continue;
        text rest = t.from(i + 1);
        if (!bracketed(rest, time)) continue;
        name = t.until(i);
        t = rest;
        return true;
    }
    return false;
}

// What follows the bytes: in quotes or not, the first two in quotes are the referer and the user agent.
bool more(text &t, line &l) {
    while (t.n > 0) {
        while (skip(t, ' ')) {}
        if (t.n == 0) break;
        text one;
        bool in_quotes = t[0] == '"';
        if (!(in_quotes ? quoted(t, one) : word(t, one))) return false;
        if (t.n > 0 && t[0] != ' ') return false;
        if (in_quotes && !l.referer.p && l.extras == 0) {
            l.referer = one;
        } else if (in_quotes && l.referer.p && !l.agent.p && l.extras == 0) {
            l.agent = one;
        } else if (l.extras < settings.extras) {
            l.quoted[l.extras] = in_quotes;
            l.extra[l.extras++] = one;
        }
    }
    return true;
}

bool read(text t, line &l) {
    if (settings.vhost && !(word(t, l.vhost) && skip(t, ' '))) return false;
    return word(t, l.client) && skip(t, ' ') && word(t, l.ident) && skip(t, ' ') && user(t, l.user, l.time) && skip(t, ' ') &&
           quoted(t, l.request) && skip(t, ' ') && word(t, l.status) && number(l.status) && l.status.n == 3 && skip(t, ' ') &&
           word(t, l.bytes) && (number(l.bytes) || l.bytes.none()) && more(t, l);
}

// ---- writing ----

int32_t hex(char c) {
    if (digit(c)) return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// unescape resolves what nginx (\x22) and Apache (\" \\ \n \t \x01) write, in place; any other backslash stays.
text unescape(text t) {
    constexpr const char *from = "\"\\nrtbvf", *to = "\"\\\n\r\t\b\v\f";
    int32_t m = 0;
    for (int32_t i = 0; i < t.n; i++) {
        char c = t.p[i];
        int32_t high = hex(t[i + 2]), low = hex(t[i + 3]);
        if (c == '\\' && t[i + 1] == 'x' && high >= 0 && low >= 0) {
            c = static_cast<char>(high << 4 | low);
            i += 3;
        } else if (c == '\\' && i + 1 < t.n) {
            for (int32_t k = 0; from[k]; k++)
                if (t.p[i + 1] == from[k]) {
                    c = to[k];
                    i++;
                    break;
                }
        }
        t.p[m++] = c;
    }
    return {t.p, m};
}

int64_t value(const text &t) {
    int64_t n = 0;
    for (int32_t i = 0; i < t.n; i++) n = n * 10 + (t.p[i] - '0');
    return n;
}

// key writes the prefix before a name.
text key(const char *name, int32_t n) {
    static char whole[2 * name_bytes];
    int32_t m = 0;
    for (int32_t i = 0; i < settings.prefix_len; i++) whole[m++] = settings.prefix[i];
    for (int32_t i = 0; i < n; i++) whole[m++] = name[i];
    return {whole, m};
}

bool put(const char *name, text v) {
    if (!v.p || v.none()) return true; // both mean: nothing
    text k = key(name, static_cast<int32_t>(weir_len(name)));
    v = unescape(v);
    return weir_field_set(k.p, k.n, v.p, v.n) == 0;
}

bool put(const char *name, int64_t n) {
    text k = key(name, static_cast<int32_t>(weir_len(name)));
    return weir_field_set_i64(k.p, k.n, n) == 0;
}

// An extra value without quotes becomes a number where it is one in JSON; nginx writes 0.003 and, for several tries, "0.1, 0.2".
bool put_extra(int32_t i, const line &l) {
    text k = key(settings.extra[i].p, settings.extra[i].n), v = l.extra[i];
    if (v.none()) return true;
    bool plain = !l.quoted[i] && (digit(v[0]) || (v[0] == '-' && digit(v[1])));
    if (plain && weir_field_set_json(k.p, k.n, v.p, v.n) == 0) return true;
    v = unescape(v);
    return weir_field_set(k.p, k.n, v.p, v.n) == 0;
}

// The request's parts; what is no request of HTTP is kept whole in the field request.
bool put_request(text request) {
    text method, path, protocol, rest = request;
    bool whole = word(rest, method) && skip(rest, ' ') && word(rest, path);
    for (int32_t i = 0; whole && i < method.n; i++) whole = method.p[i] >= 'A' && method.p[i] <= 'Z';
    if (whole && rest.n > 0) whole = skip(rest, ' ') && word(rest, protocol) && rest.n == 0;
    if (!whole) return put("request", request);
    int32_t question = path.find('?');
    text query = question < path.n ? path.from(question + 1) : text{};
    return put("method", method) && put("path", path.until(question)) && put("query", query) && put("protocol", protocol);
}

// 30/Nov/2026:12:00:00 +0000 as 2026-11-30T12:00:00+00:00. A date that does not exist leaves the timestamp alone.
bool set_timestamp(const text &t) {
    constexpr const char *months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int32_t month = 0;
    while (month < 12 && !(t[3] == months[3 * month] && t[4] == months[3 * month + 1] && t[5] == months[3 * month + 2])) month++;
    if (month++ == 12) return true;
    char iso[25] = {t[7], t[8], t[9], t[10], '-', static_cast<char>('0' + month / 10), static_cast<char>('0' + month % 10), '-', t[0], t[1], 'T',
                    t[12], t[13], ':', t[15], t[16], ':', t[18], t[19], t[21], t[22], t[23], ':', t[24], t[25]};
    int32_t err = weir_set_n("timestamp", iso, sizeof iso);
    return err == 0 || err == WEIR_INVALID;
}

bool write(const line &l) {
    int64_t status = value(l.status), bytes = l.bytes.none() ? 0 : value(l.bytes);
    bool ok = put("vhost", l.vhost) && put("client", l.client) && put("ident", l.ident) && put("user", l.user) && put_request(l.request) &&
              put("status", status) && put("bytes", bytes) && put("referer", l.referer) && put("user_agent", l.agent);
    for (int32_t i = 0; ok && i < l.extras; i++) ok = put_extra(i, l);
    if (ok && settings.timestamp) ok = set_timestamp(l.time);
    if (ok && settings.severity && status >= 400) ok = weir_set("severity", status < 500 ? "warning" : "err") == 0;
    return ok;
}

// ---- configuration ----

bool read_name(weir_json v, char *to, int32_t &n, int32_t least) {
    n = weir_json_text(v, to, name_bytes);
    return n >= least && n <= name_bytes;
}

const char *read_setting(weir_json name, weir_json v) {
    struct {
        const char *name;
        bool *to;
        const char *wrong;
    } flags[] = {{"vhost", &settings.vhost, "access_lines: vhost must be true or false"},
                 {"timestamp", &settings.timestamp, "access_lines: timestamp must be true or false"},
                 {"severity", &settings.severity, "access_lines: severity must be true or false"},
                 {"strict", &settings.strict, "access_lines: strict must be true or false"}};
    for (auto &f : flags)
        if (weir_json_is(name, f.name)) return weir_json_bool(v, f.to) < 0 ? f.wrong : nullptr;
    if (weir_json_is(name, "prefix"))
        return read_name(v, settings.prefix, settings.prefix_len, 0) ? nullptr : "access_lines: prefix must be a text of at most 64 bytes";
    if (!weir_json_is(name, "extra")) return "access_lines: unknown setting; there are prefix, vhost, extra, timestamp, severity, strict";
    constexpr const char *wrong = "access_lines: extra must be a list of at most 32 names of 1 to 64 bytes";
    if (weir_json_kind(v) != '[') return wrong;
    weir_json walk = weir_json_items(v), one;
    while (weir_json_element(&walk, &one)) {
        if (settings.extras == most_extra) return wrong;
        auto &to = settings.extra[settings.extras++];
        if (!read_name(one, to.p, to.n, 1)) return wrong;
    }
    return nullptr;
}

} // namespace

WEIR_INIT(void) {
    weir_json config = weir_config(), name, v;
    if (weir_json_kind(config) != '{') return weir_fail("access_lines: the configuration must be an object, of at most 16 KiB"), 1;
    weir_json walk = weir_json_items(config);
    while (weir_json_member(&walk, &name, &v))
        if (const char *wrong = read_setting(name, v)) return weir_fail(wrong), 1;
    return 0;
}

WEIR_PROCESS(void) {
    int32_t n = weir_get("message");
    if (n < 0) return n == WEIR_ABSENT ? WEIR_KEEP : WEIR_FAILED;
    text whole{weir_buf, n};
    while (whole.n > 0 && (whole.p[whole.n - 1] == '\n' || whole.p[whole.n - 1] == '\r' || whole.p[whole.n - 1] == ' ')) whole.n--;
    line l;
    if (!read(whole, l)) {
        if (!settings.strict) return WEIR_KEEP;
        return weir_fail("access_lines: the text is no access line"), WEIR_REJECT;
    }
    if (!write(l)) return weir_fail("access_lines: a field could not be set"), WEIR_FAILED;
    return WEIR_KEEP;
}
