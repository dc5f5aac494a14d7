package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"syscall"

	"github.com/weirlog/weir/router"
)

// A scanner reads the records of a segment one by one, past what is damaged.
type scanner struct {
	file   io.ReaderAt
	runSum uint32
	buf    []byte
	from   int64  // offset of buf
	at     int64  // offset of what is looked at next
	end    int64  // nothing is read from here on
	last   uint64 // number of the record before
	before uint64 // last, before next returned that record
	good   int64  // behind the last good record

	damaged func(offset, size int64) // told each damaged place; may be nil
}

const chunk = 64 << 10

func newScanner(f io.ReaderAt, run router.RunID, begin, end int64, first uint64, buf []byte) *scanner {
	return &scanner{file: f, runSum: sum(run[:]), buf: buf[:0], at: begin, end: end, last: first - 1, good: begin}
}

// next returns the next good record; io.EOF: there is none. What is behind the last good record up to
// the end is not told as damage. Other errors are those of the file.
func (s *scanner) next() (record, error) {
	bad := int64(-1) // where damage began
	for s.at+headSize <= s.end {
		head, err := s.peek(headSize)
		if err != nil {
			return record{}, err
		}
		rec, length, sender, ok := readHead(head, s.runSum)
		size := headSize + length
		if !ok || s.at+size > s.end || rec.number <= s.last && (rec.kind != kindSeal || rec.number < s.last) {
			if bad < 0 {
				bad = s.at
			}
			if err := s.search(); err != nil {
				return record{}, err
			}
			continue
		}
		data, err := s.peek(int(size))
		if err != nil {
			return record{}, err
		}
		rec.offset, rec.size = s.at, size
		s.at += size
		if sum(data[headSize:]) != binary.LittleEndian.Uint32(data[12:]) || !rec.split(data[headSize:], sender) {
			if bad < 0 {
				bad = rec.offset
			}
			continue
		}
		if bad >= 0 && s.damaged != nil {
			s.damaged(bad, rec.offset-bad)
		}
		s.before, s.last, s.good = s.last, rec.number, s.at
		return rec, nil
	}
	return record{}, io.EOF
}

// back puts the scanner before rec, which next has just returned.
func (s *scanner) back(rec *record) {
	s.at, s.good, s.last = rec.offset, rec.offset, s.before
}

// search goes to the next place that looks like a record, or to the end.
func (s *scanner) search() error {
	s.at++
	for s.at+headSize <= s.end {
		data, err := s.peek(int(min(s.end-s.at, chunk/2)))
		if err != nil {
			return err
		}
		if i := bytes.Index(data, recordMagic); i >= 0 {
			s.at += int64(i)
			return nil
		}
		s.at += int64(len(data) - len(recordMagic) + 1)
	}
	s.at = s.end
	return nil
}

// peek returns n bytes from s.at on, which end does not cut.
func (s *scanner) peek(n int) ([]byte, error) {
	if from := s.at - s.from; from >= 0 && from+int64(n) <= int64(len(s.buf)) {
		return s.buf[from : from+int64(n)], nil
	}
	size := max(n, int(min(chunk, s.end-s.at)))
	if cap(s.buf) < size {
		s.buf = make([]byte, max(size, chunk))
	}
	s.buf, s.from = s.buf[:size], s.at
	if err := readPast(s.file, s.buf, s.at); err != nil {
		s.buf = s.buf[:0]
		return nil, err
	}
	return s.buf[:n], nil
}

// readPast fills p. Pages that the disk cannot read any more are zero then, which is damage like any other; a file that is
// shorter than it was is, too.
func readPast(f io.ReaderAt, p []byte, offset int64) error {
	n, err := f.ReadAt(p, offset)
	switch {
	case n == len(p):
		return nil
	case err == io.EOF:
		clear(p[n:])
		return nil
	case !errors.Is(err, syscall.EIO):
		return err
	}
	const page = 4096
	for at := 0; at < len(p); {
		k := min(len(p)-at, page-int((offset+int64(at))%page))
		if _, err := f.ReadAt(p[at:at+k], offset+int64(at)); err != nil {
			if err != io.EOF && !errors.Is(err, syscall.EIO) {
				return err
			}
			clear(p[at : at+k])
		}
		at += k
	}
	return nil
}
