package router

import (
	"math"
	"time"
)

const minTime = -9214560000 * int64(time.Second) // 1678-01-01: the first year that int64 ns hold whole

// AppendTime appends a time in Unix ns as RFC 3339 in UTC with the shortest
// fraction: 2026-01-01T00:00:04.003Z, 2026-01-01T00:00:05Z.
func AppendTime(dst []byte, ns int64) []byte {
	dst, frac := appendSeconds(dst, ns)
	if frac > 0 {
		digits := 9
		for frac%10 == 0 {
			frac /= 10
			digits--
		}
		dst = appendFraction(dst, frac, digits)
	}
	return append(dst, 'Z')
}

// AppendTimeMicro appends a time in Unix ns as RFC 3339 in UTC with six digits
// of fraction, what is finer cut off: 27 bytes that sort as the times do.
func AppendTimeMicro(dst []byte, ns int64) []byte {
	dst, frac := appendSeconds(dst, ns)
	return append(appendFraction(dst, frac/1000, 6), 'Z')
}

// appendSeconds appends date and time and returns the ns left over.
func appendSeconds(dst []byte, ns int64) (out []byte, frac int64) {
	sec := ns / 1e9
	if frac = ns % 1e9; frac < 0 {
		frac += 1e9
		sec--
	}
	day, tod := sec/86400, sec%86400
	if tod < 0 {
		tod += 86400
		day--
	}
	// Days since 0000-03-01 to a date: years then begin in March, so that the
	// leap day is the last of its year. All int64 ns lie after that day.
	z := uint64(day + 719468)
	era := z / 146097
	doe := z % 146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d := doy - (153*mp+2)/5 + 1
	y, m := yoe+era*400, mp+3
	if m > 12 {
		y, m = y+1, m-12
	}
	h, mi, s := tod/3600, tod/60%60, tod%60
	return append(dst,
		byte('0'+y/1000), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10), '-',
		byte('0'+m/10), byte('0'+m%10), '-', byte('0'+d/10), byte('0'+d%10), 'T',
		byte('0'+h/10), byte('0'+h%10), ':', byte('0'+mi/10), byte('0'+mi%10), ':',
		byte('0'+s/10), byte('0'+s%10)), frac
}

// appendFraction appends a point and so many digits of n.
func appendFraction(dst []byte, n int64, digits int) []byte {
	dst = append(dst, ".000000000"[:digits+1]...)
	for i := len(dst) - 1; n > 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}

// ParseTime reads an RFC 3339 time: any offset, a fraction of which nine digits
// count, a leap second as the second after it. It returns NoTime when s is none,
// no such date exists, or the time lies outside 1678 to 2262.
func ParseTime(s []byte) int64 {
	if len(s) < len("2006-01-02T15:04:05Z") || s[4] != '-' || s[7] != '-' || s[10]|0x20 != 't' || s[13] != ':' || s[16] != ':' {
		return NoTime
	}
	ok := true
	number := func(from, to, low, high int) int {
		n := 0
		for _, c := range s[from:to] {
			ok = ok && c-'0' <= 9
			n = n*10 + int(c-'0')
		}
		ok = ok && n >= low && n <= high
		return n
	}
	year, month := number(0, 4, 1678, 2262), number(5, 7, 1, 12)
	day := number(8, 10, 1, 31)
	hour, minute, second := number(11, 13, 0, 23), number(14, 16, 0, 59), number(17, 19, 0, 60)
	i, ns := 19, int64(0)
	if s[i] == '.' {
		scale := int64(100_000_000)
		for i++; i < len(s) && s[i]-'0' <= 9; i++ {
			ns += int64(s[i]-'0') * scale
			scale /= 10
		}
		ok = ok && i > 20
	}
	offset := 0
	switch rest := s[i:]; {
	case len(rest) == 1 && rest[0]|0x20 == 'z':
	case len(rest) == 6 && (rest[0] == '+' || rest[0] == '-') && rest[3] == ':':
		offset = number(i+1, i+3, 0, 23)*3600 + number(i+4, i+6, 0, 59)*60
		if rest[0] == '-' {
			offset = -offset
		}
	default:
		return NoTime
	}
	if !ok {
		return NoTime
	}
	t := time.Date(year, time.Month(month), day, hour, minute, 0, 0, time.UTC)
	if t.Day() != day { // 30 February
		return NoTime
	}
	sec := t.Unix() + int64(second-offset)
	if sec >= math.MaxInt64/int64(time.Second) {
		return NoTime
	}
	return sec*int64(time.Second) + ns
}
