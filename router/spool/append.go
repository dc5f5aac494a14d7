package spool

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/weirlog/weir/router"
)

// MostUnsynced is how many bytes may wait for a Sync; they are kept in memory until then. Append syncs by itself when there are more.
const MostUnsynced = 8 << 20

// Append implements router.Spool. A batch is always in one segment. When nothing waits in the spool it takes a batch even if
// that is larger than Config.Size.
func (s *Spool) Append(msgs []*router.Message, mark router.Mark) (first uint64, err error) {
	if len(msgs) == 0 {
		return s.next, nil
	}
	if len(s.pending) > MostUnsynced || len(s.pending) > 0 && s.file == nil {
		if err := s.Sync(); err != nil {
			return 0, err
		}
	}
	mark.Sender = senderKey(mark.Sender)
	s.encode(msgs, mark)
	err = s.write(msgs[0].Received)
	for errors.Is(err, syscall.ENOSPC) { // what is spent need not wait for its minute
		if gone, _ := s.removeSpent(time.Time{}, 1); gone == 0 {
			break
		}
		err = s.write(msgs[0].Received)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: %w", router.ErrSpoolFull, err)
	}
	if err != nil {
		return 0, err
	}
	g := s.active
	written := int64(len(s.buf))
	if len(s.pending) == 0 {
		s.oldest = msgs[0].Received
	}
	if len(s.pending)+len(s.buf) > cap(s.pending) {
		s.pending = slices.Grow(s.pending, max(len(s.pending), len(s.buf))) // append by itself would grow a large one by a quarter
	}
	s.pending = append(s.pending, s.buf...)
	first = s.next
	s.next += uint64(len(msgs))
	s.latest = msgs[len(msgs)-1].Received
	now := time.Now()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh.set(mark)
	if g.last < g.first { // the first ones in it
		g.arrivals[0].time, g.begun = msgs[0].Received, now
	} else {
		g.arrived(first, msgs[0].Received)
	}
	g.size += written
	s.bytes += written
	g.last, g.newest, g.touched = s.next-1, s.latest, now
	return first, nil
}

// write writes s.buf to the active segment, or to a new one.
func (s *Spool) write(arrived int64) error {
	if err := s.room(int64(len(s.buf))); err != nil {
		return err
	}
	if s.full(int64(len(s.buf))) {
		if err := s.roll(arrived); err != nil {
			return fmt.Errorf("append to the disk buffer: %w", err)
		}
	}
	if _, err := s.file.WriteAt(s.buf, s.active.size); err != nil {
		s.file.Truncate(s.active.size)
		return fmt.Errorf("append to the disk buffer: %w", err)
	}
	return nil
}

// encode makes the records of msgs in s.buf, with the mark in the last one.
func (s *Spool) encode(msgs []*router.Message, mark router.Mark) {
	s.buf = emptied(s.buf)
	for i, m := range msgs {
		var own router.Mark
		if i == len(msgs)-1 {
			own = mark
		}
		s.buf = appendRecord(s.buf, s.runSum, s.next+uint64(i), s.synced, m, own)
	}
}

// muchMemory is how much of it is given back when it is not needed.
const muchMemory = 4 << 20

// emptied keeps the memory of a buffer, if it is not much.
func emptied(buf []byte) []byte {
	if cap(buf) > muchMemory {
		return nil
	}
	return buf[:0]
}

// empty keeps the memory of pending, unless many syncs in a row needed little of it.
func (s *Spool) empty() {
	if len(s.pending) >= cap(s.pending)/4 {
		s.little = 0
	} else {
		s.little++
	}
	if s.pending = s.pending[:0]; s.little > 100 && cap(s.pending) > muchMemory {
		s.pending = nil
	}
}

// full reports whether a new segment is to be begun for so many bytes.
func (s *Spool) full(more int64) bool {
	g := s.active
	switch {
	case g == nil:
		return true
	case g.last < g.first:
		return false
	case s.config.Age > 0 && time.Since(g.begun) > s.config.Age/16:
		return true // what is too old goes segment by segment
	}
	return g.size+more > s.config.segment
}

