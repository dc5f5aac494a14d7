package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
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
