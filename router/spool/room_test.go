package spool

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/router"
)

func segments(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// Field case C61: what is delivered goes, and how far is known after a restart.
func TestSpentSegmentsGoAMinuteLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := openAt(t, dir, Config{segment: 16 << 10})
		for i := range 10 {
			add(t, s, numbered(10*i, 10, 1000)...)
		}
		before := segments(t, dir)
		s.Ack(s.Run(), 100)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n := segments(t, dir); n != before || before < 5 {
			t.Errorf("%d of %d segments after 59 s", n, before)
		}
		if more := s.Rewind(true); more != 100 {
			t.Errorf("%d messages are there for a destination that went back", more)
		}
		s.Ack(s.Run(), 100)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if n := segments(t, dir); n != 1 {
			t.Errorf("%d segments after a minute", n)
		}
		if b := s.Backlog(); b.Messages != 0 || !b.Oldest.IsZero() || b.Bytes > 17<<10 {
			t.Error(b)
		}
		s.Close()
	})
}

func TestTheAcknowledgedPlaceIsNotedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		notes := 0
		d.fails(func(op string) error {
			if op == "replace" {
				notes++
			}
			return nil
		})
		s, err := open(d, Config{Size: 1 << 20}, silent)
		if err != nil {
			t.Fatal(err)
		}
		add(t, s, numbered(0, 100, 10)...)
		for i := range 100 {
			s.Ack(s.Run(), uint64(i+1))
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		if notes < 5 || notes > 6 {
			t.Error(notes, "notes in 5 s")
		}
		close(s.done) // killed
		s.keeping.Wait()
		time.Sleep(time.Second)
		s = reopen(t, d)
		if n := s.Backlog().Messages; n > 20 {
			t.Error(n, "of 100 messages are delivered again after a kill")
		}
		s.Close()
	})
}

// Else a database that was put back while weir was down would lack them, and nobody could tell.
func TestWhatIsRemovedIsKnownToBeAcknowledgedAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDisk()
		s, err := open(d, Config{Size: 200 << 10, segment: 16 << 10}, silent)
		if err != nil {
			t.Fatal(err)
		}
		add(t, s, numbered(0, 10, 10)...)
		s.Ack(s.Run(), 5)
		synctest.Wait() // noted, and not again for a second
		for i := range 50 {
			add(t, s, numbered(i*10, 10, 1000)...)
			s.Ack(s.Run(), s.next-1)
		}
		run, oldest := s.Run(), s.segments[0].first
		close(s.done) // killed
		s.keeping.Wait()
		s = reopen(t, d)
		if got, at := s.Acked(); oldest < 100 || got != run || at < oldest-1 {
			t.Errorf("messages before %d are gone; acknowledged up to %d of run %v, want %v", oldest, at, got, run)
		}
		s.Close()
	})
}

func TestSpentSegmentsGoAtOnceWhenThereIsNoRoom(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, Config{Size: 200 << 10, segment: 16 << 10})
	defer s.Close()
	fill := func() (n int) {
		for {
			_, err := s.Append(texts(numbered(0, 10, 1000)...), router.Mark{})
			if errors.Is(err, router.ErrSpoolFull) {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Sync(); err != nil {
				t.Fatal(err)
			}
			if b := s.Backlog(); b.Bytes > b.Limit {
				t.Fatal(b)
			}
			n += 10
		}
	}
	n := fill()
	if n < 80 {
		t.Error(n, "messages of 1000 bytes fit in 200 KiB")
	}
	s.Ack(s.Run(), uint64(n/2))
	if m := fill(); m < n/2-30 {
		t.Errorf("half of %d are acknowledged, room for %d", n, m)
	}
	s.Ack(s.Run(), s.next-1)
	if m := fill(); m < n-20 {
		t.Errorf("all are acknowledged, room for %d of %d", m, n)
	}
	s.Ack(s.Run(), s.next-1)
	if _, err := s.Append(texts(numbered(0, 1, 500<<10)...), router.Mark{}); err != nil {
		t.Error("an empty spool does not take a batch that is larger than it:", err)
	}
}

