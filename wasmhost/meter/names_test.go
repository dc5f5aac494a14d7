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

// TestNamesStayTrue: functions and their locals are moved past what the meter imports, what is named by number of a
// kind that keeps its numbers stays as it is, labels are dropped, and so is what the meter does not know.
func TestNamesStayTrue(t *testing.T) {
	sections := func(names string) []byte {
		return sectionsOf(secType, "\x01\x60\x00\x00", secImport, "\x01\x01a\x01b\x00\x00", secFunction, "\x02\x00\x00",
			secMemory, "\x01\x00\x01", secGlobal, "\x01\x7f\x00\x41\x00\x0b", secCode, "\x02\x02\x00\x0b\x06\x01\x01\x7f\x01\x01\x0b", secCustom, names)
	}
	kept := part(4, "\x01\x00\x01t") + part(5, "\x00") + part(6, "\x01\x00\x01m") + part(7, "\x01\x00\x01g") + part(8, "\x00") + part(9, "\x00") + part(11, "\x00")
	before := "\x04name" + part(0, "\x03mod") + part(1, "\x03\x00\x02im\x01\x03one\x02\x03two") + part(2, "\x01\x02\x01\x00\x01x") +
		part(3, "\x01\x02\x01\x00\x01l") + kept + part(42, "whatever")
	check := func(limits Limits, functions, locals string) {
		t.Helper()
		want := "\x04name" + part(0, "\x03mod") + part(2, locals) + kept + part(1, functions)
		m, err := Rewrite(sections(before), limits)
		if err != nil {
			t.Fatal(err)
		}
		got := string(m.Bytes[strings.Index(string(m.Bytes), "\x04name"):])
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
	}
	check(Limits{MemoryPages: 1}, "\x03\x00\x02im\x02\x03one\x03\x03two", "\x01\x03\x01\x00\x01x")
	check(Limits{MemoryPages: 1, Exceptions: true}, "\x03\x00\x02im\x03\x03one\x04\x03two", "\x01\x04\x01\x00\x01x")
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
