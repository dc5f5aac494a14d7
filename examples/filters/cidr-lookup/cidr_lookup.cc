// cidr_lookup finds the network that an address belongs to and sets what the configuration says about it:
//     networks: {10.1.0.0/16: plant-7, 10.1.2.0/24: lab}    peer 10.1.2.3:40000   ->   site: lab
// README.md beside this file has the settings.
#define WEIR_CONFIG_BUFFER 524288
#include "weir.h"

namespace {

constexpr int32_t most_networks = 8192, most_keys = 16;

// An address of 128 bits; IPv4 ones are ::ffff:a.b.c.d.
struct address {
    uint64_t high = 0, low = 0;
    bool v4() const { return high == 0 && low >> 32 == 0xffff; }
    bool operator==(const address &o) const { return high == o.high && low == o.low; }
    bool operator<(const address &o) const { return high != o.high ? high < o.high : low < o.low; }
    address masked(int32_t bits) const {
        return {bits <= 0 ? 0 : bits >= 64 ? high : high & ~(~uint64_t{0} >> bits), bits <= 64 ? 0 : bits >= 128 ? low : low & ~(~uint64_t{0} >> (bits - 64))};
    }
};

struct network {
    address first;
    int32_t bits;
    weir_json value; // in the configuration, which stays
    bool operator<(const network &o) const { return bits != o.bits ? bits > o.bits : first < o.first; }
};

struct name {
    char p[256];
    int32_t n;
};

network all[most_networks]; // the longest prefixes first, then by address
int32_t count;
struct {
    int32_t bits, from, to;
} lengths[129]; // which of all have so many bits
int32_t length_count;
name keys[most_keys];
int32_t key_count;
name to{"network", 7};
weir_json fallback; // kind 0: none

// ---- addresses ----

bool read_v4(const char *p, int32_t n, uint32_t &out) {
    int32_t parts = 0, digits = 0;
    uint32_t part = 0;
    out = 0;
    for (int32_t i = 0; i <= n; i++) {
        if (i == n || p[i] == '.') {
            if (digits == 0 || part > 255 || ++parts > 4) return false;
            out = out << 8 | part;
            part = 0, digits = 0;
        } else if (p[i] >= '0' && p[i] <= '9' && digits < 3 && !(digits > 0 && part == 0)) { // 010 is octal to some
            part = part * 10 + static_cast<uint32_t>(p[i] - '0');
            digits++;
        } else {
            return false;
        }
    }
    return parts == 4;
}

// read_v6 reads the forms of RFC 4291, with an IPv4 address at the end too.
bool read_v6(const char *p, int32_t n, address &out) {
    uint16_t words[8] = {};
    int32_t got = 0, gap = -1, i = 0;
    if (n >= 2 && p[0] == ':' && p[1] == ':') gap = 0, i = 2;
    while (i < n) {
        int32_t from = i;
        uint32_t v = 0, v4;
        while (i < n && p[i] != ':') i++;
        if (got <= 6 && i == n && read_v4(p + from, i - from, v4)) {
            words[got++] = static_cast<uint16_t>(v4 >> 16), words[got++] = static_cast<uint16_t>(v4);
            break;
        }
        if (got == 8 || i == from || i - from > 4) return false;
        for (int32_t k = from; k < i; k++) {
            char c = p[k], low = static_cast<char>(c | 0x20);
            if (c >= '0' && c <= '9') v = v << 4 | static_cast<uint32_t>(c - '0');
            else if (low >= 'a' && low <= 'f') v = v << 4 | static_cast<uint32_t>(low - 'a' + 10);
            else return false;
        }
        words[got++] = static_cast<uint16_t>(v);
        if (i == n) break;
        if (++i == n) return false; // one colon at the end
        if (p[i] == ':') {
            if (gap >= 0) return false;
            gap = got, i++;
        }
    }
    if (gap < 0 ? got != 8 : got > 7) return false;
    uint64_t half[2] = {};
    for (int32_t k = 0; k < 8; k++) {
        int32_t behind = gap < 0 ? 0 : 8 - got; // how many words the gap stands for
        uint16_t v = gap < 0 || k < gap ? words[k] : k < gap + behind ? 0 : words[k - behind];
        half[k / 4] = half[k / 4] << 16 | v;
    }
    out = {half[0], half[1]};
    return true;
}

bool read_address(const char *p, int32_t n, address &out, bool &v4) {
    uint32_t four;
    v4 = read_v4(p, n, four);
    if (v4) out = {0, uint64_t{0xffff} << 32 | four};
    return v4 || read_v6(p, n, out);
}

// read_peer reads an address with or without its port and zone: 10.0.0.1, 10.0.0.1:514, [fe80::1%eth0]:514.
bool read_peer(const char *p, int32_t n, address &out) {
    bool v4;
    if (n > 0 && p[0] == '[') {
        int32_t i = 1;
        while (i < n && p[i] != ']') i++;
        if (i == n) return false;
        p++, n = i - 1;
    } else {
        int32_t colons = 0, last = n;
        for (int32_t i = 0; i < n; i++)
            if (p[i] == ':') colons++, last = i;
        if (colons == 1) n = last;
    }
    for (int32_t i = 0; i < n; i++)
        if (p[i] == '%') n = i;
    return read_address(p, n, out, v4);
}

// ---- configuration ----

// refuse gives a reason that ends with a text of the configuration.
int32_t refuse(const char *why, const char *what = "", int32_t n = 0) {
    static char reason[512];
    int32_t m = 0;
    for (const char *s = "cidr_lookup: "; *s; s++) reason[m++] = *s;
    for (; *why && m < 400; why++) reason[m++] = *why;
    for (int32_t i = 0; i < n && m < static_cast<int32_t>(sizeof reason); i++) reason[m++] = what[i];
    weir_fail_n(reason, m);
    return 1;
}

bool read_name(weir_json v, name &out) {
    out.n = weir_json_text(v, out.p, sizeof out.p);
    return out.n >= 1 && out.n <= static_cast<int32_t>(sizeof out.p);
}

// add reads "10.1.0.0/16", or one address.
int32_t add(weir_json cidr, weir_json value) {
    char p[64];
    int32_t n = weir_json_text(cidr, p, sizeof p), slash = 0, bits = 0;
    if (n < 0 || n > static_cast<int32_t>(sizeof p)) return refuse("networks: a network has at most 64 bytes");
    while (slash < n && p[slash] != '/') slash++;
    network &to = all[count];
    bool v4, whole = slash == n;
    if (!read_address(p, slash, to.first, v4)) return refuse("networks: this is no network such as 10.1.0.0/16: ", p, n);
    for (int32_t i = slash + 1; i < n; i++) {
        if (p[i] < '0' || p[i] > '9' || i > slash + 3) return refuse("networks: this is no network such as 10.1.0.0/16: ", p, n);
        bits = bits * 10 + (p[i] - '0');
    }
    int32_t most = v4 ? 32 : 128;
    if ((!whole && slash + 1 == n) || bits > most) return refuse("networks: this is no network such as 10.1.0.0/16: ", p, n);
    to.bits = (whole ? most : bits) + 128 - most;
    to.value = value;
    if (!(to.first == to.first.masked(to.bits))) return refuse("networks: the address has bits behind its prefix: ", p, n);
    count++;
    return 0;
}

// sort is a heap sort: no recursion, no worst case.
void sift(int32_t i, int32_t n) {
    for (;;) {
        int32_t child = 2 * i + 1;
        if (child >= n) return;
        if (child + 1 < n && all[child] < all[child + 1]) child++;
        if (!(all[i] < all[child])) return;
        network swap = all[i];
        all[i] = all[child], all[child] = swap;
        i = child;
    }
}

void sort() {
    for (int32_t i = count / 2; i-- > 0;) sift(i, count);
    for (int32_t n = count; n-- > 1;) {
        network swap = all[0];
        all[0] = all[n], all[n] = swap;
        sift(0, n);
    }
}

int32_t index() {
    sort();
    for (int32_t i = 0; i < count; i++) {
        if (i > 0 && all[i].bits == all[i - 1].bits && all[i].first == all[i - 1].first) return refuse("networks: a network is there twice");
        if (i == 0 || all[i].bits != all[i - 1].bits) lengths[length_count++] = {all[i].bits, i, i};
        lengths[length_count - 1].to = i + 1;
    }
    return 0;
}

int32_t read_setting(weir_json key, weir_json v) {
    weir_json walk = weir_json_items(v), one, value;
    if (weir_json_is(key, "networks")) {
        if (weir_json_kind(v) != '{') return refuse("networks must be an object such as {10.1.0.0/16: plant-7}");
        while (weir_json_member(&walk, &one, &value)) {
            if (count == most_networks) return refuse("networks: at most 8192");
            if (int32_t wrong = add(one, value)) return wrong;
        }
        return 0;
    }
    if (weir_json_is(key, "key")) {
        key_count = 0;
        bool ok = weir_json_kind(v) == '"' && read_name(v, keys[key_count++]);
        if (weir_json_kind(v) == '[')
            for (ok = true; ok && weir_json_element(&walk, &one);) ok = key_count < most_keys && read_name(one, keys[key_count++]);
        return ok && key_count > 0 ? 0 : refuse("key must be a name, or a list of at most 16 names, of 1 to 256 bytes");
    }
    if (weir_json_is(key, "to")) return read_name(v, to) ? 0 : refuse("to must be a name of 1 to 256 bytes");
    if (weir_json_is(key, "default")) return fallback = v, 0;
    return refuse("unknown setting; there are key, to, networks, default");
}

// find returns the value of the longest prefix that holds a.
const weir_json *find(const address &a) {
    for (int32_t k = 0; k < length_count && !(a.v4() && lengths[k].bits < 96); k++) { // ::/0 is for IPv6 alone
        address want = a.masked(lengths[k].bits);
        int32_t low = lengths[k].from, high = lengths[k].to;
        while (low < high) {
            int32_t middle = low + (high - low) / 2;
            if (all[middle].first < want) low = middle + 1;
            else high = middle;
        }
        if (low < lengths[k].to && all[low].first == want) return &all[low].value;
    }
    return weir_json_kind(fallback) ? &fallback : nullptr;
}

} // namespace

WEIR_INIT(void) {
    weir_json config = weir_config(), key, v;
    if (weir_json_kind(config) != '{') return refuse("the configuration must be an object, of at most 512 KiB");
    weir_json walk = weir_json_items(config);
    while (weir_json_member(&walk, &key, &v))
        if (int32_t wrong = read_setting(key, v)) return wrong;
    if (key_count == 0) keys[key_count++] = {"peer", 4};
    if (count == 0) return refuse("networks: none");
    return index();
}

WEIR_PROCESS(void) {
    for (int32_t k = 0; k < key_count; k++) {
        char peer[128];
        int32_t n = weir_field_get(keys[k].p, keys[k].n, peer, sizeof peer);
        address a;
        if (n < 0 || n > static_cast<int32_t>(sizeof peer) || !read_peer(peer, n, a)) continue;
        const weir_json *value = find(a);
        if (!value) return WEIR_KEEP;
        return weir_field_set_json(to.p, to.n, value->p, value->end - value->p) < 0
                   ? (weir_fail("cidr_lookup: the field could not be set"), WEIR_FAILED) : WEIR_KEEP;
    }
    return WEIR_KEEP; // no address, no network
}
