// A program that reads records and does what the message says: a command is the first word of its text. Others are written
// back with their digits masked.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[1 << 20], held[1 << 10];

static int is(const char *text, const char *word) { return !strncmp(text, word, strlen(word)); }

int main(void) {
    while (fgets(line, sizeof line, stdin)) {
        char *text = strstr(line, "\"message\":\""), *id = strstr(line, "\"weir_id\":");
        if (!text || !id) return 9;
        fputs(held, stdout);
        held[0] = 0;
        text += 11;
        long n = atol(id + 10);
        if (is(text, "drop")) continue;
        else if (is(text, "same")) fputs(line, stdout);
        else if (is(text, "trap")) __builtin_trap();
        else if (is(text, "exit")) exit(3);
        else if (is(text, "leave")) exit(0);
        else if (is(text, "spin")) for (volatile int i = 0;; i++) {}
        else if (is(text, "flood")) for (;;) fputs(line, stdout);
        else if (is(text, "chatter")) puts("hello");
        else if (is(text, "array")) puts("[1]");
        else if (is(text, "stranger")) printf("{\"weir_id\":%ld}\n", n + 1000);
        else if (is(text, "word")) puts("{\"weir_id\":\"x\"}");
        else if (is(text, "twice")) printf("%s%s", line, line);
        else if (is(text, "empty")) printf("\n{\"weir_id\":%ld}\n \n", n);
        else if (is(text, "odd")) printf("{ \"b\":1, \"severity\":\"odd\",\"weir_id\": %ld.0 ,\"message\":\"odd done\"}\r\n", n);
        else if (is(text, "split")) puts("{\"message\":\"one\"}\n{\"message\":\"two\",\"weir_id\":null}");
        else if (is(text, "add")) printf("%s{\"message\":\"added\"}\n", line);
        else if (is(text, "late")) printf("{\"weir_id\":%ld,\"message\":\"came late\"}\n{\"message\":\"behind it\"}\n", n - 1);
        else if (is(text, "unfinished")) printf("{\"weir_id\":%ld,\"message\":\"unfinished\"}", n);
        else if (is(text, "last")) { printf("{\"weir_id\":%ld,\"message\":\"the last\"}", n); continue; }
        else if (is(text, "unflushed")) { puts(line); continue; }
        else if (is(text, "hold")) strcpy(held, line);
        else if (is(text, "sum")) strcpy(held, "{\"message\":\"sum\"}\n");
        else if (is(text, "stderr")) fprintf(stderr, "told\n");
        else {
            for (char *p = text; *p && *p != '"'; p++)
                if (*p >= '0' && *p <= '9') *p = '#';
            fputs(line, stdout);
        }
        fflush(stdout);
    }
    fputs(held, stdout);
    return 0;
}
