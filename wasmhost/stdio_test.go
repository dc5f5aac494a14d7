package wasmhost

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

func stream(c *Config) { c.Mode = ModeStream }

// story is what became of each message of a batch, and what was created behind it.
func story(b *router.Batch) (all []string) {
	for i, o := range outcomes(b) {
		for _, e := range b.Outcome(b.Messages()[i]).Emitted {
			o += " + " + string(e.Text)
		}
		all = append(all, o)
	}
	return all
}

func TestStdioProgramEditsDropsAndCreates(t *testing.T) {
	check := func(mode func(*Config)) {
		t.Helper()
		g, log := loadProgram(t, "stdio.c", mode)
		if a := g.Report().ABI; a != "stdio" {
			t.Errorf("ABI %q", a)
		}
		b := batch(t, "card 4711", "drop it", "same 1", "twice", "split", "add", "odd", "empty", "stderr", "b 2")
		defer b.Discard()
		if held := g.Filter(0).Apply(t.Context(), b); held != nil {
			t.Fatal(held.Cause)
		}
		want := []string{"keep card ####", "drop drop it", "keep same 1", "keep twice + twice", "drop split + one + two",
			"keep add + added", "keep odd done", "keep ", "drop stderr", "keep b #"}
		if mode(&Config{}); g.program.Load().settings.Mode == ModeBatch { // what stands before or behind a message is what was named before it
			want[3], want[4] = "keep twice + twice + one + two", "drop split"
		}
		if diff := cmp.Diff(want, story(b)); diff != "" {
			t.Error(diff)
		}
		contains(t, log.String(), "level=WARN msg=told")
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Error(log)
		}
		if s := string(router.AppendFields(nil, b.Messages()[6].Fields)); s != `{"b":1,"severity_":"odd"}` {
			t.Error(s)
		}
		if n := g.faulty(); n != 0 {
			t.Errorf("%d faults", n)
		}
	}
	check(func(*Config) {})
	check(stream)
}

func TestStdioRecordsComeBackWhole(t *testing.T) {
	for _, mode := range []func(*Config){func(*Config) {}, stream} {
		g, _ := loadProgram(t, "stdio.c", mode)
		b := batch(t, "a 1")
		m := b.Messages()[0]
		m.Timestamp, m.Hostname, m.Text = 1_700_000_000_123_000_000, []byte("h"), []byte("a 1 \xff \n\u2028")
		m.Structured = []router.Element{{ID: []byte("x@1"), Params: []router.Param{{Name: []byte("p"), Value: []byte("\"]")}}}}
		m.Fields = []router.Field{{Name: []byte("weir_id"), Value: router.IntValue(2)}, {Name: []byte("weir_id_"), Value: router.IntValue(3)}}
		before := *m
		if held := g.Filter(0).Apply(t.Context(), b); held != nil {
			t.Fatal(held.Cause)
		}
		before.Text = []byte("a # \ufffd \n\u2028")
		before.Fields = []router.Field{{Name: []byte("weir_id__"), Value: router.IntValue(2)}, before.Fields[1]}
		if diff := cmp.Diff(string(router.AppendRecord(nil, &before)), string(router.AppendRecord(nil, m))); diff != "" {
			t.Error(diff)
		}
		b.Discard()
	}
}

// TestStdioSendersCannotSpeakForOthers: a field with the name of the id is none.
func TestStdioSendersCannotSpeakForOthers(t *testing.T) {
	g, _ := loadProgram(t, "stdio.c")
	b := batch(t, "mine 1", "yours 2")
	defer b.Discard()
	b.Messages()[1].Fields = []router.Field{{Name: []byte("weir_id"), Value: router.IntValue(1)}}
	g.Filter(0).Apply(t.Context(), b)
	if diff := cmp.Diff([]string{"keep mine #", "keep yours #"}, story(b)); diff != "" {
		t.Error(diff)
	}
}

func TestStdioFaultIsOfTheWholeBatch(t *testing.T) {
	g, _ := loadProgram(t, "stdio.c", func(c *Config) { c.Time = time.Millisecond })
	check := func(text, cause, reason string) {
		t.Helper()
		b := batch(t, "before 1", text, "add 2")
		defer b.Discard()
		if held := g.Filter(0).Apply(t.Context(), b); held != nil {
			t.Fatal(held.Cause)
		}
		want := []string{"reject(" + cause + ") before 1", "reject(" + cause + ") " + text, "reject(" + cause + ") add 2"}
		if diff := cmp.Diff(want, story(b)); diff != "" {
			t.Error(diff)
		}
		if r := b.Outcome(b.Messages()[0]).Reason; !strings.Contains(r, reason) {
			t.Errorf("%s: %q", text, r)
		}
		if got := apply(t, g.Filter(0), "next 1"); got[0] != "keep next #" {
			t.Errorf("afterwards: %s", got)
		}
	}
	check("trap", "trap", "unreachable")
	check("exit", "exit", "proc_exit(3)")
	check("spin", "time", "1s")
	check("flood", "trap", "bytes of output")
	check("chatter", "failed", `"hello"`)
	check("array", "failed", `"[1]"`)
	check("stranger", "failed", "1002")
	check("word", "failed", "no whole number")
}

