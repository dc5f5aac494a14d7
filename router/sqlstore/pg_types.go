package sqlstore

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pgType is what a column's type asks of values.
type pgType struct {
	kind        pgKind
	long        int    // characters at most; 0: any
	words       string // as the server writes it
	plain       string // the same without a length
	notNull     bool
	sure        bool // the type is the one that weir asks for
	serverReads bool // values go as text, and the server says whether they fit
}

type pgKind uint8

const (
	pgOther pgKind = iota // known to the server only: text
	pgBool
	pgInt2
	pgInt4
	pgInt8
	pgFloat4
	pgFloat8
	pgText // text, varchar, bpchar, citext, enums: the bytes
	pgJSON
	pgJSONB
	pgBytea
	pgUUID
	pgDate
	pgTimestamp
	pgTimestamptz
)

// pgKinds are the types of fixed OID (pg_type.dat) that have a known binary form.
var pgKinds = map[uint32]pgKind{
	16: pgBool, 17: pgBytea, 20: pgInt8, 21: pgInt2, 23: pgInt4, 25: pgText, 114: pgJSON, 700: pgFloat4, 701: pgFloat8,
	1042: pgText, 1043: pgText, 1082: pgDate, 1114: pgTimestamp, 1184: pgTimestamptz, 2950: pgUUID, 3802: pgJSONB,
}

// parsePgType makes a type of a row of the catalogue: OID, modifier, typtype, typname.
func parsePgType(oid uint32, mod int, typtype, name string) pgType {
	kind := pgKinds[oid]
	if typtype == "e" || kind == pgOther && name == "citext" {
		kind = pgText
	}
	t := pgType{kind: kind}
	if (oid == 1042 || oid == 1043) && mod >= 4 {
		t.long = mod - 4
	}
	return t
}

func (t *pgType) isTime() bool {
	return t.kind == pgDate || t.kind == pgTimestamp || t.kind == pgTimestamptz
}

// SQLSTATEs of what weir finds by itself: what the server would have said.
const (
	invalidText  = "22P02"
	numericRange = "22003"
	tooLong      = "22001"
	isNull       = "23502"
)

const pgEpoch = 946_684_800 // 2000-01-01 in Unix seconds

// append appends v in the type's binary form, without its length. code is ""
// when the type takes v.
func (t *pgType) append(dst []byte, v cell, s *scratch) (out []byte, code, why string) {
	switch t.kind {
	case pgBool:
		b, why := toBool(v)
		if why != "" {
			return dst, invalidText, why
		}
		if b {
			return append(dst, 1), "", ""
		}
		return append(dst, 0), "", ""
	case pgInt2, pgInt4, pgInt8:
		n, code, why := t.int(v)
		if why != "" {
			return dst, code, why
		}
		switch t.kind {
		case pgInt2:
			return binary.BigEndian.AppendUint16(dst, uint16(n)), "", ""
		case pgInt4:
			return binary.BigEndian.AppendUint32(dst, uint32(n)), "", ""
		}
		return binary.BigEndian.AppendUint64(dst, uint64(n)), "", ""
	case pgFloat4, pgFloat8:
		f, code, why := t.float(v)
		if why != "" {
			return dst, code, why
		}
		if t.kind == pgFloat4 {
			return binary.BigEndian.AppendUint32(dst, math.Float32bits(float32(f))), "", ""
		}
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(f)), "", ""
	case pgUUID:
		return appendUUID(dst, v, s)
	case pgDate:
		return binary.BigEndian.AppendUint32(dst, uint32(floorDiv(v.int(), 86400e9)-pgEpoch/86400)), "", ""
	case pgTimestamp, pgTimestamptz:
		return binary.BigEndian.AppendUint64(dst, uint64(floorDiv(v.int(), 1000)-pgEpoch*1e6)), "", ""
	case pgJSONB:
		text, why := toJSON(v, s)
		if why != "" {
			return dst, invalidText, why
		}
		return append(append(dst, 1), text...), "", ""
	}
	text, code, why := t.text(v, s)
	return append(dst, text...), code, why
}

