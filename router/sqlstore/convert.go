package sqlstore

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unsafe"

	"github.com/weirlog/weir/router"
)

// toInt is the whole number that v is. why is "" then; otherwise it says why not.
func toInt(v cell) (n int64, why string) {
	switch v.kind {
	case cellInt, cellTime:
		return v.int(), ""
	case cellBool:
		return int64(v.num), ""
	case cellFloat:
		f := v.float()
		if f != math.Trunc(f) {
			return 0, "is not a whole number"
		}
		if f < -1<<63 || f >= 1<<63 {
			return 0, outOfRange
		}
		return int64(f), ""
	case cellText, cellString:
		n, err := strconv.ParseInt(borrow(bytes.TrimSpace(v.data)), 10, 64)
		if err == nil {
			return n, ""
		}
		if numErr, ok := err.(*strconv.NumError); ok && numErr.Err == strconv.ErrRange {
			return 0, outOfRange
		}
	}
	return 0, "is not a whole number"
}

const outOfRange = "is out of range"

// toFloat is the number that v is; times are seconds.
func toFloat(v cell) (f float64, why string) {
	switch v.kind {
	case cellFloat:
		return v.float(), ""
	case cellInt:
		return float64(v.int()), ""
	case cellBool:
		return float64(v.num), ""
	case cellTime:
		return float64(v.int()) / 1e9, ""
	case cellText, cellString:
		text := bytes.TrimSpace(v.data)
		if len(text) == 0 || bytes.ContainsAny(text, "xX_nN") { // hexadecimal, inf, nan
			return 0, "is not a number"
		}
		f, err := strconv.ParseFloat(borrow(text), 64)
		if err == nil {
			return f, ""
		}
		if numErr, ok := err.(*strconv.NumError); ok && numErr.Err == strconv.ErrRange {
			return 0, outOfRange
		}
	}
	return 0, "is not a number"
}

// toBool is the truth value that v is, in any of PostgreSQL's spellings.
func toBool(v cell) (b bool, why string) {
	switch v.kind {
	case cellBool:
		return v.num != 0, ""
	case cellInt:
		if v.num <= 1 {
			return v.num == 1, ""
		}
	case cellText, cellString:
		text := bytes.TrimSpace(v.data)
		if len(text) > 5 {
			break
		}
		var lower [5]byte
		for i, c := range text {
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			lower[i] = c
		}
		switch string(lower[:len(text)]) {
		case "t", "tr", "tru", "true", "y", "ye", "yes", "on", "1":
			return true, ""
		case "f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0":
			return false, ""
		}
	}
	return false, "is neither true nor false"
}

// toJSON is v as JSON text that a database stores.
func toJSON(v cell, s *scratch) (text []byte, why string) {
	switch v.kind {
	case cellJSON:
		return storableJSON(v.data, s), ""
	case cellText:
		if !json.Valid(v.data) {
			return nil, "is not JSON"
		}
		// Valid lets invalid UTF-8 in strings by.
		return storableJSON(storableText(v.data, s), s), ""
	case cellString, cellTime:
		return jsonString(v, s), ""
	}
	return v.text(s), ""
}

// jsonString is v as a JSON string.
func jsonString(v cell, s *scratch) []byte {
	text := storableText(v.text(s), s)
	from := len(s.buf)
	s.buf = router.AppendString(s.buf, text)
	return s.buf[from:]
}

func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
