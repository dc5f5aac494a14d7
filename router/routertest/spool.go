package routertest

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/weirlog/weir/router"
)

// A Spool is a router.Spool in memory. Everything that was acknowledged is kept
// until there is no room.
type Spool struct {
	Limit int                   // messages; 0: no limit
	Fails func(op string) error // when set, asked before "append" and "sync"

	mu      sync.Mutex
	run     router.RunID
	next    uint64
	records []record
	safe    int // records that are synced
	read    int // the reader is before this one
	acked   int // records that are acknowledged
	marks   map[string]uint64
}

type record struct {
	run    router.RunID
	number uint64
	blob   []byte
	mark   router.Mark
}

// NewSpool returns an empty spool.
func NewSpool() *Spool { return &Spool{run: router.NewRun(), next: 1, marks: map[string]uint64{}} }

// Reopen is what a new process finds: what was synced, in a new run.
func (s *Spool) Reopen() *Spool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := NewSpool()
	n.Limit = s.Limit
	n.records = slices.Clone(s.records[:s.safe])
	n.safe, n.read, n.acked = s.safe, min(s.acked, s.safe), min(s.acked, s.safe)
	for _, r := range n.records {
		if r.mark.Sender != "" {
			n.marks[r.mark.Sender] = max(n.marks[r.mark.Sender], r.mark.Last)
		}
	}
	return n
}

func (s *Spool) fails(op string) error {
	if s.Fails == nil {
		return nil
	}
	return s.Fails(op)
}

// Append implements router.Spool.
func (s *Spool) Append(msgs []*router.Message, mark router.Mark) (first uint64, err error) {
	if err := s.fails("append"); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Limit > 0 && len(s.records)-s.acked+len(msgs) > s.Limit && len(s.records) > s.acked {
		return 0, router.ErrSpoolFull
	}
	first = s.next
	for _, m := range msgs {
		s.records = append(s.records, record{s.run, s.next, router.AppendBlob(nil, m), mark})
		s.next++
	}
	if mark.Sender != "" {
		s.marks[mark.Sender] = mark.Last
	}
	return first, nil
}

// Sync implements router.Spool.
func (s *Spool) Sync() error {
	if err := s.fails("sync"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.safe = len(s.records)
	return nil
}

// DropOldest implements router.Spool: half of what was not read goes.
func (s *Spool) DropOldest() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := (s.safe - s.read + 1) / 2
	s.records = slices.Delete(s.records, s.read, s.read+n)
	s.safe -= n
	return n, nil
}

// Last implements router.Spool.
func (s *Spool) Last(sender string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[sender]
}

// Run implements router.Spool.
func (s *Spool) Run() router.RunID { return s.run }

// Read implements router.Spool.
func (s *Spool) Read(b *router.Batch, bytes int) (run router.RunID, first uint64, lost int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for size := 0; s.read < s.safe && !b.Full() && size <= bytes; s.read++ {
		r := s.records[s.read]
		if b.Len() == 0 {
			run, first = r.run, r.number
		} else if r.run != run || r.number != first+uint64(b.Len()) {
			break
		}
		m, err := b.AddBlob(r.blob, nil)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		size += m.Size()
	}
	if b.Len() == 0 {
		return run, 0, 0, io.EOF
	}
	return run, first, 0, nil
}

// Seek implements router.Spool.
func (s *Spool) Seek(run router.RunID, at uint64) (passed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.behind(run, at)
	if to <= s.read {
		return 0
	}
	passed = to - s.read
	s.read = to
	return passed
}

// behind is the index of the first record behind a place; 0 when the run is not here.
func (s *Spool) behind(run router.RunID, at uint64) int {
	for i := len(s.records) - 1; i >= 0; i-- {
		if r := s.records[i]; r.run == run && r.number <= at {
			return i + 1
		}
	}
	return 0
}

// Rewind implements router.Spool.
func (s *Spool) Rewind(all bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all {
		s.acked = 0
	}
	n := s.read - s.acked
	s.read = s.acked
	return n
}

// Expire implements router.Spool: nothing is ever too old.
func (s *Spool) Expire() int { return 0 }

// Ack implements router.Spool.
func (s *Spool) Ack(run router.RunID, at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = max(s.acked, s.behind(run, at))
}

// Acked implements router.Spool.
func (s *Spool) Acked() (run router.RunID, at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acked == 0 {
		return run, 0
	}
	r := s.records[s.acked-1]
	return r.run, r.number
}

// Backlog implements router.Spool.
func (s *Spool) Backlog() router.Backlog {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := router.Backlog{Messages: len(s.records) - s.acked, Limit: int64(s.Limit)}
	if b.Messages > 0 {
		b.Oldest = time.Now()
	}
	return b
}

// Close implements router.Spool.
func (s *Spool) Close() error { return nil }
