package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/filters/toolchain"
)

// folders returns the folders below dir, given from the top of the repository, and their READMEs.
func folders(t *testing.T, dir string) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, dir, "*", "README.md"))
	if err != nil || len(found) == 0 {
		t.Fatal(dir, found, err)
	}
	readmes := map[string]string{}
	for _, path := range found {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		readmes[filepath.Dir(path)] = string(b)
	}
	return readmes
}

func TestEveryExampleHasAReadme(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, "examples/filters"))
	if err != nil {
		t.Fatal(err)
	}
	readmes := folders(t, "examples/filters")
	for _, e := range entries {
		if _, ok := readmes[filepath.Join(root, "examples/filters", e.Name())]; e.IsDir() && !ok {
			t.Errorf("examples/filters/%s has no README.md", e.Name())
		}
	}
}

func TestTheIndexOfExamplesListsEachOnce(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "examples/filters/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^\| \[(.*?)\]\((.*?)\) \|`).FindAllStringSubmatch(string(b), -1)
	seen := map[string]int{}
	for _, m := range listed {
		if seen[m[1]]++; m[1] != m[2] {
			t.Errorf("%s leads to %s", m[1], m[2])
		}
	}
	want := map[string]int{}
	for dir := range folders(t, "examples/filters") {
		want[filepath.Base(dir)] = 1
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("-folders +index:\n%s", diff)
	}
}

func TestExampleReadmesHaveOneShape(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^##? (.*)$`)
	for dir, readme := range folders(t, "examples/filters") {
		var got []string
		for _, m := range heading.FindAllStringSubmatch(readme, -1) {
			got = append(got, m[1])
		}
		want := []string{filepath.Base(dir), "What it does", "Build", "Try", "Configure", "Limits"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s/README.md (-want +got):\n%s", dir, diff)
		}
		if !strings.Contains(readme, "weir filter run ") {
			t.Errorf("%s/README.md: Try does not run the filter", dir)
		}
	}
}

func TestExamplesBuiltByTheirReadmesPassTheirCases(t *testing.T) {
	for dir, readme := range folders(t, "examples/filters") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel() // compilers take most of the time
			module := buildExample(t, dir, readme)
			runCases(t, module, filepath.Join(dir, "cases.jsonl"))
			decidesAboutAnything(t, module, filepath.Join(dir, "cases.jsonl"))
			if more := alsoOfExample[filepath.Base(dir)]; more != nil {
				more(t, module)
			}
			tryByReadme(t, readme, filepath.Dir(module))
			checkByReadme(t, readme, module)
		})
	}
}

