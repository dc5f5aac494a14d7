package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var runSecret = regexp.MustCompile(`\$\{file:/run/secrets/\w+\}`)

// configurationsInTheManual are the configurations that the manual shows, whole, by page and line. Their secrets are in a file.
func configurationsInTheManual(t *testing.T) map[string]string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, path := range manual(t) {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlFence.FindAllSubmatchIndex(page, -1) {
			block := string(page[m[2]:m[3]])
			if title := titled.FindStringSubmatch(block); title != nil && filepath.Base(title[1]) != "weir.yaml" {
				continue // another file
			}
			text, err := complete(block)
			if err != nil {
				t.Fatalf("%s: %v\n%s", path, err, block)
			}
			name := fmt.Sprintf("%s:%d", strings.TrimPrefix(filepath.ToSlash(path), "../../"), 1+bytes.Count(page[:m[2]], []byte("\n")))
			all[name] = runSecret.ReplaceAllLiteralString(text, "${file:"+secret+"}")
		}
	}
	return all
}
