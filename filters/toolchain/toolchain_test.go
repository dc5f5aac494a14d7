package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// programs makes a folder with programs of these names, each a shell script; its path.
func programs(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func wantMissing(t *testing.T, err error, texts ...string) {
	t.Helper()
	if _, ok := errors.AsType[*Missing](err); !ok {
		t.Fatalf("not a Missing: %v", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in: %v", text, err)
		}
	}
}

func TestVersionsThePlainOneFirstThenTheNewest(t *testing.T) {
	one := programs(t, map[string]string{"clang-9": "", "clang-14": "", "clang": "", "clang-format-14": ""})
	two := programs(t, map[string]string{"clang-19": "", "clang-14": ""})
	if err := os.WriteFile(filepath.Join(two, "clang-22"), nil, 0o644); err != nil { // which cannot be run
		t.Fatal(err)
	}
	f := finder{path: strings.Join([]string{one, "relative", two}, string(filepath.ListSeparator))}
	want := []string{one + "/clang", two + "/clang-19", one + "/clang-14", one + "/clang-9"}
	if diff := cmp.Diff(want, f.versions("clang")); diff != "" {
		t.Error(diff)
	}
}

// clang is a script that answers as one that has these parts.
func clang(t *testing.T, targets string, parts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range parts {
		if err := os.WriteFile(filepath.Join(dir, part), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := `case "$*" in *print-targets*) echo "` + targets + `";; *dumpversion*) echo 14.0.6;; esac` + "\n"
	for option, part := range map[string]string{"print-prog-name=wasm-ld-14": "wasm-ld", "print-file-name": "crt1-reactor.o", "print-libgcc": "builtins.a"} {
		script += `case "$*" in *` + option + `*) [ -e ` + dir + `/` + part + ` ] && echo ` + dir + `/` + part + ` || echo ` + part + `;; esac` + "\n"
	}
	return script
}

func TestAClangThatIsNotCompleteSaysWhichPackagesAre(t *testing.T) {
	t.Setenv("WASI_SDK_PATH", "")
	check := func(scripts map[string]string, texts ...string) {
		t.Helper()
		_, _, err := finder{path: programs(t, scripts)}.clang()
		wantMissing(t, err, texts...)
	}
	check(nil, "there is no clang", "apt install clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32")
	check(map[string]string{"clang-14": clang(t, "x86-64")}, "clang-14 does not know WebAssembly")
	check(map[string]string{"clang-14": clang(t, "wasm32")}, "no linker (wasm-ld) and no C library and no runtime",
		"apt install lld-14 wasi-libc libclang-rt-14-dev-wasm32")
	check(map[string]string{"clang": clang(t, "wasm32", "wasm-ld", "builtins.a")}, "no C library for", "apt install wasi-libc")

	whole := programs(t, map[string]string{"clang-14": clang(t, "wasm32", "wasm-ld", "crt1-reactor.o", "builtins.a"), "clang": clang(t, "wasm32")})
	if path, sysroot, err := (finder{path: whole}).clang(); err != nil || path != whole+"/clang-14" || sysroot != "" {
		t.Errorf("%s %s %v", path, sysroot, err)
	}
}

func TestARustWithoutTheTargetIsPassedBy(t *testing.T) {
	rustc := func(library string) string {
		return `case "$*" in *target-libdir*) echo ` + library + `;; *sysroot*) echo ` + library + `;; *-vV*) echo "LLVM version: 14.0.6";; esac`
	}
	library := t.TempDir()
	bare := programs(t, map[string]string{"rustc": rustc("/nowhere"), "cargo": ""})
	_, err := finder{path: bare}.rust()
	wantMissing(t, err, bare+"/rustc: no standard library for wasm32-unknown-unknown", "rustup target add")

	if err := os.WriteFile(filepath.Join(library, "libcore-1.rlib"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	full := programs(t, map[string]string{"rustc": rustc(library), "cargo": ""})
	both := finder{path: bare + ":" + full}
	_, err = both.rust()
	wantMissing(t, err, full+"/rustc has no linker", "apt install lld-14")

	linker := programs(t, map[string]string{"wasm-ld-14": ""})
	kit, err := finder{path: both.path + ":" + linker}.rust()
	if want := (rustKit{full + "/rustc", full + "/cargo", linker + "/wasm-ld-14"}); err != nil || kit != want {
		t.Errorf("%+v %v", kit, err)
	}
	_, err = finder{path: programs(t, map[string]string{"rustc": rustc(library)}) + ":" + linker}.rust()
	wantMissing(t, err, "there is no cargo beside", "apt install cargo")
	_, err = finder{}.rust()
	wantMissing(t, err, "there is no rustc")
}

func TestTheCratesModuleIsTheLastThatCargoMade(t *testing.T) {
	said := `{"reason":"compiler-artifact","filenames":["/t/libweir.rlib"]}
{"reason":"compiler-message","message":{}}
not JSON
{"reason":"compiler-artifact","filenames":["/t/other.d","/t/filter.wasm"]}
{"reason":"build-finished","success":true}`
	if got := crateModule(strings.NewReader(said)); got != "/t/filter.wasm" {
		t.Error(got)
	}
}

func TestASourceThatIsNewerThanTheModuleIsFound(t *testing.T) {
	dir := t.TempDir()
	hour := time.Now().Add(-time.Hour)
	put := func(name string, at time.Time) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	module := filepath.Join(dir, "f.wasm")
	put("f.wasm", hour)
	put("src/lib.rs", hour.Add(-time.Minute))
	put("target/x.rs", hour.Add(time.Minute))
	put(".git/x.c", hour.Add(time.Minute))
	put("README.md", hour.Add(time.Minute))
	if got := NewerSource(dir, module); got != "" {
		t.Error(got)
	}
	put("src/other.rs", hour.Add(time.Minute))
	if got := NewerSource(dir, module); got != "src/other.rs" {
		t.Error(got)
	}
	if got := NewerSource(dir, filepath.Join(dir, "none.wasm")); got != "" {
		t.Error(got)
	}
}

// No word between @ is left, and no language goes without its parts.
func TestNewFoldersAreFilledIn(t *testing.T) {
	for _, lang := range Languages() {
		in := t.TempDir()
		folder, err := New(in, "some-filter", lang)
		if err != nil {
			t.Fatalf("%s: %v", lang, err)
		}
		all := strings.Join(folder.Files, " ")
		for _, name := range []string{folder.Source, "README.md", "cases.jsonl", "weir.manifest.yaml", ".gitignore"} {
			if !strings.Contains(all, name) {
				t.Errorf("%s: no %s in %s", lang, name, all)
			}
		}
		if err := filepath.WalkDir(in, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.Contains(path, "/weir/") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, word := range []string{"@NAME@", "@SOURCE@", "@NEEDS@", "@COMMANDS@", "@CASES@", "@CONFIG@"} {
				if strings.Contains(string(b)+path, word) {
					t.Errorf("%s has %s", path, word)
				}
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		if !languageNamed(lang).owns(filepath.Join(in, "some-filter")) {
			t.Errorf("%s does not recognise its own folder", lang)
		}
		for _, l := range languages { // the first that recognises a folder builds it
			if l.name == lang {
				break
			}
			if l.owns(filepath.Join(in, "some-filter")) {
				t.Errorf("a new folder for %s is taken for %s", lang, l.name)
			}
		}
	}
}
