package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/filters/toolchain"
)

var (
	stateDir = regexp.MustCompile(`(?m)^state_dir: /var/lib/weir\b.*$`)
	secrets  = regexp.MustCompile(`/run/secrets/([\w-]+)`)
	diskSize = regexp.MustCompile(`\bdisk: \d+GiB`)
	exampleM = regexp.MustCompile(`\bmodule: (\S*?)([\w-]+)\.wasm`)
)

// Every file of deploy/, and every folder of files, is a configuration that weir would run with.
func TestDeployedConfigurationsAreFine(t *testing.T) {
	entries, err := os.ReadDir("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, e := range entries {
		path := filepath.Join("../../deploy", e.Name())
		parts, err := filepath.Glob(filepath.Join(path, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case filepath.Ext(e.Name()) == ".yaml":
			parts = []string{path}
		case len(parts) == 0:
			continue
		}
		seen++
		t.Run(e.Name(), func(t *testing.T) {
			dir := t.TempDir()
			for _, part := range parts {
				deployTo(t, dir, part)
			}
			var out, errout strings.Builder
			code := execute([]string{"check", "-c", dir}, strings.NewReader(""), &out, &errout)
			if code != exitFine || !strings.HasSuffix(out.String(), ": fine\n") || errout.String() != "" {
				t.Errorf("exit code %d\n%s%s", code, &out, &errout)
			}
			if e.Name() == "gateway.yaml" && !regexp.MustCompile(`(?m)^ +(?:[1-9]?\d|1[0-2]\d)\.\d MiB  in all$`).MatchString(out.String()) {
				t.Errorf("more than half of 256 MiB:\n%s", &out)
			}
		})
	}
	if seen < 1 {
		t.Errorf("%d configurations", seen)
	}
}

// deployTo puts a file into dir, with what it needs from the machine: its state, its secrets, the modules of
// examples/filters.
func deployTo(t *testing.T, dir, path string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := stateDir.ReplaceAllString(string(page), "state_dir: ./state")
	text = strings.ReplaceAll(text, "unix:///run/weir/", "unix://")
	text = diskSize.ReplaceAllString(text, "disk: 64MiB") // check warns where there is no room for more
	for _, m := range secrets.FindAllStringSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text = secrets.ReplaceAllString(text, "$1")
	for _, m := range exampleM.FindAllStringSubmatch(text, -1) {
		buildExample(t, m[2], filepath.Join(dir, m[1], m[2]+".wasm"))
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// buildExample builds a filter of examples/filters, or leaves the test out where there is no compiler.
func buildExample(t *testing.T, name, module string) {
	t.Helper()
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	in := t.TempDir()
	if err := os.Symlink(filepath.Join(top, "filters"), filepath.Join(in, "filters")); err != nil { // the SDK
		t.Fatal(err)
	}
	folder := filepath.Join(in, "examples/filters", name)
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(top, "examples/filters", name))); err != nil {
		t.Fatal(err)
	}
	built, err := toolchain.Build(t.Context(), folder, io.Discard)
	if missing := (*toolchain.Missing)(nil); errors.As(err, &missing) {
		t.Skip(missing.What)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(module), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(built, module); err != nil {
		t.Fatal(err)
	}
}