func TestDropOldestLeavesWhatIsBeingRead(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, Config{segment: 16 << 10})
	defer s.Close()
	for i := range 10 {
		add(t, s, numbered(10*i, 10, 1000)...)
	}
	b := router.NewBatch(1<<20, 5)
	defer b.Discard()
	if _, first, _, err := s.Read(b, 1<<20); first != 1 || err != nil {
		t.Fatal(first, err)
	}
	n, err := s.DropOldest()
	if n == 0 || err != nil {
		t.Fatal(n, err)
	}
	got, lost := drain(t, s)
	if lost > 0 || len(got) != 95-n || got[0].number != 6 {
		t.Errorf("dropped %d, read %d from %v on, %d lost", n, len(got), got[0], lost)
	}
	for {
		m, err := s.DropOldest()
		if err != nil {
			t.Fatal(err)
		}
		if m == 0 {
			break
		}
		t.Errorf("%d messages that were read are dropped", m)
	}
	if b := s.Backlog(); b.Messages != 100-n {
		t.Error(b)
	}
}

func TestOldMessagesExpireByTheMonotonicClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c := Config{Age: time.Hour}
		s := openAt(t, dir, c)
		for range 6 {
			add(t, s, "a", "b")
			time.Sleep(20 * time.Minute)
			if n := s.Expire(); n != 0 {
				add(t, s, "c")
				time.Sleep(time.Hour + time.Minute)
				n += s.Expire()
				if b := s.Backlog(); b.Messages != 0 {
					t.Error(b)
				}
				break
			}
		}
		add(t, s, "new")
		if got, lost := drain(t, s); lost > 0 || len(got) != 1 || got[0].text != "new" {
			t.Error(got, lost)
		}
		// What was read is not given up.
		time.Sleep(3 * time.Hour)
		if n := s.Expire(); n != 0 {
			t.Error(n, "messages that were read expire")
		}
		s.Rewind(false)
		if n := s.Expire(); n != 1 {
			t.Error(n)
		}
		s.Close()
	})
}

// The clock in a synctest bubble begins in 2000: a box that does not know the time.
func TestAgesOfAnEarlierProcessWaitForATrustedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c := Config{Age: 24 * time.Hour}
		s := openAt(t, dir, c)
		add(t, s, "a") // arrived in 2026, if one were to believe it
		s.Close()
		s = openAt(t, dir, c)
		time.Sleep(23 * time.Hour)
		if n := s.Expire(); n != 0 {
			t.Error("the clock was trusted")
		}
		time.Sleep(2 * time.Hour)
		if n := s.Expire(); n != 1 {
			t.Error("a day has passed since", n)
		}
		s.Close()
	})
	dir := t.TempDir()
	c := Config{Age: 24 * time.Hour}
	s := openAt(t, dir, c)
	msgs := texts("a")
	msgs[0].Received = max(router.Built().UnixNano()+1, time.Now().Add(-48*time.Hour).UnixNano())
	if _, err := s.Append(msgs, router.Mark{}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = openAt(t, dir, c)
	defer s.Close()
	want := 0
	if time.Since(time.Unix(0, msgs[0].Received)) > 24*time.Hour {
		want = 1
	}
	if n := s.Expire(); n != want {
		t.Error(n, "expired, want", want)
	}
}

func TestMarksOutliveTheirSegments(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, Config{segment: 16 << 10, Size: 100 << 10})
	long := string(make([]byte, 1000))
	marked := func(sender string, last uint64) {
		t.Helper()
		if _, err := s.Append(texts("x"), router.Mark{Sender: sender, Last: last}); err != nil {
			t.Fatal(err)
		}
	}
	marked("once", 7)
	marked(long, 9)
	marked("back", 5)
	marked("back", 3)
	for range 20 {
		add(t, s, numbered(0, 10, 1000)...)
		s.Ack(s.Run(), s.next-1)
	}
	check := func() {
		t.Helper()
		if s.Last("once") != 7 || s.Last(long) != 9 || s.Last("back") != 5 || s.Last("nobody") != 0 {
			t.Error(s.Last("once"), s.Last(long), s.Last("back"), s.Last("nobody"))
		}
	}
	check()
	if s.segments[0].seq == 1 {
		t.Fatal("the first segment is still there")
	}
	for range 3 { // the last time nothing was appended before
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openAt(t, dir, Config{segment: 16 << 10, Size: 100 << 10})
		check()
	}
	s.Close()
}

func TestMarksAreBounded(t *testing.T) {
	var k marks
	for i := range 3 * mostMarks {
		k.set(router.Mark{Sender: numbered(i, 1, 8)[0], Last: 1})
		k.set(router.Mark{Sender: "steady", Last: uint64(i)})
	}
	if len(k.of) > mostMarks || k.of["steady"].last != 3*mostMarks-1 {
		t.Error(len(k.of), k.of["steady"])
	}
	var again marks
	if data := k.append(nil); !again.read(appendHeader(nil, prefix{first: 1}, data)[marksAt:]) || len(again.of) != len(k.of) {
		t.Error(len(again.of))
	}
}

