package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// read parses a text that has no mistake.
func read(t *testing.T, text string) (*sample, *Document) {
	t.Helper()
	s := &sample{Memory: 64 << 20}
	d := Parse(s, sampleOptions, "weir.yaml", []byte(text))
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	return s, d
}

func TestWhatIsAbsentKeepsItsDefault(t *testing.T) {
	s, _ := read(t, "sources:\n  edge: {listen: [tcp://a], idle_timeout: off}\n")
	e := s.Sources.Get("edge")
	if s.Memory != 64<<20 || e.MaxMessage != 64<<10 || e.Format != "auto" || e.IdleTimeout != 0 || s.Admin != nil {
		t.Errorf("got %+v, %+v", s, e)
	}
}

func TestSizesAndTimesHaveUnits(t *testing.T) {
	size := func(text string, want Size) {
		t.Helper()
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	size("64KiB", 64<<10)
	size("64 KiB", 64<<10)
	size("1.5MiB", 3<<19)
	size("4MB", 4e6)
	size("512B", 512)
	size("0B", 0)
	for _, text := range []string{"0B", "900B", "900TB", "4MB", "64KiB", "1536MiB", "62500KiB"} {
		s, err := ParseSize(text)
		if back, backErr := ParseSize(s.String()); err != nil || backErr != nil || back != s || len(s.String()) > len(text) {
			t.Errorf("%s is written %s", text, s)
		}
	}
	span := func(text string, want time.Duration) {
		t.Helper()
		if got, hint := parseDuration(text); hint != "" || got != want {
			t.Errorf("%s: got %v, %s, want %v", text, got, hint, want)
		}
	}
	span("1s", time.Second)
	span("1h30m", 90*time.Minute)
	span("1.5s", 1500*time.Millisecond)
	span("30d", 720*time.Hour)
	for _, s := range []Size{0, 1, 1000, 1024, 1500, 64 << 20, 4_000_000, 1<<40 + 1} {
		size(s.String(), s)
	}
	for _, d := range []time.Duration{time.Microsecond, 90 * time.Second, 720 * time.Hour, 1500 * time.Millisecond} {
		span(TimeText(d), d)
	}
}

func TestNamesKeepTheirOrderAndPlace(t *testing.T) {
	s, d := read(t, "sources:\n  b: {listen: [tcp://b]}\n  a: {listen: [tcp://a]}\n")
	if diff := cmp.Diff([]string{"b", "a"}, s.Sources.Names()); diff != "" {
		t.Error(diff)
	}
	if p := s.Sources[1].Place; p.Line != 3 || p.Column != 3 || p.File() != "weir.yaml" {
		t.Errorf("a is at %d:%d of %s", p.Line, p.Column, p.File())
	}
	if p := d.At("sources", "a", "listen", "0"); p.Line != 3 || p.Column != 16 {
		t.Errorf("the address is at %d:%d", p.Line, p.Column)
	}
	if p := d.At("sources", "a", "format"); p.Line != 3 || p.Column != 6 {
		t.Errorf("what is not there is shown at %d:%d, not at the deepest that is", p.Line, p.Column)
	}
}

func TestAliasesStandForTheirValue(t *testing.T) {
	s, _ := read(t, "x-listen: &l [tcp://a]\nx-all: {any: thing}\nsources:\n  a: &a {listen: *l, format: raw}\n  b: *a\n")
	if diff := cmp.Diff(s.Sources.Get("a"), s.Sources.Get("b")); diff != "" || s.Sources.Get("b").Format != "raw" {
		t.Error(diff)
	}
}

func TestFilesAreLaidTogether(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		os.WriteFile(path, []byte(text), 0o644)
		return path
	}
	first := write("main.yaml", "memory: 1MiB\nsources:\n  a: {listen: [tcp://a]}\n")
	write("d/10.yaml", "sources:\n  b: {listen: [tcp://b]}\n")
	write("d/20.yaml", "sources:\n  c: {listen: [tcp://c]}\nstate_dir: x\n")
	write("d/30.conf", "not: read\n")
	s := &sample{}
	d := Load(s, sampleOptions, first, filepath.Join(dir, "d"))
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, s.Sources.Names()); diff != "" || s.Memory != 1<<20 || s.StateDir != "x" {
		t.Error(diff, s)
	}
	if got, want := s.Sources[1].Place.Resolve("f.wasm"), filepath.Join(dir, "d/f.wasm"); got != want {
		t.Errorf("a path in d/10.yaml means %s, want %s", got, want)
	}

	second := write("other.yaml", "memory: 2MiB\nsources:\n  a: {listen: [tcp://a]}\n")
	got := Load(&sample{}, sampleOptions, first, second, filepath.Join(dir, "nowhere.yaml")).Err().Error()
	want := `other.yaml:1:1: memory is there twice
    memory: 2MiB
    ^
  the other one is main.yaml:1:1
    memory: 1MiB
    ^
  try: remove one of them
other.yaml:3:3: sources.a is there twice
      a: {listen: [tcp://a]}
      ^
  the other one is main.yaml:3:3
      a: {listen: [tcp://a]}
      ^
  try: rename or remove one of them
nowhere.yaml: there is no such file`
	if diff := cmp.Diff(want, strings.ReplaceAll(got, dir+"/", "")); diff != "" {
		t.Error(diff)
	}
}

