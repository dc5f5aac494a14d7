/* insert SOURCE TARGET: the rows of the table logs in one SQLite file, put into
   the same table with the same indexes in another one, which is new. They are
   all in memory before the clock starts; then this program does nothing but
   insert them: one prepared statement of one row, 1000 rows a transaction, WAL,
   synchronous=FULL. Prints how many and how many seconds that took. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUMBER = -1, NOTHING = -2 };
struct value { union { sqlite3_int64 number; const char *text; } is; int length; };

static void try(int ok, sqlite3 *db, const char *what) {
    if (ok) return;
    fprintf(stderr, "insert: %s: %s\n", what, db ? sqlite3_errmsg(db) : "no memory");
    exit(1);
}

static sqlite3_stmt *prepared(sqlite3 *db, const char *sql) {
    sqlite3_stmt *s;
    try(sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK, db, sql);
    return s;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    sqlite3 *from, *to;
    if (argc != 3) return 2;
    try(sqlite3_open_v2(argv[1], &from, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, from, argv[1]);
    try(sqlite3_open(argv[2], &to) == SQLITE_OK, to, argv[2]);
    try(sqlite3_exec(to, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", NULL, NULL, NULL) == SQLITE_OK, to, "pragma");

    sqlite3_stmt *s = prepared(from, "SELECT sql FROM sqlite_master WHERE tbl_name = 'logs' AND sql IS NOT NULL");
    while (sqlite3_step(s) == SQLITE_ROW)
        try(sqlite3_exec(to, (const char *)sqlite3_column_text(s, 0), NULL, NULL, NULL) == SQLITE_OK, to, "create");
    sqlite3_finalize(s);

    char names[4096] = "", marks[1024] = "", sql[8192];
    int columns = 0;
    s = prepared(from, "SELECT '\"' || name || '\"' FROM pragma_table_info('logs') WHERE pk = 0");
    for (; sqlite3_step(s) == SQLITE_ROW; columns++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", columns ? ", " : "", sqlite3_column_text(s, 0));
        strcat(marks, columns ? ", ?" : "?");
        try(strlen(names) < sizeof names - 1 && strlen(marks) < sizeof marks - 4, from, "too many columns");
    }
    sqlite3_finalize(s);

    size_t room = 0, count = 0;
    struct value *values = NULL;
    snprintf(sql, sizeof sql, "SELECT %s FROM logs ORDER BY id", names);
    s = prepared(from, sql);
    while (sqlite3_step(s) == SQLITE_ROW) {
        if (count + columns > room) {
            room = room ? room * 2 : 1 << 20;
            try((values = realloc(values, room * sizeof *values)) != NULL, NULL, "read");
        }
        for (int i = 0; i < columns; i++) {
            struct value *v = &values[count++];
            switch (sqlite3_column_type(s, i)) {
            case SQLITE_INTEGER: v->length = NUMBER; v->is.number = sqlite3_column_int64(s, i); break;
            case SQLITE_NULL: v->length = NOTHING; break;
            default: {
                const char *text = (const char *)sqlite3_column_text(s, i);
                v->length = sqlite3_column_bytes(s, i);
                char *copy = malloc(v->length + 1);
                try(copy != NULL, NULL, "read");
                v->is.text = memcpy(copy, text, v->length);
            }
            }
        }
    }
    sqlite3_finalize(s);
    sqlite3_close(from);

    snprintf(sql, sizeof sql, "INSERT INTO logs (%s) VALUES (%s)", names, marks);
    sqlite3_stmt *insert = prepared(to, sql), *begin = prepared(to, "BEGIN"), *commit = prepared(to, "COMMIT");
    size_t rows = count / columns;
    double start = now();
    for (size_t row = 0; row < rows; row++) {
        if (row % 1000 == 0) {
            try(sqlite3_step(begin) == SQLITE_DONE, to, "begin");
            sqlite3_reset(begin);
        }
        const struct value *v = values + row * columns;
        for (int i = 0; i < columns; i++, v++) {
            if (v->length == NUMBER) sqlite3_bind_int64(insert, i + 1, v->is.number);
            else if (v->length == NOTHING) sqlite3_bind_null(insert, i + 1);
            else sqlite3_bind_text(insert, i + 1, v->is.text, v->length, SQLITE_STATIC);
        }
        try(sqlite3_step(insert) == SQLITE_DONE, to, "insert");
        sqlite3_reset(insert);
        if (row % 1000 == 999 || row == rows - 1) {
            try(sqlite3_step(commit) == SQLITE_DONE, to, "commit");
            sqlite3_reset(commit);
        }
    }
    printf("%zu rows %.6f s\n", rows, now() - start);
    return 0;
}
