package spool

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

// arrive appends messages that come just now.
func arrive(t *testing.T, s *Spool, n int) {
	t.Helper()
	msgs := texts(numbered(0, n, 100)...)
	for _, m := range msgs {
		m.Received = time.Now().UnixNano()
	}
	if _, err := s.Append(msgs, router.Mark{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
}

func TestTheOldestIsTheFirstThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := open(newMemDisk(), Config{Size: 64 << 20}, silent)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		want := func(least, most time.Duration) {
			t.Helper()
			if age := time.Since(s.Backlog().Oldest); age < least || age > most {
				t.Errorf("the oldest is %v old, want %v to %v", age, least, most)
			}
		}
		for range 3 * mostArrivals { // a quiet day, all delivered
			time.Sleep(7 * time.Minute)
			arrive(t, s, 1)
			want(0, 0)
			s.Ack(s.Run(), s.next-1)
			if b := s.Backlog(); !b.Oldest.IsZero() || b.Waiting != 0 {
				t.Fatal(b)
			}
		}
		arrive(t, s, 1)
		time.Sleep(time.Hour)
		want(time.Hour, time.Hour)
		var came []time.Time // ten an hour, for ten days
		first := s.next
		for range 2400 {
			time.Sleep(6 * time.Minute)
			came = append(came, time.Now())
			arrive(t, s, 1)
		}
		for i := 0; i < len(came); i += 97 {
			s.Ack(s.Run(), first-1+uint64(i))
			age := time.Since(came[i])
			want(age, age+10*24*time.Hour/16)
		}
		s.Ack(s.Run(), s.next-1)
		for range 600 { // a stream, always two behind
			time.Sleep(100 * time.Millisecond)
			arrive(t, s, 1)
			s.Ack(s.Run(), s.next-3)
			want(0, 1300*time.Millisecond)
		}
		if n := len(s.active.arrivals); n > mostArrivals {
			t.Errorf("%d arrivals are kept", n)
		}
	})
}

func TestTheOldestOfAnEarlierProcessIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := openAt(t, dir, Config{})
		began := time.Now()
		for range 100 {
			arrive(t, s, 1)
			time.Sleep(time.Minute)
		}
		run := s.Run()
		s.Ack(run, 40)
		s.Close()
		is := func(what string, got time.Time, number int) {
			t.Helper()
			if want := began.Add(time.Duration(number-1) * time.Minute); !got.Equal(want) {
				t.Errorf("%s: the oldest came at %v, want %v", what, got, want)
			}
		}
		sum, err := Look(dir)
		if err != nil {
			t.Fatal(err)
		}
		is("Look", sum.Oldest, 41)
		s = openAt(t, dir, Config{})
		defer s.Close()
		is("Open", s.Backlog().Oldest, 41)
		for range 3 {
			b := router.NewBatch(1<<20, 10)
			if _, _, _, err := s.Read(b, 1<<20); err != nil {
				t.Fatal(err)
			}
			b.Discard()
		}
		s.Ack(run, 50)
		is("after a read", s.Backlog().Oldest, 51)
		s.Ack(run, 60)
		is("after a second one", s.Backlog().Oldest, 61)
	})
}

func TestWaitingBytesAreThoseThatAreNotDelivered(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, Config{segment: 64 << 10})
	defer s.Close()
	for i := range 20 {
		add(t, s, numbered(10*i, 10, 1000)...)
	}
	all := s.Backlog()
	if took := Bytes(dir); took != all.Bytes {
		t.Errorf("the segments have %d bytes, want %d", took, all.Bytes)
	}
	if all.Waiting > all.Bytes || all.Waiting < 200*1000 {
		t.Fatal(all)
	}
	for acked := uint64(0); acked <= 200; acked += 25 {
		s.Ack(s.Run(), acked)
		want := all.Waiting * int64(200-acked) / 200
		if b := s.Backlog(); b.Bytes < all.Bytes || b.Waiting < want-4000 || b.Waiting > want+4000 {
			t.Errorf("%d of 200 delivered: %d of %d bytes wait, want about %d", acked, b.Waiting, b.Bytes, want)
		}
	}
}
