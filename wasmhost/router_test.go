package wasmhost

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

func TestLedgerBalancesUnderAHostileGuest(t *testing.T) {
	// The batch takes longer than its turn, so that the filter gives the lane back in its middle.
	g, _ := loadFile(t, "hostile/mixed.wat", func(c *Config) { c.Time = time.Millisecond })
	var texts, kept, rejected []string
	for i := range 250 {
		for _, word := range []string{"keep", "drop", "spin", "trap", "reject"} {
			if word == "spin" && i%2 == 0 {
				continue
			}
			text := fmt.Sprintf("%s %03d", word, i)
			texts = append(texts, text)
			switch word {
			case "keep":
				kept = append(kept, text)
			case "drop":
			default:
				rejected = append(rejected, text)
			}
		}
	}
	sent := make(chan struct{})
	flow := routertest.Start(t, routertest.Func(func(ctx context.Context, in router.Inlet) error {
		defer close(sent)
		return routertest.Send(ctx, in, &router.Origin{Source: "src"}, texts...)
	}), g.Filter(0))
	<-sent
	if diff := cmp.Diff(kept, flow.Stop(t)); diff != "" {
		t.Errorf("stored: %s", diff)
	}
	letters := map[string]string{}
	for _, l := range flow.All() {
		letters[l.Text] = l.Code
	}
	if len(letters) != len(rejected) {
		t.Errorf("%d dead letters, want %d", len(letters), len(rejected))
	}
	want := map[string]string{"s": "time", "t": "trap", "r": "rejected"}
	for _, text := range rejected {
		if letters[text] != want[text[:1]] {
			t.Errorf("%s: %q", text, letters[text])
		}
	}
}