func TestReferencesAreExpandedOnceInsideStrings(t *testing.T) {
	t.Chdir(t.TempDir())
	os.WriteFile("pg", []byte("${env:WORD}$$\n"), 0o600)
	s, _ := read(t, `
memory: ${env:SIZE}
state_dir: "a/${env:DOLLAR}/$$/$x/${env:EMPTY}${env:NOPE:-d:-e}/${file:pg}"
stores:
  db:
    columns:
      line: {template: "${hostname} $$ ${env:DOLLAR} ${app_name:-x}"}
    options: {b: 1, a: ["${env:WORD}", 0x10, 1e3, ~, yes, true], "c:d": "<é\n>"}
`)
	if s.Memory != 1<<20 {
		t.Errorf("memory: %v", s.Memory)
	}
	if want := "a/a$b/$/$x/d:-e/${env:WORD}$$"; s.StateDir != want {
		t.Errorf("state_dir: got %s, want %s", s.StateDir, want)
	}
	db := s.Stores.Get("db")
	if got, want := string(db.Columns.Get("line").Template), "${hostname} $$ a$$b ${app_name:-x}"; got != want {
		t.Errorf("template: got %s, want %s", got, want)
	}
	if got, want := string(db.Options), `{"b":1,"a":["geheim",16,1e3,null,"yes",true],"c:d":"<é\n>"}`; got != want {
		t.Errorf("options: got %s, want %s", got, want)
	}
}

