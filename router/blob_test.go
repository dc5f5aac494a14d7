package router

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var sameMessage = cmp.Options{cmpopts.IgnoreUnexported(Message{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })}

// randomMessage has all that a message may have; half of its values lie in Raw.
func randomMessage(r *rand.Rand) *Message {
	raw := make([]byte, r.IntN(300))
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	value := func() []byte {
		switch r.IntN(6) {
		case 0:
			return nil
		case 1:
			return []byte{}
		case 2:
			return bytes.Clone(raw[:r.IntN(len(raw)+1)])
		}
		from := r.IntN(len(raw) + 1)
		return raw[from : from+r.IntN(len(raw)-from+1)]
	}
	addrs := []string{"192.0.2.1", "2001:db8::1", "fe80::1%eth0", "::ffff:192.0.2.1", "::ffff:192.0.2.1%lo", "0.0.0.0", "::"}
	m := &Message{Origin: &Origin{Source: string(value()), Listener: "udp://127.0.0.1:5514", Peer: string(value())}}
	if r.IntN(3) > 0 {
		m.Origin.Addr = netip.MustParseAddr(addrs[r.IntN(len(addrs))])
	}
	m.Received, m.Timestamp, m.Serial = int64(r.Uint64()), int64(r.Uint64()), r.Uint64()>>r.IntN(64)
	if r.IntN(3) == 0 {
		m.Timestamp = NoTime
	}
	m.Facility, m.Severity = uint8(r.IntN(24)), uint8(r.IntN(8))
	m.Hostname, m.AppName, m.ProcID, m.MsgID, m.Text = value(), value(), value(), value(), value()
	if r.IntN(4) > 0 {
		m.Raw = raw
	}
	if r.IntN(3) > 0 {
		m.Structured = []Element{}
		for range r.IntN(4) {
			e := Element{ID: value()}
			for range r.IntN(4) {
				e.Params = append(e.Params, Param{Name: value(), Value: value()})
			}
			m.Structured = append(m.Structured, e)
		}
	}
	if r.IntN(3) > 0 {
		m.Fields = []Field{}
		for range r.IntN(5) {
			m.Fields = append(m.Fields, Field{value(), Value{Kind(r.IntN(int(Object) + 1)), r.Uint64() >> r.IntN(64), value()}})
		}
	}
	return m
}

func TestBlobsGiveBackWhatCame(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		m := randomMessage(r)
		data := AppendBlob([]byte("before"), m)[6:]
		copied := bytes.Clone(data)
		b := loose()
		got, err := b.AddBlob(data, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		clear(data) // the message must not need it
		if diff := cmp.Diff(m, got, sameMessage); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if !bytes.Equal(AppendBlob(nil, got), copied) {
			t.Fatalf("seed %d: encoded again it is different", seed)
		}
	}
}

func TestBlobsDoNotRepeatWhatLiesInRaw(t *testing.T) {
	raw := bytes.Repeat([]byte("0123456789"), 100)
	m := &Message{Origin: &Origin{}, Raw: raw}
	m.Hostname, m.Text = raw[10:20], raw[30:]
	if n := len(AppendBlob(nil, m)); n > len(raw)+60 {
		t.Errorf("%d bytes of raw take %d", len(raw), n)
	}
}

func TestBrokenBlobsAddNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b := loose()
	for range 200 {
		data := AppendBlob(nil, randomMessage(r))
		for n := range data {
			if _, err := b.AddBlob(data[:n], nil); err == nil {
				t.Fatalf("%d of %d bytes are taken for a message", n, len(data))
			}
		}
		if _, err := b.AddBlob(append(data, 0), nil); !errors.Is(err, ErrBrokenBlob) {
			t.Fatal("a byte too many is taken")
		}
		data[0]++
		if _, err := b.AddBlob(data, nil); err == nil || errors.Is(err, ErrBrokenBlob) {
			t.Fatalf("a form of the future: %v", err)
		}
		if b.Len() > 0 {
			t.Fatal("a message was added")
		}
		b = loose()
	}
}

