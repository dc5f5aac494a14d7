package sqlstore

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"sync"

	"github.com/weirlog/weir/router"
)

// rows are the messages of a transaction on their way into the form in use.
// They are encoded while the first COPY sends them, so that the server works
// meanwhile; they are kept until the end for those that have to go again.
type rows struct {
	s     scratch
	msgs  []*router.Message // until the end of Write
	next  int               // of msgs, the first that is not encoded
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

// encode begins anew, with nothing encoded yet.
func (d *postgres) encode(msgs []*router.Message) {
	if cap(d.buf) > keptBuffer {
		d.buf = nil
	}
	d.msgs, d.next = msgs, 0
	d.buf, d.ends, d.index = d.buf[:0], d.ends[:0], d.index[:0]
	d.bad, d.s.repaired = d.bad[:0], 0
}

// more encodes some more rows and returns their bytes; nil when there are none.
// Rows that a column cannot take go to d.bad instead.
func (d *postgres) more() []byte {
	begin := len(d.buf)
	for ; d.next < len(d.msgs) && len(d.buf)-begin < someBytes; d.next++ {
		d.s.reset()
		from := len(d.buf)
		var refusal *refusal
		if d.form == copyText {
			refusal = d.encodeText(d.msgs[d.next])
		} else {
			refusal = d.encodeBinary(d.msgs[d.next])
		}
		if refusal != nil {
			d.buf = d.buf[:from]
			d.bad = append(d.bad, refused{d.next, *refusal})
			continue
		}
		d.ends = append(d.ends, len(d.buf))
		d.index = append(d.index, d.next)
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
// each value behind its length. For INSERT the values are text.
func (d *postgres) encodeBinary(m *router.Message) *refusal {
	buf := binary.BigEndian.AppendUint16(d.buf, uint16(len(d.columns)))
	for i := range d.columns {
		t := &d.types[i]
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
		if d.form == copyBinary {
			buf, code, why = t.append(buf, v, &d.s)
		} else {
			var text []byte
			if text, code, why = t.text(v, &d.s); t.kind == pgBytea {
				buf = hex.AppendEncode(append(buf, `\x`...), text)
			} else {
				buf = append(buf, text...)
			}
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
		t := &d.types[i]
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
	return &refusal{code: code, column: d.columns[i].name, reason: "the value " + why, sure: d.types[i].sure}
}

// params points params at the values of the row that begins at data, an INSERT's, and
// returns what lies behind it.
func (r *rows) params(data []byte, params [][]byte) ([][]byte, []byte) {
	n := int(binary.BigEndian.Uint16(data))
	for data = data[2:]; n > 0; n-- {
		size := int(int32(binary.BigEndian.Uint32(data)))
		data = data[4:]
		if size < 0 {
			params = append(params, nil)
			continue
		}
		params = append(params, data[:size:size])
		data = data[size:]
	}
	return params, data
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
