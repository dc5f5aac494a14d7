package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// room makes sure that there is room for so many bytes more. What is spent goes first.
func (s *Spool) room(more int64) error {
	for {
		tight := s.tight(more)
		if !tight {
			return nil
		}
		gone, err := s.removeSpent(time.Time{}, 1)
		if err != nil {
			s.log.Warn("a segment of the disk buffer cannot be removed", "error", err)
		}
		if gone > 0 {
			continue
		}
		s.mu.Lock()
		g := s.active
		settled := g != nil && g.last >= g.first && g.acked == g.last && len(s.pending) == 0
		waiting := s.backlog()
		s.mu.Unlock()
		switch {
		case settled: // all of the newest segment is done with: with another one behind it, it may go
			if err := s.roll(time.Now().UnixNano()); err != nil {
				return fmt.Errorf("append to the disk buffer: %w", err)
			}
		case waiting == 0 && !s.scarce(more):
			return nil
		default:
			return s.noRoom(more)
		}
	}
}

// noRoom is ErrSpoolFull, with the reason when it is not the size that the configuration allows.
func (s *Spool) noRoom(more int64) error {
	if free, known := s.disk.free(); known && s.scarce(more) {
		return fmt.Errorf("%w: %d MiB of its file system are free, and keep_free is %v", router.ErrSpoolFull, free>>20, config.Size(s.config.KeepFree))
	}
	return router.ErrSpoolFull
}

// tight reports whether so many bytes more are too many.
func (s *Spool) tight(more int64) bool {
	s.mu.Lock()
	bytes := s.bytes
	if g := s.active; g == nil || g.size+more > s.config.segment {
		bytes += marksAt
	}
	s.mu.Unlock()
	return bytes+more > s.config.Size || s.scarce(more)
}

// scarce reports whether the file system would have less than KeepFree with so many bytes more.
func (s *Spool) scarce(more int64) bool {
	if s.config.KeepFree <= 0 {
		return false
	}
	free, known := s.disk.free()
	return known && free-more < s.config.KeepFree
}

// DropOldest implements router.Spool: it removes one segment. Those from the first message that is not acknowledged to
// the reader stay, since what was read may be under way, and so does the newest one.
//
// While the disk fails to remove segments it gives up one a minute: the others would make no room either.
func (s *Spool) DropOldest() (messages int, err error) {
	s.mu.Lock()
	if len(s.stuck) > 0 && time.Now().Before(s.again) {
		err = fmt.Errorf("remove a segment of the disk buffer: the disk failed to remove %s", s.stuck[0].name())
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return s.drop(func(*segment) bool { return true })
}

// Expire implements router.Spool.
//
// Ages are those of whole segments, by their newest message, and count by the monotonic clock; the wall clock counts in addition for what an
// earlier process left, while router.Clock trusts it.
func (s *Spool) Expire() (messages int) {
	if s.config.Age <= 0 {
		return 0
	}
	now := time.Now()
	s.mu.Lock()
	trusted := s.clock.Trusted(now)
	s.mu.Unlock()
	old := func(g *segment) bool {
		age := now.Sub(g.touched)
		if newest := time.Unix(0, g.newest); trusted && !g.own && newest.After(router.Built()) {
			age = max(age, now.Round(0).Sub(newest))
		}
		return age > s.config.Age
	}
	for {
		n, err := s.drop(old)
		if messages += n; err != nil {
			s.log.Warn("a segment of the disk buffer cannot be removed", "error", err)
		}
		if n == 0 {
			break
		}
	}
	return messages + s.expireNewest(old)
}

// expireNewest gives up the messages of the newest segment, which stays, when nothing before it is left and none came for so long.
func (s *Spool) expireNewest(old func(*segment) bool) (messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.segments) - 1
	if last < 0 || s.droppable() != last {
		return 0
	}
	g := s.segments[last]
	if g.synced != g.last || !old(g) {
		return 0
	}
	messages = g.messages()
	g.acked, s.dirty = g.last, true
	s.at = place{g, g.last + 1}
	s.settle()
	s.stats.dropped.Add(float64(messages))
	return messages
}

// drop removes the oldest segment that may be given up, if it fits; 0: there is none.
func (s *Spool) drop(fits func(*segment) bool) (messages int, err error) {
	s.mu.Lock()
	from := s.droppable()
	if from >= len(s.segments)-1 || !fits(s.segments[from]) {
		s.mu.Unlock()
		return 0, nil
	}
	g := s.segments[from]
	messages = g.messages()
	if s.at.in == g {
		s.at = place{s.segments[from+1], s.segments[from+1].acked + 1}
	}
	s.detach(from)
	s.mu.Unlock()
	s.stats.dropped.Add(float64(messages))
	if err = s.unlink(g); err != nil {
		err = fmt.Errorf("remove a segment of the disk buffer: %w", err)
	}
	return messages, err
}

// droppable is the index of the oldest segment of which nothing is acknowledged or read but what is settled. s.mu is held.
func (s *Spool) droppable() int {
	i := 0
	for i < len(s.segments) && s.segments[i].messages() == 0 {
		i++
	}
	if s.at.in == nil {
		if s.reading {
			i++
		}
		return i
	}
	for j, g := range s.segments {
		if g != s.at.in {
			continue
		}
		if s.reading || s.at.next > g.acked+1 {
			j++
		}
		i = max(i, j)
	}
	return i
}

// detach takes segment i out of the row. s.mu is held.
func (s *Spool) detach(i int) {
	s.bytes -= s.segments[i].size
	s.segments = append(s.segments[:i:i], s.segments[i+1:]...)
}

// unlink removes the files of segments that were detached. Those that the disk fails to remove are stuck: they
// count as bytes, and removeSpent tries again a minute later.
func (s *Spool) unlink(gone ...*segment) (err error) {
	for _, g := range gone {
		e := s.disk.remove(g.name())
		if e == nil || errors.Is(e, fs.ErrNotExist) {
			continue
		}
		err = e
		s.mu.Lock()
		s.stuck = append(s.stuck, g)
		s.bytes += g.size
		s.again = time.Now().Add(spentFor)
		s.mu.Unlock()
	}
	return errors.Join(err, s.disk.sync())
}

// removeSpent removes up to most segments, from the oldest on, that were spent before that time; the zero time: all. gone is
// how many there were, those that the disk failed to remove included.
func (s *Spool) removeSpent(before time.Time, most int) (gone int, err error) {
	var spent []*segment
	s.mu.Lock()
	some := s.spentFirst(before)
	if len(s.stuck) > 0 && !time.Now().Before(s.again) {
		for _, g := range s.stuck {
			s.bytes -= g.size
		}
		spent, s.stuck = s.stuck, nil
	}
	tried := len(spent)
	s.mu.Unlock()
	if !some && tried == 0 {
		return 0, nil
	}
	s.noteAcked() // else the next process would not know that there ever was what is removed
	s.mu.Lock()
	for len(spent) < tried+most && s.spentFirst(before) {
		spent = append(spent, s.segments[0])
		s.detach(0)
	}
	s.mu.Unlock()
	if len(spent) > 0 {
		err = s.unlink(spent...)
	}
	return len(spent), err
}

// spentFirst reports whether the oldest segment may go. The newest one may not, and the reader's. s.mu is held.
func (s *Spool) spentFirst(before time.Time) bool {
	if len(s.segments) < 2 {
		return false
	}
	g := s.segments[0]
	return !g.spent.IsZero() && g != s.at.in && !(s.at.in == nil && s.reading) && (before.IsZero() || !g.spent.After(before))
}
