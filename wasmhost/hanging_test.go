package wasmhost

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

// What /status asks waits neither for a guest nor for who loads one: while a guest spins, and while all that is held across
// calls into guests and across compiling is held.
func TestAGuestThatSpinsKeepsNobodyFromAsking(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(wat(t, `(module (memory (export "memory") 1) (func (export "weir_process") (result i32) (loop $on (br $on)) (i32.const 0)))`),
		func(c *Config) { c.Time = time.Minute }))
	g.Filter(1)
	b := batch(t, "a")
	defer b.Discard()
	begun, done := make(chan struct{}), make(chan struct{})
	f, in := g.Filter(0), g.lanes[0].in
	go func() {
		close(begun)
		f.Apply(t.Context(), b)
		close(done)
	}()
	<-begun
	g.swap.one.Lock()
	g.mu.Lock()
	g.nursery.mu.Lock()
	h.provided.mu.Lock()
	if p := h.Parts(); len(p) != 1 || p[0].Name != "f" {
		t.Errorf("%+v", p)
	}
	if n := testutil.CollectAndCount(h); n < 10 {
		t.Errorf("%d metrics", n)
	}
	h.provided.mu.Unlock()
	g.nursery.mu.Unlock()
	g.mu.Unlock()
	g.swap.one.Unlock()
	select {
	case <-done:
		t.Error("the guest did not spin")
	default:
	}
	for spins := true; spins; {
		in.clock.Cancel()
		select {
		case <-done:
			spins = false
		case <-time.After(time.Millisecond):
		}
	}
}

func TestTheModuleAtWorkIsTold(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings("stock:severity"))
	sum := g.Report().SHA256[:12]
	if n := testutil.CollectAndCount(h, "weir_filter_module_info"); n != 1 {
		t.Fatalf("%d modules", n)
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(h)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.MetricFamily{}
	for _, f := range families {
		all[f.GetName()] = f
	}
	m := all["weir_filter_module_info"].Metric[0]
	got := map[string]string{}
	for _, l := range m.Label {
		got[l.GetName()] = l.GetValue()
	}
	if got["sha256"] != sum || got["filter"] != "f" || got["abi"] != "weir" {
		t.Errorf("%v, want sha256 %s", got, sum)
	}
	if at := all["weir_filter_module_loaded_timestamp_seconds"].Metric[0].Gauge.GetValue(); time.Since(time.UnixMilli(int64(at*1000))) > time.Minute {
		t.Errorf("loaded at %v", at)
	}
}
