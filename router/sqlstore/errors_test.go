package sqlstore

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"zombiezen.com/go/sqlite"

	"github.com/weirlog/weir/router"
)

func TestSQLStateTable(t *testing.T) {
	check := func(want class, codes ...string) {
		t.Helper()
		for _, c := range codes {
			if got := classifySQLState(c); got != want {
				t.Errorf("%s is %v, want %v", c, got, want)
			}
		}
	}
	check(temp, "08000", "08001", "08003", "08004", "08006", "08007", "40003")
	check(ours, "08P01", "22P03", "22P04", "42P05", "26000", "25P02", "3B001")
	check(row, "22001", "22003", "22007", "22021", "22P02", "23502", "23503", "23505", "23514", "23P01", "44000", "P0001", "P0004", "27000")
	check(suspect, "21000", "54000", "54001", "38000", "39000", "2F000", "XX000", "40002", "ZZ123")
	check(otherForm, "0A000")
	check(down, "25006", "53100")
	check(slow, "25P03", "25P04", "57014", "53200")
	check(temp, "40000", "40001", "40P01", "55006", "55P03", "55P04", "53000", "53300", "57P01", "57P02", "57P03", "57P05", "58000", "58030", "72000")
	check(operator, "28000", "28P01", "3D000", "3F000", "0P000", "42501", "42601", "42703", "42P01", "55000", "55P02", "53400", "57P04", "57000", "F0000")
	check(standstill, "XX001", "XX002")
}

func TestSQLiteTable(t *testing.T) {
	check := func(want class, codes ...sqlite.ResultCode) {
		t.Helper()
		for _, c := range codes {
			if got := liteFailure("insert", c.ToError()); got.class != want || got.code != c.String() {
				t.Errorf("%s is %v, want %v", c, got.class, want)
			}
		}
	}
	check(temp, sqlite.ResultBusy, sqlite.ResultBusySnapshot, sqlite.ResultLocked, sqlite.ResultProtocol, sqlite.ResultSchema, sqlite.ResultInterrupt)
	check(down, sqlite.ResultFull, sqlite.ResultNoMem, sqlite.ResultIOErr, sqlite.ResultIOErrFsync, sqlite.ResultCantOpen)
	check(row, sqlite.ResultConstraint, sqlite.ResultConstraintCheck, sqlite.ResultConstraintNotNull, sqlite.ResultMismatch, sqlite.ResultTooBig)
	check(operator, sqlite.ResultError, sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultAuth, sqlite.ResultNoLFS)
	check(standstill, sqlite.ResultCorrupt, sqlite.ResultNotADB)
	check(bug, sqlite.ResultMisuse, sqlite.ResultRange)
}

// manualWords are the classes as docs/destinations/sqlite.md has them; a user never sees ours.
var manualWords = map[class]string{temp: "again", row: "dead letter", operator: "person", down: "person, file opened anew", standstill: "person, file untouched"}

// House rule: the manual's tables say what the code does.
func TestManualHasTheTables(t *testing.T) {
	line := regexp.MustCompile("(?m)^\\| *((?:`[0-9A-Z_]+`[, ]*)+)\\|[^|]*\\| *([a-z ,]+?) *\\|")
	read := func(name string) map[string]string {
		text, err := os.ReadFile("../../docs/destinations/" + name)
		if err != nil {
			t.Fatal(err)
		}
		table := map[string]string{}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			for _, code := range strings.Fields(strings.NewReplacer("`", " ", ",", " ").Replace(m[1])) {
				table[code] = m[2]
			}
		}
		return table
	}
	lite := read("sqlite.md")
	for code, class := range sqliteCode {
		if name := strings.TrimPrefix(code.String(), "SQLITE_"); lite[name] != manualWords[class] && class != bug {
			t.Errorf("sqlite.md: %s is %q, the code says %v", name, lite[name], class)
		}
	}
}

func TestRowIsReadFromTheContextOfCopy(t *testing.T) {
	d := &postgres{Store: &Store{columns: []column{{name: "n"}, {name: "user n"}}}}
	d.t = &pgTable{table: table{name: "logs2"}}
	check := func(where string, row int, column string) {
		t.Helper()
		if got := d.rowIn(where, 5000); got != row {
			t.Errorf("%q: row %d, want %d", where, got, row)
		}
		if got := d.columnIn(&pgconn.PgError{Where: where}); got != column {
			t.Errorf("%q: column %q, want %q", where, got, column)
		}
	}
	check("COPY logs2, line 3, column n", 3, "n")
	check("COPY logs2, line 3, column user n: \"7: \"x\"", 3, "user n")
	check("COPY logs2, line 42: \"17\tx\"", 42, "")
	check("COPY logs2, Zeile 42, Spalte n: »x«", 42, "")
	check("logs2のCOPY、行 7、列 n", 7, "n")
	check("PL/pgSQL function check_it() line 9 at RAISE\nCOPY logs2, line 5", 5, "")
	check("SQL statement \"SELECT 1 FROM ONLY hosts\"", 0, "")
	check("COPY logs2, line 5001", 0, "")
	check("", 0, "")
}

