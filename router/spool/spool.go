// Package spool is the disk buffer: a durable queue of messages in a directory, in
// front of one writer. It implements router.Spool.
//
// The queue is a row of segments, files of bounded size. Messages are appended to
// the newest one; each segment belongs to one run and each opening of the directory begins a
// new run. A segment whose messages are all acknowledged is spent and goes a minute later,
// or at once when its room is needed; the newest one always stays, because it knows the senders' marks.
package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weirlog/weir/router"
)

// A Config says how much a spool may hold. When to sync and what to do when it is full
// is its user's matter.
type Config struct {
	Size     int64         // bytes of all segments, those that are spent included
	KeepFree int64         // bytes of the file system that stay free; 0: none
	Age      time.Duration // Expire gives up what is older; 0: nothing

	segment int64 // bytes, from which on a new segment is begun; 0: a sixteenth of Size, from 1 to 16 MiB
}

// MinSize is the least Config.Size that makes sense, in bytes.
const MinSize = 4 << 20

// A Spool is a queue in a directory. One goroutine calls Append and Sync, another Read; all else but Close may be called by any
// goroutine at any time. Close is called when the others have ended.
type Spool struct {
	disk   disk
	config Config
	log    *slog.Logger
	run    router.RunID
	runSum uint32
	opened time.Time
	clock  router.Clock // guarded by mu

	// The appender's.
	next    uint64 // number of the next message
	synced  uint64 // number of the last message that is durable
	file    file   // of active
	buf     []byte // records of the Append at work
	pending []byte // records behind synced, for when the disk fails to sync them
	little  int    // syncs in a row that needed little of pending's memory
	oldest  int64  // arrival of the first in pending
	latest  int64  // arrival of the last message
	settled uint64 // what was acknowledged in a segment that was abandoned
	nextSeq uint64

	// The reader's.
	scan    *scanner
	scanned *segment // what scan reads
	opening file     // of scanned
	origins router.Origins

	mu       sync.Mutex
	segments []*segment // the oldest first; their fields, too
	active   *segment   // that Append writes to, the newest; nil: none
	bytes    int64      // of all segments, and of stuck
	stuck    []*segment // spent or given up, but the disk failed to remove them
	again    time.Time  // when that is tried again
	at       place      // of the reader
	marks    marks      // of what is durable; changed by the appender
	fresh    marks      // of what is pending
	reading  bool       // Read is at work
	noted    time.Time  // when the acknowledged place was written to disk
	dirty    bool       // it is not what is on disk

	noting  sync.Mutex // of the file ackedName
	keeping sync.WaitGroup
	wake    chan struct{}
	done    chan struct{}

	stats stats
}

// A place is where the reader is: before message next of segment in. in nil: before the oldest that is not acknowledged.
type place struct {
	in   *segment
	next uint64
}

// Open opens the spool in dir, which is made when it is not there, and begins a new run. Nobody but weir's user may read what
// is in it. Segments of another format, and another weir in the directory, are errors; nothing is changed then.
//
// Register it with labels for the destination and its lane (prometheus.WrapRegistererWith).
func Open(dir string, c Config, log *slog.Logger) (*Spool, error) {
	d, err := openDirectory(dir)
	if err != nil {
		return nil, fmt.Errorf("open disk buffer: %w", err)
	}
	s, err := open(d, c, log.With("buffer", dir))
	if err != nil {
		d.close()
		return nil, fmt.Errorf("open disk buffer %s: %w", dir, err)
	}
	return s, nil
}

func open(d disk, c Config, log *slog.Logger) (*Spool, error) {
	s := &Spool{
		disk: d, config: c, log: log, run: router.NewRun(), next: 1, nextSeq: 1, opened: time.Now(),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if c.segment == 0 {
		s.config.segment = min(max(c.Size/16, 1<<20), 16<<20)
	}
	s.runSum = sum(s.run[:])
	s.clock.Trusted(s.opened)
	s.stats.init()
	if err := s.load(); err != nil {
		return nil, err
	}
	s.keeping.Go(s.keep)
	return s, nil
}

// Run implements router.Spool.
func (s *Spool) Run() router.RunID { return s.run }

// Last implements router.Spool. What is known of a sender survives the segments in which its marks were; the 10 000 senders
// that were heard of last are known.
func (s *Spool) Last(sender string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := senderKey(sender)
	return max(s.marks.of[key].last, s.fresh.of[key].last)
}

// Close implements router.Spool. It syncs first; its error says that this, and so the newest messages, failed.
func (s *Spool) Close() error {
	err := s.Sync()
	close(s.done)
	s.keeping.Wait()
	if s.file != nil {
		s.seal(s.file, s.active, s.active.last)
		err = errors.Join(err, s.file.Close())
	}
	s.closeReader()
	s.noteAcked()
	if err = errors.Join(err, s.disk.close()); err != nil {
		return fmt.Errorf("close disk buffer: %w", err)
	}
	return nil
}

// A segment is one file. Its numbers are of its run; first-1 stands for "none".
type segment struct {
	seq   uint64
	run   router.RunID
	begin int64 // offset of the first record

	first   uint64
	last    uint64    // that was appended
	synced  uint64    // of last, what is durable
	acked   uint64    // up to here messages are done with
	gap     gap       // what the reader found missing at the end
	size    int64     // bytes of the file
	durable int64     // of size; the rest is not read
	lost    bool      // its header cannot be read, so its messages cannot
	spent   time.Time // since when all are acknowledged; zero: they are not

	arrivals []arrival // of some messages, in order; the first one's is there
	apart    int64     // ns between them, at least
	newest   int64     // arrival of the last message
	begun    time.Time // when the first message was appended; only for those of this process
	touched  time.Time // when the last was; of an earlier process: when we began
	own      bool      // of this process
}

// A gap is messages that cannot be read, with none behind them yet.
type gap struct{ from, to uint64 }

func (g *segment) name() string { return fmt.Sprintf("%016x.seg", g.seq) }

// messages are those that are not acknowledged.
func (g *segment) messages() int { return int(g.last - g.acked) }
