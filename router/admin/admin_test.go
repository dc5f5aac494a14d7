package admin

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router"
)

// serve runs a server until the test ends and returns a client for it.
func serve(t *testing.T, cfg Config, parts func() []router.Part) (get func(path string) (int, string)) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	for _, c := range Process("1.2.3", "0123456789ab") {
		reg.MustRegister(c)
	}
	s, err := Listen(cfg, Subject{Gatherer: reg, Parts: parts}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, s.Addr().Network(), s.Addr().String())
		},
	}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(path string) (int, string) {
		t.Helper()
		r, err := client.Get("http://weir" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(b)
	}
}

func noParts() []router.Part { return nil }

func TestReadyzGivesAReasonForEachPart(t *testing.T) {
	since := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	parts := []router.Part{{Kind: "source", Name: "edge", Ready: true}}
	get := serve(t, Config{Listen: "127.0.0.1:0"}, func() []router.Part { return parts })

	code, body := get("/readyz")
	var got readiness
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want := readiness{Ready: true, Parts: []part{{"source", "edge", State{Ready: true}}}}
	if diff := cmp.Diff(want, got); code != 200 || diff != "" {
		t.Errorf("status %d: %s", code, diff)
	}

	parts = append(parts, router.Part{Kind: "destination", Name: "db", Reason: `relation "logs" does not exist <here>`, Since: since})
	code, body = get("/readyz")
	got = readiness{}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want = readiness{Parts: []part{want.Parts[0], {"destination", "db", State{Reason: `relation "logs" does not exist <here>`, Since: &since}}}}
	if diff := cmp.Diff(want, got); code != 503 || diff != "" {
		t.Errorf("status %d: %s", code, diff)
	}
	if !strings.Contains(body, "<here>") {
		t.Errorf("a person cannot read %s", body)
	}
}

func TestReloadTellsWhatCameOfIt(t *testing.T) {
	all := []Reloaded{{Filter: "a", Changed: true}}
	s, err := Listen(Config{Listen: "127.0.0.1:0"}, Subject{Parts: noParts, Gatherer: prometheus.NewRegistry(),
		Reload: func(context.Context) []Reloaded { return all }}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	post := func(method, origin string) (int, string) {
		t.Helper()
		r := httptest.NewRequest(method, "http://127.0.0.1:9600/reload", nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, body := post("POST", ""); code != 200 || !strings.Contains(body, `"changed": true`) {
		t.Errorf("%d %s", code, body)
	}
	all[0] = Reloaded{Filter: "a", Error: "not a module"}
	if code, body := post("POST", ""); code != 422 || !strings.Contains(body, "not a module") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := post("GET", ""); code != 405 {
		t.Errorf("GET: %d", code)
	}
	if code, _ := post("POST", "http://example.com"); code != 403 {
		t.Errorf("from another site's page: %d", code)
	}
}

func TestHealthzAnswersWhileNotReady(t *testing.T) {
	get := serve(t, Config{Listen: "127.0.0.1:0"}, func() []router.Part { return []router.Part{{Kind: "filter", Name: "redact"}} })
	if code, body := get("/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("status %d, %q", code, body)
	}
	if code, _ := get("/nothing"); code != 404 {
		t.Errorf("unknown path: status %d", code)
	}
}

func TestMetricsShowTheBuildAndTheProcess(t *testing.T) {
	code, body := serve(t, Config{Listen: "127.0.0.1:0"}, noParts)("/metrics")
	if code != 200 {
		t.Fatalf("status %d", code)
	}
	for _, want := range []string{`weir_build_info{commit="0123456789ab",go="go`, `version="1.2.3"} 1`, "go_goroutines ", "process_start_time_seconds "} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

func TestUnixSocketTakesThePlaceOfADeadOneOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()

	cfg := Config{Listen: "unix://" + path}
	get := serve(t, cfg, noParts)
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("status %d", code)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode of the socket: %v %v", info.Mode(), err)
	}
	if s, err := Listen(cfg, Subject{Gatherer: prometheus.NewRegistry(), Parts: noParts}, slog.New(slog.DiscardHandler)); err == nil {
		s.Close()
		t.Error("took the place of a socket in use")
	}
}

func TestListenWithoutAHostIsLoopback(t *testing.T) {
	check := func(listen, network, address string) {
		t.Helper()
		n, a, err := Config{listen}.address()
		if err != nil || n != network || a != address {
			t.Errorf("%q: %s %s %v, want %s %s", listen, n, a, err, network, address)
		}
	}
	check("", "tcp", DefaultListen)
	check(":9600", "tcp", "127.0.0.1:9600")
	check("tcp://:9600", "tcp", "127.0.0.1:9600")
	check("0.0.0.0:80", "tcp", "0.0.0.0:80")
	check("[::1]:9600", "tcp", "[::1]:9600")
	check("unix:///run/weir/admin.sock", "unix", "/run/weir/admin.sock")
	for _, bad := range []string{"9600", "unix://", "http://localhost:1/", "::1"} {
		if p := (Config{bad}).Check(); len(p) != 1 || p[0].Path != "listen" {
			t.Errorf("%q: %v", bad, p)
		}
	}
}

func TestCloseFreesAnAddressThatNeverRan(t *testing.T) {
	s, err := Listen(Config{Listen: "127.0.0.1:0"}, Subject{Gatherer: prometheus.NewRegistry(), Parts: noParts}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	addr := s.Addr().String()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