func TestValuesAreLeftOutOfReasons(t *testing.T) {
	check := func(code, message, want string) {
		t.Helper()
		if got := withoutValues(&pgconn.PgError{Code: code, Message: message}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check("22P02", `invalid input syntax for type integer: "my "secret""`, `invalid input syntax for type integer: "…"`)
	check("22003", `value "99999" is out of range for type smallint`, `value "…" is out of range for type smallint`)
	check("23514", `new row for relation "logs" violates check constraint "c"`, `new row for relation "logs" violates check constraint "c"`)
}

func TestSlowTransactionIsHalvedAtTheThirdTime(t *testing.T) {
	d := openPG(t, Config{SessionStatements: []string{"SET statement_timeout = '50ms'"}},
		"CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NEW; END $$")
	d.mustWrite(messages(1)...)
	d.query("CREATE TRIGGER nap BEFORE INSERT ON logs FOR EACH ROW EXECUTE FUNCTION nap()")
	msgs := messages(10)
	for i := range 3 {
		err := d.tryWrite(msgs...)
		if err == nil || router.IsPermanent(err) != (i == 2) || !strings.Contains(err.Error(), "57014") {
			t.Errorf("Write = %v", err)
		}
	}
	d.wantLetters()
}

func TestTriggerRefusesARow(t *testing.T) {
	d := openPG(t, Config{}, `CREATE FUNCTION pick() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 IF NEW.message LIKE '%7' THEN EXECUTE 'SELECT nothing FROM nowhere'; ELSIF NEW.message LIKE '%8' THEN RAISE 'not eight'; END IF; RETURN NEW; END $$`)
	d.mustWrite(messages(1)...)
	d.query("CREATE TRIGGER pick BEFORE INSERT ON logs FOR EACH ROW EXECUTE FUNCTION pick()")
	d.mustWrite(messages(12)...)
	d.wantLetters("message 7 42P01 ", "message 8 P0001 ")
}

func TestReadOnlyServerIsWaitedFor(t *testing.T) {
	d := openPG(t, Config{})
	d.mustWrite(messages(1)...)
	database := d.query("SELECT current_database()")[0]
	alter := func(sql string) {
		d.server.Exec(t, d.server.DSN("postgres"), "ALTER DATABASE "+database+" "+sql)
		d.server.Exec(t, d.server.DSN("postgres"), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+database+"'")
	}
	alter("SET default_transaction_read_only = on")
	if err := d.tryWrite(messages(1)...); err == nil || router.IsPermanent(err) {
		t.Errorf("Write = %v", err)
	}
	alter("RESET default_transaction_read_only")
	d.mustWrite(messages(1)...)
}

func TestLoneBadRowWaitsUntilItsNeighboursAreKnownToBeGood(t *testing.T) {
	d := openPG(t, Config{AddColumns: columns("n", Column{From: "fields.n", Type: "int CHECK (n > 0)"})})
	bad := with(message("bad"), "n", router.IntValue(-1))
	if err := d.tryWrite(bad); !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "logs_n_check") {
		t.Errorf("Write = %v", err)
	}
	d.mustWrite(messages(1)...)
	d.mustWrite(bad)
	d.wantLetters("bad 23514 ")
	// What weir itself cannot convert into the type that was asked for is never the table's fault.
	e := openPG(t, Config{AddColumns: columns("n", Column{From: "fields.n", Type: "int"})})
	e.mustWrite(with(message("worse"), "n", text("x")))
	e.wantLetters("worse 22P02 n")
}

func TestErrorsHoldNoPassword(t *testing.T) {
	for _, dsn := range []string{"postgres://weir:sesame@/logs?host=/nowhere", "host=127.0.0.1 port=1 password=sesame sslmode=disable",
		"postgres://weir:sesame@127.0.0.1:bad/logs", "postgres://weir:ses%zzame@h/", "password='sesame"} {
		c := Config{Postgres: plainSecret(dsn)}
		for _, p := range c.Check() {
			if strings.Contains(p.What, "ame") {
				t.Errorf("%s", p.What)
			}
		}
		if len(c.Check()) == 0 {
			if err := open(t, "", c).tryWrite(messages(1)...); err == nil || strings.Contains(fmt.Sprintf("%+v", err), "sesame") {
				t.Errorf("%v", err)
			}
		}
	}
}

func TestTLSIsVerifiedOffThisHost(t *testing.T) {
	check := func(dsn string, verified bool) {
		t.Helper()
		c, err := pgSettings(&Config{Postgres: plainSecret(dsn)})
		if err != nil {
			t.Error(dsn, err)
			return
		}
		if got := c.TLSConfig != nil && !c.TLSConfig.InsecureSkipVerify && len(c.Fallbacks) == 0; got != verified {
			t.Errorf("%s: verified %v", dsn, got)
		}
	}
	t.Setenv("PGSSLMODE", "")
	check("postgres://weir@db.example/logs", true)
	check("postgres://weir@db.example/logs?connect_timeout=5", true)
	check("host=db.example user=weir", true)
	check("host=db.example user=weir sslmode=disable", false)
	check("postgres://weir@db.example/logs?sslmode=disable", false)
	check("postgres://weir@127.0.0.1/logs", false)
	check("postgres://weir@/logs?host=/run/postgresql", false)
}
