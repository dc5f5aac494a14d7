package stock

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAreSortedAndHaveModules(t *testing.T) {
	if diff := cmp.Diff([]string{"redact", "severity"}, Names()); diff != "" {
		t.Fatal(diff)
	}
	for _, name := range Names() {
		b, ok := Module(name)
		if !ok || !bytes.HasPrefix(b, []byte("\x00asm\x01\x00\x00\x00")) {
			t.Errorf("stock:%s is no WebAssembly module", name)
		}
	}
}

func TestModulesAreSmallAndImportNothingButWeir(t *testing.T) {
	for _, name := range Names() {
		b, _ := Module(name)
		if len(b) > 24<<10 {
			t.Errorf("stock:%s has %d bytes", name, len(b))
		}
		for _, other := range []string{"wasi_snapshot_preview1", "env"} {
			if bytes.Contains(b, append([]byte{byte(len(other))}, other...)) {
				t.Errorf("stock:%s imports from %s", name, other)
			}
		}
	}
}

func TestModuleOfAnUnknownNameIsAbsent(t *testing.T) {
	for _, name := range []string{"", "nosuch", "../stock", "redact/redact", "redact.wasm"} {
		if _, ok := Module(name); ok {
			t.Errorf("%q is a module", name)
		}
	}
}
