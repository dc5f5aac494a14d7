package deadletter

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// A Selection says which letters are meant: those to which all of it applies. The zero value is all of them.
type Selection struct {
	Numbers      []int64   // of letters
	Destination  string    // that rejected
	Route        string    // on which a filter rejected
	Filter       string    // that rejected
	Code         string    // beginning of the code: "22" is a class of SQLSTATE, "SQLITE_CONSTRAINT" all constraints
	Since, Until time.Time // of the rejection: at Since or later, before Until
}

// All reports whether nothing is left out.
func (s Selection) All() bool {
	return s.Numbers == nil && s.Destination == "" && s.Route == "" && s.Filter == "" && s.Code == "" && s.Since.IsZero() && s.Until.IsZero()
}

// where is the selection as an SQL condition on letters, and its arguments.
func (s Selection) where() (condition string, args []any) {
	all := []string{"1"}
	add := func(given bool, condition string, arg any) {
		if given {
			all, args = append(all, condition), append(args, arg)
		}
	}
	if s.Numbers != nil {
		all = append(all, "number IN ("+strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Numbers), " ", ", "), "[]")+")")
	}
	add(s.Destination != "", "destination = ?", s.Destination)
	add(s.Route != "", "route = ?", s.Route)
	add(s.Filter != "", "filter = ?", s.Filter)
	if s.Code != "" {
		add(true, "substr(code, 1, length(?)) = ?", s.Code)
		args = append(args, s.Code)
	}
	add(!s.Since.IsZero(), "time >= ?", nanoseconds(s.Since))
	add(!s.Until.IsZero(), "time < ?", nanoseconds(s.Until))
	return strings.Join(all, " AND "), args
}

// nanoseconds is t as letters have it; outside of what fits it is the nearest.
func nanoseconds(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, 0)):
		return 0
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}
