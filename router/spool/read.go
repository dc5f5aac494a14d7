package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/weirlog/weir/router"
)

// Read implements router.Spool. router.ErrNoRoom: b has no room for the first message. With an error lost may be greater than 0, too: with io.EOF, what was at the end cannot be
// read. Messages that DropOldest or Expire removed are not lost.
//
// Where the disk cannot read a page any more, the messages in it are lost; any other error passes or is the operator's.
func (s *Spool) Read(b *router.Batch, bytes int) (run router.RunID, first uint64, lost int, err error) {
	if b.Full() {
		return run, 0, 0, router.ErrNoRoom
	}
	s.mu.Lock()
	s.reading = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reading = false
		s.settle()
	}()
	for {
		g, next, view := s.reach()
		if g == nil {
			return run, 0, lost, io.EOF
		}
		sc, err := s.scanFrom(g, next, view.durable)
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errLost): // the whole of it
		default:
			return run, 0, lost, fmt.Errorf("read the disk buffer: %w", err)
		}
		var got reading
		if sc != nil {
			got, err = s.gather(sc, b, bytes, next, view.synced)
			if err != nil && err != io.EOF && got.messages == 0 {
				if !errors.Is(err, router.ErrNoRoom) {
					err = fmt.Errorf("read the disk buffer: %w", err)
				}
				return run, 0, lost, err
			}
		} else {
			err = io.EOF
		}
		if got.messages > 0 {
			lost += got.lost
			s.moved(g, got.first+uint64(got.messages), false)
			s.seen(g, got)
			return g.run, got.first, lost, nil
		}
		lost += int(view.synced + 1 - next) // there is nothing more up to what was durable
		s.moved(g, view.synced+1, true)
	}
}

var errLost = errors.New("the header is damaged")

// A view is how much of a segment may be read.
type view struct {
	durable int64
	synced  uint64
}

// reach puts the reader into the first segment, from where it is, of which there is something to read. nil: there is none.
func (s *Spool) reach() (*segment, uint64, view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, g := range s.segments {
		if s.at.in == nil && (g.acked < g.last || i == len(s.segments)-1) {
			s.at = place{g, g.acked + 1}
		}
		if s.at.in != g {
			continue
		}
		if s.at.next <= g.synced {
			return g, s.at.next, view{g.durable, g.synced}
		}
		if g == s.active || i == len(s.segments)-1 {
			return nil, 0, view{}
		}
		s.at = place{s.segments[i+1], s.segments[i+1].first}
	}
	return nil, 0, view{}
}

// moved notes how far the reader came. With missing there was nothing readable on the way.
func (s *Spool) moved(g *segment, next uint64, missing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.in != g || next <= s.at.next {
		return // it was sent further meanwhile
	}
	if from := s.at.next; missing {
		if g.gap.to+1 == from && g.gap.from > 0 {
			from = g.gap.from
		}
		g.gap = gap{from, next - 1}
	}
	s.at.next = next
}

// seen notes when the first message that was read came, of a segment whose messages did not come to us.
func (s *Spool) seen(g *segment, got reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !g.own && got.first > g.acked {
		g.arrived(got.first, got.received)
	}
}

// scanFrom returns a scanner of the segment that stands at or before message next.
func (s *Spool) scanFrom(g *segment, next uint64, end int64) (*scanner, error) {
	if s.scanned != g {
		s.closeReader()
		if g.lost {
			return nil, errLost // told by load
		}
		f, err := s.disk.open(g.name())
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				s.damage(g, 0, g.size)
			}
			return nil, err
		}
		s.opening, s.scanned = f, g
		s.scan = nil
	}
	if s.scan == nil || s.scan.last >= next {
		var buf []byte
		if s.scan != nil {
			buf = s.scan.buf
		}
		s.scan = newScanner(s.opening, g.run, g.begin, end, g.first, buf)
		s.scan.damaged = func(offset, size int64) { s.damage(g, offset, size) }
	}
	s.scan.end = end
	return s.scan, nil
}

func (s *Spool) closeReader() {
	if s.opening != nil {
		s.opening.Close()
		s.opening, s.scanned, s.scan = nil, nil, nil
	}
}

// damage tells of a damaged place.
func (s *Spool) damage(g *segment, offset, size int64) {
	s.stats.damaged.Inc()
	s.log.Error("the disk buffer is damaged; what can be read behind it is", "segment", g.name(), "offset", offset, "bytes", size)
}

// A reading is what gather got.
type reading struct {
	first    uint64
	messages int
	lost     int   // before first
	received int64 // arrival of the first
}

// gather adds records to b, from message next up to last, until a gap, or so many bytes. io.EOF: there are no more.
func (s *Spool) gather(sc *scanner, b *router.Batch, bytes int, next, last uint64) (got reading, err error) {
	for !b.Full() && (got.messages == 0 || bytes > 0) {
		rec, err := sc.next()
		if err != nil {
			return got, err
		}
		if rec.kind == kindSeal || rec.number > last {
			sc.back(&rec)
			return got, io.EOF
		}
		if rec.number < next {
			continue
		}
		if rec.number > next && got.messages > 0 {
			sc.back(&rec)
			return got, nil
		}
		m, err := b.AddBlob(rec.blob, &s.origins)
		if errors.Is(err, router.ErrNoRoom) {
			sc.back(&rec)
			return got, err
		}
		if err != nil { // its sums are right, so it was written like that
			if sc.damaged != nil {
				sc.damaged(rec.offset, rec.size)
			}
			continue
		}
		if got.messages == 0 {
			got.first, got.lost, got.received = rec.number, int(rec.number-next), m.Received
			next = rec.number
		}
		next++
		got.messages++
		bytes -= int(rec.size)
	}
	return got, nil
}