func TestStdioProgramThatDoesNotReadOnFails(t *testing.T) {
	g, _ := loadProgram(t, "stdio.c")
	texts := []string{"leave"}
	for range 200 { // more than it reads ahead
		texts = append(texts, "a message that is long enough to fill buffers when there are many of its kind")
	}
	for i, got := range apply(t, g.Filter(0), texts...) {
		if got != "reject(failed) "+texts[i] {
			t.Fatal(got)
		}
	}
}

func TestStdioBatchesAreNoFaults(t *testing.T) {
	g, _ := loadProgram(t, "stdio.c")
	g.program.Load().slow = true // then the successors of faulty instances are limited to ten a second
	for range 30 {
		if got := apply(t, g.Filter(0), "a 1", "last"); got[0] != "keep a #" || got[1] != "keep the last" {
			t.Fatal(got)
		}
	}
	if calls, n := g.counts.calls.Load(), g.counts.instances.Load(); g.faulty() != 0 || calls != 60 || n != 0 {
		t.Errorf("%d faults, %d calls, %d instances left", g.faulty(), calls, n)
	}
}

func TestStdioTrialClosesTheBreaker(t *testing.T) {
	g, _ := loadProgram(t, "stdio.c", func(c *Config) { c.OnError = Pass })
	g.trip("for the test")
	g.breaker.next = time.Time{}
	if got := apply(t, g.Filter(0), "a 1", "b 2"); got[0] != "keep a #" || got[1] != "keep b #" || g.breaker.isOpen() {
		t.Errorf("%s, open %v", got, g.breaker.isOpen())
	}
}

func TestStdioStreamFaultIsOfTheMessage(t *testing.T) {
	g, _ := loadProgram(t, "stdio.c", stream, func(c *Config) { c.Time = 5 * time.Millisecond })
	check := func(text, cause, reason string) {
		t.Helper()
		b := batch(t, "before 1", text, "after 2")
		defer b.Discard()
		if held := g.Filter(0).Apply(t.Context(), b); held != nil {
			t.Fatal(held.Cause)
		}
		want := []string{"keep before #", "reject(" + cause + ") " + text, "keep after #"}
		if diff := cmp.Diff(want, story(b)); diff != "" {
			t.Error(diff)
		}
		if r := b.Outcome(b.Messages()[1]).Reason; !strings.Contains(r, reason) {
			t.Errorf("%s: %q", text, r)
		}
	}
	check("trap", "trap", "unreachable")
	check("exit", "exit", "proc_exit(3)")
	check("leave", "exit", "proc_exit(0)")
	check("spin", "time", "5ms")
	check("chatter", "failed", `"hello"`)
	check("stranger", "failed", "mode: batch")
	check("late", "failed", "mode: batch")
	check("unfinished", "failed", "unfinished line")
}

func TestStdioStreamsOutputIsATerminalsToC(t *testing.T) {
	g, _ := loadProgram(t, "stdio.c", stream)
	for _, got := range apply(t, g.Filter(0), "unflushed", "unflushed", "unflushed") {
		if got != "keep unflushed" {
			t.Error(got)
		}
	}
}

func TestStdioProgramThatKeepsItsOutputBackIsFoundOut(t *testing.T) {
	g, log := loadProgram(t, "stdio.c", stream)
	got := apply(t, g.Filter(0), "hold 1", "a 2", "b 3")
	if diff := cmp.Diff([]string{"drop hold 1", "reject(failed) a 2", "keep b #"}, got); diff != "" {
		t.Error(diff)
	}
	contains(t, log.String(), "keeps its output back")
}

func TestStdioStreamsLastWordsAreNewMessages(t *testing.T) {
	g, log := loadProgram(t, "stdio.c", stream)
	apply(t, g.Filter(0), "a", "sum")
	b := router.NewBatch(1<<20, 10)
	defer b.Discard()
	g.lanes[0].Finish(t.Context(), b)
	if b.Len() != 1 || string(b.Messages()[0].Text) != "sum" || string(b.Messages()[0].AppName) != "f" {
		t.Errorf("%d messages", b.Len())
	}
	if log.String() != "" {
		t.Error(log)
	}
}

