// A filter whose allocator the host cannot see. It allocates more in the first calls than it frees.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int calls;

__attribute__((export_name("filter"))) char *filter(char *tag, int tag_len, uint32_t sec, uint32_t nsec, char *record, int record_len) {
	static char out[65536];
	char *before = strdup(record), *room[50];
	for (int i = 0; i < 50; i++) {
		room[i] = malloc(20000);
		memset(room[i], 'x', 20000);
	}
	int same = !strcmp(before, record) && (int)strlen(record) == record_len && (int)strlen(tag) == tag_len;
	if (++calls > 3)
		for (int i = 0; i < 50; i++) free(room[i]);
	free(before);
	snprintf(out, sizeof out, "%.*s,\"same\":%s}", record_len - 1, record, same ? "true" : "false");
	return out;
}
