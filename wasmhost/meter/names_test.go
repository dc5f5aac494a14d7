package meter

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
)

// part is a part of a name section.
func part(id byte, content string) string {
	return string(appendBytes([]byte{id}, content))
}

// TestFunctionNamesStayTrue: functions are moved past what the meter imports, and all other names are dropped.
func TestFunctionNamesStayTrue(t *testing.T) {
	sections := func(names string) []byte {
		return sectionsOf(secType, "\x01\x60\x00\x00", secImport, "\x01\x01a\x01b\x00\x00", secFunction, "\x02\x00\x00",
			secMemory, "\x01\x00\x01", secCode, "\x02\x02\x00\x0b\x06\x01\x01\x7f\x01\x01\x0b", secCustom, names)
	}
	before := "\x04name" + part(0, "\x03mod") + part(1, "\x03\x00\x02im\x01\x03one\x02\x03two") + part(2, "\x01\x02\x01\x00\x01x") + part(42, "whatever")
	check := func(limits Limits, functions string) {
		t.Helper()
		m, err := Rewrite(sections(before), limits)
		if err != nil {
			t.Fatal(err)
		}
		got := string(m.Bytes[strings.Index(string(m.Bytes), "\x04name"):])
		if diff := cmp.Diff("\x04name"+part(1, functions), got); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
	}
	check(Limits{MemoryPages: 1}, "\x03\x00\x02im\x02\x03one\x03\x03two")
	check(Limits{MemoryPages: 1, Exceptions: true}, "\x03\x00\x02im\x03\x03one\x04\x03two")
}

// TestLongNamesAreShort: a module of 300 KB with one name would have traces of 9 MB.
func TestLongNamesAreShort(t *testing.T) {
	module := wat(t, `(module (func $`+strings.Repeat("x", 300_000)+` (export "f") (param i32) (if (local.get 0) (then unreachable)) (call 0 (i32.sub (i32.const 1) (local.get 0)))))`, "--debug-names")
	rt := newRuntime(t, "compiler")
	clock := &Clock{}
	ctx := withClock(context.Background(), clock)
	mod, err := rt.InstantiateWithConfig(ctx, rewrite(t, module).Bytes, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	clock.Begin(time.Millisecond)
	_, err = mod.ExportedFunction("f").Call(ctx, 1)
	if err == nil || len(err.Error()) > 3000 || !strings.Contains(err.Error(), "xxx…(i32)") {
		t.Errorf("%d bytes: %.100s", len(err.Error()), err)
	}
}

// TestTracesShowTheAuthorsNames: a trap's, and that of a guest that is stopped. Functions without a name have that of
// their export, or the number that the author's tools give them.
func TestTracesShowTheAuthorsNames(t *testing.T) {
	module := wat(t, `(module (func $inner (param i32) (if (local.get 0) (then unreachable)) (loop (br 0))) (func (param i32) (call $inner (local.get 0)))
		(func (export "f") (param i32) (call 1 (local.get 0))))`, "--debug-names")
	for engine := range engines {
		rt := newRuntime(t, engine)
		clock := &Clock{}
		ctx := withClock(context.Background(), clock)
		compiled, err := rt.CompileModule(ctx, rewrite(t, module).Bytes)
		if err != nil {
			t.Fatal(err)
		}
		for trap := range uint64(2) {
			clock.Begin(time.Millisecond)
			mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
			if err != nil {
				t.Fatal(err)
			}
			_, err = mod.ExportedFunction("f").Call(ctx, trap)
			var seen []string
			for line := range strings.Lines(err.Error()) {
				if name, _, ok := strings.Cut(strings.TrimSpace(line), "("); ok && strings.HasPrefix(name, ".") {
					seen = append(seen, name)
				}
			}
			if diff := cmp.Diff([]string{".inner", ".$1", ".f"}, seen); diff != "" {
				t.Errorf("%s: %v\nwant (-), got (+):\n%s", engine, err, diff)
			}
		}
	}
}
