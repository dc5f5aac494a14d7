// stdio_checks is a program that reads and writes lines of JSON, and knows nothing of weir: health checks go, and long records
// are marked. LONG in its environment says what is long, in bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    const char *given = getenv("LONG");
    long most = given ? strtol(given, 0, 10) : 10000;
    char *line = 0;
    size_t room = 0;
    ssize_t n;
    while ((n = getline(&line, &room, stdin)) > 0) {
        if (line[n - 1] == '\n') line[--n] = 0;
        if (strstr(line, "\"message\":\"GET /healthz")) continue; // not written: dropped
        if (n > most && line[n - 1] == '}') {
            line[n - 1] = 0;
            printf("%s,\"long\":true}\n", line);
        } else {
            puts(line);
        }
    }
    return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