func TestStdioLinesOfAnyLengthPassThrough(t *testing.T) {
	for _, mode := range []func(*Config){func(*Config) {}, stream} {
		g, _ := loadProgram(t, "stdio.c", mode)
		for _, n := range []int{0, 1, 900, 1023, 1024, 1025, 4096, 100_000} {
			for extra := range 3 {
				text := strings.Repeat("x", n+extra)
				if got := apply(t, g.Filter(0), text+"1", "same"+text); got[0] != "keep "+text+"#" || got[1] != "keep same"+text {
					t.Errorf("%d: %.100q", n+extra, got)
				}
			}
		}
	}
}

// TestStdioReadsAreNotMixedUp: a call that reads into several buffers gets what there is, and does not wait in the middle.
func TestStdioReadsAreNotMixedUp(t *testing.T) {
	h, _ := open(t)
	for first := 1; first < 400; first++ { // bytes of the first buffer: less, as many and more than a line has
		g, err := h.Load(t.Context(), "f", settings(wat(t, fmt.Sprintf(`(module
			(import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
			(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
			(memory (export "memory") 2)
			(func (export "_start") (local $n i32)
				(loop $again
					(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const %d))
					(i32.store (i32.const 8) (i32.const %d)) (i32.store (i32.const 12) (i32.const 4096))
					(drop (call $read (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 16)))
					(local.set $n (i32.load (i32.const 16)))
					(i32.store (i32.const 4) (local.get $n))
					(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
					(br_if $again (local.get $n)))))`, first, 1024+first)), stream))
		if err != nil {
			t.Fatal(err)
		}
		if got := apply(t, g.Filter(0), "a", "b"); got[0] != "keep a" || got[1] != "keep b" {
			t.Fatalf("%d: %s", first, got)
		}
		g.Close(t.Context())
		first += first / 8
	}
}

func TestStdioProgramsThatCannotRunAreRefusedByName(t *testing.T) {
	check := func(body string, parts ...string) {
		t.Helper()
		h, _ := open(t)
		_, err := h.Load(t.Context(), "f", settings(wat(t, `(module (memory (export "memory") 1) `+body+`)`), stream, func(c *Config) { c.ABI = "stdio" }))
		if err == nil {
			t.Fatal("loaded")
		}
		contains(t, err.Error(), parts...)
	}
	check(`(func (export "_start"))`, "_start", "before it read")
	check(`(func (export "_start") unreachable)`, "_start", "unreachable")
	check(`(func (export "_start") (param i32))`, "_start", "type")
	check(``, "exports no _start")
}

func TestStdioProgramInGo(t *testing.T) {
	for _, mode := range []func(*Config){func(*Config) {}, stream} {
		g, _ := loadProgram(t, "stdiogo", mode, func(c *Config) { c.Time = 10 * time.Second })
		b := batch(t, "a", "drop", "b")
		if held := g.Filter(0).Apply(t.Context(), b); held != nil {
			t.Fatal(held.Cause)
		}
		if diff := cmp.Diff([]string{"keep A", "drop drop", "keep B"}, story(b)); diff != "" {
			t.Error(diff)
		}
		b.Discard()
	}
}

// A program that creates hundreds of thousands of messages in one batch has no more memory for them than any other filter.
func TestWhatAProgramCreatesIsTheBatchs(t *testing.T) {
	h, _ := open(t)
	g := load(t, h, settings(wat(t, `(module (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 2) (data (i32.const 0) "\10\00\00\00\60\ea\00\00") (data (i32.const 16) "{}\0a")
		(func (export "_start") (local $i i32)
			(loop $on (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8))) (br_if $on (i32.load (i32.const 8))))
			(i32.store (i32.const 8) (i32.const 0)) (i32.store (i32.const 16) (i32.const 0x000a7d7b))
			(memory.copy (i32.const 70016) (i32.const 16) (i32.const 3))
			(loop $fill (memory.copy (i32.add (i32.const 70019) (local.get $i)) (i32.add (i32.const 70016) (local.get $i)) (i32.const 3))
				(br_if $fill (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 3))) (i32.const 59997))))
			(i32.store (i32.const 0) (i32.const 70016)) (local.set $i (i32.const 0))
			(loop $on (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
				(br_if $on (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 36))))))`)))
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = strings.Repeat("x", 100)
	}
	b := batch(t, texts...)
	defer b.Discard()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if held := g.Filter(0).Apply(t.Context(), b); held != nil {
		t.Fatal(held.Cause)
	}
	runtime.ReadMemStats(&after)
	if o := outcomes(b)[0]; !strings.HasPrefix(o, "reject(failed)") || !strings.Contains(b.Outcome(b.Messages()[0]).Reason, "no memory left") {
		t.Errorf("%s: %s", o, b.Outcome(b.Messages()[0]).Reason)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d MiB were allocated", took>>20)
	}
}

