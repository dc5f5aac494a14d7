package router_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

// editor is a filter that gives each message a new text of the same length and
// some fields, and counts those for which there was no room.
type editor struct{ edited, refused int }

func (e *editor) Apply(_ context.Context, b *router.Batch) *router.Held {
	for _, m := range b.Messages() {
		text, fields := b.Copy(m.Text), b.NewFields(4)
		if text == nil || fields == nil {
			e.refused++
			continue
		}
		m.Text, m.Fields = text, append(fields, router.Field{Name: []byte("kind"), Value: router.Value{Kind: router.String, Bytes: text[:8]}})
		e.edited++
	}
	return nil
}

// flood is a source that delivers full batches as long as it is let.
type flood struct{ text []byte }

func (f flood) Run(ctx context.Context, in router.Inlet) error {
	origin := &router.Origin{Source: "in"}
	for {
		limits := in.Limits()
		b, err := in.Take(ctx, min(limits.Bytes, limits.Messages*len(f.text)), limits.Messages)
		if err != nil {
			return nil
		}
		for range limits.Messages {
			m := b.Add(origin)
			if m == nil {
				break
			}
			if m.Text = b.Copy(f.text); m.Text == nil {
				b.Unadd()
				break
			}
		}
		in.Deliver(b)
	}
}

// absent is a destination that takes nothing until it is told to.
type absent struct{ open chan struct{} }

func (a absent) Write(ctx context.Context, _ []*router.Message, _ func([]router.Rejected) error) error {
	<-a.open
	return nil
}
func (absent) Close() error { return nil }

func TestEveryMessageCanBeEditedWhenTheMemoryIsFull(t *testing.T) {
	for more := range 12 { // so that the last batch leaves now much, now little
		synctest.Test(t, func(t *testing.T) { testEdits(t, 16<<20+int64(more)*128<<10) })
	}
}

func testEdits(t *testing.T, memory int64) {
	edit, store := &editor{}, absent{make(chan struct{})}
	r, err := router.New(router.Config{
		Memory: memory, Lanes: 1,
		Sources:      []router.SourceConfig{{Name: "in", MaxMessage: 64 << 10, Source: flood{bytes.Repeat([]byte("x"), 256)}}},
		Destinations: []router.DestinationConfig{{Name: "out", Destination: store, Flush: router.Flush{Messages: 1000, After: time.Second}}},
		Routes:       []router.Route{{Name: "main", From: []string{"in"}, To: []string{"out"}, Filters: []router.Stage{{Name: "edit", Filters: []router.Filter{edit}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	synctest.Wait() // until the source waits for memory
	if edit.edited < 5000 || edit.refused > 0 {
		t.Errorf("memory %d: %d messages edited, %d not", memory, edit.edited, edit.refused)
	}
	close(store.open)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
