package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

// A base is a database with a destination in it.
type base struct {
	*rig
	cfg Config
	run func(sql string) // over a connection of its own
}

// onBoth runs a test on a SQLite file and on a PostgreSQL server.
func onBoth(t *testing.T, cfg Config, test func(t *testing.T, b *base)) {
	t.Run("sqlite", func(t *testing.T) {
		cfg := cfg
		cfg.SQLite = "logs.db"
		dir := t.TempDir()
		test(t, &base{open(t, dir, cfg), cfg, func(sql string) { query(t, filepath.Join(dir, "logs.db"), sql) }})
	})
	t.Run("postgres", func(t *testing.T) {
		cfg := cfg
		server, dsn := routertest.Postgres(t)
		cfg.Postgres = plainSecret(dsn)
		r := open(t, t.TempDir(), cfg)
		if err := r.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, &base{r, cfg, func(sql string) { server.Exec(t, dsn, sql) }})
	})
}

func (b *base) reader() *Reader {
	b.t.Helper()
	r, err := OpenReader(b.t.Context(), b.cfg, b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(r.Close)
	return r
}

// found are the messages that a question finds.
func found(t testing.TB, r *Reader, q Look) (texts []string) {
	t.Helper()
	v, err := r.Look(t.Context(), q)
	if err == nil {
		err = v.Last(t.Context(), func(row *Row) error {
			texts = append(texts, string(row.Get(router.KeyMessage).Text))
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func (b *base) finds(q Look, want ...string) {
	b.t.Helper()
	if d := cmp.Diff(want, found(b.t, b.reader(), q)); d != "" {
		b.t.Errorf("%+v:\n%s", q, d)
	}
}

// arriving are messages m0, m1, … of which each arrives a second after the one before.
func arriving(n int) []*router.Message {
	msgs := make([]*router.Message, n)
	for i := range msgs {
		msgs[i] = message(fmt.Sprint("m", i))
		msgs[i].Received = at + int64(i)*int64(time.Second)
	}
	return msgs
}

func second(i int) time.Time { return time.Unix(0, at).Add(time.Duration(i) * time.Second) }

func TestReaderShowsTheNewestInOrderOfArrival(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		msgs := arriving(3000)
		late := slices.Clone(msgs)
		late[10], late[2500] = late[2500], late[10] // not stored in order of arrival
		b.mustWrite(late...)
		texts := make([]string, len(msgs))
		for i := range msgs {
			texts[i] = string(msgs[i].Text)
		}
		b.finds(Look{N: 50}, texts[2950:]...)
		b.finds(Look{N: 2700}, texts[300:]...)
		b.finds(Look{N: -1}, texts...)
		b.finds(Look{N: 0})
		b.finds(Look{N: 2, Reverse: true}, "m2999", "m2998")
		b.finds(Look{N: -1, Since: second(100), Until: second(103)}, "m100", "m101", "m102")
		b.finds(Look{N: 2, Since: second(100), Until: second(103)}, "m101", "m102")
		b.finds(Look{N: 3, Since: second(2998)}, "m2998", "m2999")
		b.finds(Look{N: 1, Until: second(0)})
		b.finds(Look{N: -1, Regexp: regexp.MustCompile(`^m1*0$`)}, "m0", "m10", "m110", "m1110")
		b.finds(Look{N: 2, Text: "m77"}, "m778", "m779")
	})
}

func TestRowsOfOneMomentAreShownOnce(t *testing.T) {
	onBoth(t, Config{Columns: columns("received_at", Column{From: "timestamp"}, "message", "message")}, func(t *testing.T, b *base) {
		const n = 2*pageRows + 77
		want := map[string]int{}
		var msgs []*router.Message
		for i := range n {
			m := message(fmt.Sprint("same", i/2)) // each twice
			if m.Timestamp = at; i%3 == 0 {
				m.Timestamp = router.NoTime // NULL
			}
			msgs = append(msgs, m)
			want[string(m.Text)]++
		}
		b.mustWrite(msgs...)
		for _, reverse := range []bool{false, true} {
			got := map[string]int{}
			for _, text := range found(t, b.reader(), Look{N: -1, Reverse: reverse}) {
				got[text]++
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		}
		if got := found(t, b.reader(), Look{N: n - 3}); len(got) != n-3 {
			t.Errorf("%d rows", len(got))
		}
		if got := found(t, b.reader(), Look{N: -1, Text: "same7"}); len(got) == 0 || len(got)%2 != 0 {
			t.Errorf("%d rows", len(got))
		}
	})
}

func TestFiltersMeanTheSameOnBothDatabases(t *testing.T) {
	values := []string{"", "web-1", "WEB-2", "web_3", `we\b`, "50%", "[a]", "a*b", "ä", "Ä", "x?y", "web-1.example"}
	globs := []string{"*", "?*", "web-?", "WEB*", "web_3", `we\b`, "50%", "[a]", "*b", "?", "a*b", "x?y", "*-*", "w*1"}
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		var msgs []*router.Message
		for i, v := range values {
			m := message(v)
			m.Received += int64(i) * 1000
			m.Hostname, m.AppName, m.Severity = []byte(v), []byte(v), uint8(i%8)
			if v == "" {
				m.Hostname, m.AppName = nil, nil
			}
			msgs = append(msgs, m)
		}
		b.mustWrite(msgs...)
		r := b.reader()
		check := func(what string, q Look, wanted func(i int, v string) bool) {
			t.Helper()
			var want []string
			for i, v := range values {
				if wanted(i, v) {
					want = append(want, v)
				}
			}
			q.N = -1
			if d := cmp.Diff(want, found(t, r, q)); d != "" {
				t.Errorf("%s:\n%s", what, d)
			}
		}
		for _, g := range globs {
			host, app := router.NewFoldGlob(g), router.NewGlob(g)
			check("host "+g, Look{Hosts: []string{g}}, func(_ int, v string) bool { return host.Matches([]byte(v)) })
			check("app "+g, Look{Apps: []string{g}}, func(_ int, v string) bool { return app.Matches([]byte(v)) })
			check("two "+g, Look{Apps: []string{"[a]", g}}, func(_ int, v string) bool { return v == "[a]" || app.Matches([]byte(v)) })
		}
		for _, text := range []string{"web", "WEB", "-", "%", "_", `\`, "[", "ä", "*"} {
			check("text "+text, Look{Text: text}, func(_ int, v string) bool { return strings.Contains(v, text) })
			check("fold "+text, Look{Text: text, Fold: true}, func(_ int, v string) bool { return strings.Contains(lowerASCII(v), lowerASCII(text)) })
		}
		for _, mask := range []uint8{1, 0x0f, 0x1f, 0xf0, 0xff} {
			check(fmt.Sprint("severities ", mask), Look{Severities: mask}, func(i int, _ string) bool { return mask>>(i%8)&1 != 0 })
		}
		check("all", Look{Hosts: []string{"WEB*"}, Severities: 0xff, Text: "web"}, func(_ int, v string) bool { return strings.HasPrefix(v, "web") })
	})
}

func TestColumnsAreThoseOfTheConfiguration(t *testing.T) {
	cfg := Config{Columns: columns("arrived", "received_at", "host", "hostname", "level", Column{Template: "${severity}", Type: "varchar(9)"},
		"who", Column{From: "tag"}, "line", Column{Template: "${hostname}: ${message}"}, "data", "structured_data", "site", Column{Value: &Constant{Text: "plant-7"}}), Indexes: []string{"arrived"}}
	onBoth(t, cfg, func(t *testing.T, b *base) {
		msgs := arriving(3)
		msgs[1].Severity = 2
		b.mustWrite(msgs...)
		b.finds(Look{N: 1, Severities: 1<<2 | 1<<3, Hosts: []string{"WEB?"}, Since: second(1)}, "web1: m1")
		v, err := b.reader().Look(t.Context(), Look{N: 1})
		if err != nil {
			t.Fatal(err)
		}
		v.Last(t.Context(), func(r *Row) error {
			at, ok := r.Time()
			if !ok || !at.Equal(second(2).Truncate(time.Microsecond)) || string(r.Tag().Text) != "shopd[8710]" {
				t.Errorf("%v %v %s", at, ok, r.Tag().Text)
			}
			data := r.In([]string{"nothing", "data"})
			if data[0].Kind != NullValue || data[1].Kind != JSONValue {
				t.Errorf("%v", data)
			}
			return nil
		})
		_, err = b.reader().Look(t.Context(), Look{Apps: []string{"*"}})
		if want := "table logs has no column that holds the app: it has arrived, host, level"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Error(err)
		}
	})
}

func TestSeverityInWords(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		b.run("DROP TABLE logs")
		b.run("CREATE TABLE logs (received_at text, severity text, message text)")
		b.run(`INSERT INTO logs VALUES ('2026-01-01T00:00:00Z', 'WARN', 'a'), ('2026-01-01T00:00:01Z', 'info', 'b'), ('2026-01-01T00:00:02Z', '3', 'c'), ('2026-01-01T00:00:03Z', NULL, 'd')`)
		b.run("CREATE INDEX logs_at ON logs (received_at)")
		b.finds(Look{N: -1, Severities: 1<<5 - 1}, "a", "c")
		b.finds(Look{N: 1, Since: time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)}, "d")
	})
}

func TestReaderErrorsSayTheWayOut(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "text.db"), []byte("hello, this is no database of any kind at all"), 0o600)
	os.Mkdir(filepath.Join(dir, "dir.db"), 0o700)
	os.WriteFile(filepath.Join(dir, "cut.db"), append([]byte("SQLite format 3\x00"), make([]byte, 50)...), 0o600)
	server, dsn := routertest.Postgres(t)
	server.Exec(t, dsn, "CREATE ROLE stranger LOGIN")
	stranger := strings.Replace(dsn, "weir@", "stranger:geheim@", 1)
	server.Exec(t, dsn, "CREATE TABLE logs (received_at timestamptz, message text)")
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{SQLite: "none.db"}, "none.db: .*weir makes it when it starts"},
		{Config{SQLite: "text.db"}, "text.db is not a SQLite database: give the file"},
		{Config{SQLite: "dir.db"}, "dir.db is a directory"},
		{Config{SQLite: "cut.db"}, "SQLITE_NOTADB.*damaged"},
		{Config{Postgres: plainSecret("postgres://weir:geheim@127.0.0.1:1/logs")}, "connect to weir@127.0.0.1:1/logs: .*does the server run"},
		{Config{Postgres: plainSecret(strings.Replace(dsn, "/test", "/notest", 1))}, "SQLSTATE 3D000.*see postgres: of the destination"},
		{Config{Postgres: plainSecret(stranger)}, "SQLSTATE 42501.*GRANT SELECT"},
		{Config{Postgres: plainSecret(dsn), Table: "others"}, "there is no table others in weir@.*: there are logs"},
	} {
		r, err := OpenReader(t.Context(), c.cfg, dir)
		if err == nil {
			var v *View
			if v, err = r.Look(t.Context(), Look{N: 1}); err == nil {
				err = v.Last(t.Context(), func(*Row) error { return nil })
			}
			r.Close()
		}
		if err == nil || !regexp.MustCompile(c.want).MatchString(strings.ReplaceAll(err.Error(), "\n", " ")) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
	if _, err := OpenReader(t.Context(), Config{SQLite: "none.db"}, dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if exists(filepath.Join(dir, "none.db")) {
		t.Error("a file was made")
	}
}

func TestAnInterruptedSearchGivesWhatItFound(t *testing.T) {
	onBoth(t, Config{}, func(t *testing.T, b *base) {
		b.mustWrite(arriving(5000)...)
		ctx, cancel := context.WithCancel(t.Context())
		v, err := b.reader().Look(ctx, Look{N: 3, Regexp: regexp.MustCompile("m4999|m0$")})
		if err != nil {
			t.Fatal(err)
		}
		v.r.db = interrupting{v.r.db, cancel}
		var got []string
		err = v.Last(ctx, func(r *Row) error { got = append(got, string(r.Get(router.KeyMessage).Text)); return nil })
		if d := cmp.Diff([]string{"m4999"}, got); d != "" || !errors.Is(err, context.Canceled) {
			t.Error(d, err)
		}
	})
}

// interrupting ends the context in the second transaction for rows.
type interrupting struct {
	looker
	cancel context.CancelFunc
}

func (i interrupting) rows(ctx context.Context, t *seen, q *Look, p piece, skip, limit int, fn func(key, *Row) bool) error {
	if p.high != nil {
		i.cancel()
	}
	return i.looker.rows(ctx, t, q, p, skip, limit, fn)
}

func TestTablesOfATemplateAreMerged(t *testing.T) {
	onBoth(t, Config{Table: config.Template("logs_${app_name}")}, func(t *testing.T, b *base) {
		msgs := arriving(60)
		var want []string
		for i, m := range msgs {
			m.AppName = fmt.Appendf(nil, "app%d", i%7)
			want = append(want, string(m.Text))
		}
		b.mustWrite(msgs...)
		b.run("CREATE TABLE logs_of_another_kind (a int)")
		b.finds(Look{N: 20}, want[40:]...)
		b.finds(Look{N: -1}, want...)
		b.finds(Look{N: 2, Reverse: true, Apps: []string{"app3"}}, "m59", "m52")
	})
}