func TestABlobCannotAskForMuchMemory(t *testing.T) {
	data := AppendBlob(nil, &Message{Origin: &Origin{}})
	for _, count := range []string{"\xff\xff\xff\xff\x0f", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"} {
		for _, at := range []int{1, len(data) - 8, len(data) - 2, len(data) - 1} {
			bad := append(bytes.Clone(data[:at]), count...)
			bad = append(bad, make([]byte, 1000)...)
			b := loose()
			before := b.hold.used
			if _, err := b.AddBlob(bad, nil); !errors.Is(err, ErrBrokenBlob) {
				t.Errorf("at %d: %v", at, err)
			}
			if n := b.hold.used - before; n > 64<<10 {
				t.Errorf("at %d: it took %d bytes", at, n)
			}
		}
	}
}

func TestABlobThatDoesNotFitAddsNothing(t *testing.T) {
	m := randomMessage(rand.New(rand.NewPCG(2, 2)))
	m.Text = make([]byte, 5000)
	m.Fields = make([]Field, 300)
	data := AppendBlob(nil, m)
	for room := 4 * rowSize; ; room += 256 {
		b := NewBatch(room, 10)
		got, err := b.AddBlob(data, nil)
		if err == nil {
			if diff := cmp.Diff(m, got, sameMessage); diff != "" {
				t.Fatal(diff)
			}
			return
		}
		if !errors.Is(err, ErrNoRoom) || b.Len() > 0 {
			t.Fatalf("room %d: %v, %d messages", room, err, b.Len())
		}
	}
}

func TestOriginsAreShared(t *testing.T) {
	b, origins := loose(), new(Origins)
	add := func(peer string) *Origin {
		m, err := b.AddBlob(AppendBlob(nil, &Message{Origin: &Origin{Source: "s", Peer: peer}}), origins)
		if err != nil {
			t.Fatal(err)
		}
		return m.Origin
	}
	one, two := add("192.0.2.1"), add("192.0.2.2")
	if one == two || add("192.0.2.1") != one || add("192.0.2.1") != one || add("192.0.2.2") != two {
		t.Error("equal origins are not one, or different ones are")
	}
}

func TestBlobsDoNotAllocate(t *testing.T) {
	m := sample()
	m.Raw = []byte("<165>1 2026-01-01T00:00:04.003Z web1 shopd 8710 ID47 - checkout done")
	m.Text = m.Raw[len(m.Raw)-13:]
	data := AppendBlob(nil, m)
	buf := make([]byte, 0, 2*len(data))
	if n := testing.AllocsPerRun(1000, func() { buf = AppendBlob(buf[:0], m) }); n > 0 {
		t.Errorf("encoding: %v allocations", n)
	}
	origins := new(Origins)
	const messages = 500
	n := testing.AllocsPerRun(100, func() {
		b := NewBatch(1<<20, messages)
		for range messages {
			if _, err := b.AddBlob(data, origins); err != nil {
				t.Fatal(err)
			}
		}
		b.Discard()
	})
	if n > messages/4 { // of pools, which the race detector empties at times
		t.Errorf("decoding %d: %v allocations", messages, n)
	}
}

func FuzzBlob(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 20 {
		f.Add(AppendBlob(nil, randomMessage(r)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := loose()
		m, err := b.AddBlob(data, nil)
		if err != nil {
			if m != nil || b.Len() > 0 {
				t.Fatal("an error and a message")
			}
			return
		}
		again, err := b.AddBlob(AppendBlob(nil, m), nil)
		if err != nil {
			t.Fatalf("encoded again it is broken: %v", err)
		}
		if diff := cmp.Diff(m, again, sameMessage); diff != "" {
			t.Fatal(diff)
		}
	})
}

func BenchmarkBlob(b *testing.B) {
	m := sample()
	m.Raw = []byte("<165>1 2026-01-01T00:00:04.003Z web1 shopd 8710 ID47 - checkout done")
	m.Text = m.Raw[len(m.Raw)-13:]
	data := AppendBlob(nil, m)
	b.Run("append", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			buf = AppendBlob(buf[:0], m)
		}
	})
	b.Run("add", func(b *testing.B) {
		origins := new(Origins)
		for b.Loop() {
			batch := NewBatch(1<<20, 500)
			for range 500 {
				batch.AddBlob(data, origins)
			}
			batch.Discard()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/msg")
	})
}
