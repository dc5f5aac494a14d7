package spool

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestSegmentsThatCannotBeRemovedCountAndAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		s, err := open(d, Config{Size: 1 << 20, segment: 16 << 10}, silent)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range 10 {
			add(t, s, numbered(10*i, 10, 1000)...)
		}
		all := s.Backlog().Bytes
		honest := func(when string) {
			t.Helper()
			s.noteAcked()
			d.mu.Lock()
			defer d.mu.Unlock()
			var used int64
			for name, f := range d.names {
				if name != ackedName {
					used += int64(len(f.data))
				}
			}
			if got := s.Backlog().Bytes; got != used {
				t.Errorf("%s: %d bytes are counted, %d are there", when, got, used)
			}
		}
		broken := func(op string) error {
			if op == "remove" {
				return syscall.EIO
			}
			return nil
		}
		d.fails(broken)
		s.Ack(s.Run(), 95)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		honest("while the disk fails")
		if got := s.Backlog(); got.Bytes != all || got.Messages != 5 {
			t.Error(got, all)
		}
		d.fails(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		honest("after it")
		if got := s.Backlog(); got.Bytes > 32<<10 || got.Messages != 5 {
			t.Error(got)
		}

		for i := range 10 {
			add(t, s, numbered(10*i, 10, 1000)...)
		}
		d.fails(broken)
		if n, err := s.DropOldest(); n == 0 || err == nil {
			t.Error(n, err)
		}
		honest("after one was given up")
		if n, err := s.DropOldest(); n != 0 || err == nil {
			t.Errorf("%d more are given up in vain (%v)", n, err)
		}
		d.fails(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		honest("a minute later")
		if n, err := s.DropOldest(); n == 0 || err != nil {
			t.Error(n, err)
		}
	})
}
