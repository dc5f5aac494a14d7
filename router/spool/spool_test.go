package spool

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/router"
)

var _ router.Spool = (*Spool)(nil)

var silent = slog.New(slog.DiscardHandler)

func openAt(t *testing.T, dir string, c Config) *Spool {
	t.Helper()
	if c.Size == 0 {
		c.Size = 64 << 20
	}
	s, err := Open(dir, c, silent)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var origin = &router.Origin{Source: "edge", Listener: "tcp://127.0.0.1:5514", Peer: "192.0.2.1"}

func texts(all ...string) (msgs []*router.Message) {
	for i, text := range all {
		m := &router.Message{Origin: origin, Received: int64(1767225600e9) + int64(i), Raw: []byte("<13>" + text)}
		m.Text, m.Facility, m.Severity = m.Raw[4:], 1, 5
		msgs = append(msgs, m)
	}
	return msgs
}

func add(t *testing.T, s *Spool, all ...string) {
	t.Helper()
	if _, err := s.Append(texts(all...), router.Mark{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
}

// numbered are n texts of about so many bytes.
func numbered(from, n, size int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%0*d", size, from+i))
	}
	return all
}

type item struct {
	run    router.RunID
	number uint64
	text   string
}

// drain reads all there is.
func drain(t *testing.T, s *Spool) (all []item, lost int) {
	t.Helper()
	for {
		b := router.NewBatch(32<<20, 1000)
		run, first, n, err := s.Read(b, 1<<20)
		lost += n
		if err == io.EOF {
			b.Discard()
			return all, lost
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range b.Messages() {
			all = append(all, item{run, first + uint64(i), string(m.Text)})
		}
		b.Discard()
	}
}

func wantTexts(t *testing.T, got []item, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d messages, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].text != want[i] {
			t.Fatalf("message %d is %.40q, want %.40q", i, got[i].text, want[i])
		}
	}
}

func TestWhatIsSyncedIsReadInOrder(t *testing.T) {
	s := openAt(t, t.TempDir(), Config{})
	defer s.Close()
	if first, err := s.Append(texts("a", "b"), router.Mark{}); first != 1 || err != nil {
		t.Fatal(first, err)
	}
	if got, _ := drain(t, s); len(got) > 0 {
		t.Error("what is not synced is read")
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	got, lost := drain(t, s)
	if wantTexts(t, got, "a", "b"); lost > 0 || got[1].number != 2 || got[0].run != s.Run() {
		t.Error(got, lost)
	}
	if first, _ := s.Append(texts("c"), router.Mark{}); first != 3 {
		t.Error(first)
	}
	s.Sync()
	got, _ = drain(t, s)
	wantTexts(t, got, "c")
	if b := s.Backlog(); b.Messages != 3 || b.Oldest.UnixNano() != 1767225600e9 {
		t.Error(b)
	}
	s.Ack(s.Run(), 2)
	if b := s.Backlog(); b.Messages != 1 || b.Limit != 64<<20 {
		t.Error(b)
	}
}

func TestWhatIsNotAcknowledgedIsThereAfterwards(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, Config{})
	add(t, s, "a", "b", "c")
	first := s.Run()
	s.Ack(first, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, dir, Config{})
	if n := s.Backlog().Messages; n != 1 {
		t.Error(n, "messages are left")
	}
	add(t, s, "d")
	got, lost := drain(t, s)
	if wantTexts(t, got, "c", "d"); lost > 0 || got[0].run != first || got[0].number != 3 || got[1].run != s.Run() || got[1].number != 1 {
		t.Error(got, lost)
	}
	if more := s.Rewind(true); more != 4 {
		t.Error(more, "messages more after a rewind")
	}
	got, _ = drain(t, s)
	wantTexts(t, got, "a", "b", "c", "d")
	s.Rewind(true)
	if n := s.Seek(first, 1); n != 1 {
		t.Error(n, "messages passed by")
	}
	got, _ = drain(t, s)
	wantTexts(t, got, "b", "c", "d")
	s.Ack(first, 1)
	if more := s.Rewind(false); more != 3 {
		t.Error(more, "messages more are not acknowledged")
	}
	if n := s.Seek(first, 3); n != 2 {
		t.Error(n, "messages passed by")
	}
	if n := s.Seek(first, 2) + s.Seek(router.NewRun(), 1); n != 0 {
		t.Error("the reader moved", n)
	}
	got, _ = drain(t, s)
	wantTexts(t, got, "d")
	s.Close()
}

func TestTheEndsOfManySegmentsMeet(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, Config{Size: 16 << 20})
	var want []string
	for i := 0; i < 5000; i += 100 {
		all := numbered(i, 100, 1000)
		want = append(want, all...)
		add(t, s, all...)
	}
	got, lost := drain(t, s)
	if wantTexts(t, got, want...); lost > 0 {
		t.Error(lost, "lost")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.seg"))
	if len(files) < 5 {
		t.Error(len(files), "segments")
	}
	var size int64
	for _, f := range files {
		info, _ := os.Stat(f)
		size += info.Size()
	}
	if b := s.Backlog(); b.Bytes != size || b.Messages != 5000 {
		t.Error(b, size)
	}
	s.Close()
	s = openAt(t, dir, Config{Size: 16 << 20})
	got, lost = drain(t, s)
	if wantTexts(t, got, want...); lost > 0 {
		t.Error(lost, "lost")
	}
	s.Close()
}
