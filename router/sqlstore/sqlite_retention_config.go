package sqlstore

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// Retention says which rows of a SQLite database are removed, the oldest first.
// What is zero bounds nothing.
type Retention struct {
	Age      time.Duration `yaml:"age,off"`       // of a row, by its column that is filled from received_at
	Size     config.Size   `yaml:"size,off"`      // bytes of the database, without free pages
	KeepFree config.Size   `yaml:"keep_free,off"` // bytes that stay free on the disk; so much of the database stays too
}

const (
	minRetentionAge  = time.Minute
	minRetentionSize = 1 << 20
)

// OtherNames are what other programs call the keys.
func (*Retention) OtherNames() map[string]string {
	return map[string]string{"max_age": "age", "days": "age: 30d", "time": "age", "period": "age", "max_size": "size", "bytes": "size", "min_free": "keep_free", "free": "keep_free"}
}

func (r Retention) on() bool { return r != Retention{} }

// checkCare looks at the settings that only SQLite has.
func (c *Config) checkCare() []config.Problem {
	var bad []config.Problem
	add := func(path, what, hint string) { bad = append(bad, config.Problem{Path: path, What: what, Hint: hint}) }
	if c.SQLite == "" {
		if c.Retention.on() {
			add("retention", "retention is for SQLite: a PostgreSQL server removes old rows by partitions", "partition: {by: day, keep: 90d}")
		}
		if c.FullText != "" {
			add("full_text", "full_text is for SQLite", "an index of your own on the server")
		}
		return bad
	}
	switch base := filepath.Base(c.SQLite); {
	case c.SQLite == ":memory:":
		add("sqlite", "a database in memory is gone with weir", "logs.db, or discard: {}")
	case strings.HasPrefix(c.SQLite, "file:") || strings.Contains(c.SQLite, "?"):
		path, _, _ := strings.Cut(strings.TrimPrefix(c.SQLite, "file:"), "?")
		add("sqlite", "a path is wanted, and no URI of SQLite's", path)
	case strings.HasSuffix(c.SQLite, "/") || base == "." || base == "..":
		add("sqlite", "a directory, not a file", filepath.Join(c.SQLite, "logs.db"))
	default:
		bad = append(bad, config.OddPath("sqlite", c.SQLite, "one file, with retention: {age: 30d}; table: can have ${hostname} in its name")...)
	}
	if a := c.Retention.Age; a < 0 || a > 0 && a < minRetentionAge {
		add("retention.age", "rows would be gone before anybody reads them", "30d; at least 1m, or off")
	} else if a > 0 && c.arrival() == "" {
		add("retention.age", "no column says when a row arrived", "a column that is filled from received_at")
	}
	if s := c.Retention.Size; s < 0 || s > 0 && s < minRetentionSize {
		add("retention.size", "too small for a database", "2GiB; at least 1MiB, or off")
	}
	if s := c.Retention.KeepFree; s < 0 || s > 0 && s < minRetentionSize {
		add("retention.keep_free", "too small to be of use", "64MiB; at least 1MiB, or off")
	}
	if c.FullText != "" {
		switch column := c.columns().Get(c.FullText); {
		case column == nil:
			add("full_text", "no column "+c.FullText, config.Suggest(c.FullText, c.columns().Names()))
		case strings.EqualFold(c.FullText, "rank") || strings.EqualFold(c.FullText, "rowid"):
			add("full_text", "SQLite's full-text index cannot have a column of that name", "another name for the column")
		}
	}
	return bad
}

// arrival is the column that says when a row arrived; "" when there is none.
func (c *Config) arrival() string {
	for _, e := range c.columns() {
		if ref, err := router.ParseRef(e.Value.From); err == nil && ref.Kind == router.RefKey && ref.Key == router.KeyReceivedAt && e.Value.NullIf == nil {
			return e.Name
		}
	}
	return ""
}
