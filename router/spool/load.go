package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/weirlog/weir/router"
)

// load finds out what is in the directory. It reads the headers and ends of the segments, and all of the newest
// and of those whose end nobody has sealed. First all is read, then what a kill left unfinished is put in order.
func (s *Spool) load() error {
	found, err := survey(s.disk)
	if err != nil {
		return err
	}
	for _, n := range found {
		s.nextSeq = max(s.nextSeq, n.seq+1)
		if n.empty {
			if err := s.disk.remove(n.name()); err != nil {
				return err
			}
			s.log.Warn("a segment of the disk buffer that was not begun is removed", "segment", n.name())
			continue
		}
		g := n.segment
		if n.sealed && g.last < g.first && n != found[len(found)-1] { // nothing in it
			if err := s.disk.remove(n.name()); err != nil {
				return err
			}
			continue
		}
		if !n.sealed && !g.lost {
			s.mend(n)
		}
		if n.gap > 0 {
			s.log.Warn("messages are missing in the disk buffer between two segments: dropped because it was full or they were too old, or a file was removed",
				"messages", n.gap, "segment", n.name())
		}
		if g.lost {
			s.stats.damaged.Inc()
			s.log.Error("the header of a segment of the disk buffer is damaged, its messages cannot be read", "segment", n.name(), "messages", g.messages())
		}
		g.touched, g.synced, g.durable = s.opened, g.last, g.size
		s.segments = append(s.segments, g)
		s.bytes += g.size
	}
	if err := s.disk.sync(); err != nil { // what a weir before this one removed must not come back
		s.log.Warn("the directory of the disk buffer cannot be synced", "error", err)
	}
	s.readMarks()
	s.loadAcked()
	return nil
}

// A finding is a segment as it is on disk.
type finding struct {
	*segment
	sealed bool
	empty  bool   // not even its header was written
	tail   int64  // bytes behind the last good record
	gap    uint64 // messages missing before it in its run
}

// survey reads the headers and ends of all segments, and whole those that have no seal. It changes nothing.
func survey(d disk) ([]*finding, error) {
	names, err := d.list()
	if err != nil {
		return nil, err
	}
	var all []*finding
	for _, name := range names {
		seq, ok := numberOf(name)
		if !ok {
			continue
		}
		n, err := inspect(d, name, seq)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the weir that is running has removed it
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, n)
	}
	for i, n := range all {
		if n.empty && i < len(all)-1 {
			n.empty, n.lost = false, true
		}
	}
	for i, n := range all {
		if err := complete(d, n, all[i+1:]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", n.name(), err)
		}
		if i > 0 {
			connect(all[i-1], n, all[i+1:])
		}
	}
	return all, nil
}

// numberOf reads the name of a segment.
func numberOf(name string) (seq uint64, ok bool) {
	n, _ := fmt.Sscanf(name, "%16x.seg", &seq)
	return seq, n == 1 && name == (&segment{seq: seq}).name()
}

// inspect reads a segment's header and seal.
func inspect(d disk, name string, seq uint64) (*finding, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	n := &finding{segment: &segment{seq: seq, first: 1, size: size}}
	p, v, ok := readBothPrefixes(f)
	switch {
	case v > 0 && v != version:
		return nil, versionError(v)
	case !ok || p.seq != seq || int64(p.begin) > size:
		n.lost = true
		n.empty = size < marksAt || ok && int64(p.begin) > size || !ok && !hasRecords(f, size)
		n.arrivals = []arrival{{1, 0}}
		return n, nil
	}
	n.run, n.first, n.begin = p.run, p.first, int64(p.begin)
	n.last, n.acked = n.first-1, n.first-1
	n.arrivals, n.newest = []arrival{{n.first, p.arrival}}, p.arrival
	if size < n.begin+sealSize {
		return n, nil
	}
	sc := newScanner(f, n.run, size-sealSize, size, 1, nil)
	if rec, err := sc.next(); err == nil && rec.kind == kindSeal && rec.offset == size-sealSize && rec.number+1 >= n.first {
		n.sealed = true
		n.last, n.newest = rec.number, int64(binary.LittleEndian.Uint64(rec.blob))
	}
	return n, nil
}

// readBothPrefixes reads the prefix, or its copy. v is not 0 when a prefix is whole, or both are of the same other version.
func readBothPrefixes(f io.ReaderAt) (p prefix, v int, ok bool) {
	var data [2][prefixSize]byte
	readPast(f, data[0][:], 0)
	if p, v, ok = readPrefix(data[0][:]); ok {
		return p, v, true
	}
	readPast(f, data[1][:], copyAt)
	p, second, ok := readPrefix(data[1][:])
	if ok {
		return p, second, true
	}
	if v != second {
		v = 0
	}
	return p, v, false
}

