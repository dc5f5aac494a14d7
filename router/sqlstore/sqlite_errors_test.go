package sqlstore

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/weirlog/weir/router"
)

// liteErrors provokes codes of SQLite's for real: each returns the error of a
// statement in a file of its own. Not among them are NOMEM, PERM, NOLFS and
// PROTOCOL, which need a machine in trouble, and SCHEMA, which SQLite
// answers by preparing anew.
var liteErrors = map[string]func(t *testing.T, conn *sqlite.Conn, path string) error{
	"BUSY": func(t *testing.T, conn *sqlite.Conn, path string) error {
		other := another(t, path)
		run(t, other, "BEGIN IMMEDIATE")
		conn.SetBusyTimeout(1)
		return try(conn, "INSERT INTO t VALUES (1)")
	},
	"LOCKED": func(t *testing.T, conn *sqlite.Conn, _ string) error {
		run(t, conn, "INSERT INTO t VALUES (1), (2)")
		stmt := conn.Prep("SELECT a FROM t")
		if _, err := stmt.Step(); err != nil {
			t.Fatal(err)
		}
		defer stmt.Reset()
		return try(conn, "DROP TABLE t")
	},
	"INTERRUPT": func(t *testing.T, conn *sqlite.Conn, _ string) error {
		done := make(chan struct{})
		close(done)
		conn.SetInterrupt(done)
		defer conn.SetInterrupt(nil)
		return try(conn, "INSERT INTO t VALUES (1)")
	},
	"FULL": func(t *testing.T, conn *sqlite.Conn, _ string) error {
		run(t, conn, "PRAGMA max_page_count = 4")
		return try(conn, "INSERT INTO t VALUES (zeroblob(100000))")
	},
	"IOERR": func(t *testing.T, _ *sqlite.Conn, _ string) error {
		conn, err := sqlite.OpenConn("file:/proc/self/mem?immutable=1", sqlite.OpenReadOnly|sqlite.OpenURI) // nothing is at its beginning
		if err != nil {
			return err
		}
		defer conn.Close()
		return try(conn, "SELECT * FROM sqlite_schema")
	},
	"CANTOPEN": func(t *testing.T, _ *sqlite.Conn, path string) error {
		_, err := sqlite.OpenConn(path+"/below", sqlite.OpenReadWrite|sqlite.OpenCreate)
		return err
	},
	"CONSTRAINT": func(t *testing.T, conn *sqlite.Conn, _ string) error {
		run(t, conn, "CREATE TABLE c (x NOT NULL)")
		return try(conn, "INSERT INTO c VALUES (NULL)")
	},
	"MISMATCH": func(t *testing.T, conn *sqlite.Conn, _ string) error {
		run(t, conn, "CREATE TABLE k (id INTEGER PRIMARY KEY)")
		return try(conn, "INSERT INTO k VALUES ('abc')")
	},
	"TOOBIG": func(t *testing.T, conn *sqlite.Conn, _ string) error {
		return try(conn, "INSERT INTO t VALUES (zeroblob(2000000000))")
	},
	"ERROR": func(t *testing.T, conn *sqlite.Conn, _ string) error {
		return try(conn, "INSERT INTO nothing VALUES (1)")
	},
	"READONLY": func(t *testing.T, conn *sqlite.Conn, _ string) error {
		run(t, conn, "PRAGMA query_only = ON")
		return try(conn, "INSERT INTO t VALUES (1)")
	},
	"AUTH": func(t *testing.T, conn *sqlite.Conn, _ string) error {
		conn.SetAuthorizer(sqlite.AuthorizeFunc(func(sqlite.Action) sqlite.AuthResult { return sqlite.AuthResultDeny }))
		return try(conn, "INSERT INTO t VALUES (1)")
	},
	"CORRUPT": func(t *testing.T, conn *sqlite.Conn, path string) error {
		run(t, conn, "INSERT INTO t VALUES (1)")
		damage(t, path, 4096)
		return try(another(t, path), "INSERT INTO t VALUES (1)")
	},
	"NOTADB": func(t *testing.T, _ *sqlite.Conn, path string) error {
		path += ".txt"
		if err := os.WriteFile(path, bytes.Repeat([]byte("no database\n"), 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		return try(another(t, path), "INSERT INTO t VALUES (1)")
	},
}

func another(t *testing.T, path string) *sqlite.Conn {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func try(conn *sqlite.Conn, sql string) error { return sqlitex.ExecuteTransient(conn, sql, nil) }

func run(t *testing.T, conn *sqlite.Conn, sql string) {
	t.Helper()
	if err := try(conn, sql); err != nil {
		t.Fatal(err)
	}
}

// damage overwrites a page of a file, with rubbish.
func damage(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt(bytes.Repeat([]byte{0x5a}, 4096), at)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// liteManual is the manual's table of errors: codes and their classes.
func liteManual(t *testing.T) map[string]string {
	page, err := os.ReadFile("../../docs/destinations/sqlite.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, code := range strings.Split(cells[1], ",") {
			if code = strings.TrimSpace(code); strings.HasPrefix(code, "`") && code == strings.ToUpper(code) {
				table[strings.Trim(code, "`")] = strings.TrimSpace(cells[3])
			}
		}
	}
	return table
}

// The manual's table of errors, against the real ones.
func TestSQLiteErrorsAreWhatTheManualSays(t *testing.T) {
	manual := liteManual(t)
	for code, provoke := range liteErrors {
		t.Run(code, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.db")
			conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			run(t, conn, "CREATE TABLE t (a)")
			err = provoke(t, conn, path)
			if err == nil {
				t.Fatal("no error")
			}
			f := liteFailure("insert", err)
			if got := strings.SplitN(strings.TrimPrefix(f.code, "SQLITE_"), "_", 2)[0]; got != code {
				t.Errorf("provoked %s: %v", f.code, err)
			}
			if manualWords[f.class] != manual[code] {
				t.Errorf("%v is of class %v, the manual says %q", f, f.class, manual[code])
			}
		})
	}
	for code := range manual {
		switch code {
		case "NOMEM", "PERM", "NOLFS", "PROTOCOL", "SCHEMA":
		default:
			if liteErrors[code] == nil {
				t.Errorf("%s is not provoked", code)
			}
		}
	}
}

func TestSQLiteConstraintsOfEveryKind(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "logs.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	query(t, filepath.Join(dir, "logs.db"), "CREATE TABLE parents (id INTEGER PRIMARY KEY)")
	d := open(t, dir, Config{SQLite: "logs.db", Columns: columns(
		"id", Column{From: "fields.id", Type: "INTEGER PRIMARY KEY"},
		"short", Column{From: "fields.short", Type: "VARCHAR(4)"},
		"must", Column{From: "fields.must", Type: "TEXT NOT NULL"},
		"small", Column{From: "fields.small", Type: "SMALLINT CHECK (small <> 13)"},
		"only", Column{From: "fields.only", Type: "TEXT UNIQUE"},
		"parent", Column{From: "fields.parent", Type: "INTEGER REFERENCES parents"},
		"json", Column{From: "fields.json", Type: "ANY CHECK (json IS NULL OR json_extract(json, '$.a') > 0)"},
	), SessionStatements: []string{"PRAGMA foreign_keys = ON"}})
	d.query("INSERT INTO parents VALUES (1)")
	d.query("CREATE TRIGGER t BEFORE INSERT ON logs WHEN new.must = 'trigger' BEGIN SELECT RAISE(ABORT, 'the house''s rule'); END")
	var msgs []*router.Message
	add := func(name string, fields ...any) {
		m := with(message(name), "must", text("x"))
		for i := 0; i < len(fields); i += 2 {
			if fields[i] == "must" {
				m.Fields = m.Fields[:0]
			}
			if v, ok := fields[i+1].(router.Value); ok {
				with(m, fields[i].(string), v)
			}
		}
		msgs = append(msgs, m)
	}
	add("good", "only", text("a"), "parent", router.IntValue(1), "id", router.IntValue(5))
	add("type", "small", text("abc"))
	add("length", "short", text("abcde"))
	add("range", "small", router.IntValue(40000))
	add("not null", "must", nil)
	add("check", "small", router.IntValue(13))
	add("unique", "only", text("a"))
	add("key", "id", router.IntValue(5))
	add("foreign", "parent", router.IntValue(2)) // found at the end of the statement
	add("trigger", "must", text("trigger"))
	add("json", "json", text(`{"a":`))
	add("good too")
	d.mustWrite(msgs...)
	d.wantLetters("type SQLITE_MISMATCH small", "length SQLITE_MISMATCH short", "range SQLITE_MISMATCH small", "not null SQLITE_CONSTRAINT_NOTNULL must",
		"check SQLITE_CONSTRAINT_CHECK ", "unique SQLITE_CONSTRAINT_UNIQUE only", "key SQLITE_CONSTRAINT_PRIMARYKEY id", "foreign SQLITE_CONSTRAINT_FOREIGNKEY ",
		"trigger SQLITE_CONSTRAINT_TRIGGER ", "json SQLITE_ERROR ")
	if r := d.letters[8].Reason; r != "the house's rule" {
		t.Error(r)
	}
	d.want("SELECT count(*) FROM logs", "2")
}

func TestSQLiteStrictTablesAreTakenAtTheirWordToo(t *testing.T) {
	d := openLite(t, Config{Columns: columns("v", Column{From: "fields.v", Type: "INT"}, "w", Column{From: "fields.w", Type: "ANY"}), Tables: Tables{CreateSuffix: "STRICT"}})
	d.mustWrite(with(message("good"), "v", router.IntValue(1)), with(message("bad"), "v", text("x")))
	d.query("DROP TABLE logs")
	d.query("CREATE TABLE logs (v INT, w BLOB) STRICT")
	d.mustWrite(with(message("good"), "v", router.IntValue(1)), with(message("bytes"), "w", text("x")))
	d.wantLetters("bad SQLITE_MISMATCH v")
}

func TestSQLiteHugeValueCostsOneRow(t *testing.T) {
	d := openLite(t, Config{})
	d.db.(*lite).conn.Limit(sqlite.LimitLength, 100_000)
	msgs := messages(120)
	msgs[70].Text = bytes.Repeat([]byte("x"), 200_000)
	d.mustWrite(msgs...)
	if len(d.letters) != 1 || d.letters[0].Message != msgs[70] || d.letters[0].Code != "SQLITE_TOOBIG" {
		t.Errorf("dead letters: %+v", d.letters)
	}
	d.want("SELECT count(*) FROM logs", "119")
}

// What only a person can mend costs no row, and is over when it is mended.
func TestSQLiteWaitsForThePerson(t *testing.T) {
	check := func(code, bad, good string, cfg Config) {
		t.Helper()
		d := openLite(t, cfg)
		d.mustWrite(messages(3)...)
		conn := d.db.(*lite).conn
		run(t, conn, bad)
		if err := d.tryWrite(messages(3)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v", code, err)
		}
		if d.db.(*lite).conn == conn {
			run(t, conn, good)
		} else {
			d.query(good)
		}
		d.mustWrite(messages(3)...)
		d.want("SELECT count(*) FROM logs", "6")
		if len(d.letters) > 0 {
			t.Errorf("%s: %d dead letters", code, len(d.letters))
		}
	}
	check("SQLITE_READONLY", "PRAGMA query_only = ON", "PRAGMA query_only = OFF", Config{})
	check("no such table: main.gone", "CREATE TRIGGER t BEFORE INSERT ON logs BEGIN INSERT INTO gone VALUES (1); END", "DROP TRIGGER t", Config{})
}

func TestSQLiteDamagedFileIsNotTouched(t *testing.T) {
	d := openLite(t, Config{})
	d.mustWrite(messages(3000)...)
	path := filepath.Join(d.dir, "logs.db")
	d.Store.db.(*lite).drop() // moves the WAL into the file
	for at := int64(4096); at < 200_000; at += 4096 {
		damage(t, path, at)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := d.tryWrite(messages(3)...); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "SQLITE_CORRUPT") {
			t.Errorf("Write = %v", err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed: %v", err)
	}
	if len(d.letters) > 0 {
		t.Errorf("%d dead letters", len(d.letters))
	}

	path = filepath.Join(t.TempDir(), "logs.db")
	text := bytes.Repeat([]byte("this is my diary\n"), 1000)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{SQLite: path}, "db", "", slogDiscard); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "SQLITE_NOTADB") {
		t.Errorf("Open = %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(text, after) {
		t.Error("the file was changed")
	}
}

// Whatever refuses rows, their values are in no reason, no error and no line of the log.
func TestSQLiteTellsNoValues(t *testing.T) {
	const secret = "hunter2"
	var log bytes.Buffer
	all := columns("a", Column{From: "fields.a", Type: "TEXT"}, "b", Column{From: "fields.b", Type: "TEXT"})
	for _, table := range []string{
		"a TEXT CHECK (a <> b), b TEXT", "a TEXT UNIQUE, b TEXT", "a INTEGER, b TEXT", "a TEXT, b SMALLINT", "a VARCHAR(2), b TEXT", "a JSON, b BOOLEAN",
		"a TEXT CHECK (json_extract('{}', a) IS NULL), b TEXT", "a TEXT CHECK (a->b > 0), b TEXT", "a TEXT, b TEXT CHECK (b LIKE 'x' ESCAPE a)",
		"a TEXT, b TEXT, c AS (json_extract(a, b)) STORED", "a TEXT, b DATE CHECK (b > date('now', a))",
		"a TEXT, b TEXT", // and a trigger
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "logs.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		conn := another(t, path)
		run(t, conn, "CREATE TABLE logs ("+table+")")
		if table == "a TEXT, b TEXT" {
			run(t, conn, "CREATE TRIGGER x BEFORE INSERT ON logs BEGIN SELECT RAISE(ABORT, new.a || ' is wrong'); END")
		}
		s, err := Open(t.Context(), Config{SQLite: path, Columns: all}, "db", dir, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(table, err)
		}
		d := &rig{Store: s, t: t, dir: dir}
		row := func() *router.Message { return with(with(message(secret), "a", text(secret)), "b", text(secret)) }
		var msgs []*router.Message
		for range 60 {
			msgs = append(msgs, row())
		}
		err = d.tryWrite(append(msgs, with(with(message("x"), "a", text("1")), "b", text("0")))...)
		fmt.Fprintln(&log, table, err)
		for _, l := range d.letters {
			fmt.Fprintln(&log, l.Code, l.Column, l.Reason)
		}
		if err == nil && len(d.letters) == 0 {
			t.Errorf("%s takes everything", table)
		}
		s.Close()
	}
	if strings.Contains(log.String(), secret) {
		t.Error(log.String())
	}
}
