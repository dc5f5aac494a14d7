// Package routertest holds the contracts of the router's interfaces as tests
// that any implementation can run, and doubles for the edges of the house:
// a destination and a dead-letter store that record and fail on demand.
package routertest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/weirlog/weir/router"
)

// A Recorder is a destination that keeps the text of what it stored. Its
// methods are safe for concurrent use; Write itself is not called concurrently.
type Recorder struct {
	// OnWrite, when set, decides about a transaction before it is stored: rows to
	// reject and an error. It may wait.
	OnWrite func(ctx context.Context, msgs []*router.Message) ([]router.Rejected, error)
	// CommitFails, when set, makes the commit fail after reject was called.
	CommitFails func() error

	mu           sync.Mutex
	transactions [][]string
	writing      bool
	closed       bool
}

// Write stores the texts of msgs, all or none.
func (d *Recorder) Write(ctx context.Context, msgs []*router.Message, reject func([]router.Rejected) error) error {
	d.mu.Lock()
	if d.writing || d.closed {
		panic("BUG: Write called concurrently or after Close")
	}
	d.writing = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.writing = false
		d.mu.Unlock()
	}()
	var bad []router.Rejected
	if d.OnWrite != nil {
		var err error
		if bad, err = d.OnWrite(ctx, msgs); err != nil {
			return err
		}
	}
	var rows []string
	for _, m := range msgs {
		if !slices.ContainsFunc(bad, func(r router.Rejected) bool { return r.Message == m }) {
			rows = append(rows, string(m.Text))
		}
	}
	if len(bad) > 0 {
		if err := reject(bad); err != nil {
			return err
		}
	}
	if d.CommitFails != nil {
		if err := d.CommitFails(); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.transactions = append(d.transactions, rows)
	return nil
}

// Close notes that the destination is closed; a second one is a bug.
func (d *Recorder) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		panic("BUG: closed twice")
	}
	d.closed = true
	return nil
}

// Transactions returns the texts that were stored, by transaction.
func (d *Recorder) Transactions() [][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.transactions)
}

// Rows returns the texts that were stored, in order.
func (d *Recorder) Rows() []string { return slices.Concat(d.Transactions()...) }

// Letters is a dead-letter store in memory.
type Letters struct {
	Fails func() error // when set, asked before each Keep; may be called by several goroutines at once, and hang

	mu   sync.Mutex
	kept []entry
	old  map[router.RunID]bool // unsettled
}

type entry struct {
	key    router.LetterKey
	number uint64
	letter Letter
}

// A Letter is one rejected message as Letters keeps it.
type Letter struct{ Text, Code, Column, Reason string }

// Keep implements router.DeadLetters.
func (l *Letters) Keep(_ context.Context, key router.LetterKey, rows []router.Rejected) error {
	if l.Fails != nil {
		if err := l.Fails(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if key.Destination != "" {
		l.remove(key.Destination, key.Span.Run, key.Span.From)
	}
	for _, r := range rows {
		if key.Destination != "" && (r.Number <= key.Span.From || r.Number > key.Span.To) {
			panic("BUG: a letter from outside of its transaction")
		}
		l.kept = append(l.kept, entry{key, r.Number, Letter{string(r.Message.Text), r.Code, r.Column, r.Reason}})
	}
	return nil
}

func (l *Letters) remove(destination string, run router.RunID, behind uint64) {
	l.kept = slices.DeleteFunc(l.kept, func(e entry) bool {
		return e.key.Destination == destination && e.key.Span.Run == run && e.number > behind
	})
}

// Reopen is what a new process finds: letters of runs that are over.
func (l *Letters) Reopen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.old = map[router.RunID]bool{}
	for _, e := range l.kept {
		l.old[e.key.Span.Run] = e.key.Destination != ""
	}
}

// Unsettled implements router.DeadLetters.
func (l *Letters) Unsettled(_ context.Context, destination string) (runs []router.RunID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.kept {
		if run := e.key.Span.Run; l.old[run] && e.key.Destination == destination && !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// Settle implements router.DeadLetters.
func (l *Letters) Settle(_ context.Context, destination string, run router.RunID, at uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(destination, run, at)
	return nil
}

// All returns the letters, sorted by text.
func (l *Letters) All() (all []Letter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.kept {
		all = append(all, e.letter)
	}
	slices.SortFunc(all, func(a, b Letter) int { return strings.Compare(a.Text, b.Text) })
	return all
}
