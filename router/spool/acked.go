package spool

import (
	"fmt"
	"time"

	"github.com/weirlog/weir/router"
)

// ackedName is the file that says how far messages were acknowledged, at least. It is written once a second,
// and before what is acknowledged is removed.
const ackedName = "acknowledged"

const (
	noteEvery = time.Second
	spentFor  = time.Minute
)

// acked is what the file says: the segment, its run, and the number in it up to which all is acknowledged.
func (s *Spool) ackedLine() (string, bool) {
	for i, g := range s.segments {
		if g.messages() > 0 || i == len(s.segments)-1 {
			return ackedLine(g.seq, g.run, g.acked), true
		}
	}
	return "", false
}

func ackedLine(seq uint64, run router.RunID, number uint64) string {
	line := fmt.Sprintf("weir acknowledged 1 %016x %s %d", seq, run, number)
	return fmt.Sprintf("%s %08x\n", line, sum([]byte(line)))
}

// readAcked reads that line. What is damaged counts as not there.
func readAcked(d disk) (seq uint64, run router.RunID, number uint64, ok bool) {
	data, err := d.load(ackedName)
	if err != nil {
		return 0, run, 0, false
	}
	var name string
	if n, _ := fmt.Sscanf(string(data), "weir acknowledged 1 %x %s %d", &seq, &name, &number); n != 3 {
		return 0, run, 0, false
	}
	if run, err = router.ParseRun(name); err != nil || string(data) != ackedLine(seq, run, number) {
		return 0, run, 0, false
	}
	return seq, run, number, true
}

// acknowledge applies what the file says to segments. It returns the number of the segment that the file names; 0: none.
func acknowledge(d disk, segments []*segment) uint64 {
	seq, run, number, ok := readAcked(d)
	if !ok {
		return 0
	}
	for _, g := range segments {
		switch {
		case g.seq < seq:
			g.acked = g.last
		case g.seq == seq && g.run == run:
			g.acked = min(max(number, g.acked), g.last)
		}
	}
	return seq
}

func (s *Spool) loadAcked() {
	s.nextSeq = max(s.nextSeq, acknowledge(s.disk, s.segments)+1) // it may know of more than is there
	for _, g := range s.segments {
		if g.acked < g.last {
			g.find(s.disk)
			break
		}
		g.spent = s.opened
	}
}

// noteAcked writes how far messages are acknowledged.
func (s *Spool) noteAcked() {
	s.noting.Lock() // an older line must not replace a newer one
	defer s.noting.Unlock()
	s.mu.Lock()
	line, ok := s.ackedLine()
	dirty := s.dirty
	s.dirty, s.noted = false, time.Now()
	s.mu.Unlock()
	if !ok || !dirty {
		return
	}
	if err := s.disk.replace(ackedName, []byte(line)); err != nil {
		s.log.Debug("how far the disk buffer is acknowledged could not be written; after a kill some messages may be delivered again", "error", err)
		s.mu.Lock()
		s.dirty = true
		s.mu.Unlock()
	}
}

// keep notes what is acknowledged and removes what is spent, in time.
func (s *Spool) keep() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		note, remove := s.due()
		now := time.Now()
		if !note.IsZero() && !now.Before(note) {
			s.noteAcked()
			continue
		}
		if !remove.IsZero() && !now.Before(remove) {
			gone, err := s.removeSpent(now.Add(-spentFor), 64)
			if err != nil {
				s.log.Warn("spent segments of the disk buffer cannot be removed; that is tried again in a minute", "error", err)
			}
			if gone > 0 {
				continue
			}
			remove = time.Time{}
		}
		wait := time.Hour
		if !note.IsZero() {
			wait = min(wait, note.Sub(now))
		}
		if !remove.IsZero() {
			wait = min(wait, remove.Sub(now))
		}
		timer.Reset(wait)
		select {
		case <-s.done:
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// due is when the acknowledged place is to be noted, and when the oldest segment, or a stuck one, may be removed; zero: not now.
func (s *Spool) due() (note, remove time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirty {
		note = s.noted.Add(noteEvery)
	}
	if s.spentFirst(time.Time{}) {
		remove = s.segments[0].spent.Add(spentFor)
	}
	if len(s.stuck) > 0 && (remove.IsZero() || s.again.Before(remove)) {
		remove = s.again
	}
	return note, remove
}

// poke wakes keep, which looks what is due.
func (s *Spool) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
