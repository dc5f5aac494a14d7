package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files writes files into a new directory, which becomes the working directory.
func files(t *testing.T, all map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range all {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// toldOf is what is said of files, each mistake's first line.
func toldOf(paths ...string) (out []string) {
	for _, m := range Load(&sample{}, sampleOptions, paths...).Mistakes() {
		line, _, _ := strings.Cut(m.String(), "\n")
		out = append(out, line)
	}
	return out
}

func TestOfADirectoryTheYAMLFilesAreRead(t *testing.T) {
	files(t, map[string]string{
		"d/b.yaml": "memory: 2MiB\n", "d/a.yaml": "state_dir: x\n", "d/.hidden.yaml": "no: no\n", "d/.#a.yaml": "no: no\n",
		"d/readme.txt": "no: [", "d/deeper/c.yaml": "no: no\n", "d[x]*/a.yaml": "memory: 3MiB\n",
	})
	s := &sample{}
	d := Load(s, sampleOptions, "d")
	if diff := cmp.Diff([]string{"d/a.yaml", "d/b.yaml"}, d.Files()); diff != "" || d.Err() != nil || len(d.Mistakes()) > 0 || s.Memory != 2<<20 || s.StateDir != "x" {
		t.Error(diff, d.Err(), s)
	}
	if Load(s, sampleOptions, "d[x]*"); s.Memory != 3<<20 {
		t.Error("a directory's name was taken for a pattern")
	}
}

func TestWhatIsNoConfigurationFileIsTold(t *testing.T) {
	files(t, map[string]string{
		"yml/a.yml": "no: no\n", "yml/b.yaml": "memory: 2MiB\n", "none/a.yml": "", "dirs/a.yaml/b": "", "twice.yaml": "memory: 1MiB\n",
	})
	if err := os.Mkdir("empty", 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"dirs/b.yaml": "nowhere", "good.yaml": "twice.yaml"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	check := func(paths []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, toldOf(paths...)); diff != "" {
			t.Errorf("%v: %s", paths, diff)
		}
	}
	check([]string{"yml"}, "yml/a.yml: warning: this file is not read: of a directory weir reads *.yaml")
	check([]string{"none"}, "none/a.yml: warning: this file is not read: of a directory weir reads *.yaml", "none: no *.yaml in this directory")
	check([]string{"yml/a.yml"}, `yml/a.yml:1:1: unknown key "no"`)
	check([]string{"empty"}, "empty: no *.yaml in this directory")
	check([]string{"dirs"}, "dirs/a.yaml: cannot be read: is a directory", "dirs/b.yaml: there is no such file")
	check([]string{"nowhere"}, "nowhere: there is no such file")
	check([]string{"good.yaml"})
	check([]string{"good.yaml", "./twice.yaml"}, "./twice.yaml: the same file is given twice: it is good.yaml")
	check([]string{"yml", "yml/b.yaml"}, "yml/a.yml: warning: this file is not read: of a directory weir reads *.yaml", "yml/b.yaml: the same file is given twice: it is yml/b.yaml")
	check([]string{"/dev/zero"}, "/dev/zero: larger than 1 MiB: no configuration file")
	check([]string{"-"}, "-: standard input is no configuration here")
}

func TestStandardInputIsAFileOfTheWorkingDirectory(t *testing.T) {
	opts := sampleOptions
	opts.Stdin = strings.NewReader("memory: 2MiB\nstate_dir: x\n")
	s := &sample{}
	d := Load(s, opts, "-")
	if d.Err() != nil || s.Memory != 2<<20 || d.At("state_dir").Resolve("f.wasm") != "f.wasm" || d.At("memory").String() != "-:1:9" {
		t.Error(d.Err(), s, d.At("memory"))
	}
	opts.Stdin = strings.NewReader("memory: 2MiB\n")
	if err := Load(s, opts, "-", "-").Err(); err == nil || !strings.Contains(err.Error(), "standard input is given twice") {
		t.Error(err)
	}
}

func TestAnchorsHoldInTheirOwnFile(t *testing.T) {
	files(t, map[string]string{
		"a.yaml": "x-l: &listen [tcp://a]\n",
		"b.yaml": "sources: {b: {listen: *listen}}\n",
		"c.yaml": "x-l: [tcp://c]\nx-listen: &listen-too []\nsources: {b: {listen: *listen}}\n",
		"d.yaml": "x-l: &listen [tcp://d]\nsources: {b: {listen: *listen}}\n",
	})
	want := `b.yaml:1:23: no anchor is named listen in this file, and those of other files do not count
    sources: {b: {listen: *listen}}
                          ^
  the other one is a.yaml:1:6
    x-l: &listen [tcp://a]
         ^
  try: the value itself, or &listen before it in this file`
	for _, order := range [][]string{{"a.yaml", "b.yaml"}, {"b.yaml", "a.yaml"}} {
		if diff := cmp.Diff(want, Load(&sample{}, sampleOptions, order...).Err().Error()); diff != "" {
			t.Error(diff)
		}
	}
	if got := toldOf("c.yaml"); len(got) != 1 || got[0] != "c.yaml:3:23: no anchor is named listen" {
		t.Error(got)
	}
	if got := toldOf("a.yaml", "d.yaml"); got != nil { // the same anchor and the same x- key in two files
		t.Error(got)
	}
}
