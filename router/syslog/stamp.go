package syslog

// A stamp is a timestamp as written: its shape was right, its values may be
// out of range.
type stamp struct {
	year                        int
	month, day, hour, min, sec  int
	nsec                        int64
	offset                      int // seconds east of UTC
	hasYear, hasZone, badOffset bool
	t                           bool // date and time were joined by T
}

// scanISO reads `YYYY-MM-DD`, T or a space, `hh:mm:ss`, an optional fraction and
// an optional zone, and returns their length, or 0.
func (t *stamp) scanISO(s []byte) int {
	if len(s) < 19 || s[4] != '-' || s[7] != '-' || s[13] != ':' || s[16] != ':' {
		return 0
	}
	switch s[10] {
	case 'T', 't':
		t.t = true
	case ' ':
	default:
		return 0
	}
	var bad uint
	t.year = two(s, 0, &bad)*100 + two(s, 2, &bad)
	t.month, t.day = two(s, 5, &bad), two(s, 8, &bad)
	t.hour, t.min, t.sec = two(s, 11, &bad), two(s, 14, &bad), two(s, 17, &bad)
	if bad != 0 {
		return 0
	}
	t.hasYear = true
	n := 19
	nsec, f := scanFraction(s[n:])
	t.nsec, n = nsec, n+f
	return n + t.scanOffset(s[n:])
}

// scanOffset reads `Z`, `±hh:mm` or `±hhmm` and returns its length, or 0.
func (t *stamp) scanOffset(s []byte) int {
	if len(s) == 0 {
		return 0
	}
	switch s[0] {
	case 'Z', 'z':
		t.hasZone = true
		return 1
	case '+', '-':
	default:
		return 0
	}
	n := 3
	if len(s) > 3 && s[3] == ':' {
		n = 4
	}
	if len(s) < n+2 {
		return 0
	}
	var bad uint
	h, m := two(s, 1, &bad), two(s, n, &bad)
	if bad != 0 {
		return 0
	}
	t.hasZone = true
	t.badOffset = h > 23 || m > 59
	t.offset = h*3600 + m*60
	if s[0] == '-' {
		t.offset = -t.offset
	}
	return n + 2
}

// scanLegacy reads any of the timestamps of RFC 3164 and its kin. What is
// behind it is a space, a colon or the end. It returns the length, or 0.
func (t *stamp) scanLegacy(s []byte) int {
	*t = stamp{}
	if len(s) < 14 {
		return 0
	}
	n := 0
	if !isDigit(s[0]) {
		n = t.scanBSD(s)
	} else if s[4] == '-' {
		n = t.scanISO(s)
	} else if s[4] == ' ' {
		var bad uint
		year := two(s, 0, &bad)*100 + two(s, 2, &bad)
		if bad != 0 {
			return 0
		}
		t.year, t.hasYear = year, true
		if n = t.scanBSD(s[5:]); n == 0 {
			return 0
		}
		n += 5
	}
	if n == 0 || n < len(s) && s[n] != ' ' && s[n] != ':' {
		return 0
	}
	return n
}

// scanBSD reads `Mmm d hh:mm:ss` with an optional year behind the day or,
// before a space or the end, behind the time.
func (t *stamp) scanBSD(s []byte) int {
	if len(s) < 14 || s[3] != ' ' {
		return 0
	}
	if t.month = month(s); t.month == 0 {
		return 0
	}
	n := 4
	if s[n] == ' ' {
		n++
	}
	if !isDigit(s[n]) {
		return 0
	}
	t.day = int(s[n] - '0')
	n++
	if isDigit(s[n]) {
		t.day = t.day*10 + int(s[n]-'0')
		n++
	}
	if s[n] != ' ' {
		return 0
	}
	n++
	var bad uint
	if !t.hasYear && len(s) >= n+13 && s[n+4] == ' ' {
		t.year = two(s, n, &bad)*100 + two(s, n+2, &bad)
		if bad != 0 {
			return 0
		}
		t.hasYear = true
		n += 5
	}
	if len(s) < n+8 || s[n+2] != ':' || s[n+5] != ':' {
		return 0
	}
	t.hour, t.min, t.sec = two(s, n, &bad), two(s, n+3, &bad), two(s, n+6, &bad)
	if bad != 0 {
		return 0
	}
	n += 8
	nsec, f := scanFraction(s[n:])
	t.nsec, n = nsec, n+f
	if y := yearBehind(s[n:]); y > 0 && !t.hasYear {
		t.year, t.hasYear = y, true
		n += 5
	}
	return n
}

// yearBehind reads a space and a year that ends at a space or the end. Only
// years of this age count: a host may be called 8080.
func yearBehind(s []byte) int {
	if len(s) < 5 || s[0] != ' ' || len(s) > 5 && s[5] != ' ' {
		return 0
	}
	var bad uint
	y := two(s, 1, &bad)*100 + two(s, 3, &bad)
	if bad != 0 || y < 1900 || y > 2199 {
		return 0
	}
	return y
}

// scanFraction reads `.` or `,` and digits; those behind the ninth are dropped.
func scanFraction(s []byte) (nsec int64, n int) {
	if len(s) < 2 || s[0] != '.' && s[0] != ',' || !isDigit(s[1]) {
		return 0, 0
	}
	scale := int64(100_000_000)
	for n = 1; n < len(s) && isDigit(s[n]); n++ {
		nsec += int64(s[n]-'0') * scale
		scale /= 10
	}
	return nsec, n
}

// two reads the two digits at i; bad grows beyond 0 when they are none.
func two(s []byte, i int, bad *uint) int {
	a, b := uint(s[i]-'0'), uint(s[i+1]-'0')
	if a > 9 || b > 9 {
		*bad = 1
	}
	return int(a*10 + b)
}

// month reads a three-letter English month name in any letter case; 0: none.
func month(s []byte) int {
	switch uint32(s[0]|0x20)<<16 | uint32(s[1]|0x20)<<8 | uint32(s[2]|0x20) {
	case 'j'<<16 | 'a'<<8 | 'n':
		return 1
	case 'f'<<16 | 'e'<<8 | 'b':
		return 2
	case 'm'<<16 | 'a'<<8 | 'r':
		return 3
	case 'a'<<16 | 'p'<<8 | 'r':
		return 4
	case 'm'<<16 | 'a'<<8 | 'y':
		return 5
	case 'j'<<16 | 'u'<<8 | 'n':
		return 6
	case 'j'<<16 | 'u'<<8 | 'l':
		return 7
	case 'a'<<16 | 'u'<<8 | 'g':
		return 8
	case 's'<<16 | 'e'<<8 | 'p':
		return 9
	case 'o'<<16 | 'c'<<8 | 't':
		return 10
	case 'n'<<16 | 'o'<<8 | 'v':
		return 11
	case 'd'<<16 | 'e'<<8 | 'c':
		return 12
	}
	return 0
}
