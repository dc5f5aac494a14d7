// Filters as Fluent Bit has them: each export is one. They use a libc of their own and export its malloc and free.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILTER(name) __attribute__((export_name(#name))) char *name(char *tag, int tag_len, uint32_t sec, uint32_t nsec, char *record, int record_len)

__attribute__((export_name("malloc"))) void *guest_malloc(size_t n) { return malloc(n); }
__attribute__((export_name("free"))) void guest_free(void *p) { free(p); }

static char *grown(const char *format, const char *record, int keep, const char *more, uint32_t a, uint32_t b) {
	size_t n = strlen(record) + strlen(more) + 128;
	char *out = malloc(n); // never freed, as in many filters
	if (out) snprintf(out, n, format, keep, record, more, a, b);
	return out;
}

FILTER(append_tag) { return grown("%.*s,\"tag\":\"%s\",\"tag_len\":%u,\"record_len\":%u}", record, record_len - 1, tag, tag_len, record_len); }
FILTER(modify_record) {
	char *m = strstr(record, "\"message\":\"");
	if (!m) return record;
	for (m += 11; *m && *m != '"'; m++)
		if (*m >= 'a' && *m <= 'z') *m -= 32;
	return record; // changed in place
}
FILTER(numeric) { return grown("%.*s%s,\"sec\":%u,\"nsec\":%u,\"half\":0.5,\"ints\":[1,-1,9007199254740993]}", record, record_len - 1, "", sec, nsec); }
FILTER(say_hello) {
	printf("hello from %s\n", tag);
	return "{\"message\":\"hello\",\"peer\":\"elsewhere\"}";
}
FILTER(packed) { // MessagePack: one member more, with a NUL in it, and rubbish behind
	char *out = malloc(record_len + 16);
	if ((record[0] & 0xf0) != 0x80 || record[0] == (char)0x8f) __builtin_trap();
	memcpy(out, record, record_len);
	out[0]++;
	memcpy(out + record_len, "\xa4zero\xc4\x03" "a\0b" "\xc1\xc1", 12);
	return out;
}
FILTER(drop_null) { return 0; }
FILTER(drop_empty) { return ""; }
FILTER(unchanged) { return record; }
FILTER(not_an_object) { return "[1,2]"; }
FILTER(not_json) { return "{\"a\":"; }
FILTER(nowhere) { return (char *)0xfffffff0; }
FILTER(trapping) { __builtin_trap(); }
FILTER(endless) { for (;;) if (*(volatile char *)record == 1) return 0; }
