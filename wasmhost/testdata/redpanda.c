// A data transform that does what the message says: a command is the first word of its text. Others are written back with
// their digits masked.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMPORT(n) __attribute__((import_module("redpanda_transform"), import_name(#n)))
IMPORT(check_abi_version_2) void check_abi_version(void);
IMPORT(read_batch_header)
int32_t read_batch_header(int64_t *base, int32_t *count, int32_t *epoch, int16_t *attributes, int32_t *last, int64_t *first_time,
                          int64_t *last_time, int64_t *producer, int16_t *producer_epoch, int32_t *sequence);
IMPORT(read_next_record) int32_t read_next_record(uint8_t *attributes, int64_t *time, int64_t *offset, char *buf, int32_t n);
IMPORT(write_record) int32_t write_record(const char *body, int32_t n);
IMPORT(write_record_with_options) int32_t write_record_with_options(const char *body, int32_t n, const char *options, int32_t on);

static char in[1 << 16], out[1 << 16];

static int varint(char *to, int32_t v) {
    uint32_t u = (uint32_t)v << 1 ^ (uint32_t)(v >> 31);
    int n = 0;
    for (; u >= 0x80; u >>= 7) to[n++] = (char)(u | 0x80);
    to[n++] = (char)u;
    return n;
}

static int32_t body(const char *value, int32_t n) {
    int at = varint(out, 3); // a key and a header, which mean nothing to weir
    memcpy(out + at, "key", 3);
    at += 3;
    at += varint(out + at, n);
    memcpy(out + at, value, (size_t)n);
    at += n;
    memcpy(out + at, "\x02\x02h\x01", 4); // one header "h": null
    return at + 4;
}

static void write_json(const char *json) {
    int32_t n = body(json, (int32_t)strlen(json));
    if (write_record(out, n) != n) abort();
}

static int is(const char *text, const char *word) { return !strncmp(text, word, strlen(word)); }

int main(void) {
    check_abi_version();
    for (;;) {
        int64_t base, first, last, producer, time, offset;
        int32_t count, epoch, delta, sequence;
        int16_t attributes, producer_epoch;
        uint8_t a;
        int32_t most = read_batch_header(&base, &count, &epoch, &attributes, &delta, &first, &last, &producer, &producer_epoch, &sequence);
        if (most < 0) {
            if (read_batch_header(&base, &count, &epoch, &attributes, &delta, &first, &last, &producer, &producer_epoch, &sequence) != most) abort();
            puts("the end");
            fputs("there should be more\n", stderr);
            return 1;
        }
        if (count != 1 || producer != -1 || first != last) abort();
        if (read_next_record(&a, &time, &offset, in, most - 1) != -2) abort();
        int32_t n = read_next_record(&a, &time, &offset, in, most);
        if (n != most || offset != base || time != first || a) abort();
        if (read_next_record(&a, &time, &offset, in, most) != -1) abort();
        in[n - 1] = 0; // no headers; the text ends with the value
        char *json = strchr(in, '{'), *text = strstr(json, "\"message\":\"");
        text = text ? text + 11 : json;
        if (is(text, "drop")) continue;
        if (is(text, "trap")) __builtin_trap();
        if (is(text, "exit")) exit(0);
        if (is(text, "return")) return 0;
        if (is(text, "spin")) for (volatile int i = 0;; i++) {}
        if (is(text, "none")) { write_record("\x01\x01\x00", 3); continue; }
        if (is(text, "array")) { write_json("[1]"); continue; }
        if (is(text, "short")) { if (write_record("\x01\x20{}\x00", 5) != -3) abort(); continue; }
        if (is(text, "deaf")) {
            read_batch_header(&base, &count, &epoch, &attributes, &delta, &first, &last, &producer, &producer_epoch, &sequence);
            // The header of the next batch is here now, but this one writes before it reads its record.
            if (write_record("\x01\x04{}\x00", 5) != -1) abort();
            read_next_record(&a, &time, &offset, in, sizeof in);
            continue;
        }
        if (is(text, "skip ahead")) {
            read_batch_header(&base, &count, &epoch, &attributes, &delta, &first, &last, &producer, &producer_epoch, &sequence);
            read_batch_header(&base, &count, &epoch, &attributes, &delta, &first, &last, &producer, &producer_epoch, &sequence);
            read_next_record(&a, &time, &offset, in, sizeof in);
            continue;
        }
        if (is(text, "split")) {
            write_json("{\"message\":\"one\",\"a\":1}");
            write_json("{\"message\":\"two\",\"b\":2}");
            write_json("{\"message\":\"three\",\"severity\":\"odd\"}");
            continue;
        }
        if (is(text, "to ")) {
            char options[64];
            char *topic = text + 3, *end = strpbrk(topic, " \"");
            int at = 1;
            options[0] = 1;
            at += varint(options + at, (int32_t)(end - topic));
            memcpy(options + at, topic, (size_t)(end - topic));
            at += (int)(end - topic);
            n = body(json, (int32_t)strlen(json));
            if (write_record_with_options(out, n, options, at) != n) abort();
            if (*end == ' ') write_json("{\"message\":\"everywhere\"}");
            continue;
        }
        for (char *p = text; *p && *p != '"'; p++)
            if (*p >= '0' && *p <= '9') *p = '#';
        write_json(json);
    }
}
