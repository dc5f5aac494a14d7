package routertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/router"
)

// A Delivery writes numbered messages of one run as the router's writer does:
// it asks for the position, takes for stored what is up to there, writes the next
// transaction, and does so again after every error.
type Delivery struct {
	To    router.Positioner
	Run   router.RunID
	Batch int             // messages of a transaction
	Retry time.Duration   // pause after an error
	Moved func(at uint64) // when set, told each time that At has moved

	At     uint64  // all messages up to here are stored
	Errors []error // that were met
	made   uint64
}

// Until goes on until message number to is stored. It fails the test on a
// rejected message, and on errors that do not pass.
func (d *Delivery) Until(ctx context.Context, t testing.TB, to uint64) {
	t.Helper()
	for d.At < to {
		if err := d.once(ctx, t, to); err != nil {
			d.Errors = append(d.Errors, err)
			if ctx.Err() != nil || router.IsPermanent(err) || len(d.Errors) > 100_000 {
				t.Fatalf("message %d: %v", d.At, err)
			}
			if d.Retry > 0 {
				time.Sleep(d.Retry)
			}
		}
	}
}

func (d *Delivery) once(ctx context.Context, t testing.TB, to uint64) error {
	t.Helper()
	at, _, err := d.To.Position(ctx, d.Run)
	if err != nil {
		return fmt.Errorf("position: %w", err)
	}
	if at < d.At || at > max(d.made, d.At) {
		t.Fatalf("position is %d, which is not between %d and %d", at, d.At, d.made)
	}
	if d.moved(at); at >= to {
		return nil
	}
	end := min(to, at+uint64(d.Batch))
	msgs := make([]*router.Message, 0, d.Batch)
	for n := at + 1; n <= end; n++ {
		msgs = append(msgs, Numbered(n))
	}
	d.made = max(d.made, end)
	if err := d.To.WriteAt(ctx, router.Span{Run: d.Run, From: at, To: end}, msgs, func(rows []router.Rejected) error {
		return router.Permanent(errors.New("rejected: " + rows[0].Reason))
	}); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	d.moved(end)
	return nil
}

func (d *Delivery) moved(at uint64) {
	if at > d.At && d.Moved != nil {
		d.Moved(at)
	}
	d.At = at
}

// Numbered is a message whose text is its number.
func Numbered(n uint64) *router.Message {
	m := &router.Message{Origin: &router.Origin{Source: "test", Peer: "192.0.2.1"}, Received: time.Now().UnixNano()}
	m.Timestamp, m.Text = router.NoTime, fmt.Appendf(nil, "%d", n)
	return m
}
