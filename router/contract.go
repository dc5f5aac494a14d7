package router

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Source brings messages in.
//
// Run reads until ctx ends, then delivers what it and the kernel still hold
// (for at most a second) and returns nil. Any other return is a failure that
// stops the router. A Source starts no goroutine that outlives Run.
type Source interface {
	Run(ctx context.Context, in Inlet) error
}

// An Inlet is how a source hands messages to its routes. It may be used by many
// goroutines at once, one for each connection.
type Inlet interface {
	// Take reserves memory for a batch of up to so many bytes and messages and
	// returns the empty batch that owns it. It is the only place that waits for
	// memory: until there is enough, or until ctx ends, whose error it returns
	// then. Ask for the most that one read may bring, at most Limits, and
	// do not hold read buffers or other batches while waiting.
	Take(ctx context.Context, bytes, messages int) (*Batch, error)

	// Deliver runs the batch through the filters of the source's routes, in the
	// caller's goroutine, and hands what is left to their destinations. The
	// batch is the router's from then on. It gives back what the batch reserved
	// and did not use; an empty batch is given back whole. It may wait for a
	// lane, never for memory or a destination. Batches of one caller keep their order.
	Deliver(b *Batch)

	// Last is the number up to which the disk buffers of all destinations have what
	// a sender has sent that numbers its messages (Mark). known is false where a destination has no disk buffer.
	Last(sender string) (last uint64, known bool)

	// Limits says how large one batch may be. It never changes.
	Limits() Limits

	// Tails is the part of the memory that is set aside for unfinished messages.
	Tails() *Tails

	// Missed counts messages that were never accepted (ledger: in no equation),
	// by reason: "held", "kernel", "framing", "partial", "connections".
	Missed(reason string, n int)

	// Truncated counts messages that were cut at max_message.
	Truncated(n int)
}

// Limits bound one batch.
type Limits struct {
	Bytes    int // of raw messages
	Messages int // at most the smallest flush_lines that the source reaches
}

// A Filter looks at each message of a batch and edits, drops or rejects it.
//
// Apply works in place on b.Messages() and is called by one goroutine at a
// time. It returns nil, or a *Held that says how far it came when it cannot go on
// now. A Filter that several lanes share takes turns by itself.
type Filter interface {
	Apply(ctx context.Context, b *Batch) *Held
}

// A Ticker is a Filter that also works when no message comes, and may create
// messages then. Router calls both methods as it calls Apply: by one goroutine
// at a time, between batches. What they add to b, which belongs to no source, goes on behind the filter on
// each route that uses it; when b has no room, Add returns nil.
type Ticker interface {
	Filter

	// Tick is called about once a second.
	Tick(ctx context.Context, b *Batch)

	// Finish is called when weir stops and no more messages are expected.
	Finish(ctx context.Context, b *Batch)
}

// Held says that a filter cannot take more messages now. The first Done of
// b.Messages() are finished; the rest is offered again after Retry, while other
// routes go on. With Stop the router begins to stop (on_error: stop) and the
// rest is offered while it drains.
type Held struct {
	Done  int
	Retry time.Duration
	Stop  bool
	Cause error
}

func (h *Held) Error() string { return fmt.Sprintf("filter holds its messages: %v", h.Cause) }
func (h *Held) Unwrap() error { return h.Cause }

// A Destination stores messages.
//
// Write stores msgs in one transaction. On nil all of them but the rejected are
// durable; on error none is, or it is unknown which (a Positioner can tell), and the same messages are
// offered again, perhaps with more behind them. It is never called concurrently and keeps no reference to msgs
// or their bytes after it returned. Its ctx is the drain context: it ends only
// when weir gives up, so a COMMIT on its way is never cut short by a stop.
//
// reject is called at most once a Write, with all rows that this transaction
// will not store, right before COMMIT; it returns nil when they are durable
// in the dead letters. When it fails, Write rolls back and returns its error.
//
// Errors: Permanent(err) marks what the same rows will always meet although the
// destination cannot say which row; the writer halves the transaction until
// the culprit stands alone and rejects it. NeedsOperator(err) marks what only a
// person can mend. Everything else passes, and is tried again with back-off.
type Destination interface {
	Write(ctx context.Context, msgs []*Message, reject func([]Rejected) error) error
	// Close releases what the constructor acquired. It is called once, after
	// the last Write returned.
	Close() error
}

// A Tender is a Destination that has work to do beside storing, such as removing
// old rows. The writer's goroutine calls Tend between transactions: about once
// a second while nothing comes, and after a transaction when the last call was
// a second ago. It is never called concurrently with Write.
//
// Tend works for a few milliseconds at most, so that the next transaction need
// not wait. more asks to be called again soon: after the next transaction, or in 10 ms when none comes.
// note is what there is to know about a destination that works, in words (the Reason of its
// Part while it is ready); "" when there is nothing. What fails is the destination's to log and to try again
// at the next call.
type Tender interface {
	Destination
	Tend(ctx context.Context) (more bool, note string)
}

// Rejected is a message that nobody will ever take, and why.
type Rejected struct {
	Message *Message
	Number  uint64 // of the message in its run; set by the writer
	Code    string // SQLSTATE, SQLite's extended result name, or a word of ours such as "rejected"
	Column  string // "" when not known
	Reason  string // for people; the server's words; never values of the row
}

// DeadLetters keeps what nobody would take. It is safe for concurrent use.
type DeadLetters interface {
	// Keep stores rows durably under key. For a destination it first removes what
	// an earlier attempt stored there: all letters of key.Span.Run behind key.Span.From. No
	// rows: it only removes.
	Keep(ctx context.Context, key LetterKey, rows []Rejected) error

	// Unsettled lists the runs of which the destination has letters that may be
	// void: the process ended before it was known whether their transaction was committed.
	Unsettled(ctx context.Context, destination string) ([]RunID, error)

	// Settle removes a run's letters behind position at; the others are final.
	Settle(ctx context.Context, destination string, run RunID, at uint64) error
}

// A LetterKey says who rejected. Either Destination and Span are set (an attempt
// that is tried again replaces its letters), or Route and Filter (such letters
// are only ever added).
type LetterKey struct {
	Destination   string
	Span          Span
	Route, Filter string
}

type permanent struct{ error }

func (e permanent) Unwrap() error { return e.error }

// Permanent marks an error that the same rows will always meet. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// IsPermanent reports whether Permanent marked err.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[permanent](err)
	return ok
}

type needsOperator struct{ error }

func (e needsOperator) Unwrap() error { return e.error }

// NeedsOperator marks an error that only a person can mend: it is retried
// slowly, told to the operator, and never costs a row. NeedsOperator(nil) is nil.
func NeedsOperator(err error) error {
	if err == nil {
		return nil
	}
	return needsOperator{err}
}

// IsNeedsOperator reports whether NeedsOperator marked err.
func IsNeedsOperator(err error) bool {
	_, ok := errors.AsType[needsOperator](err)
	return ok
}

// A Part is the state of one named part of the router, for /readyz.
type Part struct {
	Kind   string    // "source", "route", "filter", "destination", "dead_letters"
	Name   string    // as in the configuration
	Ready  bool      // does what it is there for
	Reason string    // why not, in words; when ready, what else there is to know
	Since  time.Time // of the last change; zero: since the start
	// Trouble is what an operator must mend although the part does its work, in words: a filter's new module is refused,
	// a destination's disk buffer takes nothing. It is part of Reason too.
	Trouble string
}