// What a program has written at its end is read by the host, and counts as its work: weir may give up meanwhile.
func TestAProgramsLastLinesMayBeInterrupted(t *testing.T) {
	var in *instance
	h, err := Open(t.Context(), Options{Log: slog.New(slog.NewTextHandler(writerFunc(func() { in.clock.Cancel() }), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background()) })
	g := load(t, h, settings(wat(t, `(module (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 20) (data (i32.const 0) "\10\00\00\00\10\00\00\00") (data (i32.const 32) "told\0a")
		(func (export "_start") (local $at i32)
			(drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
			(local.set $at (i32.const 65536))
			(loop $line ;; 900 of 1000 bytes: {}, blanks and a line end
				(memory.fill (local.get $at) (i32.const 0x20) (i32.const 999))
				(i32.store16 (local.get $at) (i32.const 0x7d7b))
				(i32.store8 (i32.add (local.get $at) (i32.const 999)) (i32.const 10))
				(br_if $line (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1000))) (i32.const 965536))))
			(i32.store (i32.const 0) (i32.const 65536)) (i32.store (i32.const 4) (i32.const 900000))
			(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
			(i32.store (i32.const 0) (i32.const 32)) (i32.store (i32.const 4) (i32.const 5))
			(drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))))`), stream))
	in = g.lanes[0].in
	b := router.NewBatch(64<<20, 0)
	defer b.Discard()
	if err := in.between(b, in.talk.end); err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("it ended with %v", err)
	}
	if o := outcomes(b); len(o) > 0 && !strings.HasPrefix(o[0], "drop") {
		t.Errorf("%d messages are left of it", len(o))
	}
}

// A writerFunc is called for each line of a log.
type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) { f(); return len(p), nil }

// FuzzAnswers: whatever a program writes, each message stays as it was, is dropped, or is what one line with its id says;
// what makes a fault changes nothing.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("{\"weir_id\":5,\"message\":\"a\"}\n{\"message\":\"new\"}"))
	f.Add([]byte("\n{ \"message\":\"b\", \"weir_id\":6.0}\r\n{\"weir_id\":6}\n{\"weir_id\":null}\n"))
	f.Add([]byte("{\"weir_id\":7,\"weir_id\":5}\n[1]\n"))
	f.Add([]byte("{\"weir_id\":5,\"received_at\":\"2023-11-14T22:13:20Z\",\"facility\":1,\"severity\":5,\"app_name\":\"app\",\"message\":\"one\"}"))
	f.Add([]byte("{\"weir_id\":999999999999999999,}\n{\"weir_id\":-1}\n{\"weir_id\":\"5\"}"))
	g, _ := loadProgram(f, "stdio.c", stream)
	in := g.lanes[0].in
	f.Fuzz(func(t *testing.T, output []byte) {
		b := batch(t, "one", "two", "three")
		defer b.Discard()
		in.begin(b, nil)
		msgs := b.Messages()
		var before []string
		for _, m := range msgs {
			before = append(before, string(router.AppendRecord(nil, m)))
		}
		copies := []router.Message{*msgs[0], *msgs[1], *msgs[2]}
		a := takeAnswers()
		defer a.give()
		a.ask(in, msgs, 5)
		written := string(output)
		err := a.take(in, b, output)
		if string(output) != written {
			t.Fatal("the output was changed")
		}
		created, lines := 0, strings.Count(written, "\n")+1
		for i, m := range msgs {
			after, o := string(router.AppendRecord(nil, m)), b.Outcome(m)
			created += len(o.Emitted)
			if c := string(router.AppendRecord(nil, &copies[i])); c != before[i] {
				t.Errorf("a copy was changed: %s", c)
			}
			if err != nil && (after != before[i] || o.Verdict != "keep" || o.Emitted != nil) {
				t.Errorf("%v, and yet %+v: %s", err, o, after)
			}
			if o.Verdict == "drop" && after != before[i] {
				t.Errorf("dropped, and yet %s", after)
			}
			for _, r := range append(o.Emitted, m) {
				if r.Origin != m.Origin || r.Received != m.Received || r.Field([]byte(recordID)) != nil {
					t.Errorf("%+v", r)
				}
			}
			if o.Verdict == "keep" {
				created++
			}
		}
		if err == nil && created > lines {
			t.Errorf("%d messages of %d lines", created, lines)
		}
	})
}
