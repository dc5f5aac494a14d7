package sqlstore

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
)

func TestTableNamesFromTemplates(t *testing.T) {
	m := message("x")
	long := message("x")
	long.AppName = []byte(strings.Repeat("long", 20))
	other := message("x")
	other.AppName = []byte(strings.Repeat("long", 19) + "thin")
	check := func(template, app, want string) {
		t.Helper()
		n, err := parseNaming(template)
		if err != nil {
			t.Fatal(err)
		}
		m.AppName = []byte(app)
		got := string(n.append(nil, m))
		if got != want {
			t.Errorf("%s with %q: %s, want %s", template, app, got, want)
		}
		if !n.matches(got) {
			t.Errorf("%s does not find its table %s again", template, got)
		}
	}
	check("logs_${app_name}", "sshd", "logs_sshd")
	check("logs_${app_name}", "SSHd-2.1", "logs_sshd_2_1")
	check("logs_${app_name}", "", "logs_none")
	check("logs_${app_name}_x", "", "logs_none_x")
	check("logs_${app_name:-other}", "", "logs_other")
	check("${app_name}", "böse\xff\x00\"; DROP TABLE x", "b_se_____drop_table_x")
	check("${app_name}", "404", "t_404")
	check("${app_name}", "sqlite_schema", "t_sqlite_schema")
	check("${app_name}", "PG_class", "t_pg_class")
	check("pg${app_name}", "_class", "t_pg_class")
	check("${app_name}", "weir_positions", "t_weir_positions")
	check("weir_${app_name}", "positions", "t_weir_positions")
	check("Logs ${received_at:%Y-%m}", "", "logs_2026_01")
	check("${received_at:%Y}", "", "t_2026")
	check("a_${app_name}", strings.Repeat("x", 46), "a_"+strings.Repeat("x", 46))
	// The day of the message's own time, unless that cannot be right.
	const day = "logs_${timestamp:%Y_%m_%d}"
	check(day, "", "logs_2026_01_02")
	m.Timestamp = m.Received - int64(47*time.Hour)
	check(day, "", "logs_2025_12_31")
	m.Timestamp = m.Received + int64(47*time.Hour)
	check(day, "", "logs_2026_01_04")
	for _, ns := range []int64{0, router.NoTime, m.Received - int64(49*time.Hour), m.Received + int64(49*time.Hour), 1<<63 - 1} {
		m.Timestamp = ns
		check(day, "", "logs_2026_01_02")
	}
	n, _ := parseNaming("audit.logs_${app_name}_end")
	a, b := string(n.append(nil, long)), string(n.append(nil, other))
	if n.schema != "audit" || len(a) != 57 || a == b || a[:48] != b[:48] || !n.matches(a) {
		t.Errorf("%s: %s, %s", n.schema, a, b)
	}
	for _, name := range []string{"logs", "logs_end_of", "weir_positions", "log_x_end"} {
		if n.matches(name) {
			t.Errorf("%s belongs to no such template", name)
		}
	}
	buf := make([]byte, 0, 200)
	if got := testing.AllocsPerRun(10, func() { n.append(buf, long) }); got > 0 {
		t.Errorf("%v allocations a name", got)
	}
	for _, bad := range []string{"logs_${nope}", "logs_${app_name", "a.b.c", "${", "logs_${timestamp}", "logs_${received_at:-x}", "logs_${timestamp:%Q}"} {
		if _, err := parseNaming(bad); err == nil {
			t.Errorf("%s is a table name", bad)
		}
	}
	if n, err := parseNaming("Audit.Log Events"); err != nil || n.schema != "Audit" || n.fixed != "Log Events" {
		t.Errorf("%+v %v", n, err)
	}
}

func TestTablesOfManyDaysAreOneForTheCap(t *testing.T) {
	n, err := parseNaming("logs_${app_name}_${timestamp:%Y_%b_%d}")
	if err != nil {
		t.Fatal(err)
	}
	f := families{naming: &n, most: 2}
	f.reset()
	m := message("x")
	check := func(app string, days int, want bool) {
		t.Helper()
		m.AppName = []byte(app)
		m.Received = at + int64(days)*int64(24*time.Hour)
		if got := f.admit(m); got != want {
			t.Errorf("%s on day %d: %v", app, days, got)
		}
	}
	f.found("logs_a_b_2019_dec_31")
	f.found("logs_a_b_2025_jan_01")
	f.found("logs_other") // of another template
	for days := range 300 {
		check("a_b", days, true)
		check("A-B", days, true)
	}
	check("c", 0, true)
	check("d", 0, false)
	check("", 0, false)
	check("c", 1, true)
	check(strings.Repeat("long", 20), 1, false)
	f.reset()
	check(strings.Repeat("long", 20), 1, true)
	check(strings.Repeat("long", 20), 2, true)
	check("d", 0, true)
	check("c", 0, false)
	if got := testing.AllocsPerRun(10, func() { f.admit(m) }); got > 0 {
		t.Errorf("%v allocations a message that is refused", got)
	}

	n, _ = parseNaming("logs_${timestamp:%Y_%m_%d}")
	f = families{naming: &n, most: 1}
	f.reset()
	for days := range 300 {
		check("", days, true)
	}
}

func FuzzTableNames(f *testing.F) {
	f.Add([]byte("sshd"), []byte(""))
	f.Add([]byte("\x80"), []byte("\x80"))
	f.Add([]byte("SQLITE_"), []byte("\xc3\xa9\xff\x00"))
	f.Add([]byte(strings.Repeat("9", 60)), []byte("."))
	n, err := parseNaming("${app_name}${hostname}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, app, host []byte) {
		m := &router.Message{}
		m.AppName, m.Hostname = app, host
		name := string(n.append([]byte("before"), m)[6:])
		if name == "" || len(name) > nameBytes+9 || name[0] >= '0' && name[0] <= '9' ||
			strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || !n.matches(name) {
			t.Errorf("%q %q: %q", app, host, name)
		}
	})
}
