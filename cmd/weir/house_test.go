package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// House rules that can be tested, each with the sentence that it enforces.

const module = "github.com/weirlog/weir"

// floors is the tree of ARCHITECTURE.md: a package imports only from floors below its own.
var floors = map[string]int{
	"cmd/weir": 5, "bench": 5, "examples/filters": 5,
	"filters/conformance": 4,
	"router/socket":       3, "router/sqlstore": 3, "router/spool": 3, "router/deadletter": 3, "router/file": 3, "router/admin": 3, "wasmhost": 3,
	"router/config": 2, "router/routertest": 2,
	"router": 1, "filters/toolchain": 1,
	"router/syslog": 0, "wasmhost/meter": 0, "filters/stock": 0, "filters/sdk": 0,
}

// floor finds the floor of a package: its own, or that of the room it is in. Guests
// (anything that is built for WebAssembly) stand outside of the house.
func floor(pkg string) (int, bool) {
	for p := strings.TrimPrefix(pkg, module+"/"); p != "."; p = filepath.Dir(p) {
		if n, ok := floors[p]; ok {
			return n, true
		}
	}
	return 0, false
}

// Imports go down only, tests included; neighbours on a floor never meet.
func TestImportsGoDownOnly(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		own, known := floor(p.ImportPath)
		if !known {
			if !strings.HasPrefix(p.ImportPath, module+"/filters/sdk/") {
				t.Errorf("%s stands on no floor: a new room is a decision (floors here, ARCHITECTURE.md)", p.ImportPath)
			}
			continue
		}
		if slices.Contains(p.Imports, module+"/router/routertest") {
			t.Errorf("%s: router/routertest is for tests only", p.ImportPath)
		}
		for _, im := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if im == p.ImportPath || !strings.HasPrefix(im, module+"/") || strings.HasPrefix(im, module+"/filters/sdk/") {
				continue
			}
			if n, _ := floor(im); n >= own && !strings.HasPrefix(im, p.ImportPath+"/") {
				t.Errorf("%s (floor %d) imports %s (floor %d)", p.ImportPath, own, im, n)
			}
		}
	}
}

// There is no util, common, internal/misc or pkg: a package needs a noun of its own.
func TestNoDrawers(t *testing.T) {
	walk(t, func(path string, d fs.DirEntry) {
		if d.IsDir() && slices.Contains([]string{"util", "utils", "common", "misc", "pkg", "helpers", "internal"}, d.Name()) {
			t.Errorf("%s is a drawer, not a room", path)
		}
	})
}

// The top of the tree is no package: whoever tries weir in a clone writes a first filter there, and one .c or .go file of
// theirs would keep `go run ./cmd/weir` from being built.
func TestTheTopIsNoPackage(t *testing.T) {
	if files, err := filepath.Glob("../../*.go"); err != nil || len(files) > 0 {
		t.Errorf("%v %v", files, err)
	}
	imports, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}", module+"/cmd/weir").Output()
	if err != nil || slices.Contains(strings.Fields(string(imports)), module) {
		t.Errorf("the program imports the top: %v", err)
	}
}

// A file is a topic, at most 450 lines.
func TestFilesAreTopics(t *testing.T) {
	walk(t, func(path string, d fs.DirEntry) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), "\n"); n > 450 {
			t.Errorf("%s has %d lines", path, n)
		}
	})
}

// modernc.org/libc is the version that modernc.org/sqlite was translated
// against: with another one SQLite may corrupt memory.
func TestLibcIsTheOneThatSQLiteAsksFor(t *testing.T) {
	list := func(args ...string) string {
		out, err := exec.Command("go", append([]string{"list", "-m"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	mod, err := os.ReadFile(list("-f", "{{.GoMod}}", "modernc.org/sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`modernc\.org/libc (v\S+)`).FindSubmatch(mod)
	if want == nil {
		t.Fatal("modernc.org/sqlite does not say which libc it wants")
	}
	if got := list("-f", "{{.Version}}", "modernc.org/libc"); got != string(want[1]) {
		t.Errorf("modernc.org/libc is %s, modernc.org/sqlite asks for %s", got, want[1])
	}
}

// Links between the pages lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	walk(t, func(path string, d fs.DirEntry) {
		if !strings.HasSuffix(path, ".md") {
			return
		}
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(page), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: the link %s leads nowhere", path, m[1])
			}
		}
	})
}

// walk visits every file and folder of the project that git would keep.
func walk(t *testing.T, visit func(path string, d fs.DirEntry)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "weir-data" || d.Name() == "dist") {
			return fs.SkipDir
		}
		visit(path, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
