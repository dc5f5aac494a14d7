package routertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirlog/weir/router"
)

// Destination holds router.Destination's contract against an implementation.
// open returns an empty destination and how to read the message texts that it
// holds, in any order, after it was closed or while it is open.
func Destination(t *testing.T, open func(t *testing.T) (d router.Destination, texts func() []string)) {
	noRejects := func([]router.Rejected) error { return errors.New("nothing here is to be rejected") }
	want := func(t *testing.T, texts func() []string, want []string) {
		t.Helper()
		got := texts()
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("stored (-want +got):\n%s", d)
		}
	}

	t.Run("WhatIsWrittenIsThere", func(t *testing.T) {
		d, texts := open(t)
		var all []string
		for round := range 3 {
			msgs, lines := Messages(fmt.Sprint("round", round), 137)
			if err := d.Write(t.Context(), msgs, noRejects); err != nil {
				t.Fatal(err)
			}
			all = append(all, lines...)
		}
		want(t, texts, all)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("NothingIsKeptAfterWrite", func(t *testing.T) {
		d, texts := open(t)
		defer d.Close()
		msgs, lines := Messages("kept", 10)
		if err := d.Write(t.Context(), msgs, noRejects); err != nil {
			t.Fatal(err)
		}
		for _, m := range msgs {
			for i := range m.Text {
				m.Text[i] = 'X'
			}
			*m = router.Message{}
		}
		next, more := Messages("next", 1)
		if err := d.Write(t.Context(), next, noRejects); err != nil {
			t.Fatal(err)
		}
		want(t, texts, append(lines, more...))
	})

	t.Run("AWriteThatFailsStoresNothing", func(t *testing.T) {
		d, texts := open(t)
		defer d.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		msgs, lines := Messages("again", 25)
		err := d.Write(ctx, msgs, noRejects)
		if err == nil {
			want(t, texts, lines) // it may be quicker than the end of its context
			return
		}
		if err := d.Write(t.Context(), msgs, noRejects); err != nil {
			t.Fatal(err)
		}
		want(t, texts, lines)
	})

	t.Run("AwkwardBytesDoNotStopIt", func(t *testing.T) {
		d, _ := open(t)
		defer d.Close()
		msgs, _ := Messages("awkward", 6)
		msgs[0].Text = []byte("nul \x00 inside")
		msgs[1].Text = []byte("latin-1 \xe5\xe6\xf8")
		msgs[2].Text = nil
		msgs[3].Timestamp = router.NoTime
		msgs[4].Fields = []router.Field{{Name: []byte("a\x00b\xff"), Value: router.Value{Kind: router.Bytes, Bytes: []byte{0, 255}}},
			{Name: []byte("n"), Value: router.Value{Kind: router.Object, Bytes: []byte(`{"x":[1,null,"\u0000"]}`)}}}
		msgs[5].Hostname, msgs[5].AppName = []byte(`quote'"\%s$1`), []byte("tab\there")
		if err := d.Write(t.Context(), msgs, func(rows []router.Rejected) error {
			return fmt.Errorf("%d rejected: %s", len(rows), rows[0].Reason)
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// Messages returns n messages with all fields set, and their texts.
func Messages(prefix string, n int) (msgs []*router.Message, texts []string) {
	o := &router.Origin{Source: "test", Listener: "tcp://127.0.0.1:0", Peer: "192.0.2.1"}
	for i := range n {
		m := &router.Message{Origin: o, Received: time.Date(2026, 1, 1, 0, 0, 5, i, time.UTC).UnixNano()}
		m.Timestamp = m.Received - int64(time.Second)
		m.Facility, m.Severity = 16, uint8(i%8)
		m.Hostname, m.AppName, m.ProcID, m.MsgID = []byte("web1.example.com"), []byte("shopd"), fmt.Append(nil, i), []byte("ID47")
		m.Structured = []router.Element{{ID: []byte("cart@32473"), Params: []router.Param{{Name: []byte("items"), Value: []byte("3")}}}}
		m.Text = fmt.Appendf(nil, "%s message %d", prefix, i)
		m.Raw = append([]byte("<133>1 "), m.Text...)
		msgs = append(msgs, m)
		texts = append(texts, string(m.Text))
	}
	return msgs, texts
}

// Send delivers texts through an inlet as one batch.
func Send(ctx context.Context, in router.Inlet, o *router.Origin, texts ...string) error {
	size := 1
	for _, s := range texts {
		size += len(s)
	}
	for len(texts) > 0 {
		b, err := in.Take(ctx, size, len(texts))
		if err != nil {
			return err
		}
		for !b.Full() && len(texts) > 0 {
			m := b.Add(o)
			m.Received = time.Now().UnixNano()
			m.Text = b.Copy([]byte(texts[0]))
			m.Raw = m.Text
			texts = texts[1:]
		}
		in.Deliver(b)
	}
	return nil
}
