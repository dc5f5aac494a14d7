package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page reads a page of the manual.
func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// part returns what the first group of pattern finds.
func part(t *testing.T, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no %s", pattern)
	}
	return found[1]
}

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *Runner) wants(t *testing.T, module string, pairs ...string) {
	t.Helper()
	g := r.load(t, module, nil)
	for i := 0; i < len(pairs); i += 2 {
		got := r.run(t, g, []byte(pairs[i]))
		if have := strings.TrimSpace(got.verdict + " " + got.fail + got.out); !strings.Contains(have, pairs[i+1]) {
			t.Errorf("%.60s: %q is not in %.300s", pairs[i], pairs[i+1], have)
		}
	}
}

func TestFirstFilterInCDoesWhatTheManualSays(t *testing.T) {
	text := page(t, "filters.md")
	source := write(t, "mask.c", part(t, text, `(?s)cat > mask.c <<'EOF'\n(.*?\n)EOF`))
	command := part(t, text, `(?m)^(clang-14 .*) mask.c$`)
	module := filepath.Join(t.TempDir(), "mask.wasm")
	buildC(t, source) // with warnings
	tool(t, nil, "sh", "-c", strings.Replace(command, "-o mask.wasm", "-o "+module, 1)+" "+source)
	newRunner(t).wants(t, module,
		`{"app_name":"shop","message":"order 4711"}`, `"message":"order ####"`,
		`{"app_name":"healthd","message":"ok"}`, "drop",
		`{"message":"`+strings.Repeat("x", 65536)+`"}`, "keep",
		`{"message":"`+strings.Repeat("x", 65537)+`"}`, "failed a value is longer than the filter's buffer: message")
}

func TestFirstFilterInGoDoesWhatTheManualSays(t *testing.T) {
	source := write(t, "main.go", part(t, page(t, "filters.md"), `(?s)cat > main.go <<'EOF'\n(.*?\n)EOF`))
	// Built in the place of an example, which is in the same module as the SDK.
	place, err := filepath.Abs(filepath.Join(root, "examples/filters/json-fields/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {place: source}})
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(t.TempDir(), "audit.wasm")
	tool(t, []string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build", "-overlay", write(t, "overlay.json", string(overlay)),
		"-buildmode=c-shared", "-ldflags=-s -w", "-o", module, "./examples/filters/json-fields")
	newRunner(t).wants(t, module,
		`{"message":"audit: bob logged in"}`, `"kind":"audit"`,
		`{"app_name":"healthd","message":"ok"}`, "drop",
		`{"message":"plain"}`, `"message":"plain"}`)
}

func TestFilterByHandDoesWhatTheManualSays(t *testing.T) {
	text := part(t, page(t, "filters/wat.md"), "(?s)```wat\n(.*?)```")
	newRunner(t).wants(t, buildWAT(t, text),
		`{"severity":7,"message":"tick"}`, "drop",
		`{"severity":6,"message":"tock"}`, "keep")
}
