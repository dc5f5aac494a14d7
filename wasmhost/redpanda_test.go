package wasmhost

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

func TestRedpandaTransformEditsAndDrops(t *testing.T) {
	g, log := loadProgram(t, "redpanda.c")
	if a := g.Report().ABI; a != "redpanda" {
		t.Errorf("ABI %q", a)
	}
	want := []string{"keep card ####", "drop drop it", "keep none"}
	if diff := cmp.Diff(want[:2], apply(t, g.Filter(0), "card 4711", "drop it")); diff != "" {
		t.Error(diff)
	}
	b := batch(t, "a 1")
	defer b.Discard()
	m := b.Messages()[0]
	m.Timestamp, m.Hostname = 1_700_000_000_123_000_000, []byte("h")
	m.Fields = []router.Field{{Name: []byte("x"), Value: router.IntValue(1)}}
	before := *m
	g.Filter(0).Apply(t.Context(), b)
	before.Text = []byte("a #")
	if diff := cmp.Diff(string(router.AppendRecord(nil, &before)), string(router.AppendRecord(nil, m))); diff != "" {
		t.Error(diff)
	}
	if log.String() != "" {
		t.Error(log)
	}
}

func TestRedpandaRecordsBeyondTheFirstAreCreatedWhole(t *testing.T) {
	g, _ := loadProgram(t, "redpanda.c")
	b := batch(t, "split")
	defer b.Discard()
	m := b.Messages()[0]
	m.Fields = []router.Field{{Name: []byte("secret"), Value: router.IntValue(1)}}
	g.Filter(0).Apply(t.Context(), b)
	var got []string
	for _, m := range append([]*router.Message{m}, b.Outcome(m).Emitted...) {
		if m.Origin.Peer != "192.0.2.7" || m.Received == 0 || m.AppName != nil {
			t.Errorf("%s", router.AppendRecord(nil, m))
		}
		got = append(got, fmt.Sprintf("%s %s", m.Text, router.AppendFields(nil, m.Fields)))
	}
	if diff := cmp.Diff([]string{`one {"a":1}`, `two {"b":2}`, `three {"severity_":"odd"}`}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRedpandaTopicsAreDestinations(t *testing.T) {
	g, _ := loadProgram(t, "redpanda.c")
	b := router.NewBatch(1<<20, 2, "archive", "central")
	defer b.Discard()
	for _, text := range []string{"to archive with another", "to nowhere"} {
		b.Add(&router.Origin{}).Text = []byte(text)
	}
	g.Filter(0).Apply(t.Context(), b)
	msgs := b.Messages()
	first, second := b.Outcome(msgs[0]), b.Outcome(msgs[1])
	if fmt.Sprint(first.To) != "[archive]" || len(first.Emitted) != 1 || b.Outcome(first.Emitted[0]).To != nil {
		t.Errorf("%+v", first)
	}
	if second.Code != "failed" || second.To != nil || !strings.Contains(second.Reason, `"nowhere"`) {
		t.Errorf("%+v", second)
	}
}

func TestRedpandaGuestsFaultsAreOfTheMessage(t *testing.T) {
	g, _ := loadProgram(t, "redpanda.c", func(c *Config) { c.Time = 5 * time.Millisecond })
	check := func(text, verdict, reason string) {
		t.Helper()
		b := batch(t, "before 1", text, "after 2")
		defer b.Discard()
		if held := g.Filter(0).Apply(t.Context(), b); held != nil {
			t.Fatal(held.Cause)
		}
		want := []string{"keep before #", verdict + " " + text, "keep after #"}
		if diff := cmp.Diff(want, outcomes(b)); diff != "" {
			t.Error(diff)
		}
		if r := b.Outcome(b.Messages()[1]).Reason; !strings.Contains(r, reason) {
			t.Errorf("%s: %q", text, r)
		}
	}
	check("trap", "reject(trap)", "unreachable")
	check("exit", "reject(exit)", "proc_exit(0)")
	check("return", "reject(exit)", "proc_exit(0)")
	check("spin", "reject(time)", "5ms")
	check("none", "reject(failed)", "without a value")
	check("array", "reject(failed)", "not one JSON object")
	check("short", "reject(failed)", "varints")
	if n := g.counts.instances.Load(); n != 1 {
		t.Errorf("%d instances", n)
	}
}

func TestRedpandaRecordsThatAreNotReadFail(t *testing.T) {
	g, _ := loadProgram(t, "redpanda.c")
	want := []string{"drop deaf", "drop a", "drop skip ahead", "reject(failed) b", "drop c"}
	if diff := cmp.Diff(want, apply(t, g.Filter(0), "deaf", "a", "skip ahead", "b", "c")); diff != "" {
		t.Error(diff)
	}
}

func TestRedpandaGuestIsToldOfTheEnd(t *testing.T) {
	g, log := loadProgram(t, "redpanda.c")
	apply(t, g.Filter(0), "a")
	g.Close(t.Context())
	contains(t, log.String(), "the end")
	if s := log.String(); strings.Contains(s, "should be more") || strings.Contains(s, "ERROR") {
		t.Error(s)
	}
}

func TestRedpandaGuestInGo(t *testing.T) {
	g, log := loadProgram(t, "redpandago", func(c *Config) { c.Time = 10 * time.Second })
	seen := func(texts ...string) (all []string) {
		b := batch(t, texts...)
		defer b.Discard()
		if held := g.Filter(0).Apply(t.Context(), b); held != nil {
			t.Fatal(held.Cause)
		}
		for i, m := range b.Messages() {
			f := m.Field([]byte("seen"))
			if f == nil {
				all = append(all, outcomes(b)[i])
				continue
			}
			all = append(all, string(router.AppendText(nil, f.Value)))
		}
		return all
	}
	got := append(seen("a", "b"), seen("panic")...)
	if diff := cmp.Diff([]string{"1", "2", "reject(exit) panic"}, got); diff != "" {
		t.Error(diff)
	}
	contains(t, log.String(), "on purpose", "proc_exit(2)")
	if diff := cmp.Diff([]string{"1"}, seen("c")); diff != "" {
		t.Error(diff)
	}
	g.Close(t.Context())
	if strings.Contains(log.String(), "no more batches") {
		t.Error(log)
	}
}

func TestRedpandaModulesThatCannotRunAreRefusedByName(t *testing.T) {
	const imports = `(module (import "redpanda_transform" "read_batch_header" (func (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))`
	contains(t, refused(t, wat(t, imports+`(memory (export "memory") 1) (func (export "_start")))`)), "_start", "read_batch_header again and again")
	contains(t, refused(t, wat(t, imports+`(memory (export "memory") 1))`)), "exports no _start", "-buildmode=c-shared")
	contains(t, refused(t, wat(t, imports+`(func (export "_start")))`)), "exports no memory")
	contains(t, refused(t, wat(t, `(module (import "redpanda_transform" "write_record" (func (param i32 i32) (result i32)))
		(import "redpanda_schema_registry" "check_abi_version_0" (func)) (memory (export "memory") 1) (func (export "_start")))`)), "no schema registry")
	contains(t, refused(t, wat(t, `(module (import "redpanda_transform" "write_recrod" (func (param i32 i32) (result i32)))
		(memory (export "memory") 1) (func (export "_start")))`)), "redpanda_transform.write_recrod")
}

func TestRedpandaMessagesDoNotAllocate(t *testing.T) {
	g, _ := loadProgram(t, "redpanda.c")
	l := g.lanes[0]
	b := batch(t, "drop")
	defer b.Discard()
	m := b.Messages()[0]
	if n := testing.AllocsPerRun(200, func() { l.message(b, m) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzRecordValue: what is taken for a record body is one, and made again from its parts it is the same.
func FuzzRecordValue(f *testing.F) {
	f.Add([]byte("\x01\x04{}\x00"))
	f.Add([]byte("\x06key\x04{}\x02\x02h\x01"))
	f.Add([]byte("\x01\x01\x00"))
	f.Add([]byte("\x01\x04{}\xfe\xff\xff\xff\x0f"))
	f.Add([]byte("\x02\x02"))
	f.Fuzz(func(t *testing.T, body []byte) {
		value, null, ok := recordValue(body)
		if topic, named, fine := outputTopic(body); fine && named != (len(body) > 0) || len(topic) > len(body) {
			t.Fatalf("topic %q, %v", topic, named)
		}
		if !ok {
			return
		}
		if null && value != nil || !bytes.Contains(body, value) {
			t.Fatalf("%q has the value %q, null %v", body, value, null)
		}
		size := int64(len(value))
		if null {
			size = -1
		}
		again := append(binary.AppendVarint([]byte{nullLength}, size), value...)
		v, n, ok := recordValue(append(again, 0))
		if !ok || n != null || !bytes.Equal(v, value) {
			t.Fatalf("%q, null %v, became %q, null %v", value, null, v, n)
		}
		if _, _, ok := recordValue(append(again, 0, 0)); ok {
			t.Fatal("a byte too many is taken")
		}
		if _, _, ok := recordValue(again); ok {
			t.Fatal("a byte too few is taken")
		}
	})
}

func TestRecordBodiesAreReadBack(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 8191, 8192, 1 << 20} {
		m := &router.Message{Origin: &router.Origin{}}
		m.Text = bytes.Repeat([]byte("x"), n)
		_, body := appendRecordBody([]byte("before"), m)
		value, null, ok := recordValue(body)
		if !ok || null || !bytes.Equal(value, router.AppendRecord(nil, m)) {
			t.Errorf("%d bytes: %v %v %.80q", n, null, ok, body)
		}
	}
}
