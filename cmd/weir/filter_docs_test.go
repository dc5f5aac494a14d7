package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/filters/toolchain"
)

// What docs/filters/testing.md shows is what comes out: its cases, given to a new filter that leaves its setting out.
func TestThePageOnTestingIsTrue(t *testing.T) {
	if err := toolchain.Ready("c"); err != nil {
		t.Skip(err)
	}
	page, err := os.ReadFile("../../docs/filters/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
		if found == nil {
			t.Fatalf("no block of %s", language)
		}
		return string(found[1])
	}
	dir := t.TempDir()
	shell(t, dir, "weir filter new mask --lang c && cd mask && sed -i 's/set.kind) < 0/\"audit\") < 0/' mask.c && weir filter build")
	if err := os.WriteFile(filepath.Join(dir, "mask/cases.jsonl"), []byte(block("json")), 0o600); err != nil {
		t.Fatal(err)
	}
	got := shell(t, filepath.Join(dir, "mask"), "weir filter test || [ $? = 1 ]")
	want := strings.TrimPrefix(block("console"), "$ weir filter test\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
