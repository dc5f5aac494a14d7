package sqlstore

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// A column is a Column of the configuration, ready for use.
type column struct {
	name     string
	declared string // type in CREATE TABLE as configured; "": by what fills it
	fill     filler
	ref      router.Ref       // fillKey, fillRef
	template *router.Template // fillTemplate
	constant cell             // fillConstant
	nullIf   []byte           // nil: nothing
	other    cell             // in place of NULL
}

type filler uint8

const (
	fillKey filler = iota // one of the message's own values
	fillRef
	fillConstant
	fillTemplate
)

// plan makes the columns of a configuration that passed Check.
func plan(columns config.Map[Column]) ([]column, error) {
	out := make([]column, len(columns))
	for i, e := range columns {
		c := &out[i]
		c.name, c.declared = e.Name, e.Value.Type
		var err error
		switch v := &e.Value; {
		case v.Value != nil:
			c.fill, c.constant = fillConstant, v.Value.cell()
		case v.Template != "":
			c.fill = fillTemplate
			c.template, err = router.ParseTemplate(string(v.Template))
		default:
			if c.ref, err = router.ParseRef(v.From); c.ref.Kind != router.RefKey {
				c.fill = fillRef
			}
		}
		if err != nil {
			return nil, err
		}
		if e.Value.NullIf != nil {
			c.nullIf = []byte(*e.Value.NullIf)
		}
		if e.Value.Default != nil {
			c.other = e.Value.Default.cell()
		}
	}
	return out, nil
}

func (c *Constant) cell() cell {
	if !c.Typed {
		return cell{kind: cellText, data: []byte(c.Text)}
	}
	if b, err := strconv.ParseBool(c.Text); err == nil && (c.Text == "true" || c.Text == "false") {
		return cellOf(router.BoolValue(b))
	}
	if n, err := strconv.ParseInt(c.Text, 10, 64); err == nil {
		return intCell(n)
	}
	f, _ := strconv.ParseFloat(c.Text, 64)
	return cellOf(router.FloatValue(f))
}

// cell is the column's value for m.
func (c *column) cell(m *router.Message, s *scratch) cell {
	var v cell
	switch c.fill {
	case fillKey:
		v = keyCell(c.ref.Key, m, s)
	case fillRef:
		v = refCell(&c.ref, m, s)
	case fillConstant:
		return c.constant
	case fillTemplate:
		from := len(s.buf)
		s.buf = c.template.Append(s.buf, m)
		v = cell{kind: cellText, data: s.buf[from:]}
	}
	if c.nullIf == nil && v.kind != cellNull {
		return v
	}
	return c.replaced(v, s)
}

// replaced applies null_if and default.
func (c *column) replaced(v cell, s *scratch) cell {
	if c.nullIf != nil && v.kind != cellNull && string(v.text(s)) == string(c.nullIf) {
		v = cell{}
	}
	if v.kind == cellNull {
		return c.other
	}
	return v
}

// refCell is the value of what is none of the message's own keys.
func refCell(r *router.Ref, m *router.Message, s *scratch) cell {
	switch r.Kind {
	case router.RefField:
		v, grown, ok := r.Value(m, s.buf)
		if s.buf = grown; !ok {
			return cell{}
		}
		return cellOf(v)
	case router.RefParam:
		if p := r.Param(m); p != nil {
			return cell{kind: cellText, data: p.Value}
		}
		return cell{}
	case router.RefTag:
		from := len(s.buf)
		var ok bool
		if s.buf, ok = r.Append(s.buf, m); !ok {
			return cell{}
		}
		return cell{kind: cellText, data: s.buf[from:]}
	case router.RefFields:
		if len(m.Fields) == 0 {
			return cell{}
		}
	}
	return jsonCell(r, m, s)
}

func keyCell(k router.Key, m *router.Message, s *scratch) cell {
	switch k {
	case router.KeyReceivedAt:
		return cell{kind: cellTime, num: uint64(m.Received)}
	case router.KeyTimestamp:
		if m.Timestamp == router.NoTime {
			return cell{}
		}
		return cell{kind: cellTime, num: uint64(m.Timestamp)}
	case router.KeyFacility:
		return intCell(int64(m.Facility))
	case router.KeySeverity:
		return intCell(int64(m.Severity))
	case router.KeyHostname:
		return textCell(m.Hostname)
	case router.KeyAppName:
		return textCell(m.AppName)
	case router.KeyProcID:
		return textCell(m.ProcID)
	case router.KeyMsgID:
		return textCell(m.MsgID)
	case router.KeyMessage:
		return cell{kind: cellText, data: m.Text}
	case router.KeyRaw:
		return textCell(m.Raw)
	case router.KeyPeer:
		return originCell(m.Origin.Peer)
	case router.KeySource:
		return originCell(m.Origin.Source)
	case router.KeyListener:
		return originCell(m.Origin.Listener)
	case router.KeyStructuredData:
		if len(m.Structured) == 0 {
			return cell{}
		}
		return jsonCell(&structuredData, m, s)
	}
	from := len(s.buf)
	var ok bool
	if s.buf, ok = router.AppendKey(s.buf, m, k); !ok {
		return cell{}
	}
	return cell{kind: cellText, data: s.buf[from:]}
}

var structuredData = router.Ref{Kind: router.RefKey, Key: router.KeyStructuredData}

func jsonCell(r *router.Ref, m *router.Message, s *scratch) cell {
	from := len(s.buf)
	var ok bool
	if s.buf, ok = r.Append(s.buf, m); !ok {
		return cell{}
	}
	out := s.buf[from:]
	if bytes.Contains(out, []byte(replacement)) && !validUTF8(m) {
		s.repaired++
	}
	return cell{kind: cellJSON, data: out}
}

// validUTF8 reports whether structured data and fields are all UTF-8.
func validUTF8(m *router.Message) bool {
	for i := range m.Structured {
		if !utf8.Valid(m.Structured[i].ID) {
			return false
		}
		for _, p := range m.Structured[i].Params {
			if !utf8.Valid(p.Name) || !utf8.Valid(p.Value) {
				return false
			}
		}
	}
	for i := range m.Fields {
		if !utf8.Valid(m.Fields[i].Name) || !utf8.Valid(m.Fields[i].Value.Bytes) {
			return false
		}
	}
	return true
}

// natural is the kind of what fills the column when it is not NULL.
func (c *column) natural() cellKind {
	switch {
	case c.fill == fillConstant:
		return c.constant.kind
	case c.fill == fillTemplate:
		return cellText
	case c.ref.Kind == router.RefFields, c.ref.Kind == router.RefElement:
		return cellJSON
	case c.ref.Kind == router.RefField:
		return cellString
	case c.ref.Kind == router.RefParam, c.ref.Kind == router.RefTag:
		return cellText
	}
	switch c.ref.Key {
	case router.KeyReceivedAt, router.KeyTimestamp:
		return cellTime
	case router.KeyFacility, router.KeySeverity:
		return cellInt
	case router.KeyStructuredData:
		return cellJSON
	}
	return cellText
}

// raw reports whether the column is filled with the message as it came.
func (c *column) raw() bool {
	return c.fill == fillKey && c.ref.Key == router.KeyRaw
}
