package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Modules are strangers': no command compiles one in its own process.
func TestEveryHostHasACompiler(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(src)
		if !strings.Contains(text, "wasmhost.Open(") && !strings.Contains(text, "conformance.NewRunner(") {
			continue
		}
		if found++; !strings.Contains(text, " compiler()") {
			t.Errorf("%s opens a host without `Compiler: compiler()`", path)
		}
	}
	if found == 0 {
		t.Error("no command opens a host: this test looks for the wrong text")
	}
}