// text is v as the type's input function reads it, after the same checks as append.
func (t *pgType) text(v cell, s *scratch) (text []byte, code, why string) {
	switch t.kind {
	case pgBool:
		b, why := toBool(v)
		if why != "" {
			return nil, invalidText, why
		}
		if b {
			return []byte("t"), "", ""
		}
		return []byte("f"), "", ""
	case pgInt2, pgInt4, pgInt8:
		n, code, why := t.int(v)
		return intCell(n).text(s), code, why
	case pgFloat4, pgFloat8:
		f, code, why := t.float(v)
		from := len(s.buf)
		s.buf = strconv.AppendFloat(s.buf, f, 'g', -1, 64)
		return s.buf[from:], code, why
	case pgJSON, pgJSONB:
		text, why := toJSON(v, s)
		if why != "" {
			return nil, invalidText, why
		}
		return text, "", ""
	case pgBytea:
		return v.text(s), "", ""
	case pgUUID:
		if _, code, why := appendUUID(s.buf, v, s); code != "" {
			return nil, code, why
		}
	}
	if v.kind == cellJSON {
		text = storableJSON(v.data, s)
	} else {
		text = storableText(v.text(s), s)
	}
	if t.long == 0 || len(text) <= t.long {
		return text, "", ""
	}
	return t.cut(text)
}

// cut enforces the length: spaces beyond it fall silently (SQL standard), anything else does not.
func (t *pgType) cut(text []byte) (out []byte, code, why string) {
	end := 0
	for range t.long {
		if end == len(text) {
			return text, "", ""
		}
		_, n := utf8.DecodeRune(text[end:])
		end += n
	}
	if len(bytes.TrimLeft(text[end:], " ")) > 0 {
		return nil, tooLong, "is too long for " + t.words
	}
	return text[:end], "", ""
}

func (t *pgType) int(v cell) (n int64, code, why string) {
	n, why = toInt(v)
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	switch t.kind {
	case pgInt2:
		low, high = math.MinInt16, math.MaxInt16
	case pgInt4:
		low, high = math.MinInt32, math.MaxInt32
	}
	if why == "" && (n < low || n > high) {
		why = outOfRange
	}
	switch why {
	case "":
		return n, "", ""
	case outOfRange:
		return 0, numericRange, why
	}
	return 0, invalidText, why
}

func (t *pgType) float(v cell) (f float64, code, why string) {
	f, why = toFloat(v)
	if why != "" && (v.kind == cellText || v.kind == cellString) {
		switch strings.ToLower(strings.TrimSpace(borrow(v.data))) {
		case "nan":
			return math.NaN(), "", ""
		case "inf", "+inf", "infinity", "+infinity":
			return math.Inf(1), "", ""
		case "-inf", "-infinity":
			return math.Inf(-1), "", ""
		}
	}
	if why == "" && t.kind == pgFloat4 && math.Abs(f) > math.MaxFloat32 {
		why = outOfRange
	}
	switch why {
	case "":
		return f, "", ""
	case outOfRange:
		return 0, numericRange, why
	}
	return 0, invalidText, why
}

// appendUUID takes the forms that the server takes: with or without hyphens and braces.
func appendUUID(dst []byte, v cell, s *scratch) (out []byte, code, why string) {
	var digits [32]byte
	n := 0
	text := v.text(s)
	if len(text) > 2 && text[0] == '{' && text[len(text)-1] == '}' {
		text = text[1 : len(text)-1]
	}
	for i, c := range text {
		if c == '-' && n%4 == 0 && n > 0 && i < len(text)-1 && text[i-1] != '-' {
			continue
		}
		if n == 32 {
			return dst, invalidText, "is not a UUID"
		}
		digits[n] = c
		n++
	}
	var raw [16]byte
	if n != 32 {
		return dst, invalidText, "is not a UUID"
	}
	if _, err := hex.Decode(raw[:], digits[:]); err != nil {
		return dst, invalidText, "is not a UUID"
	}
	return append(dst, raw[:]...), "", ""
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
