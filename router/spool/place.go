package spool

import (
	"slices"
	"time"

	"github.com/weirlog/weir/router"
)

// Seek implements router.Spool.
func (s *Spool) Seek(run router.RunID, at uint64) (passed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.unread()
	now, reached := s.at, false // the reader's place, and whether the loop has come to it
	if now.in == nil {
		now = s.firstOpen()
	}
	for _, g := range s.segments {
		reached = reached || g == now.in
		if !reached || g.run != run {
			continue
		}
		next := min(max(at, g.first-1), g.last) + 1
		if g != now.in || next > now.next {
			s.at = place{g, next}
		}
		if at < g.last {
			break
		}
	}
	s.settle()
	return before - s.unread()
}

// firstOpen is the place before the first message that is not acknowledged. s.mu is held.
func (s *Spool) firstOpen() place {
	for _, g := range s.segments {
		if g.messages() > 0 || g == s.segments[len(s.segments)-1] {
			return place{g, g.acked + 1}
		}
	}
	return place{}
}

// Rewind implements router.Spool. With all, what was acknowledged is not any more.
func (s *Spool) Rewind(all bool) (messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.unread()
	s.at = place{}
	for _, g := range s.segments {
		g.gap = gap{}
		if all {
			g.acked, g.spent, s.dirty = g.first-1, time.Time{}, true
		}
	}
	s.settle()
	return s.unread() - before
}

// unread is how many messages the reader has before it. s.mu is held.
func (s *Spool) unread() (messages int) {
	reached := s.at.in == nil
	for _, g := range s.segments {
		switch {
		case g == s.at.in:
			reached = true
			if s.at.next <= g.last {
				messages += int(g.last - s.at.next + 1)
			}
		case s.at.in == nil:
			messages += g.messages()
		case reached:
			messages += int(g.last - g.first + 1)
		}
	}
	return messages
}

// Ack implements router.Spool. The reader moves behind what is acknowledged when it is before it.
func (s *Spool) Ack(run router.RunID, at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := -1 // the segment that message at is in
	for i, g := range s.segments {
		if g.run == run && (g.first <= at || end < 0) {
			end = i
		}
	}
	if end < 0 {
		return
	}
	for i, g := range s.segments[:end+1] {
		to := g.last
		if i == end {
			to = min(to, at)
		}
		if to > g.acked {
			g.acked = to
			s.dirty = true
		}
	}
	last := s.segments[end]
	for i, g := range s.segments[:end+1] {
		switch {
		case g != s.at.in:
		case i < end:
			s.at = place{last, last.acked + 1}
		default:
			s.at.next = max(s.at.next, last.acked+1)
		}
	}
	s.settle()
}

// settle draws the conclusions of what was read and acknowledged: messages that cannot be read count as acknowledged when all
// before them are, segments are spent, the reader leaves a segment that it has read. s.mu is held.
func (s *Spool) settle() {
	now := time.Now()
	for _, g := range s.segments {
		if g.gap.from <= g.acked+1 && g.acked < g.gap.to {
			g.acked = g.gap.to
			s.dirty = true
		}
		if g.acked == g.last && g != s.active && g.spent.IsZero() {
			g.spent = now
		}
		if g.acked < g.last {
			break
		}
	}
	if s.at.in != nil && !s.reading {
		for i, g := range s.segments[:max(len(s.segments)-1, 0)] {
			if g == s.at.in && s.at.next > g.last && g != s.active {
				s.at = place{s.segments[i+1], s.segments[i+1].first}
			}
		}
	}
	s.poke()
}

// backlog is how many messages are not acknowledged. s.mu is held.
func (s *Spool) backlog() (messages int) {
	for _, g := range s.segments {
		messages += g.messages()
	}
	return messages
}

// Acked implements router.Spool.
func (s *Spool) Acked() (run router.RunID, at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range slices.Backward(s.segments) {
		if g.acked >= g.first {
			return g.run, g.acked
		}
	}
	return run, 0
}

// Backlog implements router.Spool.
func (s *Spool) Backlog() router.Backlog {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := router.Backlog{Messages: s.backlog(), Bytes: s.bytes, Limit: s.config.Size}
	for _, g := range s.segments {
		if g.messages() > 0 && b.Oldest.IsZero() {
			b.Oldest = time.Unix(0, g.oldest())
		}
		b.Waiting += g.waiting()
	}
	return b
}
