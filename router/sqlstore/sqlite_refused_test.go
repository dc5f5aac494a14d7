package sqlstore

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

func TestSQLiteRefusedRowCostsOneRow(t *testing.T) {
	cfg := Config{AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER CHECK (n < 1000)"})}
	for _, at := range [][]int{{0}, {55}, {119}, {3, 4, 60, 61, 110}} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			d := openLite(t, cfg)
			msgs := messages(120)
			for _, m := range msgs {
				with(m, "n", router.IntValue(1))
			}
			var want []string
			for i, n := range at {
				if i%2 == 0 {
					msgs[n].Fields[0].Value = text("many") // weir's own check
					want = append(want, fmt.Sprintf("message %d SQLITE_MISMATCH n", n))
				} else {
					msgs[n].Fields[0].Value = router.IntValue(5000) // SQLite's
					want = append(want, fmt.Sprintf("message %d SQLITE_CONSTRAINT_CHECK ", n))
				}
			}
			d.mustWrite(msgs...)
			var got []string
			for _, l := range d.letters {
				got = append(got, fmt.Sprintf("%s %s %s", l.Message.Text, l.Code, l.Column))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			d.want("SELECT count(*), count(DISTINCT message) FROM logs", fmt.Sprintf("%d|%[1]d", 120-len(at)))
		})
	}
}

func TestSQLiteRejectsThatCannotBeKeptUndoTheTransaction(t *testing.T) {
	d := openLite(t, Config{AddColumns: columns("n", Column{From: "fields.n", Type: "INTEGER"})})
	msgs := messages(60)
	with(msgs[7], "n", text("x"))
	if err := d.Write(t.Context(), msgs, func([]router.Rejected) error { return os.ErrDeadlineExceeded }); err != os.ErrDeadlineExceeded {
		t.Errorf("Write = %v", err)
	}
	d.want("SELECT count(*) FROM logs", "0")
	d.mustWrite(msgs...)
	d.want("SELECT count(*) FROM logs", "59")
}

func TestSQLiteMakesTextStorable(t *testing.T) {
	d := openLite(t, Config{AddColumns: columns("raw", "raw")})
	m := message("a\x00b Bl\xe5b\xe6r")
	with(m, "deep", router.Value{Kind: router.Object, Bytes: []byte(`{"a":"\ud800x\u0000\ud83d\ude00","n":1e999999}`)})
	d.mustWrite(m)
	d.want("SELECT message, fields, hex(raw), typeof(raw) FROM logs",
		"a\uFFFDb Bl\uFFFDb\uFFFDr|"+`{"deep":{"a":"`+"\uFFFDx\uFFFD"+`\ud83d\ude00","n":"1e999999"}}|`+fmt.Sprintf("%X", m.Raw)+"|blob")
	if n := counted(t, d.metrics.repaired); n != 2 {
		t.Errorf("%v values repaired", n)
	}
}

func TestSQLiteHoldsWhenTheTableWasChanged(t *testing.T) {
	d := openLite(t, Config{})
	d.mustWrite(messages(10)...)
	d.query("ALTER TABLE logs RENAME COLUMN message TO body")
	err := d.tryWrite(messages(10)...)
	if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "message") {
		t.Errorf("Write = %v", err)
	}
	d.query("ALTER TABLE logs RENAME COLUMN body TO message")
	d.mustWrite(messages(10)...)
	d.query("DROP TABLE logs")
	d.query("CREATE TABLE logs (received_at, timestamp, facility, severity, hostname, app_name, proc_id, msg_id, structured_data, fields, message INTEGER, peer)")
	err = d.tryWrite(messages(10)...)
	if !router.IsNeedsOperator(err) || !strings.Contains(err.Error(), "column message") {
		t.Errorf("Write = %v", err)
	}
	if len(d.letters) > 0 {
		t.Errorf("%d dead letters", len(d.letters))
	}
	d.query("DROP TABLE logs")
	d.query("CREATE TABLE logs (received_at, timestamp, facility, severity, hostname, app_name, proc_id, msg_id, structured_data, fields, message TEXT, peer)")
	d.mustWrite(messages(10)...)
	d.want("SELECT count(*) FROM logs", "10")
}

func TestSQLiteTypesAreTakenAtTheirWord(t *testing.T) {
	check := func(declared string, v router.Value, want string) {
		t.Helper()
		d := openLite(t, Config{Columns: columns("v", Column{From: "fields.v", Type: declared})})
		d.mustWrite(with(message("m"), "v", v))
		if got := strings.Join(d.query("SELECT v, typeof(v) FROM logs"), ""); got != want {
			t.Errorf("%s: %q, want %q", declared, got, want)
		}
	}
	check("INTEGER", text(" 12 "), "12|integer")
	check("INTEGER", text("12x"), "")
	check("INTEGER", router.FloatValue(2.5), "")
	check("SMALLINT", router.IntValue(40000), "")
	check("SMALLINT UNSIGNED", router.IntValue(40000), "40000|integer")
	check("TINYINT UNSIGNED", router.IntValue(-1), "")
	check("BIGINT", text("9223372036854775808"), "")
	check("REAL", text("1e3"), "1000.0|real")
	check("REAL", text("NaN"), "")
	check("DECIMAL(10,2)", text("1.5"), "1.5|real")
	check("DECIMAL(10,2)", text("one"), "")
	check("BOOLEAN", text("On"), "1|integer")
	check("BOOLEAN", router.IntValue(2), "")
	check("VARCHAR(3)", text("äöü"), "äöü|text")
	check("VARCHAR(3)", text("abcd"), "")
	check("TEXT", router.IntValue(7), "7|text")
	check("JSON", text(`a"b`), `"a\"b"|text`)
	check("JSON", router.Value{Kind: router.Array, Bytes: []byte("[1]")}, "[1]|text")
	check("BLOB", router.Value{Kind: router.Bytes, Bytes: []byte("\xff")}, "\xff|blob")
	check("DATETIME", text("2026-01-01"), "2026-01-01|text")
	check("WHATEVER", router.BoolValue(true), "1|integer")
}

func TestSQLiteConflictClausesLoseNothing(t *testing.T) {
	for _, clause := range []string{"ABORT", "FAIL", "ROLLBACK", "IGNORE"} {
		t.Run(clause, func(t *testing.T) {
			d := openLite(t, Config{Columns: columns("message", Column{From: "message", Type: "TEXT UNIQUE ON CONFLICT " + clause})})
			msgs := messages(120)
			msgs[60].Text = msgs[7].Text
			msgs[61].Text = msgs[8].Text
			d.mustWrite(msgs...)
			d.want("SELECT count(*), count(DISTINCT message) FROM logs", "118|118")
			if n := len(d.letters); n != 2 && clause != "IGNORE" {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}
