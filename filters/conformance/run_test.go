package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/wasmhost"
)

// compiled is where all tests keep compiled modules: under the race detector a Go guest takes half a minute to compile.
var compiled string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-conformance")
	if err != nil {
		panic(err)
	}
	compiled = filepath.Join(dir, "compiled")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// A runner is a host whose log is looked at.
type runner struct {
	host   *wasmhost.Host
	log    *guestLog
	guests map[string]*wasmhost.Guest // by configuration
}

func newRunner(t testing.TB) *runner {
	t.Helper()
	log := &guestLog{}
	h, err := wasmhost.Open(t.Context(), wasmhost.Options{CacheDir: compiled, Log: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	guests := map[string]*wasmhost.Guest{}
	t.Cleanup(func() {
		for _, g := range guests {
			g.Close(context.Background())
		}
		h.Close(context.Background())
	})
	return &runner{h, log, guests}
}

// open loads a module with a configuration. Time is not what cases are about, and test machines are slow.
func (r *runner) open(ctx context.Context, module string, config json.RawMessage) (*wasmhost.Guest, error) {
	var c wasmhost.Config
	c.Defaults()
	c.Module, c.Config, c.Time, c.InitTime = module, config, time.Minute, time.Minute
	return r.host.Load(ctx, "case", c)
}

func (r *runner) load(t testing.TB, module string, config json.RawMessage) *wasmhost.Guest {
	t.Helper()
	g, err := r.open(t.Context(), module, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

// outcome is what a message came to.
type outcome struct {
	verdict string
	out     string // record JSON, canonical; "" when the message does not go on
	fail    string
}

func (r *runner) run(t *testing.T, g *wasmhost.Guest, in []byte) outcome {
	t.Helper()
	o, record, err := g.Try(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got := outcome{verdict: o.Verdict, fail: o.Reason}
	if o.Verdict == Reject && (o.Code != "verdict" || strings.HasPrefix(o.Reason, "verdict ")) { // on_error is reject
		got.verdict = Failed
	}
	switch got.verdict {
	case Keep, Skip:
		got.out = canonical(t, record, in)
	case Reject, Failed:
		if diff := cmp.Diff(canonical(t, in, in), canonical(t, record, in)); diff != "" {
			t.Errorf("edits were not undone (-came +left):\n%s", diff)
		}
	}
	return got
}

// canonical is a record as the router writes it, without received_at when in has none.
func canonical(t *testing.T, record, in []byte) string {
	t.Helper()
	var weirs struct {
		ReceivedAt             *time.Time `json:"received_at"`
		Source, Listener, Peer string
	}
	if err := json.Unmarshal(record, &weirs); err != nil {
		t.Fatalf("%s: %v", record, err)
	}
	b := router.NewBatch(8<<20, 1)
	defer b.Discard()
	m := b.Add(&router.Origin{Source: weirs.Source, Listener: weirs.Listener, Peer: weirs.Peer})
	var given map[string]json.RawMessage
	if err := json.Unmarshal(in, &given); err != nil {
		t.Fatalf("%s: %v", in, err)
	}
	if _, ok := given["received_at"]; ok && weirs.ReceivedAt != nil {
		m.Received = weirs.ReceivedAt.UnixNano()
	}
	p := router.RecordParser{Strict: true}
	if err := p.Parse(m, b.Copy(record), b); err != nil {
		t.Fatalf("%s: %v", record, err)
	}
	return string(router.AppendRecord(nil, m))
}

// runCases gives every case of a file to the module.
func runCases(t *testing.T, module, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases, err := ReadCases(f)
	if err != nil {
		t.Fatalf("%s:%v", file, err)
	}
	r := newRunner(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { r.runCase(t, module, &c) })
	}
}

func (r *runner) runCase(t *testing.T, module string, c *Case) {
	if c.Verdict == Refused {
		g, err := r.open(t.Context(), module, c.Config)
		if err == nil {
			g.Close(t.Context())
			t.Fatal("the module started")
		}
		if c.Fail != nil && !strings.HasSuffix(err.Error(), "refused: "+*c.Fail) {
			t.Errorf("refused with %q, want %q", err, *c.Fail)
		}
		return
	}
	r.log.take()
	g := r.guests[string(c.Config)]
	if g == nil {
		var err error
		if g, err = r.open(t.Context(), module, c.Config); err != nil {
			t.Fatal(err)
		}
		r.guests[string(c.Config)] = g
	}
	got := r.run(t, g, c.In)
	want := outcome{verdict: c.Verdict, fail: got.fail}
	if c.Fail != nil {
		want.fail = *c.Fail
	}
	if c.GoesOn() {
		want.out = canonical(t, c.Out, c.In)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if lines := r.log.take(); c.Log != nil {
		if diff := cmp.Diff(c.Log, lines); diff != "" {
			t.Errorf("log, -want +got:\n%s", diff)
		}
	}
}

// A guestLog keeps what guests log, which is told from what the host has to say about them by having no attributes of
// its own.
type guestLog struct {
	mu    sync.Mutex
	lines []string
}

var levelNames = map[slog.Level]string{slog.LevelDebug - 4: "trace", slog.LevelDebug: "debug", slog.LevelInfo: "info",
	slog.LevelWarn: "warn", slog.LevelError: "error"}

func (l *guestLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.NumAttrs() == 0 {
		l.lines = append(l.lines, fmt.Sprintf("%s: %s", levelNames[r.Level], r.Message))
	}
	return nil
}

func (l *guestLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *guestLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *guestLog) WithGroup(string) slog.Handler            { return l }

func (l *guestLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = []string{}
	return lines
}
