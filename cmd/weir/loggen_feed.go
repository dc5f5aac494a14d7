package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// blockSize is how many bytes go into one write when the rate allows. Larger
// blocks than 64 KiB were no faster into a unix socket.
const blockSize = 64 << 10

// A feed makes the messages of one connection.
type feed interface {
	// fill returns the next messages, framed and one behind the other, and where
	// each of them ends. There are at most max of them, about blockSize bytes
	// unless one message alone is longer, and none when the feed is exhausted.
	// Both slices are the feed's and valid until the next call.
	fill(max int) (block []byte, ends []int)
}

// A framer puts a message into a stream, or leaves it as it is for a datagram.
type framer string

const (
	framingLF    framer = "lf"
	framingOctet framer = "octet" // RFC 6587 section 3.4.1
	framingNone  framer = "none"  // datagrams
)

func (f framer) append(dst, message []byte) []byte {
	if f == framingOctet {
		dst = strconv.AppendInt(dst, int64(len(message)), 10)
		dst = append(dst, ' ')
	}
	dst = append(dst, message...)
	if f == framingLF {
		dst = append(dst, '\n')
	}
	return dst
}

// seqDigits is how wide the number of a message is. Further ones start again at 0.
const seqDigits = 10

// numbered is a feed of made-up messages that carry their own number.
type numbered struct {
	format     string // rfc5424, rfc3164 or json
	framer     framer
	size       int // bytes of a message; with a line feed if it is framed by one
	connection int

	next    uint64 // number of the next message
	message []byte // one of them, without framing
	frame   []byte // the same, framed
	at      int    // where the digits are in frame
	block   []byte
	ends    []int
}

// render makes the frame that the next messages are copied from. A block's
// messages share one timestamp.
func (n *numbered) render(now time.Time) error {
	const seq = "seq: "
	stamp := now.UTC().Format("2006-01-02T15:04:05.000000Z")
	m := n.message[:0]
	var tail string
	switch n.format {
	case "rfc3164":
		m = fmt.Appendf(m, "<14>%s localhost loggen[%d]: ", now.Format(time.Stamp), os.Getpid())
	case "json":
		m = fmt.Appendf(m, `{"timestamp":"%s","facility":1,"severity":6,"hostname":"localhost","app_name":"loggen","proc_id":"%d","message":"`, stamp, os.Getpid())
		tail = `"}`
	default:
		m = fmt.Appendf(m, "<14>1 %s localhost loggen %d - - ", stamp, os.Getpid())
	}
	at := len(m) + len(seq)
	m = fmt.Appendf(m, seq+"%0*d, conn: %04d, ", seqDigits, 0, n.connection)
	size := n.size - len(tail)
	if n.framer == framingLF {
		size--
	}
	if len(m) > size {
		return fmt.Errorf("--size %d: a message of format %s needs at least %d bytes", n.size, n.format, n.size+len(m)-size)
	}
	for len(m) < size {
		m = append(m, 'x')
	}
	m = append(m, tail...)
	n.message = m
	n.frame = n.framer.append(n.frame[:0], m)
	n.at = at + bytes.Index(n.frame, m)
	return nil
}

func (n *numbered) fill(max int) ([]byte, []int) {
	if err := n.render(time.Now()); err != nil {
		panic("BUG: " + err.Error()) // the command has tried the size
	}
	max = min(max, blockSize/len(n.frame)+1) // at least one
	n.block, n.ends = n.block[:0], n.ends[:0]
	for range max {
		start := len(n.block)
		n.block = append(n.block, n.frame...)
		putDigits(n.block[start+n.at:][:seqDigits], n.next)
		n.ends = append(n.ends, len(n.block))
		n.next++
	}
	return n.block, n.ends
}

func putDigits(p []byte, v uint64) {
	for i := len(p) - 1; i >= 0; i-- {
		p[i] = '0' + byte(v%10)
		v /= 10
	}
}

// replayed is a feed of lines from a file: those whose index is first, first+step, …
type replayed struct {
	lines       [][]byte // shared by all connections, read only
	framer      framer
	next, first int
	step        int
	loop        bool

	block []byte
	ends  []int
}

func (r *replayed) fill(max int) ([]byte, []int) {
	r.block, r.ends = r.block[:0], r.ends[:0]
	for len(r.ends) < max && len(r.block) < blockSize {
		if r.next >= len(r.lines) {
			if !r.loop || r.first >= len(r.lines) {
				break
			}
			r.next = r.first
		}
		r.block = r.framer.append(r.block, r.lines[r.next])
		r.ends = append(r.ends, len(r.block))
		r.next += r.step
	}
	return r.block, r.ends
}

// splitLines cuts a file into its lines, without empty ones.
func splitLines(data []byte) [][]byte {
	var lines [][]byte
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}
