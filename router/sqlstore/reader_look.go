package sqlstore

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
)

// A Look says which rows are wanted.
type Look struct {
	Since, Until time.Time // bounds of when weir received them: from Since on, before Until; zero: none
	Severities   uint8     // a bit each, 1<<3 for err; 0: any
	Hosts, Apps  []string  // globs of * and ?, one of which fits; the case of letters counts in Apps only. nil: any
	Text         string    // the message holds it; "": any
	Fold         bool      // Text fits whatever the case of the letters a to z
	Regexp       *regexp.Regexp
	N            int           // how many, the newest; -1: all
	Reverse      bool          // newest first
	Late         time.Duration // how much later than its arrival a row may be committed; for Follow
}

// filtered reports whether rows between Since and Until may be unwanted.
func (q *Look) filtered() bool {
	return q.Severities != 0 || len(q.Hosts) > 0 || len(q.Apps) > 0 || q.Text != "" || q.Regexp != nil
}

// needs are the values of a message that the question asks for.
func (q *Look) needs() (keys []router.Key) {
	for _, n := range []struct {
		key router.Key
		is  bool
	}{{router.KeySeverity, q.Severities != 0}, {router.KeyHostname, len(q.Hosts) > 0}, {router.KeyAppName, len(q.Apps) > 0},
		{router.KeyMessage, q.Text != "" || q.Regexp != nil}} {
		if n.is {
			keys = append(keys, n.key)
		}
	}
	return keys
}

// A View is a question to the tables of a destination as they are.
type View struct {
	r      *Reader
	q      Look
	tables []*seen
}

// Look prepares the answer to q. There need not be a table yet, for Follow; Last then says so.
func (r *Reader) Look(ctx context.Context, q Look) (*View, error) {
	v := &View{r: r, q: q}
	return v, v.find(ctx)
}

// find looks which tables there are.
func (v *View) find(ctx context.Context) error {
	names, err := v.r.names(ctx)
	if err != nil {
		return err
	}
	v.tables = v.tables[:0]
	var lacks error
	for _, name := range names {
		t, err := v.r.describe(ctx, name)
		if err != nil {
			return err
		}
		if t == nil { // gone meanwhile, or one that is not ours
			continue
		}
		if err := v.suits(t); err != nil {
			lacks = err
			continue
		}
		v.tables = append(v.tables, t)
	}
	if len(v.tables) == 0 {
		return lacks
	}
	return nil
}

// names are the tables that rows of the destination are in.
func (r *Reader) names(ctx context.Context) ([]string, error) {
	all, err := r.db.list(ctx)
	if err != nil {
		return nil, err
	}
	if r.naming.fixed == "" {
		return slices.DeleteFunc(all, func(name string) bool { return !r.naming.matches(name) }), nil
	}
	return slices.DeleteFunc(all, func(name string) bool {
		return name != r.naming.fixed && (r.lite == nil || !strings.EqualFold(name, r.naming.fixed))
	}), nil
}

// describe looks at a table; nil when there is none, or it was not made for the destination.
func (r *Reader) describe(ctx context.Context, name string) (*seen, error) {
	t, err := r.db.describe(ctx, table{r.naming.schema, name})
	if err != nil || t == nil {
		return nil, err
	}
	if r.naming.fixed == "" {
		for _, c := range r.cfg.columns().Names() {
			if t.index(c) < 0 {
				return nil, nil
			}
		}
	}
	return t, nil
}

// suits tells why the question cannot be put to a table.
func (v *View) suits(t *seen) error {
	for _, key := range v.q.needs() {
		if t.role(key) < 0 {
			return unsuited{lookError{fmt.Errorf("table %s has no column that holds the %s", t, roleName(key)), "it has " + strings.Join(t.names, ", ")}}
		}
	}
	if t.time < 0 && (!v.q.Since.IsZero() || !v.q.Until.IsZero()) {
		return unsuited{lookError{fmt.Errorf("table %s has no column that holds the time", t), "since and until cannot be asked for; it has " + strings.Join(t.names, ", ")}}
	}
	if t.order == unordered {
		return unsuited{lookError{fmt.Errorf("table %s has no column that holds the time, so its rows have no order", t), "weir query shows them"}}
	}
	return nil
}

// unsuited is the error for a question that a table cannot answer.
type unsuited struct{ error }

func (e unsuited) Unwrap() error { return e.error }

func roleName(key router.Key) string {
	return strings.ReplaceAll(router.KeyNames[key], "_name", "")
}

// AnyTable chooses the table of a file that no configuration describes: logs, or the only one that looks as
// if weir had made it.
func (r *Reader) AnyTable(ctx context.Context) error {
	all, err := r.db.list(ctx)
	if err != nil || slices.Contains(all, "logs") {
		return err
	}
	var like []string
	for _, name := range all {
		t, err := r.db.describe(ctx, table{name: name})
		if err != nil {
			return err
		}
		if t != nil && t.role(router.KeyReceivedAt) >= 0 && t.role(router.KeyMessage) >= 0 {
			like = append(like, name)
		}
	}
	switch len(like) {
	case 0:
		return nil
	case 1:
		r.naming = naming{fixed: like[0]}
		return nil
	}
	return lookError{fmt.Errorf("%s has several tables of messages: %s", r.Place(), strings.Join(like, ", ")), "say which with --table"}
}

// Columns are the names of all columns, of all tables.
func (v *View) Columns() (names []string) {
	for _, t := range v.tables {
		for _, name := range t.names {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Slow tells what makes the answer slow or incomplete, and the way out; nothing when all is well.
func (v *View) Slow() (notes []string) {
	for _, t := range v.tables {
		if t.slow != "" {
			notes = append(notes, t.slow)
		}
	}
	return notes
}

// absent is the error for no table at all.
func (v *View) absent(ctx context.Context) error {
	name := v.r.naming.fixed
	if name == "" {
		name = string(v.r.cfg.Table)
	}
	hint := "weir makes it at its first start"
	if all, err := v.r.db.list(ctx); err == nil && len(all) > 0 {
		hint = "there are " + strings.Join(all[:min(len(all), 10)], ", ")
	}
	return lookError{fmt.Errorf("there is no table %s in %s", name, v.r.Place()), hint}
}