func TestAFailedSyncLosesNothing(t *testing.T) {
	d := newMemDisk()
	s, err := open(d, Config{Size: 1 << 20}, silent)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, "a", "b")
	fails := 1
	d.fails(func(op string) error {
		if op == "sync" && fails > 0 {
			fails--
			return syscall.EIO
		}
		return nil
	})
	add(t, s, "c") // works: it is written again, to a new segment
	fails = 3
	if _, err := s.Append(texts("d", "e"), router.Mark{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	d.fails(nil)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	got, lost := drain(t, s)
	if wantTexts(t, got, "a", "b", "c", "d", "e"); lost > 0 || got[4].number != 5 {
		t.Error(got, lost)
	}
	for name, f := range d.names { // as after a power cut
		f.data = f.synced
		d.names[name] = f
	}
	close(s.done)
	s.keeping.Wait()
	got, lost = drain(t, reopen(t, d))
	if wantTexts(t, got, "a", "b", "c", "d", "e"); lost > 0 {
		t.Error(got, lost)
	}
}

// A header is durable before the messages that a failed sync left: it must not speak for them.
func TestAMarkIsNotNotedBeforeItsMessages(t *testing.T) {
	d := newMemDisk()
	s, err := open(d, Config{Size: 1 << 20}, silent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(texts("a"), router.Mark{Sender: "x", Last: 1}); err != nil || s.Last("x") != 1 {
		t.Fatal(err)
	}
	syncs := 0
	d.fails(func(op string) error {
		if op == "sync" { // of the segment, of the seal, of the new segment's header, of its messages
			if syncs++; syncs != 3 {
				return syscall.EIO
			}
		}
		if op == "remove" {
			return syscall.EIO
		}
		return nil
	})
	if err := s.Sync(); err == nil || syncs != 4 {
		t.Fatal(err, syncs)
	}
	close(s.done)
	s.keeping.Wait()
	d.fails(nil)
	for _, f := range d.names { // a power cut
		f.data = f.synced
	}
	s = reopen(t, d)
	if got, _ := drain(t, s); len(got) > 0 || s.Last("x") != 0 {
		t.Error(got, s.Last("x"))
	}
}

func TestAFullDiskIsWaitedFor(t *testing.T) {
	d := newMemDisk()
	d.size = 50 << 10
	s, err := open(d, Config{Size: 1 << 20, segment: 16 << 10}, silent)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	for ; ; n++ {
		if _, err = s.Append(texts(numbered(n, 1, 1000)...), router.Mark{}); err != nil {
			break
		}
		s.Sync()
	}
	if !errors.Is(err, syscall.ENOSPC) || n < 20 {
		t.Fatal(n, err)
	}
	d.size *= 2
	add(t, s, numbered(n, 1, 1000)...)
	got, lost := drain(t, s)
	if wantTexts(t, got, numbered(0, n+1, 1000)...); lost > 0 {
		t.Error(lost, "lost")
	}
	s.config.KeepFree = d.size
	if _, err := s.Append(texts("x"), router.Mark{}); !errors.Is(err, router.ErrSpoolFull) {
		t.Error("what is to stay free was used:", err)
	} else if !strings.Contains(err.Error(), "of its file system are free, and keep_free is ") {
		t.Error("the reason is not told:", err)
	}
}

func TestReaderAndAppenderAtOnce(t *testing.T) {
	s := openAt(t, t.TempDir(), Config{Size: 4 << 20, segment: 64 << 10})
	defer s.Close()
	const messages = 4000
	var both sync.WaitGroup
	both.Go(func() {
		for i := 0; i < messages; {
			_, err := s.Append(texts(numbered(i, 10, 200)...), router.Mark{Sender: "x", Last: uint64(i)})
			if err != nil {
				time.Sleep(time.Millisecond)
				continue
			}
			s.Sync()
			s.Expire()
			i += 10
		}
	})
	both.Go(func() {
		for n := uint64(0); n < messages; {
			b := router.NewBatch(1<<20, 100)
			_, first, lost, err := s.Read(b, 1<<20)
			switch {
			case err == io.EOF:
				time.Sleep(time.Millisecond)
			case err != nil || lost > 0 || first != n+1:
				t.Error(first, lost, err)
				n = messages
			default:
				for i, m := range b.Messages() {
					if string(m.Text) != numbered(int(n)+i, 1, 200)[0] {
						t.Errorf("message %d is %s", n, m.Text)
					}
				}
				n += uint64(b.Len())
				s.Ack(s.Run(), n)
				s.Last("x")
				s.Backlog()
			}
			b.Discard()
		}
	})
	both.Wait()
}
