package router

import (
	"fmt"
	"strconv"
	"time"
)

// checkStrftime refuses conversions that appendStrftime does not know.
func checkStrftime(format string) error {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		i++
		if i == len(format) {
			return fmt.Errorf("a single %% at the end of %q", format)
		}
		if _, ok := appendConversion(nil, format[i], time.Time{}); !ok {
			return fmt.Errorf("%q: no conversion %%%c (there are Y y m d e j H M S s F T V G u a A b B and %%)", format, format[i])
		}
	}
	return nil
}

// appendStrftime appends a time in Unix ns, in UTC, as strftime(3) does in the C locale.
func appendStrftime(dst []byte, format string, ns int64) []byte {
	t := time.Unix(0, ns).UTC()
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			dst = append(dst, format[i])
			continue
		}
		i++
		dst, _ = appendConversion(dst, format[i], t)
	}
	return dst
}

func appendConversion(dst []byte, c byte, t time.Time) ([]byte, bool) {
	switch c {
	case 'Y':
		return appendDigits(dst, t.Year(), 4), true
	case 'y':
		return appendDigits(dst, t.Year()%100, 2), true
	case 'm':
		return appendDigits(dst, int(t.Month()), 2), true
	case 'd':
		return appendDigits(dst, t.Day(), 2), true
	case 'e':
		return t.AppendFormat(dst, "_2"), true
	case 'j':
		return appendDigits(dst, t.YearDay(), 3), true
	case 'H':
		return appendDigits(dst, t.Hour(), 2), true
	case 'M':
		return appendDigits(dst, t.Minute(), 2), true
	case 'S':
		return appendDigits(dst, t.Second(), 2), true
	case 's':
		return strconv.AppendInt(dst, t.Unix(), 10), true
	case 'F':
		return t.AppendFormat(dst, time.DateOnly), true
	case 'T':
		return t.AppendFormat(dst, time.TimeOnly), true
	case 'V':
		_, week := t.ISOWeek()
		return appendDigits(dst, week, 2), true
	case 'G':
		year, _ := t.ISOWeek()
		return appendDigits(dst, year, 4), true
	case 'u':
		return appendDigits(dst, (int(t.Weekday())+6)%7+1, 1), true
	case 'a':
		return append(dst, t.Weekday().String()[:3]...), true
	case 'A':
		return append(dst, t.Weekday().String()...), true
	case 'b':
		return append(dst, t.Month().String()[:3]...), true
	case 'B':
		return append(dst, t.Month().String()...), true
	case '%':
		return append(dst, '%'), true
	}
	return dst, false
}

// appendDigits appends n with at least so many digits.
func appendDigits(dst []byte, n, digits int) []byte {
	for limit := 10; digits > 1; digits, limit = digits-1, limit*10 {
		if n < limit {
			dst = append(dst, "000000"[:digits-1]...)
			break
		}
	}
	return strconv.AppendInt(dst, int64(n), 10)
}
