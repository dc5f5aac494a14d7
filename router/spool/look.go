package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/weirlog/weir/router"
)

// A Summary is what is in the directory of a spool, as far as headers tell. It needs no lock: a weir may be at work there.
type Summary struct {
	Runs     []RunSummary // in the order of the queue
	Segments int
	Bytes    int64
	Messages int       // that are not known to be acknowledged
	Oldest   time.Time // when the oldest of these came; zero: there is none
}

// A RunSummary is what is there of one run: the messages from First to Last, of which those up to Acknowledged are done with, as far as the file says
// that is written about once a second.
type RunSummary struct {
	Run                       router.RunID // zero: not known, the headers of the segments are damaged
	First, Last, Acknowledged uint64
	Segments                  int
	Bytes                     int64
}

// Look tells what is in the directory of a spool. It changes nothing.
func Look(dir string) (sum Summary, err error) {
	found, err := surveyDir(dir)
	if err != nil {
		return sum, err
	}
	for _, n := range found {
		sum.Segments++
		sum.Bytes += n.size
		if len(sum.Runs) == 0 || sum.Runs[len(sum.Runs)-1].Run != n.run {
			sum.Runs = append(sum.Runs, RunSummary{Run: n.run, First: n.first, Acknowledged: n.first - 1})
		}
		r := &sum.Runs[len(sum.Runs)-1]
		r.Segments++
		r.Bytes += n.size
		r.Last = n.last
		if n.acked >= n.first {
			r.Acknowledged = n.acked
		}
		if n.messages() > 0 && sum.Messages == 0 {
			n.find(&directory{path: dir})
			sum.Oldest = time.Unix(0, n.oldest())
		}
		sum.Messages += n.messages()
	}
	return sum, nil
}

// Bytes is how much the spool in dir takes of the disk, those segments included that cannot be read. It opens nothing.
func Bytes(dir string) (sum int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if _, ok := numberOf(e.Name()); !ok {
			continue
		}
		if info, err := e.Info(); err == nil { // else a weir has removed it
			sum += info.Size()
		}
	}
	return sum
}

func surveyDir(dir string) ([]*finding, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	d := &directory{path: dir}
	found, err := survey(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	segments := make([]*segment, len(found))
	for i, n := range found {
		segments[i] = n.segment
	}
	acknowledge(d, segments)
	return found, nil
}

// Damage is a place of a segment that cannot be read.
type Damage struct {
	Segment string `json:"segment"` // name of the file
	Offset  int64  `json:"offset"`
	Size    int64  `json:"bytes"`
	What    string `json:"what"`
}

// A Check is what Verify has seen.
type Check struct {
	Segments, Messages int
	Missing            int   // messages whose number is missing between others of their segment
	Torn               int64 // bytes behind the last record of a segment that is not complete: a weir was killed, or is writing
}

// Verify reads all of the spool in dir and calls damaged for each place that cannot be read. It changes nothing, and needs no lock.
func Verify(dir string, damaged func(Damage)) (c Check, err error) {
	found, err := surveyDir(dir)
	if err != nil {
		return c, err
	}
	d := &directory{path: dir}
	for i, n := range found {
		err := c.segment(d, n, i == len(found)-1, damaged)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a weir that is at work removes what is spent
			return c, fmt.Errorf("%s/%s: %w", dir, n.name(), err)
		}
	}
	return c, nil
}

func (c *Check) segment(d disk, n *finding, newest bool, damaged func(Damage)) error {
	f, err := d.open(n.name())
	if err != nil {
		return err
	}
	defer f.Close()
	c.Segments++
	if n.empty {
		c.Torn += n.size
		return nil
	}
	if n.lost {
		damaged(Damage{n.name(), 0, n.size, "the header is damaged, and so is its copy"})
		return nil
	}
	c.header(f, n, damaged)
	sc := newScanner(f, n.run, n.begin, n.size, n.first, nil)
	sc.damaged = func(offset, size int64) { damaged(Damage{n.name(), offset, size, "no record, or one that is damaged"}) }
	batch, expected := router.NewBatch(64<<20, 1), n.first
	defer func() { batch.Discard() }()
	for {
		rec, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if rec.kind == kindSeal || rec.number > n.last && !newest { // behind n.last they are in the next segment, too
			break
		}
		if batch.Discard(); rec.number > expected {
			c.Missing += int(rec.number - expected)
		}
		batch, expected = router.NewBatch(64<<20, 1), rec.number+1
		if _, err := batch.AddBlob(rec.blob, nil); err != nil {
			damaged(Damage{n.name(), rec.offset, rec.size, err.Error()})
			continue
		}
		c.Messages++
	}
	if expected <= n.last {
		c.Missing += int(n.last + 1 - expected)
	}
	if !n.sealed {
		c.Torn += n.size - sc.good
	}
	return nil
}

// header looks at both copies of the prefix and at the marks.
func (c *Check) header(f io.ReaderAt, n *finding, damaged func(Damage)) {
	for _, offset := range []int64{0, copyAt} {
		var data [prefixSize]byte
		readPast(f, data[:], offset)
		if _, _, ok := readPrefix(data[:]); !ok {
			damaged(Damage{n.name(), offset, prefixSize, "one copy of the header is damaged; the other is whole"})
		}
	}
	data := make([]byte, n.begin-marksAt)
	readPast(f, data, marksAt)
	if known := new(marks); !known.read(data) {
		damaged(Damage{n.name(), marksAt, int64(len(data)), "what is known of senders is damaged"})
	}
}
