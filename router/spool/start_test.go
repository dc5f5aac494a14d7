package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/weirlog/weir/router"
)

// countingDisk counts the bytes that are read.
type countingDisk struct {
	*directory
	read *atomic.Int64
}

type countingFile struct {
	file
	read *atomic.Int64
}

func (d countingDisk) open(name string) (file, error) {
	f, err := d.directory.open(name)
	return countingFile{f, d.read}, err
}

func (f countingFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.file.ReadAt(p, off)
	f.read.Add(int64(n))
	return n, err
}

// Field case C58: a start reads headers and ends, however much is there. The segments are sparse: 10 GiB in 640 files, with 10 000 senders
// known in each.
func TestAStartReadsLittleOfTenGibibytes(t *testing.T) {
	dir := t.TempDir()
	var known marks
	for i := range mostMarks {
		known.set(router.Mark{Sender: fmt.Sprint("sender-", i), Last: uint64(i)})
	}
	encoded := known.append(nil)
	run := router.NewRun()
	const files, each, size = 640, 50_000, 16 << 20
	for i := range files {
		first := uint64(i*each + 1)
		g := &segment{seq: uint64(i + 1)}
		header := appendHeader(nil, prefix{run: run, first: first, arrival: 1767225600e9, seq: g.seq}, encoded)
		f, err := os.Create(filepath.Join(dir, g.name()))
		if err != nil {
			t.Fatal(err)
		}
		f.Write(header)
		seal := appendSeal(nil, sum(run[:]), first+each-1, first+each-1, 1767225600e9)
		f.WriteAt(seal, size-int64(len(seal)))
		f.Close()
	}
	d, err := openDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	var read atomic.Int64
	s, err := open(countingDisk{d, &read}, Config{Size: 11 << 30}, silent)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if b := s.Backlog(); b.Messages != files*each || b.Bytes != files*size {
		t.Error(b)
	}
	if s.Last("sender-9999") != 9999 {
		t.Error("the senders are not known")
	}
	// The newest segment is read whole.
	if n := read.Load(); n > size+files*1024+1<<20 {
		t.Errorf("%d bytes were read", n)
	}
}

func TestAppendAndReadDoNotAllocatePerMessage(t *testing.T) {
	s, err := open(newMemDisk(), Config{Size: 1 << 30, segment: 1 << 30}, silent)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const messages = 500
	msgs := texts(numbered(0, messages, 100)...)
	n := testing.AllocsPerRun(50, func() {
		if _, err := s.Append(msgs, router.Mark{}); err != nil {
			t.Fatal(err)
		}
	})
	if n > messages/4 { // of pools, which the race detector empties at times
		t.Errorf("appending %d: %v allocations", messages, n)
	}
	s.Sync()
	n = testing.AllocsPerRun(50, func() {
		b := router.NewBatch(1<<20, messages)
		if _, _, _, err := s.Read(b, 1<<20); err != nil || b.Len() != messages {
			t.Fatal(b.Len(), err)
		}
		b.Discard()
	})
	if n > messages/4 {
		t.Errorf("reading %d: %v allocations", messages, n)
	}
}

// What a message costs on its way through the disk buffer: 256 bytes each, a sync for every batch.
func BenchmarkSpool(b *testing.B) {
	for _, messages := range []int{1, 100, 5000} {
		b.Run(fmt.Sprintf("append/batch=%d", messages), func(b *testing.B) {
			s, err := Open(b.TempDir(), Config{Size: 1 << 40}, silent)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			msgs := texts(numbered(0, messages, 252)...)
			b.SetBytes(int64(256 * messages))
			for b.Loop() {
				if _, err := s.Append(msgs, router.Mark{}); err != nil {
					b.Fatal(err)
				}
				if err := s.Sync(); err != nil {
					b.Fatal(err)
				}
				s.Ack(s.Run(), s.next-1)
				s.removeSpent(s.opened.AddDate(1, 0, 0), 1)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(messages), "ns/msg")
		})
	}
	b.Run("read", func(b *testing.B) {
		const messages = 100_000
		s, err := Open(b.TempDir(), Config{Size: 1 << 40}, silent)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		msgs := texts(numbered(0, 1000, 252)...)
		for range messages / 1000 {
			if _, err := s.Append(msgs, router.Mark{}); err != nil {
				b.Fatal(err)
			}
		}
		s.Sync()
		b.SetBytes(256 * messages)
		for b.Loop() {
			s.Rewind(true)
			for n := 0; n < messages; {
				batch := router.NewBatch(16<<20, 5000)
				_, _, _, err := s.Read(batch, 4<<20)
				if err != nil {
					b.Fatal(err)
				}
				n += batch.Len()
				batch.Discard()
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/messages, "ns/msg")
	})
}
