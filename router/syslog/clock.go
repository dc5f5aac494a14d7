package syslog

import (
	"math"
	"time"
)

// A clock turns stamps into Unix ns. It remembers the last zone offset and the
// year around the receive time, so that only times near a change of the clocks
// or of the year cost a look-up.
type clock struct {
	from, to int64 // Unix seconds between which offset holds; civil times a day inside are unambiguous
	offset   int64 // seconds east of UTC

	yearFrom, yearTo int64 // Unix seconds between which year is the zone's current one
	year             int
}

const (
	day   = 24 * 60 * 60
	unset = 946684800 // 2000-01-01: a clock before that was never set, as on a board that boots at 1970, and tells no year
)

// resolve returns Unix ns, or NoTime when a value is out of range, the date does
// not exist, or ns cannot hold it. A missing year is the one of last, this and
// next year that puts the time nearest to received (Unix ns); in an hour that
// the clocks repeat, the reading nearest to received is taken.
func (c *clock) resolve(t *stamp, received int64, zone *time.Location) int64 {
	if t.hasYear && (t.year < 1678 || t.year > 2262) {
		return NoTime
	}
	if t.month < 1 || t.month > 12 || t.day < 1 || t.day > 31 || t.hour > 23 || t.min > 59 || t.sec > 60 || t.badOffset {
		return NoTime
	}
	if zone == nil {
		zone = time.UTC
	}
	tod := int64(t.hour*3600 + t.min*60 + t.sec)
	now := received / 1e9
	if t.hasYear {
		if t.day > daysIn(t.month, t.year) {
			return NoTime
		}
		civil := days(t.year, t.month, t.day)*day + tod
		if t.hasZone {
			return nanos(civil-int64(t.offset), t.nsec)
		}
		return nanos(c.local(civil, now, zone), t.nsec)
	}
	if now < unset {
		return NoTime
	}
	if now < c.yearFrom || now >= c.yearTo {
		c.year = time.Unix(now, 0).In(zone).Year()
		c.yearFrom = time.Date(c.year, 1, 1, 0, 0, 0, 0, zone).Unix()
		c.yearTo = time.Date(c.year+1, 1, 1, 0, 0, 0, 0, zone).Unix()
	}
	best, found := int64(0), false
	for _, y := range [3]int{c.year, c.year - 1, c.year + 1} {
		if t.day > daysIn(t.month, y) {
			continue
		}
		civil := days(y, t.month, t.day)*day + tod
		u := civil - int64(t.offset)
		if !t.hasZone {
			u = c.local(civil, now, zone)
		}
		if !found || abs(u-now) < abs(best-now) {
			best, found = u, true
		}
		if abs(u-now) < 180*day {
			break
		}
	}
	if !found {
		return NoTime
	}
	return nanos(best, t.nsec)
}

// local turns seconds on the zone's wall clock into Unix seconds.
func (c *clock) local(civil, now int64, zone *time.Location) int64 {
	if zone == time.UTC {
		return civil
	}
	if u := civil - c.offset; u >= c.from+day && u < c.to-day {
		return u
	}
	// The offsets before and after a change that may be near.
	at := time.Unix(civil, 0).In(zone)
	_, before := at.Add(-26 * time.Hour).Zone()
	_, after := at.Add(26 * time.Hour).Zone()
	best, found := civil-int64(before), false
	for _, offset := range [2]int{before, after} {
		u := civil - int64(offset)
		if _, o := time.Unix(u, 0).In(zone).Zone(); o != offset {
			continue
		}
		if !found || abs(u-now) < abs(best-now) {
			best, found = u, true
		}
	}
	if found { // else the clocks skipped that time: it is read as before the change
		in := time.Unix(best, 0).In(zone)
		_, offset := in.Zone()
		c.offset, c.from, c.to = int64(offset), math.MinInt64/2, math.MaxInt64/2
		start, end := in.ZoneBounds()
		if !start.IsZero() {
			c.from = start.Unix()
		}
		if !end.IsZero() {
			c.to = end.Unix()
		}
	}
	return best
}

// nanos joins seconds and nanoseconds; NoTime outside 1678 to 2262.
func nanos(sec, nsec int64) int64 {
	const first, last = -9214560000, math.MaxInt64/1_000_000_000 - 1 // from 1678-01-01T00:00:00Z
	if sec < first || sec > last {
		return NoTime
	}
	return sec*1e9 + nsec
}

// days counts from 1970-01-01 in the Gregorian calendar; year is positive.
func days(year, month, dayOfMonth int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era := int64(year) / 400
	yoe := int64(year) - era*400
	doy := int64(153*(month-3)+2)/5 + int64(dayOfMonth) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

func daysIn(month, year int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
