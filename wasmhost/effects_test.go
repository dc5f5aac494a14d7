package wasmhost

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/routertest"
)

// effects imports what the guests here use; text is what stands in memory from 0 on, and its NAME are $NAME and $NAME_n.
func effects(t testing.TB, data map[string]string, body string) string {
	text, globals, at := "", "", 16
	for _, name := range slices.Sorted(maps.Keys(data)) {
		s := data[name]
		text += fmt.Sprintf("(data (i32.const %d) %q)\n", at, s)
		globals += fmt.Sprintf("(global $%s i32 (i32.const %d))(global $%s_n i32 (i32.const %d))\n", name, at, name, len(s))
		at += len(s) + 8
	}
	body = strings.NewReplacer("{", "(global.get $", "}", ")").Replace(body)
	return wat(t, `(module
		(import "weir_v1" "emit" (func $emit (param i32 i32) (result i32)))
		(import "weir_v1" "route" (func $route (param i32 i32) (result i32)))
		(import "weir_v1" "field_set" (func $set (param i32 i32 i32 i32) (result i32)))
		(import "weir_v1" "kv_set" (func $kv_set (param i32 i32 i32 i32 i64) (result i32)))
		(import "weir_v1" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
		(import "weir_v1" "kv_del" (func $kv_del (param i32 i32) (result i32)))
		(import "weir_v1" "kv_add" (func $kv_add (param i32 i32 i64 i32) (result i32)))
		(import "weir_v1" "metric_add" (func $metric_add (param i32 i32 f64)))
		(import "weir_v1" "metric_set" (func $metric_set (param i32 i32 f64)))
		(memory (export "memory") 1)
		`+text+globals+body+`
		(func $must (param i32 i32) (if (i32.ne (local.get 0) (local.get 1)) (then unreachable))))`)
}

func TestEmittedMessagesInheritWhatStandsAtTheCall(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(effects(t, map[string]string{"a": `{"message":"a","x":1,"severity":9}`, "b": `{}`, "bad": `{"message":`, "k": "message", "v": "edited"}, `
		(func (export "weir_process") (result i32)
			(call $must (call $emit {a} {a_n}) (i32.const 0))
			(call $must (call $emit {bad} {bad_n}) (i32.const -5))
			(call $must (call $set {k} {k_n} {v} {v_n}) (i32.const 0))
			(call $must (call $emit {b} {b_n}) (i32.const 0))
			(i32.const 1))`)))
	b := batch(t, "original")
	defer b.Discard()
	if held := g.Filter(0).Apply(t.Context(), b); held != nil {
		t.Fatal(held)
	}
	var got []string
	for _, m := range b.Outcome(b.Messages()[0]).Emitted {
		got = append(got, fmt.Sprintf("%s %s %s", m.Text, m.AppName, router.AppendRecord(nil, m)))
		if m.Severity != 5 {
			t.Errorf("severity %d", m.Severity)
		}
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], "a app") || !strings.Contains(got[0], "severity_") || !strings.HasPrefix(got[1], "edited app") {
		t.Errorf("emitted %q", got)
	}
}

func TestWhatAFailedCallEmittedAndRoutedIsUndone(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(effects(t, map[string]string{"a": `{"message":"a"}`, "d": "archive"}, `
		(func (export "weir_process") (result i32)
			(call $must (call $route {d} {d_n}) (i32.const 0))
			(call $must (call $emit {a} {a_n}) (i32.const 0))
			(i32.const -1))`), func(c *Config) { c.OnError = Pass }))
	b := batch(t, "m")
	defer b.Discard()
	g.Filter(0).Apply(t.Context(), b)
	if o := b.Outcome(b.Messages()[0]); o.Verdict != "keep" || o.Emitted != nil || o.To != nil {
		t.Errorf("%+v", o)
	}
}

func TestARouteSendsToTheNamedDestinationsOnly(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(effects(t, map[string]string{"a": "archive", "x": "nowhere"}, `
		(func (export "weir_process") (result i32)
			(call $must (call $route {x} {x_n}) (i32.const -1))
			(call $must (call $route {a} {a_n}) (i32.const 0))
			(i32.const 0))`)))
	b := router.NewBatch(1<<20, 1, "archive", "central")
	defer b.Discard()
	b.Add(&router.Origin{}).Text = []byte("m")
	g.Filter(0).Apply(t.Context(), b)
	if o := b.Outcome(b.Messages()[0]); o.Verdict != "keep" || fmt.Sprint(o.To) != "[archive]" {
		t.Errorf("%+v", o)
	}
}

func TestKeysOutliveTheInstance(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(effects(t, map[string]string{"n": "count", "t": "text", "v": "abc", "m": "seen", "bad": "no-metric"}, `
		(func (export "weir_init") (result i32)
			(call $must (call $kv_set {t} {t_n} {v} {v_n} (i64.const 0)) (i32.const 0))
			(i32.const 0))
		(func (export "weir_process") (result i32)
			(call $must (call $kv_get {t} {t_n} (i32.const 1024) (i32.const 2)) (i32.const 3))
			(call $must (call $kv_add {t} {t_n} (i64.const 1) (i32.const 1024)) (i32.const -2))
			(call $must (call $kv_add {n} {n_n} (i64.const 2) (i32.const 1024)) (i32.const 0))
			(call $metric_set {m} {m_n} (f64.convert_i64_s (i64.load (i32.const 1024))))
			(call $metric_add {bad} {bad_n} (f64.const 1))
			(call $must (call $kv_del {v} {v_n}) (i32.const -1))
			(unreachable))`)))
	apply(t, g.Filter(0), "one", "two", "three") // each costs the instance
	reg := prometheus.NewRegistry()
	reg.MustRegister(h.UserMetrics())
	all, err := reg.Gather()
	if err != nil || len(all) != 1 || all[0].GetName() != "weir_filter_user_seen" || all[0].Metric[0].GetUntyped().GetValue() != 6 {
		t.Errorf("%v %v", all, err)
	}
}

func TestTicksAndTheEndEmitBehindTheFilter(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(effects(t, map[string]string{"a": `{"message":"tick"}`, "z": `{"message":"end","severity":3}`}, `
		(func (export "weir_process") (result i32) (i32.const 0))
		(func (export "weir_tick") (drop (call $emit {a} {a_n})))
		(func (export "weir_close") (drop (call $emit {z} {z_n})))`)))
	f := routertest.Start(t, routertest.Func(func(ctx context.Context, _ router.Inlet) error { <-ctx.Done(); return nil }), g.Filter(0))
	if d := cmp.Diff([]string{"tick", "end"}, f.Stop(t)); d != "" { // no second passes: one tick at the end
		t.Error(d)
	}
}

func TestKeptValuesTakeWhatIsCounted(t *testing.T) {
	s := &shelf{values: map[string]*kept{}}
	for _, size := range []int{1 << 20, 1 << 18, 1 << 16, 1 << 20, 1000, 900, 10} {
		for i := range 8 {
			if !s.set([]byte{byte(i)}, make([]byte, size), 0) {
				t.Fatal("full")
			}
		}
		took := 0
		for _, v := range s.values {
			took += cap(v.value)
		}
		if most := s.bytes + s.bytes/2 + 8*64; took > most {
			t.Errorf("values of %d bytes take %d bytes, %d are counted", size, took, s.bytes)
		}
	}
}
