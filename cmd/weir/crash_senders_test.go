package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What a message is meant to become. The word stands behind its number.
const (
	fine = "fine"
	bad  = "bad"   // the table's CHECK refuses it
	dull = "debug" // the filter drops it, where there is one
)

// wordOf is the same for each number in all lives.
func wordOf(n uint64) string {
	switch {
	case n%37 == 5:
		return bad
	case n%11 == 3:
		return dull
	}
	return fine
}

// A crashSender is a sender that outlives the router. It numbers its messages from 1
// on and connects again whenever the connection breaks.
type crashSender struct {
	name    string
	socket  string
	resumes bool         // asks the source where to go on
	plain   bool         // no acknowledgements: an ordinary stream of syslog
	pad     atomic.Int64 // bytes of a message, about
	pause   time.Duration
	filters bool // some are dropped
	rng     *rand.Rand

	quiet, gone atomic.Bool // makes no more messages; is to end
	restored    atomic.Bool // what the router knows of it was put back
	made        atomic.Uint64
	ackedUpTo   atomic.Uint64 // how many acknowledgements there were; of a sender that resumes, the number up to which there is no gap

	mu     sync.Mutex
	acked  map[uint64]bool
	broken [][2]uint64 // of plain: first and last number of each connection
	wrong  []string
	ended  chan struct{}
}

func newCrashSender(name, socket string, seed uint64) *crashSender {
	s := &crashSender{name: name, socket: socket, rng: rand.New(rand.NewPCG(seed, uint64(len(name))+uint64(name[0]))),
		acked: map[uint64]bool{}, ended: make(chan struct{})}
	s.pad.Store(60)
	return s
}

func (s *crashSender) start() *crashSender {
	go func() {
		defer close(s.ended)
		for !s.gone.Load() {
			c, err := net.Dial("unix", s.socket)
			if err != nil {
				time.Sleep(2 * time.Millisecond)
				continue
			}
			switch {
			case s.plain:
				s.stream(c)
			default:
				s.talk(c)
			}
			c.Close()
		}
	}()
	return s
}

// text is message n without the sender's name and number.
func (s *crashSender) text(n uint64) string {
	return wordOf(n) + " " + strings.Repeat("x", int(s.pad.Load()))
}

// talk is one connection to the source that acknowledges.
func (s *crashSender) talk(c net.Conn) {
	answers := bufio.NewReader(c)
	next := s.made.Load()
	if s.resumes {
		fmt.Fprintf(c, "%s resume\n", s.name)
		var last uint64
		if _, err := fmt.Fscanf(answers, "last %d\n", &last); err != nil {
			return
		}
		next = s.resume(last)
	} else {
		fmt.Fprintf(c, "%s\n", s.name)
	}
	closed := make(chan struct{})
	window := 1 + s.rng.IntN(300)
	var here atomic.Int64 // answers on this connection
	go func() {
		defer close(closed)
		s.hear(answers, &here)
	}()
	defer func() { c.Close(); <-closed }()
	for sent := 0; ; {
		select {
		case <-closed:
			return
		default:
		}
		if s.gone.Load() {
			return
		}
		quiet := s.quiet.Load() && (!s.resumes || next >= s.made.Load())
		if quiet || sent-int(here.Load()) >= window {
			time.Sleep(time.Millisecond)
			continue
		}
		var out []byte
		for range 1 + s.rng.IntN(20) {
			if s.resumes && s.quiet.Load() && next >= s.made.Load() {
				break
			}
			next++
			if next > s.made.Load() {
				s.made.Store(next)
			}
			out = fmt.Appendf(out, "%d %s\n", next, s.text(next))
			sent++
		}
		if _, err := c.Write(out); err != nil {
			return
		}
		if s.rng.IntN(100) == 0 {
			return // connects again, while the router still has what was sent
		}
		s.rest()
	}
}

func (s *crashSender) rest() {
	if s.pause > 0 {
		time.Sleep(time.Duration(s.rng.Int64N(int64(s.pause) * 2)))
	}
}

// resume says where to go on: behind what the source has, or what it acknowledged, and forgot because
// its state was put back.
func (s *crashSender) resume(last uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	acked := s.ackedUpTo.Load()
	for n := last + 1; n <= acked && !s.restored.Load(); n++ {
		if !s.filters || wordOf(n) != dull { // of what a filter drops nothing is kept
			s.wrong = append(s.wrong, fmt.Sprintf("asked to go on behind %d, but %d was acknowledged", last, acked))
			break
		}
	}
	last = max(last, acked)
	s.ackedUpTo.Store(last) // it is told that the router has them
	if last > s.made.Load() {
		s.wrong = append(s.wrong, fmt.Sprintf("asked to go on behind %d, but only %d were ever made", last, s.made.Load()))
	}
	return last
}

// hear reads answers until the connection ends. What the router has said before it died is still read.
func (s *crashSender) hear(answers *bufio.Reader, here *atomic.Int64) {
	for {
		var word string
		var n uint64
		if _, err := fmt.Fscanf(answers, "%s %d\n", &word, &n); err != nil {
			return
		}
		here.Add(1)
		if word != "ack" {
			continue
		}
		s.mu.Lock()
		if s.acked[n] && !s.resumes {
			s.wrong = append(s.wrong, fmt.Sprintf("%d was acknowledged twice", n))
		}
		s.acked[n] = true
		upTo := s.ackedUpTo.Load() + 1
		for s.resumes && s.acked[upTo] { // not in order: what a filter drops is acknowledged at once
			upTo++
		}
		if s.resumes {
			upTo--
		}
		s.ackedUpTo.Store(upTo)
		s.mu.Unlock()
	}
}

// stream is one connection to weir's own source.
func (s *crashSender) stream(c net.Conn) {
	first := s.made.Load() + 1
	defer func() {
		if last := s.made.Load(); last >= first {
			s.mu.Lock()
			s.broken = append(s.broken, [2]uint64{first, last})
			s.mu.Unlock()
		}
	}()
	for !s.gone.Load() {
		if s.quiet.Load() {
			time.Sleep(time.Millisecond)
			continue
		}
		n := s.made.Add(1)
		severity := 14
		if wordOf(n) == dull {
			severity = 15
		}
		if _, err := fmt.Fprintf(c, "<%d>1 - host %s - - - %s %d %s\n", severity, s.name, s.name, n, s.text(n)); err != nil {
			return
		}
		if n%8 == 0 {
			s.rest()
		}
	}
}

// settled reports whether a sender that was told to be quiet has nothing open.
func (s *crashSender) settled() bool {
	return !s.resumes || s.ackedUpTo.Load() >= s.made.Load()
}

// end stops the sender and waits for it.
func (s *crashSender) end() {
	s.gone.Store(true)
	<-s.ended
}
