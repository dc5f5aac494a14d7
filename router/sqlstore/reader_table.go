package sqlstore

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// seen is a table as a Reader found it.
type seen struct {
	table
	columns []seenColumn
	names   []string                  // of the columns
	roles   [len(router.KeyNames)]int // the column that holds that value of a message, or -1
	tag     int                       // the column that holds app_name[proc_id], or -1
	time    int                       // the column of the time by which rows are asked for and shown; -1: none
	order   ordering
	rowid   string   // SQLite's name for it; "": there is none
	kept    bool     // rowids stay when the file is vacuumed
	ties    []string // PostgreSQL: what orders rows of the same time
	slow    string   // what is missing for quick answers
}

type seenColumn struct {
	name string
	lite liteType
	pg   pgType
	null bool // it may be NULL
	json bool // SQLite: text in it is JSON
}

// An ordering says by what rows are walked through.
type ordering uint8

const (
	byTime    ordering = iota // an index
	byRowID                   // no index: as they were stored
	bySorting                 // no index and no rowid
	unordered                 // nothing to sort by either
)

func (t *seen) index(name string) int {
	return slices.IndexFunc(t.columns, func(c seenColumn) bool { return c.name == name || strings.EqualFold(c.name, name) })
}

func (t *seen) role(key router.Key) int { return t.roles[key] }

// mayBeNull reports whether rows may have no place in the order.
func (t *seen) mayBeNull() bool {
	return t.order != byRowID && t.time >= 0 && t.columns[t.time].null
}

// lone is a template that is one value and nothing else.
var lone = regexp.MustCompile(`^\$\{([a-z_]+)(?::-[^}]*)?\}$`)

// assign finds out which column holds what, by the configuration.
func (t *seen) assign(cfg *Config) {
	for i := range t.roles {
		t.roles[i] = -1
	}
	for i := range t.columns {
		t.names = append(t.names, t.columns[i].name)
	}
	set := func(key router.Key, column string) {
		if i := t.index(column); key != 0 && i >= 0 && t.roles[key] < 0 {
			t.roles[key] = i
		}
	}
	t.tag = -1
	all := cfg.columns()
	for _, e := range all {
		name := e.Value.From
		if m := lone.FindStringSubmatch(string(e.Value.Template)); m != nil {
			name = m[1]
		}
		set(router.LookupKey([]byte(name)), e.Name)
		if i := t.index(e.Name); name == "tag" && t.tag < 0 {
			t.tag = i
		}
		if i := t.index(e.Name); i >= 0 {
			t.columns[i].json = t.columns[i].json || holdsJSON(e.Value)
		}
	}
	for _, e := range all { // a line that is made of the message is better than none
		if strings.Contains(string(e.Value.Template), "${message") {
			set(router.KeyMessage, e.Name)
		}
	}
	if len(cfg.Columns) == 0 { // added by hand under the same names
		for key, name := range router.KeyNames {
			if key > 0 {
				set(router.Key(key), name)
			}
		}
	}
	if t.time = t.role(router.KeyReceivedAt); t.time < 0 {
		t.time = t.role(router.KeyTimestamp)
	}
}

func holdsJSON(c Column) bool {
	planned, err := plan(config.Map[Column]{{Name: "c", Value: c}})
	return err == nil && planned[0].natural() == cellJSON
}

// moment is a time as it stands in the column that t.time says, to compare with.
func (t *seen) moment(at time.Time) key {
	c, ns, micro := &t.columns[t.time], at.UnixNano(), microTime(at)
	if c.pg.words != "" {
		switch c.pg.kind {
		case pgInt2, pgInt4, pgInt8:
			return string(intCell(ns).text(&scratch{}))
		case pgFloat4, pgFloat8:
			return string(cellOf(router.FloatValue(float64(ns) / 1e9)).text(&scratch{}))
		}
		return micro
	}
	switch c.lite.kind {
	case liteInteger, liteNumber:
		return ns
	case liteReal:
		return float64(ns) / 1e9
	case liteJSON:
		return `"` + micro + `"`
	case liteBlob:
		return blob(micro)
	}
	return micro
}

// microTime is a time as weir writes it.
func microTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

// A key is the value of a column that rows are ordered by, as the database has it:
// int64, float64, string or blob; nil: none, or NULL.
type key any

type blob string
