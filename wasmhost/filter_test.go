package wasmhost

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilterEditsAndDrops(t *testing.T) {
	g, log := loadFile(t, "mask.c")
	b := batch(t, "card 4711", "noise", "no digits")
	defer b.Discard()
	b.Messages()[1].Severity = 7
	if held := g.Filter(0).Apply(t.Context(), b); held != nil {
		t.Fatal(held)
	}
	want := []string{"keep card ####", "drop noise", "keep no digits"}
	if diff := cmp.Diff(want, outcomes(b)); diff != "" {
		t.Error(diff)
	}
	if log.String() != "" {
		t.Error(log)
	}
}
