package admin

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirlog/weir/router"
)

func handler(report *reporter, log *slog.Logger) http.Handler {
	subject := report.subject
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(subject.Gatherer, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(log.Handler(), slog.LevelError),
		ErrorHandling:       promhttp.ContinueOnError, // a broken metric must not hide the others
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ready(w, subject.Parts())
	})
	mux.HandleFunc("GET /status", report.status)
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(reloadTime))
		reload(w, subject.Reload(r.Context()))
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "weir\n\n/metrics  Prometheus metrics\n/healthz  200 while the process is alive\n/readyz   200 when every part does its work, else 503; JSON\n/status   what every part does, with rates, and what is wrong; JSON (weir status draws it)\n/reload   POST: read the filters' modules again; JSON\n")
	})
	return http.NewCrossOriginProtection().Handler(mux) // a page in somebody's browser may not reload
}

// reload answers 200 when all filters run what their files are, else 422.
func reload(w http.ResponseWriter, all []Reloaded) {
	code := http.StatusOK
	for _, r := range all {
		if r.Error != "" {
			code = http.StatusUnprocessableEntity
		}
	}
	if all == nil {
		all = []Reloaded{}
	}
	answer(w, code, all)
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	e.Encode(value) // a client that has gone away is no error of ours
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready bool   `json:"ready"`
	Parts []part `json:"parts"`
}

type part struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	State
}

// ready answers 200 when every part is ready, else 503.
func ready(w http.ResponseWriter, parts []router.Part) {
	is := readiness{Ready: true, Parts: []part{}}
	for _, p := range parts {
		is.Parts = append(is.Parts, part{p.Kind, p.Name, stateOf(p)})
		is.Ready = is.Ready && p.Ready
	}
	code := http.StatusOK
	if !is.Ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, is)
}