// checkByReadme has weir look at the settings of a README's Configure section, beside the module.
func checkByReadme(t *testing.T, readme, module string) {
	t.Helper()
	found := regexp.MustCompile("(?s)## Configure\n.*?```yaml\n(.+?)\n```").FindStringSubmatch(readme)
	if found == nil {
		t.Fatal("the README has no Configure section with settings")
	}
	name := regexp.MustCompile(`(?m)^  ([a-z-]+):$`).FindStringSubmatch(found[1])
	if name == nil {
		t.Fatal("the README's settings have no filter")
	}
	dir := filepath.Dir(module)
	tables := filepath.Join(dir, "tables")
	if err := os.MkdirAll(tables, 0o700); err != nil {
		t.Fatal(err)
	}
	if csv := regexp.MustCompile("(?s)```csv\n(.+?)```").FindStringSubmatch(readme); csv != nil {
		if err := os.WriteFile(filepath.Join(tables, "devices.csv"), []byte(csv[1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.ReplaceAll(found[1], "/etc/weir/tables", tables)
	text, routes, _ := strings.Cut(text, "\nroutes:\n")
	if routes == "" {
		routes = "  main:\n    from: [edge]\n    filters: [" + name[1] + "]\n    to: [archive, alerts]"
	}
	text += "\nsources:\n  edge: { listen: [\"udp://127.0.0.1:5514\"] }\ndestinations:\n  archive: { discard: {} }\n  alerts: { discard: {} }\n" +
		"routes:\n" + routes + "\nstate_dir: state\n"
	if err := os.WriteFile(filepath.Join(dir, "weir.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), weir(), "check", "-c", "weir.yaml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("weir check with the settings of the README: %v\n%s\n%s", err, out, text)
	}
}

// buildExample builds an example as its README says, and in C without warnings: with a compiler, or with `weir filter build`.
func buildExample(t *testing.T, dir, readme string) (module string) {
	t.Helper()
	if !strings.Contains(readme, "\nweir filter build examples/filters/"+filepath.Base(dir)+"\n") {
		return buildByReadme(t, strings.ReplaceAll(readme, "-14 --target=wasm32-wasi ", "-14 -Wall -Wextra -Werror --target=wasm32-wasi "))
	}
	// In a copy of the folder, beside the SDKs as in the repository: a build writes into its folder.
	top := t.TempDir()
	copied := filepath.Join(top, "examples/filters", filepath.Base(dir))
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"filters": "filters", filepath.Dir(filepath.Dir(asc)): "node_modules"} {
		target, err := filepath.Abs(filepath.Join(root, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(top, to)); err != nil {
			t.Fatal(err)
		}
	}
	compileSDKOnce()
	var told bytes.Buffer
	module, err := toolchain.Build(t.Context(), copied, &told)
	if missing := (*toolchain.Missing)(nil); errors.As(err, &missing) {
		t.Skip(missing.What)
	}
	if err != nil || strings.Contains(told.String(), "warning") {
		t.Fatalf("%v\n%s", err, told.String())
	}
	return module
}

// compileSDKOnce lets all Rust examples share the compiled SDK.
var compileSDKOnce = sync.OnceFunc(func() { os.Setenv("CARGO_TARGET_DIR", filepath.Join(filepath.Dir(compiled), "cargo")) })

// tryByReadme runs the command of a README's Try section in the folder where the module lies.
func tryByReadme(t *testing.T, readme, dir string) {
	t.Helper()
	found := regexp.MustCompile("(?s)## Try\n.*?```sh\n(.+?)\n```").FindStringSubmatch(readme)
	if found == nil {
		t.Fatal("the README has no Try section with a command")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", found[1])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(weir())+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains("\n"+string(out), "\n{") && string(out) != "line 1: dropped\n" {
		t.Errorf("%s\n%v: %s", found[1], err, out)
	}
}

// weir builds the program and returns its path.
var weir = sync.OnceValue(func() string {
	path := filepath.Join(filepath.Dir(compiled), "weir")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/weir")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%s: %v\n%s", cmd, err, out))
	}
	return path
})

func TestStockFiltersPassTheirCases(t *testing.T) {
	for dir, readme := range folders(t, "filters/stock") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			runCases(t, "stock:"+filepath.Base(dir), filepath.Join(dir, "cases.jsonl"))
			tryByReadme(t, readme, t.TempDir())
		})
	}
}

// redactBuffer is how much of a value stock:redact looks at.
const redactBuffer = 256 << 10

func TestRedactNeverPassesWhatItCannotInspect(t *testing.T) {
	r := newRunner(t)
	g := r.load(t, "stock:redact", nil)
	for _, c := range []struct {
		bytes   int
		verdict string
	}{{redactBuffer, Keep}, {redactBuffer + 1, Failed}, {redactBuffer + 4096, Failed}} {
		text := strings.Repeat("x", c.bytes-len(" a@example.com")) + " a@example.com"
		got := r.run(t, g, []byte(`{"message":"`+text+`"}`))
		if got.verdict != c.verdict {
			t.Errorf("message of %d bytes: %s (%s), want %s", c.bytes, got.verdict, got.fail, c.verdict)
		}
		if strings.Contains(got.out, "a@example.com") {
			t.Errorf("message of %d bytes went on unmasked", c.bytes)
		}
	}
	value := strings.Repeat("x", redactBuffer) + " a@example.com"
	for _, in := range []string{
		`{"message":"m","field":"` + value + `"}`,
		`{"message":"m","field":["` + value + `"]}`,
		`{"message":"m","structured_data":{"a@1":{"p":"` + value + `"}}}`,
		`{"message":"m","structured_data":{"a@1":{"p":["` + value[:redactBuffer/2] + `","` + value[redactBuffer/2:] + `"]}}}`,
	} {
		if got := r.run(t, g, []byte(in)); got.verdict != Failed || !strings.Contains(got.fail, "not inspected") {
			t.Errorf("%s… : %s (%s), want failed", in[:40], got.verdict, got.fail)
		}
	}
}
