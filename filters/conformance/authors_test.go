package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/filters/toolchain"
)

// authors are the SDKs with a page of their own, whose first filter is the same one in each: it masks long numbers.
// It reads its settings, gets, sets, counts, and fails with a reason; imports is what its module takes of weir_v1.
var authors = []struct{ language, fence, source, compiler, imports string }{
	{"c", "c", "digits.c", "clang-14", "config_get fail field_get field_set metric_add"},
	{"go", "go", "main.go", "go", "config_get fail field_get field_set metric_add"},
	{"rust", "rust", "src/lib.rs", rustc, "config_get fail field_get field_set log metric_add"}, // panics are logged
	{"assemblyscript", "ts", "digits.ts", "npx", "config_get fail field_get field_set metric_add"},
}

const digitsCases = `
{"name":"long numbers are masked","in":{"message":"order 4711 of 12, 123456"},"out":{"message":"order #### of 12, ######"},"verdict":"keep","metrics":{"masked":10}}
{"name":"others are not","in":{"message":"order 471"},"out":{"message":"order 471"},"verdict":"keep"}
{"name":"bytes that are not UTF-8 stay","in":{"message":"a�1234","message_b64":"Yf8xMjM0"},"out":{"message":"a�####","message_b64":"Yf8jIyMj"},"verdict":"keep"}
{"name":"a long text","in":{"message":"` + "1234 é 🙂 " + `"},"out":{"message":"#### é 🙂 "},"verdict":"keep"}
{"name":"as configured","config":{"least":2,"with":"x","drop":"healthd"},"in":{"app_name":"shop","message":"order 4711 of 12"},"out":{"app_name":"shop","message":"order xxxx of xx"},"verdict":"keep"}
{"name":"what is to be dropped is","config":{"least":2,"with":"x","drop":"healthd"},"in":{"app_name":"healthd","message":"ok"},"out":null,"verdict":"drop"}
{"name":"the filter refuses what it cannot do","config":{"with":""},"verdict":"refused","fail":"config: with must be one letter"}
`

func TestFirstFiltersDoWhatTheirPagesSay(t *testing.T) {
	for _, a := range authors {
		t.Run(a.language, func(t *testing.T) {
			module := buildByPage(t, a.language, a.fence, a.source, a.compiler)
			runCases(t, module, write(t, "digits.jsonl", digitsCases))
			r := newRunner(t)
			importsOnly(t, r, module, a.imports)
			for config, why := range map[string]string{`{"least":"2"}`: "least", `{"leest":2}`: "leest", `{"with":7}`: "with"} {
				if g, err := r.open(t.Context(), module, json.RawMessage(config)); err == nil {
					g.Close(t.Context())
					t.Errorf("config %s is taken", config)
				} else if !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "unreachable") {
					t.Errorf("config %s: %v", config, err)
				}
			}
		})
	}
}

// importsOnly checks what a module imports from weir_v1: what is not called is not imported, so that a filter runs with
// every weir that has what it uses.
func importsOnly(t *testing.T, r *Runner, module, want string) {
	t.Helper()
	report, err := r.host.Inspect(options(module).Filter)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, im := range report.Imports {
		if name, ok := strings.CutPrefix(im, "weir_v1."); ok {
			got = append(got, strings.Fields(name)[0])
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		t.Errorf("imports, -want +got:\n%s", diff)
	}
}

// buildByPage makes the first filter of an SDK's page by the commands below "By hand", in a folder of weir filter new.
func buildByPage(t *testing.T, language, fence, source, compiler string) (module string) {
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("%s is not installed", compiler)
	}
	text := page(t, "filters/"+language+".md")
	top := t.TempDir()
	folder, err := toolchain.New(top, "digits", language)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, folder.Name)
	if folder.Source != source {
		t.Fatalf("the page edits %s, weir filter new makes %s", source, folder.Source)
	}
	filter := part(t, text, "(?s)## The first one.*?```"+fence+"\n(.*?)```")
	if err := os.WriteFile(filepath.Join(dir, source), []byte(filter), 0o600); err != nil {
		t.Fatal(err)
	}
	if language == "assemblyscript" {
		installed, err := filepath.Abs(filepath.Join(root, filepath.Dir(filepath.Dir(asc))))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(installed); err != nil {
			t.Skip("AssemblyScript is not installed: npm ci --prefix filters/sdk/assemblyscript")
		}
		if err := os.Symlink(installed, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	runPage(t, dir, part(t, text, "(?s)## By hand\n.*?```sh\n(.*?)```"))
	return filepath.Join(dir, "digits.wasm")
}

// others are the languages without an SDK whose page is built here.
var others = []struct{ page, fence, source, compiler string }{
	{"nim", "nim", "mask.nim", "nim"},
	{"d", "d", "mask.d", "ldc2"},
}

const maskCases = `
{"name":"digits are masked","in":{"severity":6,"message":"order 4711 é"},"out":{"severity":6,"message":"order #### é"},"verdict":"keep"}
{"name":"what is for debugging is dropped","in":{"severity":7,"message":"m"},"out":null,"verdict":"drop"}
{"name":"an empty text","in":{"message":""},"out":{"message":""},"verdict":"keep"}
{"name":"bytes that are not UTF-8 stay","in":{"message":"a�1234","message_b64":"Yf8xMjM0"},"out":{"message":"a�####","message_b64":"Yf8jIyMj"},"verdict":"keep"}
`

func TestFiltersWithoutAnSDKDoWhatTheirPagesSay(t *testing.T) {
	for _, o := range others {
		t.Run(o.page, func(t *testing.T) {
			if _, err := exec.LookPath(o.compiler); err != nil {
				t.Skipf("%s is not installed", o.compiler)
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "filters/sdk/c"))); err != nil {
				t.Fatal(err)
			}
			text := page(t, "filters/"+o.page+".md")
			filter := part(t, text, "(?s)```"+o.fence+"\n(.*?)```")
			if err := os.WriteFile(filepath.Join(dir, o.source), []byte(filter), 0o600); err != nil {
				t.Fatal(err)
			}
			runPage(t, dir, part(t, text, "(?s)```sh\n(.*?)```"))
			runCases(t, filepath.Join(dir, "mask.wasm"), write(t, "mask.jsonl", maskCases))
			r := newRunner(t)
			r.wants(t, filepath.Join(dir, "mask.wasm"), `{"message":"`+strings.Repeat("1", 70_000)+`"}`, map[string]string{"d": "failed", "nim": "##"}[o.page])
		})
	}
}

// runPage runs a page's commands in a folder. Debian's Rust comes first.
func runPage(t *testing.T, dir, commands string) {
	t.Helper()
	if regexp.MustCompile(`(?m)^npm |^apt `).MatchString(commands) {
		t.Fatalf("the commands install something: %s", commands)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(rustc)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s%v\n%s", commands, err, out)
	}
}
