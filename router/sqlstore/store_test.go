package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/routertest"
)

var origin = &router.Origin{Source: "edge", Listener: "udp://127.0.0.1:5514", Peer: "192.0.2.7"}

// at is 2026-01-02T03:04:05.678901Z.
var at = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC).UnixNano()

// message is a message with every value of its own.
func message(text string) *router.Message {
	m := &router.Message{Origin: origin, Received: at, Raw: []byte("<165>1 " + text)}
	m.Timestamp, m.Facility, m.Severity = at-int64(time.Second), 20, 5
	m.Hostname, m.AppName, m.ProcID, m.MsgID = []byte("web1"), []byte("shopd"), []byte("8710"), []byte("ID47")
	m.Structured = []router.Element{{ID: []byte("cart@32473"), Params: []router.Param{{Name: []byte("items"), Value: []byte("3")}}}}
	m.Text = []byte(text)
	return m
}

func messages(n int) []*router.Message {
	out := make([]*router.Message, n)
	for i := range out {
		out[i] = message(fmt.Sprintf("message %d", i))
	}
	return out
}

// with adds a field to a message.
func with(m *router.Message, name string, v router.Value) *router.Message {
	m.Fields = append(m.Fields, router.Field{Name: []byte(name), Value: v})
	return m
}

func text(s string) router.Value { return router.Value{Kind: router.String, Bytes: []byte(s)} }

func columns(pairs ...any) config.Map[Column] {
	var m config.Map[Column]
	for i := 0; i < len(pairs); i += 2 {
		c, ok := pairs[i+1].(Column)
		if !ok {
			c = Column{From: pairs[i+1].(string)}
		}
		m = append(m, config.Entry[Column]{Name: pairs[i].(string), Value: c})
	}
	return m
}

// bench is a Store with the dead letters that it gave away.
type rig struct {
	*Store
	t       testing.TB
	dir     string
	letters []router.Rejected
}

func open(t testing.TB, dir string, cfg Config) *rig {
	t.Helper()
	for _, p := range cfg.Check() {
		t.Fatalf("%s: %s (%s)", p.Path, p.What, p.Hint)
	}
	s, err := Open(t.Context(), cfg, "db", dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &rig{Store: s, t: t, dir: dir}
}

func (r *rig) keep(rows []router.Rejected) error {
	r.letters = append(r.letters, rows...)
	return nil
}

func (r *rig) tryWrite(msgs ...*router.Message) error {
	return r.Write(context.Background(), msgs, r.keep)
}

func (r *rig) mustWrite(msgs ...*router.Message) {
	r.t.Helper()
	if err := r.tryWrite(msgs...); err != nil {
		r.t.Fatal(err)
	}
}

var slogDiscard = slog.New(slog.DiscardHandler)

func counted(t testing.TB, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func plainSecret(s string) config.Secret { return config.PlainSecret(s) }

func TestConfigurationForms(t *testing.T) {
	var c Config
	doc := config.Parse(&c, config.Options{}, "weir.yaml", []byte(`
sqlite: logs.db
indexes: []
columns:
  ts:      { from: timestamp, type: timestamptz }
  host:    hostname
  site:    { value: plant-7 }
  rack:    { value: 7 }
  user_id: { from: fields.user_id, type: bigint, null_if: "", default: 0 }
  item:    sd.cart@32473.items
  line:    { template: "${hostname}: ${message}" }
`))
	if err := doc.Err(); err != nil {
		t.Fatal(err)
	}
	empty := ""
	want := Config{SQLite: "logs.db", Indexes: []string{}, Columns: columns(
		"ts", Column{From: "timestamp", Type: "timestamptz"}, "host", "hostname", "site", Column{Value: &Constant{Text: "plant-7"}},
		"rack", Column{Value: &Constant{Text: "7", Typed: true}}, "user_id", Column{From: "fields.user_id", Type: "bigint", NullIf: &empty, Default: &Constant{Text: "0", Typed: true}},
		"item", "sd.cart@32473.items", "line", Column{Template: "${hostname}: ${message}"})}
	for i := range c.Columns {
		c.Columns[i].Place = config.Place{}
	}
	if d := cmp.Diff(want, c, cmp.Comparer(func(a, b config.Secret) bool { return a.String() == b.String() }), cmp.Comparer(func(a, b config.Place) bool { return true })); d != "" {
		t.Error(d)
	}
	d := openLite(t, c)
	d.mustWrite(message("hello"), with(message("x"), "user_id", text("")), with(message("y"), "user_id", text("12")))
	d.want("SELECT * FROM logs", "2026-01-02T03:04:04.678901Z|web1|plant-7|7|0|3|web1: hello", "2026-01-02T03:04:04.678901Z|web1|plant-7|7|0|3|web1: x",
		"2026-01-02T03:04:04.678901Z|web1|plant-7|7|12|3|web1: y")
	d.want("SELECT name FROM sqlite_schema WHERE type = 'index'")
}

func TestMistakesInTheConfigurationAreTold(t *testing.T) {
	check := func(c Config, want string) {
		t.Helper()
		for _, p := range c.Check() {
			if strings.Contains(p.Path+": "+p.What+" ("+p.Hint+")", want) {
				return
			}
		}
		t.Errorf("no problem with %q in %v", want, c.Check())
	}
	check(Config{}, "neither sqlite nor postgres")
	check(Config{SQLite: "a", Postgres: plainSecret("postgres://x")}, "both sqlite and postgres")
	check(Config{SQLite: "a", Password: plainSecret("x")}, "password: ")
	check(Config{Postgres: plainSecret("postgres://h:notaport/d")}, "postgres: connection string: ")
	check(Config{SQLite: "a", Table: "a.b.c"}, "table: ")
	check(Config{SQLite: "a", Table: "logs_${app}"}, "table: \"app\" is none of the message's keys (${app_name})")
	check(Config{SQLite: "a", Table: "weir_positions"}, "table: weir_positions is weir's own")
	check(Config{SQLite: "a", Tables: Tables{MaxTables: 3}}, "max_tables: there is one table")
	check(Config{SQLite: "a", Table: "logs_${app_name}", Tables: Tables{MaxTables: -1}}, "max_tables: -1 tables")
	check(Config{SQLite: "a", Tables: Tables{CreateSuffix: "STRICT; DROP TABLE x"}}, "create_suffix: ")
	check(Config{SQLite: "a", Tables: Tables{CreateSuffix: "STRICT", Create: new(bool)}}, "create_suffix: weir makes no table")
	check(Config{SQLite: "a", Tables: Tables{OnSchemaError: "drop"}}, "on_schema_error: unknown word")
	check(Config{SQLite: "a", Tables: Tables{OnConflict: &OnConflict{Key: []string{"nope"}}}}, "on_conflict.key.0: no column nope")
	check(Config{SQLite: "a", Columns: columns("h", "host")}, "columns.h.from: \"host\" is none of the message's keys (hostname)")
	check(Config{SQLite: "a", Columns: columns("h", "user_id")}, "fields.user_id")
	check(Config{SQLite: "a", Columns: columns("h", Column{})}, "columns.h: nothing fills this column")
	check(Config{SQLite: "a", Columns: columns("h", Column{Template: "${x"})}, "columns.h.template: the ${ at character 1 is not closed")
	check(Config{SQLite: "a", Columns: columns("h", Column{From: "message", Type: "text); DROP TABLE x"})}, "columns.h.type: ")
	check(Config{SQLite: "a", AddColumns: columns("Message", "message")}, "there is a column Message already")
	check(Config{SQLite: "a", Indexes: []string{"nope"}}, "indexes.0: no column nope")
	check(Config{SQLite: "a", SessionStatements: []string{" "}}, "session_statements.0: an empty statement")
	no := false
	check(Config{SQLite: "a", ExplicitCommits: &no, Table: "logs_${app_name}"}, "explicit_commits: false is not possible with several tables")
	if p := (&Config{SQLite: "a", ExplicitCommits: &no}).Check(); len(p) > 0 {
		t.Error(p)
	}
}

func TestStoreKeepsTheContract(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		routertest.Destination(t, func(t *testing.T) (router.Destination, func() []string) {
			d := openLite(t, Config{})
			return unclosed{d.Store}, func() []string { return d.query("SELECT message FROM logs") }
		})
	})
	t.Run("postgres", func(t *testing.T) {
		routertest.Destination(t, func(t *testing.T) (router.Destination, func() []string) {
			d := openPG(t, Config{})
			return unclosed{d.Store}, func() []string { return d.query("SELECT message FROM logs") }
		})
	})
}