func TestSecretsAreReadAnewAndNeverShown(t *testing.T) {
	t.Chdir(t.TempDir())
	os.WriteFile("pg", []byte("geheim\n"), 0o600)
	s, d := read(t, `
state_dir: ${file:pg}
stores:
  a: {password: "${file:pg}", url: "postgres://weir:geheim@db/logs?x=y", options: {token: geheim, mask: "#", tokens: {a: [geheim, {b: geheim}]}, sql: "PASSWORD 'geheim'"}}
  b: {password: geheim, url: "host=db password='geheim x' user=weir"}
`)
	a, b := s.Stores.Get("a"), s.Stores.Get("b")
	reveal := func(s Secret, want string) {
		t.Helper()
		if got, err := s.Reveal(); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	reveal(a.Password, "geheim")
	reveal(b.Password, "geheim")
	os.WriteFile("pg", []byte("neu"), 0o600)
	reveal(a.Password, "neu")
	os.Remove("pg")
	if _, err := a.Password.Reveal(); err == nil {
		t.Error("a secret without its file was revealed")
	}

	var shown strings.Builder
	if err := d.Show(&shown, s); err != nil {
		t.Fatal(err)
	}
	want := `memory: 64MiB
state_dir: ${file:pg}
stores:
  a:
    flush_lines: 0
    password: ${file:pg}
    url: postgres://weir:***@db/logs?x=y
    options: {token: '***', mask: "#", tokens: {a: ['***', {b: '***'}]}, sql: "PASSWORD ***"}
  b:
    flush_lines: 0
    password: '***'
    url: host=db password=*** user=weir
`
	if diff := cmp.Diff(want, shown.String()); diff != "" {
		t.Error(diff)
	}
	d.Errorf(d.At("state_dir"), "not geheim", "cannot make geheim")
	told := fmt.Sprint(d.Err()) + fmt.Sprintf("%+v %#v %s", *s.Stores.Get("b"), b, a.Password)
	if strings.Contains(told, "geheim") {
		t.Errorf("a secret is shown: %s", told)
	}
}

func TestWhatIsShownMeansTheSame(t *testing.T) {
	s, d := read(t, `
memory: 1MiB
state_dir: "a$$b"
admin: {}
sources:
  edge: {listen: [tcp://a, "udp://[::1]:5"], max_message: 1500B, wait: 90s, trusted: true, port: 7, ratio: 0.5}
stores:
  db:
    flush_lines: 5
    columns: {host: hostname, "on": {from: x, type: "true", null_if: ""}, line: {template: "$$ ${hostname}\n"}}
    options: {z: [1, "1", true, "true", ~], a: "x: y"}
routes:
  main: {from: [edge], to: []}
`)
	var text strings.Builder
	if err := d.Show(&text, s); err != nil {
		t.Fatal(err)
	}
	again, d2 := read(t, text.String())
	var second strings.Builder
	d2.Show(&second, again)
	ignore := cmp.Options{cmp.AllowUnexported(), cmp.Comparer(func(a, b Place) bool { return true }), cmp.Comparer(func(a, b Secret) bool { return a.text == b.text })}
	if diff := cmp.Diff(s, again, ignore); diff != "" {
		t.Errorf("%s\n%s", diff, text.String())
	}
	if diff := cmp.Diff(text.String(), second.String()); diff != "" {
		t.Error(diff)
	}
}

func TestAliasesInAliasesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("x-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 12 {
		fmt.Fprintf(&b, "x-%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	b.WriteString("stores: {db: {options: *a12}}\n")
	s := &sample{}
	err := Parse(s, sampleOptions, "weir.yaml", []byte(b.String())).Err()
	if err == nil || !strings.Contains(err.Error(), "unfolds to too much") || strings.Count(err.Error(), "\n") > 5 {
		t.Errorf("got %v", err)
	}
}

func TestEmptyFilesSayNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "\ufeffmemory: 64MiB\n", "{}"} {
		read(t, text)
	}
}

func TestNearestNames(t *testing.T) {
	known := []string{"flush_lines", "flush_bytes", "table", "to", "from"}
	check := func(name, want string) {
		t.Helper()
		if got := Nearest(name, known); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	check("flush-lines", "flush_lines")
	check("flushlines", "flush_lines")
	check("Table", "table")
	check("tabel", "table")
	check("form", "from")
	check("flush", "flush_lines")
	check("zzz", "")
	check(strings.Repeat("x", 1000), "")
}

// FuzzConfig feeds anything: reading ends, every mistake has a place inside the
// file, and what is accepted is shown in a form that is accepted.
func FuzzConfig(f *testing.F) {
	a, err := os.ReadFile("testdata/broken.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, part := range strings.Split(string(a), "-- ") {
		if name, text, ok := strings.Cut(part, " --\n"); ok && strings.HasSuffix(name, ".yaml") {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &sample{}
		d := Parse(s, sampleOptions, "weir.yaml", []byte(text))
		lines := strings.Count(text, "\n") + 1
		for _, m := range d.Mistakes() {
			if m.Place.Line > lines || m.Place.File() == "" || m.String() == "" {
				t.Errorf("a mistake at line %d of %d: %s", m.Place.Line, lines, m)
			}
		}
		if d.Err() != nil {
			return
		}
		var shown strings.Builder
		if err := d.Show(&shown, s); err != nil {
			t.Fatalf("show: %v", err)
		}
		sameBut(t, d, s)
		again := Parse(&sample{}, sampleOptions, "shown.yaml", []byte(shown.String()))
		if err := again.Err(); err != nil && !strings.Contains(shown.String(), hidden) {
			t.Errorf("what is shown is not accepted:\n%s\n%v", shown.String(), err)
		}
	})
}

func TestTwentyThousandMistakesAreTold(t *testing.T) {
	var b strings.Builder
	b.WriteString("memory: 1MiB\nsources: {}\nstores: {}\n") // a file of ours
	for i := range 20_000 {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	d := Parse(&sample{}, sampleOptions, "weir.yaml", []byte(b.String()))
	if n := len(d.Mistakes()); n != 20_000 || strings.Count(d.Err().Error(), "unknown key") != n {
		t.Errorf("%d mistakes", n)
	}
}
