// What redact looks for. Each function hides what it finds in t[0..n) in place, one mask character for a byte, so that
// nothing grows, and tells whether there was any. All are linear in n, whatever the text: it is written by strangers.
#ifndef SCAN_H
#define SCAN_H

#include "weir.h"

#define NOINLINE __attribute__((noinline))

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
static inline bool is_high(char c) { return (unsigned char)c >= 0x80; } // part of a UTF-8 letter
static inline bool is_quote(char c) { return c == '"' || c == '\''; }

static inline bool is_one_of(char c, const char *set) {
    for (; *set; set++)
        if (c == *set) return true;
    return false;
}

static inline void cover(char *t, int32_t from, int32_t to, char mask) {
    for (; from < to; from++) t[from] = mask;
}

// has tells whether the lower-case word stands at i, in any case.
static NOINLINE bool has(const char *t, int32_t n, int32_t i, const char *word) {
    for (; *word; word++, i++)
        if (i >= n || (is_letter(t[i]) ? (t[i] | 0x20) : t[i]) != *word) return false;
    return true;
}

// What a byte may be a part of. B and E, I and Z are neighbours in "bearer" and "authorization": a text without such a
// pair has no token.
enum { DIGIT = 1, GAP = 2, AT = 4, B = 8, E = 16, I = 32, Z = 64 };
static const unsigned char kind[256] = {
    ['0'] = DIGIT, ['1'] = DIGIT, ['2'] = DIGIT, ['3'] = DIGIT, ['4'] = DIGIT, ['5'] = DIGIT, ['6'] = DIGIT, ['7'] = DIGIT,
    ['8'] = DIGIT, ['9'] = DIGIT, [' '] = GAP, ['-'] = GAP, ['@'] = AT, ['%'] = AT,
    ['b'] = B, ['B'] = B, ['e'] = E, ['E'] = E, ['i'] = I, ['I'] = I, ['z'] = Z, ['Z'] = Z,
};

static inline int32_t kind_of(char c) { return kind[(unsigned char)c]; }

typedef struct {
    bool cards, emails, tokens; // whether there may be any
} signs;

// survey looks for signs at one pass, so that most texts need no other.
static NOINLINE signs survey(const char *t, int32_t n) {
    int32_t before = 0, kinds = 0, pairs = 0, run = 0, longest = 0; // run: digits, with single gaps between
#pragma clang loop unroll_count(8) // the meter counts at each turn
    for (int32_t i = 0; i < n; i++) {
        int32_t k = kind_of(t[i]);
        kinds |= k;
        pairs |= before << 1 & k;
        int32_t goes_on = (k | (before & k >> 1)) & DIGIT; // a digit, or a gap behind one
        run = (run + (k & DIGIT)) & -goes_on;
        longest = run > longest ? run : longest;
        before = k;
    }
    return (signs){longest >= 13, (kinds & AT) != 0, (pairs & (E | Z)) != 0};
}

// ---- cards: 13 to 19 digits, in groups that one space or dash separates, with a right check digit (Luhn) ----

// card_at returns the end of the longest card whose first group of digits starts at i, or 0. Groups are never cut.
static NOINLINE int32_t card_at(const char *t, int32_t n, int32_t i) {
    int32_t best = 0, digits = 0, single = 0, doubled = 0; // sums in which the last digit counts once, or doubled
    bool one_piece = true;
    for (int32_t p = i; p < n; p++) {
        if (!is_digit(t[p])) {
            if ((t[p] != ' ' && t[p] != '-') || p + 1 >= n || !is_digit(t[p + 1])) break;
            one_piece = false;
            continue;
        }
        if (++digits > 19) break;
        int32_t d = t[p] - '0', once = doubled + d;
        doubled = single + (d < 5 ? 2 * d : 2 * d - 9);
        single = once;
        bool group_ends = p + 1 == n || !is_digit(t[p + 1]);
        // ms, µs and ns since 1970 of the years 2017 to 2033; no card starts with 1
        bool time = one_piece && t[i] == '1' && t[i + 1] >= '5' && (digits == 13 || digits == 16 || digits == 19);
        if (group_ends && digits >= 13 && single % 10 == 0 && !time) best = p + 1;
    }
    return best;
}

static bool hide_cards(char *t, int32_t n, char mask) {
    bool found = false;
    for (int32_t i = 0; i < n;) {
        if (!is_digit(t[i])) {
            i++;
            continue;
        }
        int32_t end = card_at(t, n, i);
        if (end > 0) {
            for (; i < end; i++)
                if (is_digit(t[i])) t[i] = mask;
            found = true;
        }
        while (i < n && is_digit(t[i])) i++;
    }
    return found;
}

// ---- e-mail addresses: local part, @ (or %40), a domain in which a label of two letters or more follows a dot ----

static inline bool is_local(char c) { return is_letter(c) || is_digit(c) || is_high(c) || is_one_of(c, ".!#$%&'*+^_~-"); }
static inline bool is_host(char c) { return is_letter(c) || is_digit(c) || is_high(c) || c == '-'; }

