package sqlstore

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"sync"

	"github.com/weirlog/weir/router"
)

// rows are the messages of one table in a transaction on their way into the
// form in use. They are encoded while the first COPY sends them, so that the server works
// meanwhile; they are kept until the end for those that have to go again.
type rows struct {
	s     scratch
	t     *pgTable
	msgs  []*router.Message // of the transaction, until the end of Write
	next  int               // of t.mine, the first that is not encoded
	buf   []byte
	ends  []int // of each row, in buf
	index []int // of its message
}

func (r *rows) len() int { return len(r.ends) }

// part is the bytes of the rows from, including, to to, excluding.
func (r *rows) part(from, to int) []byte {
	if from == to {
		return nil
	}
	begin := 0
	if from > 0 {
		begin = r.ends[from-1]
	}
	return r.buf[begin:r.ends[to-1]]
}

const (
	keptBuffer = 8 << 20  // bytes of the largest buffer that is kept for the next transaction
	someBytes  = 32 << 10 // that are encoded before they are sent
)

// start begins with the rows of a table, with nothing encoded yet.
func (d *postgres) start(t *pgTable) {
	if cap(d.buf) > keptBuffer {
		d.buf = nil
	}
	d.t, d.next = t, 0
	d.buf, d.ends, d.index = d.buf[:0], d.ends[:0], d.index[:0]
	t.bad, t.stored = len(d.bad), 0
}

// more encodes some more rows and returns their bytes; nil when there are none.
// Rows that a column cannot take go to d.bad instead.
func (d *postgres) more() []byte {
	begin := len(d.buf)
	for ; d.next < len(d.t.mine) && len(d.buf)-begin < someBytes; d.next++ {
		d.s.reset()
		from, i := len(d.buf), int(d.t.mine[d.next])
		var refusal *refusal
		if d.t.form == copyText {
			refusal = d.encodeText(d.msgs[i])
		} else {
			refusal = d.encodeBinary(d.msgs[i])
		}
		if refusal != nil {
			d.buf = d.buf[:from]
			d.bad = append(d.bad, refused{i, *refusal})
			continue
		}
		d.ends = append(d.ends, len(d.buf))
		d.index = append(d.index, i)
	}
	if len(d.buf) == begin {
		return nil
	}
	return d.buf[begin:]
}

// all encodes what is not yet.
func (d *postgres) all() {
	for d.more() != nil {
	}
}

// encodeBinary appends a row of COPY's binary form: the number of columns, then
// each value behind its length. INSERT takes them from it: what the server is to
// read is text there.
func (d *postgres) encodeBinary(m *router.Message) *refusal {
	buf := binary.BigEndian.AppendUint16(d.buf, uint16(len(d.columns)))
	for i := range d.columns {
		t := &d.t.types[i]
		v := d.columns[i].cell(m, &d.s)
		at := len(buf)
		buf = append(buf, 0, 0, 0, 0)
		if v.kind == cellNull {
			if t.notNull {
				return d.refuseNull(i)
			}
			binary.BigEndian.PutUint32(buf[at:], 1<<32-1)
			continue
		}
		var code, why string
		if !t.serverReads {
			buf, code, why = t.append(buf, v, &d.s)
		} else {
			var text []byte
			text, code, why = t.text(v, &d.s)
			buf = append(buf, text...)
		}
		if code != "" {
			return d.refuseValue(i, code, why)
		}
		binary.BigEndian.PutUint32(buf[at:], uint32(len(buf)-at-4))
	}
	d.buf = buf
	return nil
}

// encodeText appends a row of COPY's text form.
func (d *postgres) encodeText(m *router.Message) *refusal {
	buf := d.buf
	for i := range d.columns {
		t := &d.t.types[i]
		v := d.columns[i].cell(m, &d.s)
		if i > 0 {
			buf = append(buf, '\t')
		}
		if v.kind == cellNull {
			if t.notNull {
				return d.refuseNull(i)
			}
			buf = append(buf, `\N`...)
			continue
		}
		text, code, why := t.text(v, &d.s)
		if code != "" {
			return d.refuseValue(i, code, why)
		}
		if t.kind == pgBytea {
			buf = hex.AppendEncode(append(buf, `\\x`...), text)
			continue
		}
		buf = appendCopyText(buf, text)
	}
	d.buf = append(buf, '\n')
	return nil
}

// appendCopyText escapes what COPY's text form would take for something else.
func appendCopyText(dst, text []byte) []byte {
	start := 0
	for i, c := range text {
		var e byte
		switch c {
		case '\\':
			e = '\\'
		case '\n':
			e = 'n'
		case '\r':
			e = 'r'
		case '\t':
			e = 't'
		default:
			continue
		}
		dst = append(append(dst, text[start:i]...), '\\', e)
		start = i + 1
	}
	return append(dst, text[start:]...)
}

func (d *postgres) refuseNull(i int) *refusal {
	return &refusal{code: isNull, column: d.columns[i].name, reason: "the value is null, which the column forbids"}
}

func (d *postgres) refuseValue(i int, code, why string) *refusal {
	return &refusal{code: code, column: d.columns[i].name, reason: "the value " + why, sure: d.t.types[i].sure}
}

var (
	copyHeader  = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	copyTrailer = []byte{0xff, 0xff}
)

// copySource gives pgx the bytes of a COPY. When a server goes away in the
// middle, pgx's goroutine may still be reading when CopyFrom returns: after
// stop it gets nothing more.
type copySource struct {
	mu    sync.Mutex
	parts [3][]byte     // header, rows, trailer
	more  func() []byte // the next rows; nil: parts are all
}

func (c *copySource) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for i := 0; i < len(c.parts) && n < len(p); {
		k := copy(p[n:], c.parts[i])
		c.parts[i] = c.parts[i][k:]
		n += k
		switch {
		case len(c.parts[i]) > 0:
		case i == 1 && c.more != nil:
			if c.parts[1] = c.more(); c.parts[1] == nil {
				c.more = nil
			}
		default:
			i++
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *copySource) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts, c.more = [3][]byte{}, nil
}