// hasRecords reports whether something in the file looks like a record.
func hasRecords(f io.ReaderAt, size int64) bool {
	sc := newScanner(f, router.RunID{}, marksAt-1, size, 1, nil)
	return sc.search() == nil && sc.at < sc.end
}

// complete finds the end of a segment that is not sealed.
func complete(d disk, n *finding, behind []*finding) error {
	if n.sealed || n.lost {
		return nil
	}
	f, err := d.open(n.name())
	if err != nil {
		return err
	}
	defer f.Close()
	limit := uint64(math.MaxUint64) // when a sync failed, the next segment has the numbers from there on
	if len(behind) > 0 && behind[0].run == n.run && !behind[0].lost {
		limit = behind[0].first
	}
	sc := newScanner(f, n.run, n.begin, n.size, n.first, nil)
	end := n.begin
	for {
		rec, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if rec.number >= limit || rec.kind == kindSeal {
			break
		}
		n.last, end = rec.number, sc.good
	}
	n.tail = n.size - end
	if limit != math.MaxUint64 && behind[0].seq == n.seq+1 { // nothing was between them
		n.last = max(n.last, limit-1)
	}
	return nil
}

// connect tells what is missing between a segment and the one before it.
func connect(before, n *finding, behind []*finding) {
	if n.lost {
		if len(behind) > 0 && behind[0].run == before.run && !behind[0].lost && !before.lost {
			n.run, n.first, n.last = before.run, before.last+1, behind[0].first-1
			n.acked = n.first - 1
			n.arrivals[0] = arrival{n.first, before.newest}
			n.newest = before.newest
		}
		return
	}
	if before.run == n.run && n.first > before.last+1 {
		n.gap = n.first - before.last - 1
	}
}

// mend cuts off what a kill left of the last record and seals the segment, so that the next start need not read it. When the disk
// is too full or read-only for that, it stays as it is.
func (s *Spool) mend(n *finding) {
	f, err := s.disk.edit(n.name())
	if err == nil {
		defer f.Close()
		if n.tail > 0 {
			s.stats.torn.Add(float64(n.tail))
			s.log.Warn("an unfinished end of the disk buffer is cut off: weir was killed while it wrote", "segment", n.name(), "bytes", n.tail)
			err = f.Truncate(n.size - n.tail)
		}
	}
	if err == nil {
		n.size -= n.tail
		// The reader's numbers must stay true after a power cut, too.
		err = errors.Join(s.seal(f, n.segment, 0), f.Sync())
	}
	if err != nil {
		s.log.Warn("a segment of the disk buffer could not be put in order", "segment", n.name(), "error", err)
	}
}

// seal writes behind the last record that it is the last. Failing is harmless: then the next start reads the segment.
func (s *Spool) seal(f file, g *segment, synced uint64) error {
	data := appendSeal(nil, sum(g.run[:]), g.last, synced, g.newest)
	if _, err := f.WriteAt(data, g.size); err != nil {
		f.Truncate(g.size)
		return err
	}
	g.size += int64(len(data))
	return f.Sync()
}

// readMarks gathers what is known of the senders: from the newest header whose marks are whole, and
// the records from there on.
func (s *Spool) readMarks() {
	from := len(s.segments) - 1
	for ; from >= 0; from-- {
		if g := s.segments[from]; !g.lost && s.headerMarks(g) {
			break
		}
	}
	for _, g := range s.segments[max(from, 0):] {
		if !g.lost {
			s.recordMarks(g)
		}
	}
}

func (s *Spool) headerMarks(g *segment) bool {
	f, err := s.disk.open(g.name())
	if err != nil {
		return false
	}
	defer f.Close()
	data := make([]byte, g.begin-marksAt)
	return readPast(f, data, marksAt) == nil && s.marks.read(data)
}

// recordMarks takes the marks of a segment's records. Behind a gap that may be one of messages that were never synced, a mark would
// claim these: it counts only when a later record says that what is missing was synced, and so is damage.
func (s *Spool) recordMarks(g *segment) {
	f, err := s.disk.open(g.name())
	if err != nil {
		return
	}
	defer f.Close()
	sc := newScanner(f, g.run, g.begin, g.size, g.first, nil)
	var held []router.Mark // behind a gap
	expected, missing := g.first, uint64(0)
	for {
		rec, err := sc.next()
		if err != nil {
			return
		}
		if rec.kind == kindMessage && rec.number > expected || rec.kind == kindSeal && rec.number >= expected {
			missing = rec.number - 1
		}
		expected = rec.number + 1
		if missing > 0 && rec.number-min(rec.number, uint64(rec.back)) >= missing {
			for _, m := range held {
				s.marks.set(m)
			}
			held, missing = held[:0], 0
		}
		switch {
		case rec.sender == nil:
		case missing > 0:
			held = append(held, router.Mark{Sender: string(rec.sender), Last: rec.last})
		default:
			s.marks.set(router.Mark{Sender: string(rec.sender), Last: rec.last})
		}
	}
}