static bool hide_emails(char *t, int32_t n, char mask) {
    bool found = false;
    // A local part never reaches back behind an earlier @ (or, for %40, an earlier %40): that keeps it linear.
    int32_t low_at = 0, low_coded = 0;
    for (int32_t i = 0; i < n; i++) {
        if (kind_of(t[i]) != AT) continue;
        int32_t at = t[i] == '@' ? 1 : has(t, n, i, "%40") ? 3 : 0;
        if (at == 0) continue;
        int32_t from = i, domain = i + at, to = domain;
        bool named = false; // a label behind a dot begins with a letter
        int32_t low = at == 1 ? low_at : low_coded;
        while (from > low && is_local(t[from - 1])) from--;
        while (from < i && t[from] == '\'') from++; // a quote around it
        low_coded = domain;
        if (at == 1) low_at = domain;
        while (to < n && (is_host(t[to]) || (t[to] == '.' && to > domain && to + 1 < n && is_host(t[to + 1])))) {
            if (t[to] == '.' && (is_letter(t[to + 1]) || is_high(t[to + 1])) && to + 2 < n && is_host(t[to + 2])) named = true;
            to++;
        }
        if (from == i || !named) continue;
        cover(t, from, to, mask);
        found = true;
        i = to - 1;
        low_at = low_coded = to;
    }
    return found;
}

// ---- tokens: "Bearer xxx", and what follows "authorization:" in headers, JSON, key=value text ----

static inline bool is_token(char c) { return is_letter(c) || is_digit(c) || is_one_of(c, "-._~+/=%$"); }
static inline bool ends_word(char c) { return is_one_of(c, " \t\r\n\"'\\,;)]}>&"); }

static inline int32_t skip(const char *t, int32_t n, int32_t i, const char *set) {
    while (i < n && is_one_of(t[i], set)) i++;
    return i;
}

static inline int32_t word_end(const char *t, int32_t n, int32_t i) {
    while (i < n && !ends_word(t[i])) i++;
    return i;
}

// hide_bearer covers the token of the word "bearer" at i. Returns the place behind it, i when there is none.
static NOINLINE int32_t hide_bearer(char *t, int32_t n, int32_t i, char mask) {
    if (i > 0 && is_letter(t[i - 1])) return i;
    int32_t p = i + 6, from = has(t, n, p, "%20") ? p + 3 : skip(t, n, p, " \t");
    if (from < n && (t[from] == ':' || t[from] == '=')) from = skip(t, n, from + 1, " \t\"'\\");
    if (from == p) return i;
    int32_t to = from;
    while (to < n && is_token(t[to])) to++;
    cover(t, from, to, mask);
    return to == from ? i : to;
}

// hide_authorization covers the credentials of the word "authorization" at i. A scheme with one token keeps its name
// and the text behind the token; of the others all is covered up to the closing quote or the end of the line.
static NOINLINE int32_t hide_authorization(char *t, int32_t n, int32_t i, char mask) {
    int32_t p = skip(t, n, i + 13, " \t\"'\\");
    if (p >= n || (t[p] != ':' && t[p] != '=')) return i;
    bool colon = t[p] == ':';
    p = skip(t, n, p + 1, ">"); // Ruby's =>
    char quote = 0;
    for (; p < n && is_one_of(t[p], " \t\"'\\["); p++)
        if (is_quote(t[p])) quote = t[p];

    static const char *const one_token[] = {"bearer", "basic", "token", "negotiate", "ntlm", "apikey", "api-key"};
    static const char *const parameters[] = {"digest", "oauth", "signature", "aws4-hmac-sha256", "hawk", "mac"};
    int32_t end = word_end(t, n, p), word = end - p;
    for (size_t k = 0; k < sizeof one_token / sizeof *one_token; k++) {
        if (weir_len(one_token[k]) != (size_t)word || !has(t, n, p, one_token[k])) continue;
        int32_t from = skip(t, n, end, " \t");
        int32_t to = word_end(t, n, from);
        cover(t, from, to, mask);
        return to > from ? to : i;
    }
    bool whole = colon || quote;
    for (size_t k = 0; k < sizeof parameters / sizeof *parameters; k++)
        if (weir_len(parameters[k]) == (size_t)word && has(t, n, p, parameters[k])) whole = true;
    if (whole)
        for (end = p; end < n && t[end] != '\r' && t[end] != '\n' && (!quote || t[end] != quote); end++);
    cover(t, p, end, mask);
    return end > p ? end : i;
}

static bool hide_tokens(char *t, int32_t n, char mask) {
    bool found = false;
#pragma clang loop unroll_count(8)
    for (int32_t i = 0; i < n; i++) {
        int32_t k = kind_of(t[i]), end = i;
        if (!(k & (B | Z))) continue;
        if (k == Z && i >= 7 && has(t, n, i - 7, "authorization")) end = hide_authorization(t, n, i - 7, mask);
        else if (k == B && has(t, n, i, "bearer")) end = hide_bearer(t, n, i, mask);
        if (end <= i) continue;
        found = true;
        i = end - 1;
    }
    return found;
}

#endif