func TestStoreKeepsPositions(t *testing.T) {
	connect := func(t *testing.T, open func() (*Store, error)) func() router.Positioner {
		return func() router.Positioner {
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s.Destination().(router.Positioner)
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		routertest.Positioner(t, func(t *testing.T) (func() router.Positioner, func() []string) {
			dir := t.TempDir()
			d := open(t, dir, Config{SQLite: "logs.db"})
			return connect(t, func() (*Store, error) { return Open(t.Context(), d.cfg, "db", dir, d.log) }), func() []string { return d.query("SELECT message FROM logs") }
		})
	})
	t.Run("postgres", func(t *testing.T) {
		routertest.Positioner(t, func(t *testing.T) (func() router.Positioner, func() []string) {
			d := openPG(t, Config{})
			if err := d.Connect(t.Context()); err != nil { // makes the table that texts reads
				t.Fatal(err)
			}
			return connect(t, func() (*Store, error) { return Open(t.Context(), d.cfg, "db", "", d.log) }), func() []string { return d.query("SELECT message FROM logs") }
		})
	})
}

// unclosed leaves Close to the rig, which closes as well.
type unclosed struct{ *Store }

func (unclosed) Close() error { return nil }

func (r *rig) positioner() router.Positioner { return r.Destination().(router.Positioner) }

func (r *rig) wantPosition(run router.RunID, at uint64, known bool) {
	r.t.Helper()
	gotAt, gotKnown, err := r.positioner().Position(r.t.Context(), run)
	if err != nil || gotAt != at || gotKnown != known {
		r.t.Errorf("Position = %d, %v, %v; want %d, %v", gotAt, gotKnown, err, at, known)
	}
}

func (r *rig) writeAt(run router.RunID, from, to uint64, msgs ...*router.Message) error {
	return r.positioner().WriteAt(r.t.Context(), router.Span{Run: run, From: from, To: to}, msgs, r.keep)
}

func (r *rig) mustWriteAt(run router.RunID, from, to uint64, msgs ...*router.Message) {
	r.t.Helper()
	if err := r.writeAt(run, from, to, msgs...); err != nil {
		r.t.Fatal(err)
	}
}
