// fluentbit_stamp is a filter for Fluent Bit's filter_wasm, and knows nothing of weir: it drops debug records, and puts the tag
// and the time at which Fluent Bit (or weir) saw a record into it.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char out[256 * 1024];

// quote writes text as the inside of a JSON string; what is no printable ASCII, and quotes, become question marks.
static void quote(char *to, const char *text, int n) {
    for (int i = 0; i < n; i++) to[i] = text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\' ? '?' : text[i];
    to[n] = 0;
}

__attribute__((export_name("stamp"))) char *stamp(char *tag, int tag_len, uint32_t sec, uint32_t nsec, char *record, int record_len) {
    // The record's own header stands before its text, so the first severity is the record's.
    const char *severity = strstr(record, "\"severity\":");
    if (severity && severity[11] == '7') return 0;                             // dropped
    char name[256];
    if (tag_len < 0 || tag_len >= (int)sizeof name || record_len < 2 || record_len + 512 > (int)sizeof out) return "too long"; // no object: failed
    quote(name, tag, tag_len);
    int end = record_len - 1;                                                   // before the last brace
    memcpy(out, record, end);
    snprintf(out + end, sizeof out - end, "%s\"tag\":\"%s\",\"seen\":%u.%09u}", end > 1 ? "," : "", name, sec, nsec);
    return out;
}