// roll syncs and seals the active segment and begins a new one.
func (s *Spool) roll(arrival int64) error {
	if err := s.Sync(); err != nil {
		return err
	}
	g, f, err := s.create(s.next, arrival)
	if err != nil {
		return err
	}
	s.retire()
	s.begin(g, f)
	return nil
}

// retire seals the active segment.
func (s *Spool) retire() {
	if s.file == nil {
		return
	}
	g, before := s.active, s.active.size
	s.mu.Lock()
	copied := *g
	s.mu.Unlock()
	s.seal(s.file, &copied, g.last) // when it fails, the next start reads the segment
	s.file.Close()
	s.file = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	g.size = copied.size
	g.durable = g.size
	s.bytes += g.size - before
	s.active = nil
	s.settle()
}

// create makes a new segment, empty and durable.
func (s *Spool) create(first uint64, arrived int64) (*segment, file, error) {
	g := &segment{
		seq: s.nextSeq, run: s.run, first: first, last: first - 1, synced: first - 1, acked: first - 1, own: true,
		arrivals: []arrival{{first, arrived}}, newest: arrived, begun: time.Now(), touched: time.Now(),
	}
	header := appendHeader(nil, prefix{run: s.run, first: first, arrival: arrived, seq: g.seq}, s.marks.append(nil))
	g.begin, g.size, g.durable = int64(len(header)), int64(len(header)), int64(len(header))
	f, err := s.disk.create(g.name())
	if err != nil {
		return nil, nil, err
	}
	if _, err = f.WriteAt(header, 0); err == nil {
		if err = f.Sync(); err == nil {
			err = s.disk.sync()
		}
	}
	if err != nil {
		f.Close()
		if s.disk.remove(g.name()) != nil {
			s.nextSeq++ // it is in the way
		}
		return nil, nil, err
	}
	s.nextSeq++
	return g, f, nil
}

func (s *Spool) begin(g *segment, f file) {
	s.file = f
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = g
	s.segments = append(s.segments, g)
	s.bytes += g.size
	s.settle()
}

// Sync implements router.Spool. After a failed fdatasync the kernel may say of pages it could not write that they are written, so
// the segment is abandoned behind what was durable, and what was not is written to a new one.
func (s *Spool) Sync() error {
	if len(s.pending) == 0 {
		return nil
	}
	if s.file != nil {
		began := time.Now()
		err := s.file.Sync()
		s.stats.synced(time.Since(began), err)
		if err == nil {
			s.durable()
			return nil
		}
		s.log.Warn("the disk failed to sync the disk buffer; what is not durable is written again, to a new segment", "segment", s.active.name(), "error", err)
		s.abandon()
	}
	if err := s.rewrite(); err != nil {
		return fmt.Errorf("sync the disk buffer: %w", err)
	}
	return nil
}

// durable notes that all that was appended is.
func (s *Spool) durable() {
	s.empty()
	s.synced = s.next - 1
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active.durable, s.active.synced = s.active.size, s.synced
	for sender, e := range s.fresh.of {
		s.marks.set(router.Mark{Sender: sender, Last: e.last})
	}
	clear(s.fresh.of)
}

// abandon ends the active segment behind its last durable record.
func (s *Spool) abandon() {
	g, f := s.active, s.file
	s.file = nil
	f.Truncate(g.durable)
	ended := *g
	ended.size, ended.last = g.durable, g.synced
	s.seal(f, &ended, g.synced)
	f.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = nil
	s.bytes += ended.size - g.size
	g.size, g.last = ended.size, ended.last
	s.settled, g.acked = max(s.settled, g.acked), min(g.acked, g.last)
	s.settle()
}

// rewrite puts what is pending into a new segment.
func (s *Spool) rewrite() error {
	g, f, err := s.create(s.synced+1, s.oldest)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(s.pending, g.size); err == nil {
		began := time.Now()
		err = f.Sync()
		s.stats.synced(time.Since(began), err)
	}
	if err != nil {
		f.Close()
		s.disk.remove(g.name())
		return err
	}
	g.size += int64(len(s.pending))
	g.last, g.newest = s.next-1, s.latest
	g.acked = min(max(g.acked, s.settled), g.last)
	s.begin(g, f)
	s.durable()
	return nil
}
