/* A program that does what touch.c does, on lines of JSON: it finds two members and adds one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char in[1 << 20], out[2 << 20];

/* The output is written when it is full, and at the end: a WASI call costs more than a record. */
static size_t used;

static void flush(void) {
    for (size_t at = 0; at < used;) {
        ssize_t n = write(1, out + at, used - at);
        if (n <= 0) __builtin_trap();
        at += (size_t)n;
    }
    used = 0;
}

static void put(const char *s, size_t n) {
    memcpy(out + used, s, n);
    used += n;
}

static void line(char *s, size_t n) {
    s[n] = 0;
    const char *message = strstr(s, "\"message\":\""), *app = strstr(s, "\"app_name\":\"");
    if (!message || !app || n < 2) __builtin_trap();
    if (used + n + 100 > sizeof out) flush();
    put(s, n - 1);
    put(",\"kind\":\"", 9);
    const char *end = strpbrk(app += 12, "\"\\");
    put(app, end && end - app < 48 ? (size_t)(end - app) : 0);
    put("/", 1);
    for (int i = 11; i < 19 && message[i] != ' ' && message[i] != '"' && message[i] != '\\'; i++) put(message + i, 1);
    put("\"}\n", 3);
}

int main(void) {
    size_t have = 0;
    for (ssize_t n; (n = read(0, in + have, sizeof in - 1 - have)) > 0;) {
        have += (size_t)n;
        char *at = in, *end;
        while ((end = memchr(at, '\n', have - (size_t)(at - in)))) {
            line(at, (size_t)(end - at));
            at = end + 1;
        }
        have -= (size_t)(at - in);
        memmove(in, at, have);
    }
    flush();
    return 0;
}
