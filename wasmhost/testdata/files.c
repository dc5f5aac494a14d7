// Does with the granted files what the message says, and makes what came of it the message: a letter and a path.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <errno.h>
#include <unistd.h>
#include "weir.h"

static char text[4096];

static void wrong(void) { snprintf(text, sizeof text, "error: %s", strerror(errno)); }

static void doit(char what, char *path) {
    text[0] = 0;
    int fd;
    ssize_t n;
    switch (what) {
    case 'r':
        if ((fd = open(path, O_RDONLY)) < 0) { wrong(); return; }
        n = read(fd, text, sizeof text - 1);
        if (n < 0) wrong(); else text[n] = 0;
        close(fd);
        return;
    case 'w':
        if ((fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644)) < 0) { wrong(); return; }
        if (write(fd, "written", 7) != 7) wrong(); else strcpy(text, "ok");
        close(fd);
        return;
    case 'l': {
        DIR *d = opendir(path);
        if (!d) { wrong(); return; }
        for (struct dirent *e; (e = readdir(d));)
            if (e->d_name[0] != '.') { strcat(text, e->d_name); strcat(text, " "); }
        closedir(d);
        return;
    }
    case 'u': if (unlink(path)) wrong(); else strcpy(text, "ok"); return;
    case 'm': if (mkdir(path, 0755)) wrong(); else strcpy(text, "ok"); return;
    case 's': if (symlink("/etc", path)) wrong(); else strcpy(text, "ok"); return;
    case 'e': snprintf(text, sizeof text, "%s", getenv(path) ? getenv(path) : "unset"); return;
    case 'o':
        for (int i = 0; i < 1000; i++)
            if (open(path, O_RDONLY) < 0) { snprintf(text, sizeof text, "%d open", i); return; }
        return;
    case 't': __builtin_trap();
    case 'f': // for ever
        for (;;) {
            fd = open(path, O_RDONLY);
            while (read(fd, text, sizeof text) > 0);
            close(fd);
        }
    }
}

WEIR_PROCESS(void) {
    int32_t n = weir_get("message");
    if (n < 1) return WEIR_FAILED;
    weir_buf[n] = 0;
    doit(weir_buf[0], weir_buf + 2);
    return weir_set("message", text) < 0 ? WEIR_FAILED : WEIR_KEEP;
}
