package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router/config"
)

// docs/metrics.md names every metric that weir has, and no other.
func TestMetricsPageIsComplete(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	text := fmt.Sprintf(`
state_dir: %s
sources: {in: {listen: ["unix://in.sock"]}}
filters: {severity: {module: "stock:severity"}}
destinations: {db: {sqlite: logs.db, buffer: {disk: 8MiB}}, nowhere: {discard: {}}}
routes: {main: {from: [in], filters: [severity], to: [db, nowhere]}}
`, filepath.Join(dir, "state"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSettings()
	doc := config.Load(s, config.Options{}, file)
	s.wire(doc)
	if err := doc.Err(); err != nil {
		t.Fatal(err)
	}
	s.resolve(doc)
	var p plant
	if err := p.build(t.Context(), s, doc, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	// Run, so that the router closes its destinations.
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.router.Run(ctx); err != nil {
		t.Fatal(err)
	}
	defer p.close()

	descs := make(chan *prometheus.Desc)
	go func() {
		p.registry.Describe(descs)
		close(descs)
	}()
	name := regexp.MustCompile(`fqName: "(weir_\w+)"`)
	var exist []string
	for d := range descs {
		if m := name.FindStringSubmatch(d.String()); m != nil {
			exist = append(exist, m[1])
		}
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range regexp.MustCompile("`(weir_\\w+[a-z])`").FindAllStringSubmatch(string(page), -1) {
		told = append(told, m[1])
	}
	for _, m := range exist {
		if !slices.Contains(told, m) {
			t.Errorf("docs/metrics.md does not name %s", m)
		}
	}
	for _, m := range told {
		if !slices.Contains(exist, m) {
			t.Errorf("docs/metrics.md names %s, which does not exist", m)
		}
	}
}
