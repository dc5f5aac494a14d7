package spool

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/router"
)

// filled is a closed spool of n messages in one or more segments.
func filled(t testing.TB, n, size int, segment int64) (*memDisk, router.RunID) {
	t.Helper()
	d := newMemDisk()
	s, err := open(d, Config{Size: 64 << 20, segment: segment}, silent)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := s.Append(texts(numbered(i+1, 1, size)...), router.Mark{Sender: "tester", Last: uint64(i + 1)}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			s.Sync()
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return d, s.run
}

func reopen(t testing.TB, d *memDisk) *Spool {
	t.Helper()
	s, err := open(d, Config{Size: 64 << 20, segment: 16 << 10}, silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-s.done: // the test closed it
		default:
			s.Close()
		}
	})
	return s
}

func TestAnUnfinishedEndIsCutOff(t *testing.T) {
	whole, run := filled(t, 10, 50, 16<<10)
	name := (&segment{seq: 1}).name()
	data := whole.names[name].data
	end := len(data) - sealSize
	step := (end - bytes.Index(data, recordMagic)) / 10
	for n := end - step + 1; n < end; n++ { // the last message is there in part
		d := newMemDisk()
		f := &memFile{disk: d, data: slices.Clone(data[:n])}
		d.names[name], d.durable[name] = f, f
		s := reopen(t, d)
		got, lost := drain(t, s)
		if wantTexts(t, got, numbered(1, 9, 50)...); lost > 0 || got[0].run != run {
			t.Fatalf("%d bytes: %d lost", n, lost)
		}
		if s.Last("tester") != 9 {
			t.Fatal(s.Last("tester"))
		}
		if len(f.data) != end-step+sealSize {
			t.Fatalf("%d bytes are left, want %d", len(f.data), end-step+sealSize)
		}
		s.Close()
	}
}

func TestASegmentThatWasNotBegunIsRemoved(t *testing.T) {
	whole, _ := filled(t, 5, 50, 16<<10)
	name := (&segment{seq: 2}).name()
	header := appendHeader(nil, prefix{run: router.NewRun(), first: 1, seq: 2}, nil)
	for _, n := range []int{0, 1, prefixSize, copyAt + 10, len(header) - 1} {
		for _, zero := range []bool{false, true} { // the size was written, the data was not
			f := &memFile{disk: whole, data: slices.Clone(header[:n])}
			if zero {
				clear(f.data)
			}
			whole.names[name] = f
			s := reopen(t, whole)
			if got, lost := drain(t, s); len(got) != 5 || lost > 0 {
				t.Errorf("%d bytes: %d messages, %d lost", n, len(got), lost)
			}
			s.Close()
			if whole.names[name] != nil {
				t.Errorf("%d bytes: it is still there", n)
			}
		}
	}
}

func TestOneCopyOfAHeaderIsEnough(t *testing.T) {
	for _, at := range []int{0, 9, 20, 40, copyAt, copyAt + 9, copyAt + 20} {
		d, _ := filled(t, 10, 50, 16<<10)
		d.names[(&segment{seq: 1}).name()].data[at] ^= 0xff
		s := reopen(t, d)
		if got, lost := drain(t, s); len(got) != 10 || lost > 0 {
			t.Errorf("byte %d: %d messages, %d lost", at, len(got), lost)
		}
	}
}

func TestASegmentWithoutHeaderIsLostAndCounted(t *testing.T) {
	d, _ := filled(t, 30, 2000, 16<<10)
	n := len(d.names)
	hurt := (&segment{seq: 2}).name()
	d.names[hurt].data[30] ^= 1
	d.names[hurt].data[copyAt+30] ^= 1
	s := reopen(t, d)
	if b := s.Backlog(); b.Messages != 30 {
		t.Error(b, "of 30 in", n, "segments")
	}
	got, lost := drain(t, s)
	if lost < 3 || len(got)+lost != 30 {
		t.Errorf("%d messages, %d lost", len(got), lost)
	}
	s.Ack(got[len(got)-1].run, got[len(got)-1].number)
	if b := s.Backlog(); b.Messages != 0 {
		t.Error(b)
	}
}

func TestDamageAtTheEndIsSettledWithWhatIsBeforeIt(t *testing.T) {
	d, run := filled(t, 10, 50, 16<<10)
	f := d.names[(&segment{seq: 1}).name()]
	for _, n := range []int{9, 10} {
		f.data[bytes.Index(f.data, []byte(numbered(n, 1, 50)[0]))] ^= 1
	}
	s := reopen(t, d)
	b := router.NewBatch(1<<20, 100)
	defer b.Discard()
	if _, _, lost, err := s.Read(b, 1<<20); b.Len() != 8 || lost != 0 || err != nil {
		t.Fatal(b.Len(), lost, err)
	}
	s.Ack(run, 8)
	if n := s.Backlog().Messages; n != 2 {
		t.Error(n, "messages before the end is read")
	}
	if _, _, lost, err := s.Read(b, 1<<20); lost != 2 || err != io.EOF {
		t.Fatal(lost, err)
	}
	if n := s.Backlog().Messages; n != 0 {
		t.Error(n, "messages that nobody can read are waited for")
	}
}

func TestAnotherFormatIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, Config{})
	add(t, s, "a")
	s.Close()
	old := filepath.Join(dir, (&segment{seq: 2}).name())
	for _, v := range []byte{0, 2} {
		data := appendHeader(nil, prefix{run: router.NewRun(), first: 1, seq: 2}, nil)
		for _, at := range []int{0, copyAt} {
			data[at+8] = v
			copy(data[at+60:], []byte{1, 2, 3, 4}) // whatever its sum is then
		}
		if v == 0 {
			continue
		}
		if err := os.WriteFile(old, append(data, "whatever"...), 0o600); err != nil {
			t.Fatal(err)
		}
		before := contents(t, dir)
		_, err := Open(dir, Config{Size: 64 << 20}, silent)
		if err == nil || !strings.Contains(err.Error(), "newer weir (format 2, this one knows 1)") {
			t.Errorf("format %d: %v", v, err)
		}
		if !maps.Equal(before, contents(t, dir)) {
			t.Error("something was changed")
		}
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

func TestASecondWeirIsKeptOut(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, Config{})
	if _, err := Open(dir, Config{Size: 64 << 20}, silent); err == nil || !strings.Contains(err.Error(), "used by another weir") {
		t.Error(err)
	}
	s.Close()
	openAt(t, dir, Config{}).Close()
}

func TestWhatLooksLikeARecordInAMessageIsNone(t *testing.T) {
	d, run := filled(t, 3, 50, 16<<10)
	s := reopen(t, d)
	fake := appendRecord(nil, sum(run[:]), 1000, 0, texts("forged")[0], router.Mark{})
	other := appendRecord(nil, s.runSum, 0, 0, texts("forged")[0], router.Mark{})
	add(t, s, "x"+string(fake)+string(other), "after")
	s.Close()
	for _, f := range d.names { // the header of the record around them is damaged
		if i := bytes.Index(f.data, []byte("<13>x")); i >= 0 {
			from := bytes.LastIndex(f.data[:i], recordMagic)
			f.data[from+9] ^= 1
		}
	}
	got, lost := drain(t, reopen(t, d))
	if wantTexts(t, got, append(numbered(1, 3, 50), "after")...); lost != 1 {
		t.Error(lost, "lost")
	}
}

// FuzzSegment changes bytes of the segments. What is read is what was written, in order; what is not hit is read.
func FuzzSegment(f *testing.F) {
	f.Add(uint64(1), uint16(3), false)
	f.Add(uint64(2), uint16(1), true)
	f.Add(uint64(3), uint16(40), false)
	f.Fuzz(func(t *testing.T, seed uint64, changes uint16, cut bool) {
		r := rand.New(rand.NewPCG(seed, 0))
		d, run := filled(t, 60, 100+int(seed%700), 8<<10)
		texts := numbered(1, 60, 100+int(seed%700))
		// The records as the scanner sees them before anything is changed.
		type span struct {
			name     string
			from, to int64
		}
		where := map[uint64]span{}
		names := slices.Sorted(maps.Keys(d.names))
		heads := map[string]int{}
		for _, name := range names {
			if name == ackedName {
				continue
			}
			n, err := inspect(d, name, seqOf(t, name))
			if err != nil {
				t.Fatal(err)
			}
			sc := newScanner(d.names[name], n.run, n.begin, n.size, n.first, nil)
			for rec, err := sc.next(); err == nil; rec, err = sc.next() {
				if rec.kind == kindMessage {
					where[rec.number] = span{name, rec.offset, rec.offset + rec.size}
				}
			}
		}
		if len(where) != 60 {
			t.Fatal(len(where))
		}
		hit := map[uint64]bool{}
		for range int(changes) % 64 {
			name := names[r.IntN(len(names))]
			if name == ackedName {
				continue
			}
			data := d.names[name].data
			at := int64(r.IntN(len(data)))
			data[at] ^= byte(1 + r.IntN(255))
			if at < prefixSize || at >= copyAt && at < marksAt {
				heads[name]++
			}
			for n, w := range where {
				if w.name == name && at >= w.from && at < w.to {
					hit[n] = true
				}
			}
		}
		if cut {
			name := names[r.IntN(len(names))]
			if name != ackedName {
				size := int64(r.IntN(len(d.names[name].data)))
				d.names[name].data = d.names[name].data[:size]
				if size < marksAt+64 {
					heads[name] = 2
				}
				for n, w := range where {
					if w.name == name && w.to > size {
						hit[n] = true
					}
				}
			}
		}
		for n, w := range where {
			if heads[w.name] > 1 {
				hit[n] = true
			}
		}
		s, err := open(d, Config{Size: 64 << 20, segment: 8 << 10}, silent)
		if err != nil {
			if errors.As(err, new(versionError)) && len(heads) > 0 {
				return
			}
			t.Fatal(err)
		}
		defer s.Close()
		s.Rewind(true)
		got, _ := drain(t, s)
		seen, last := map[uint64]bool{}, uint64(0)
		for _, m := range got {
			if m.run != run || m.number <= last || m.number > 60 || m.text != texts[m.number-1] {
				t.Fatalf("%v was never written, or comes late", m)
			}
			seen[m.number], last = true, m.number
		}
		for n := uint64(1); n <= 60; n++ {
			if !seen[n] && !hit[n] {
				t.Fatalf("message %d is whole and was not read", n)
			}
		}
	})
}

func seqOf(t *testing.T, name string) uint64 {
	for seq := uint64(1); seq < 100; seq++ {
		if (&segment{seq: seq}).name() == name {
			return seq
		}
	}
	t.Fatal(name)
	return 0
}
