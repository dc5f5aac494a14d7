package sqlstore

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
)

// A Row is one row of a table. It may be kept.
type Row struct {
	// Values are those of all columns. Times are text of RFC 3339 in UTC, as far as the database says that they are times.
	Values []Value
	t      *seen
	id     int64 // rowid, where there is one
}

// Columns are the names of the table's columns.
func (r *Row) Columns() []string { return r.t.names }

// Get is the value of a message that the row holds in one of its columns; NULL too when none holds it.
func (r *Row) Get(key router.Key) Value {
	if i := r.t.role(key); i >= 0 {
		return r.Values[i]
	}
	return Value{}
}

// Tag is app_name[proc_id] where one column holds it; else NULL.
func (r *Row) Tag() Value {
	if r.t.tag >= 0 {
		return r.Values[r.t.tag]
	}
	return Value{}
}

// In are the values of the columns of these names; NULL where the row has no such column.
func (r *Row) In(columns []string) []Value {
	out := make([]Value, len(columns))
	for i, name := range columns {
		if i < len(r.t.columns) && r.t.columns[i].name == name { // nearly always
			out[i] = r.Values[i]
		} else if at := r.t.index(name); at >= 0 {
			out[i] = r.Values[at]
		}
	}
	return out
}

// Time is when weir received the message, or when it was sent where the table
// does not say that. ok is false for what is no time.
func (r *Row) Time() (at time.Time, ok bool) {
	if r.t.time < 0 {
		return at, false
	}
	return momentOf(r.Values[r.t.time])
}

// timeForms are those in which weir, PostgreSQL and other programs write a time.
var timeForms = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", time.DateOnly}

// momentOf reads a time as weir writes it, and as others do.
func momentOf(v Value) (at time.Time, ok bool) {
	switch v.Kind {
	case NumberValue:
		n, err := strconv.ParseInt(string(v.Text), 10, 64)
		if err != nil {
			f, err := strconv.ParseFloat(string(v.Text), 64)
			if err != nil || !(math.Abs(f) < 1e11) {
				return at, false
			}
			return time.UnixMicro(int64(math.Round(f * 1e6))), true
		}
		for _, unit := range []struct{ below, ns int64 }{{1e11, 1e9}, {1e14, 1e6}, {1e17, 1e3}} { // seconds, ms, µs
			if -unit.below < n && n < unit.below {
				per := 1e9 / unit.ns
				return time.Unix(n/per, n%per*unit.ns), true
			}
		}
		return time.Unix(0, n), true
	case TextValue, BytesValue, JSONValue:
		text := strings.Trim(string(v.Text), `" `)
		forms := timeForms
		if len(text) > 10 && text[10] == ' ' { // not RFC 3339
			forms = forms[1:]
		}
		for _, form := range forms {
			if at, err := time.Parse(form, text); err == nil {
				return at, true
			}
		}
	}
	return at, false
}

// size is about what the row takes in memory.
func (r *Row) size() int {
	n := 64 + 32*len(r.Values)
	for i := range r.Values {
		n += len(r.Values[i].Text)
	}
	return n
}

// earlier reports whether r comes before o in the order of time. What has no time comes first.
func (r *Row) earlier(o *Row) bool {
	a, known := r.Time()
	b, also := o.Time()
	if !known || !also {
		return !known && also
	}
	return a.Before(b)
}
