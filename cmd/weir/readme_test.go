package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fences returns the blocks of a language in README.md.
func fences(t *testing.T, language string) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(page, -1) {
		blocks = append(blocks, string(m[1]))
	}
	return blocks
}

// shell runs a script of the README in a directory of its own, with the
// program under test in place of `go run ./cmd/weir`.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "weir")); err != nil { // TestMain knows the name
		t.Fatal(err)
	}
	script = strings.NewReplacer("go run ./cmd/weir", "weir", "-I filters/sdk/c", "-I "+root+"/filters/sdk/c").Replace(script)
	cmd := exec.Command("sh", "-eu", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return string(out)
}

// What README.md says to write and to type works.
func TestTheREADMEIsTrue(t *testing.T) {
	yaml := fences(t, "yaml")
	if len(yaml) != 1 {
		t.Fatalf("%d configurations", len(yaml))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weir.yaml"), []byte(yaml[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := shell(t, dir, "weir check -c weir.yaml"); !strings.Contains(out, "weir.yaml: fine") {
		t.Errorf("the configuration: %s", out)
	}
	filter := ""
	for _, script := range fences(t, "sh") {
		if strings.Contains(script, "clang") {
			filter = script
		}
	}
	if _, err := exec.LookPath("clang-14"); err != nil {
		t.Skip("clang-14 is not installed: make deps")
	}
	if out := shell(t, dir, filter); !strings.Contains(out, `"message":"order 7"`) || !strings.Contains(out, `"site":"plant-7"`) {
		t.Errorf("the filter printed %s", out)
	}
}
