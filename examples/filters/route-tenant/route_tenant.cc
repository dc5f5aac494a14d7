// route_tenant sends a message to the destinations of its tenant only:
//     tenants: {acme: acme-db, globex: [globex-db, audit]}    tenant acme   ->   acme-db
// README.md beside this file has the settings.
#define WEIR_CONFIG_BUFFER 262144
#include "weir.h"

namespace {

constexpr int32_t most_tenants = 4096, most_key = 256;

struct text {
    const char *p = nullptr;
    int32_t n = 0;
    bool operator==(const text &o) const {
        if (n != o.n) return false;
        for (int32_t i = 0; i < n; i++)
            if (p[i] != o.p[i]) return false;
        return true;
    }
    uint32_t hash() const {
        uint32_t h = 2166136261;
        for (int32_t i = 0; i < n; i++) h = (h ^ static_cast<uint8_t>(p[i])) * 16777619;
        return h;
    }
};

struct tenant {
    text name;
    weir_json to; // a name or a list of names, in the configuration, which stays
};

// Names without their escapes.
struct {
    char bytes[WEIR_CONFIG_BUFFER];
    int32_t used = 0;
} pool;

tenant tenants[2 * most_tenants]; // by hash, with free places between; an empty name's p is set
int32_t count;
text key{"tenant", 6};
weir_json fallback; // kind 0: the message is rejected

// unquote gives the text of a JSON string a place in the pool.
bool unquote(weir_json v, text &out, int32_t most) {
    int32_t room = static_cast<int32_t>(sizeof pool.bytes) - pool.used;
    int32_t n = weir_json_text(v, pool.bytes + pool.used, room);
    if (n < 0 || n > room || n > most) return false;
    out = {pool.bytes + pool.used, n};
    pool.used += n;
    return true;
}

tenant &place(const text &name) {
    uint32_t i = name.hash() % (2 * most_tenants);
    while (tenants[i].name.p && !(tenants[i].name == name)) i = (i + 1) % (2 * most_tenants);
    return tenants[i];
}

// destinations tells whether v is a name, or a list of 1 to 64 names.
bool destinations(weir_json v) {
    if (weir_json_kind(v) == '"') return v.end - v.p > 2;
    weir_json walk = weir_json_items(v), one;
    int32_t n = 0;
    if (weir_json_kind(v) != '[') return false;
    for (; weir_json_element(&walk, &one); n++)
        if (weir_json_kind(one) != '"' || one.end - one.p <= 2) return false;
    return n >= 1 && n <= 64;
}

const char *read_tenants(weir_json v) {
    if (weir_json_kind(v) != '{') return "route_tenant: tenants must be an object such as {acme: acme-db}";
    weir_json walk = weir_json_items(v), name, to;
    while (weir_json_member(&walk, &name, &to)) {
        text t;
        if (count == most_tenants) return "route_tenant: tenants: at most 4096";
        if (!unquote(name, t, most_key)) return "route_tenant: tenants: a name has at most 256 bytes";
        if (!destinations(to)) return "route_tenant: tenants: a tenant needs a destination's name, or a list of 1 to 64";
        tenant &at = place(t);
        if (!at.name.p) count++;
        at = {t, to};
    }
    return nullptr;
}

const char *read_setting(weir_json name, weir_json v) {
    if (weir_json_is(name, "tenants")) return read_tenants(v);
    if (weir_json_is(name, "key"))
        return unquote(v, key, most_key) && key.n > 0 ? nullptr : "route_tenant: key must be a name of 1 to 256 bytes";
    if (weir_json_is(name, "default")) {
        fallback = v;
        return destinations(v) ? nullptr : "route_tenant: default must be a destination's name, or a list of 1 to 64";
    }
    return "route_tenant: unknown setting; there are key, tenants, default";
}

// stop ends with a reason that names what was found.
int32_t stop(int32_t verdict, const char *why, text what) {
    static char reason[512];
    int32_t n = 0;
    for (; *why; why++) reason[n++] = *why;
    for (int32_t i = 0; i < what.n && i < most_key; i++) reason[n++] = what.p[i];
    weir_fail_n(reason, n);
    return verdict;
}

int32_t send(weir_json name) {
    char to[4096];
    int32_t n = weir_json_text(name, to, sizeof to);
    if (n < 0 || n > static_cast<int32_t>(sizeof to)) return stop(WEIR_FAILED, "route_tenant: a destination's name is too long", {});
    if (weir_route_n(to, n) == 0) return WEIR_KEEP;
    return stop(WEIR_FAILED, "route_tenant: the route has no destination ", {to, n});
}

} // namespace

WEIR_INIT(void) {
    weir_json config = weir_config(), name, v;
    if (weir_json_kind(config) != '{') return weir_fail("route_tenant: the configuration must be an object, of at most 256 KiB"), 1;
    weir_json walk = weir_json_items(config);
    while (weir_json_member(&walk, &name, &v))
        if (const char *wrong = read_setting(name, v)) return weir_fail(wrong), 1;
    if (count == 0) return weir_fail("route_tenant: tenants: none"), 1;
    return 0;
}

WEIR_PROCESS(void) {
    static char value[most_key];
    int32_t n = weir_field_get(key.p, key.n, value, sizeof value);
    text name{value, n};
    const weir_json *to = nullptr;
    if (n >= 0 && n <= most_key && place(name).name.p) to = &place(name).to;
    else if (weir_json_kind(fallback)) to = &fallback;
    else if (n < 0) return stop(WEIR_REJECT, "route_tenant: the message has no ", key);
    else return stop(WEIR_REJECT, "route_tenant: no tenant ", n > most_key ? text{"of so long a name", 17} : name);
    if (weir_json_kind(*to) == '"') return send(*to);
    weir_json walk = weir_json_items(*to), one;
    while (weir_json_element(&walk, &one))
        if (int32_t verdict = send(one)) return verdict;
    return WEIR_KEEP;
}
