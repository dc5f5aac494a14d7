package router

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// A RunID names one run: the messages that one writer takes in between its
// start and its end, numbered 1, 2, 3, …. It is a random UUID (RFC 9562, version
// 4). A run is never continued by another process, so two weirs never number in
// the same run, not even when one is a copy of the other or a restored backup.
type RunID [16]byte

// NewRun makes a run's name.
func NewRun() (id RunID) {
	rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// String is the usual form of a UUID.
func (id RunID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// ParseRun reads what String writes.
func ParseRun(s string) (id RunID, err error) {
	if len(s) != 36 {
		return id, fmt.Errorf("%q is no UUID", s)
	}
	n, err := hex.Decode(id[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:]))
	if err != nil || n != len(id) || id.String() != s {
		return RunID{}, fmt.Errorf("%q is no UUID", s)
	}
	return id, nil
}

// A Span is the place of a transaction's messages in their run: those behind
// From, up to To. There may be gaps: messages that were lost on the way.
type Span struct {
	Run      RunID
	From, To uint64
}

// A Positioner is a Destination that stores with the rows how far in their run
// they reach, in the same transaction. So it can tell after a lost answer to
// COMMIT whether the rows are there, and nothing is stored twice.
//
// Like Write, its methods are not called concurrently.
type Positioner interface {
	Destination

	// Position tells how far a run is durable here: the number of the last
	// message of it that is stored or rejected. It connects when there is no
	// connection, and waits then until a transaction of that run which may still
	// be under way has ended. While connected it answers from memory. A run that it
	// does not know is noted with position 0, durably, and known is false.
	Position(ctx context.Context, run RunID) (at uint64, known bool, err error)

	// WriteAt is Write, and moves the run's position from span.From to span.To
	// with it; without msgs it moves the position alone. When the position is not span.From nothing is stored, and the error
	// is ErrMoved; then Position asks the database anew.
	WriteAt(ctx context.Context, span Span, msgs []*Message, reject func([]Rejected) error) error
}

// ErrMoved says that a run's position in the destination is not where the writer
// knew it: a copy of this weir has written the same messages, or the database was put back.
var ErrMoved = errors.New("the position in the destination has moved")

// A Mark names a sender that numbers what it sends, and the last number of a
// batch. A sender that resumes asks Inlet.Last where to go on.
type Mark struct {
	Sender string // "": does not number
	Last   uint64
}

// A Spool is a durable queue on disk in front of one writer; see package spool.
// It is safe for concurrent use: one goroutine appends and syncs, another reads and acknowledges, and both may call Seek.
type Spool interface {
	// Append adds msgs at the end, in order. They are numbered in the run Run, one
	// by one; first is the number of msgs[0]. They are durable, and found by Read,
	// after the next Sync. The spool keeps no reference. On error none was added: ErrSpoolFull when there
	// is no room for them, any other error is the disk's and may pass.
	Append(msgs []*Message, mark Mark) (first uint64, err error)

	// Sync makes durable what was appended. After an error it is called again.
	Sync() error

	// DropOldest removes the oldest messages that were not read yet, some of them at
	// once (what was read is being written), and returns how many. 0: there is nothing to remove.
	DropOldest() (messages int, err error)

	// Last is the highest Mark.Last that was appended for a sender; 0: none.
	Last(sender string) uint64

	// Run is the run in which Append numbers.
	Run() RunID

	// Read adds messages to b, which has room for them, from where the reader is,
	// until b is full or about so many bytes are read, and moves the reader behind
	// them. They are all of one run and without a gap from first on. lost counts messages before first that
	// cannot be read, with an error too; those that DropOldest or Expire returned are not among them. At the end of what is
	// durable it returns io.EOF, and ErrNoRoom when not even one message has room in b.
	Read(b *Batch, bytes int) (run RunID, first uint64, lost int, err error)

	// Seek moves the reader forward to behind message at of run, and returns how many
	// messages it passed by. Where the reader is there or further already, or the run is not here, nothing happens.
	Seek(run RunID, at uint64) (passed int)

	// Rewind puts the reader back before the first message that is not acknowledged,
	// and returns how many messages more are to be read now. With all it takes back
	// every acknowledgement first, so that this is the oldest message that is still there. After Open the
	// reader is before the first that is not acknowledged.
	Rewind(all bool) (messages int)

	// Expire removes messages that were not read yet and are older than the
	// configuration allows, and returns how many.
	Expire() (messages int)

	// Ack says that all messages before and up to number at of run are durable in the destination,
	// or given up. Their space is free a minute later. The reader moves behind them if it is before.
	Ack(run RunID, at uint64)

	// Acked is the last place that Ack was called with, also by processes before
	// this one, as far as that was noted; 0: nowhere yet.
	Acked() (run RunID, at uint64)

	// Backlog tells what is not acknowledged.
	Backlog() Backlog

	// Close releases the files. What is not acknowledged is there at the next Open.
	Close() error
}

// ErrSpoolFull says that a spool has no room for more.
var ErrSpoolFull = errors.New("the disk buffer is full")

// A Backlog is what waits in a spool.
type Backlog struct {
	Messages int
	Bytes    int64     // on disk, with what is acknowledged and not yet removed
	Waiting  int64     // of Bytes, about what is not acknowledged
	Limit    int64     // of Bytes
	Oldest   time.Time // arrival of the oldest, about; zero: none
}
