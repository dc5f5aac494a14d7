package sqlstore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// Partition says how a table of PostgreSQL is divided by time (PostgreSQL
// manual, "Table Partitioning": declarative, by range). Periods begin in UTC.
type Partition struct {
	By     string        `yaml:"by,required"` // hour, day, week (from Monday), month
	Column string        `yaml:"column"`
	Ahead  int           `yaml:"ahead"`    // periods beyond the present one for which there is a partition
	Keep   time.Duration `yaml:"keep,off"` // partitions whose period ended so long ago are dropped; 0: none
}

// Defaults implements config.Defaulter.
func (p *Partition) Defaults() { p.Column, p.Ahead = "received_at", 3 }

// withoutKeep is how far back partitions are made for rows when none is ever dropped.
const withoutKeep = 366 * 24 * time.Hour

// longestPartitioned is how many bytes a table's name may have, so that those of its partitions are whole.
const longestPartitioned = 63 - len("_p2026_11_30_13")

// checkPartition tells what is wrong in partition, and what cannot be together with it.
func (c *Config) checkPartition() (bad []config.Problem) {
	p := c.Partition
	if p == nil {
		return nil
	}
	add := func(path, hint, format string, args ...any) {
		bad = append(bad, config.Problem{Path: path, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	bad = append(bad, config.OneOf("partition.by", p.By, "hour", "day", "week", "month")...)
	if len(bad) > 0 {
		return bad
	}
	if p.Ahead < 1 || p.Ahead > 100 {
		add("partition.ahead", "1 to 100", "%d partitions ahead", p.Ahead)
	}
	if period := p.next(time.Unix(0, 0)).Sub(p.start(time.Unix(0, 0))); p.Keep != 0 && p.Keep < period {
		add("partition.keep", "90d, or off", "%s is shorter than a partition", config.TimeText(p.Keep))
	}
	columns, err := plan(c.columns())
	i := slices.IndexFunc(columns, func(col column) bool { return col.name == p.Column })
	dividing, hint := p.Column, "a column with received_at or timestamp, of type timestamptz"
	if i >= 0 && !columns[i].divides() {
		if k := slices.IndexFunc(columns, (column).divides); k >= 0 {
			dividing, hint = columns[k].name, columns[k].name
		}
	}
	switch {
	case err != nil: // told already
	case i < 0:
		add("partition.column", config.Suggest(p.Column, c.columns().Names()), "no column %s", p.Column)
	case !columns[i].divides():
		add("partition.column", hint, "column %s holds no time", p.Column)
	case columns[i].pgKind() == pgDate && p.By == "hour":
		add("partition.by", "day", "column %s holds no hours", p.Column)
	}
	if on := c.OnConflict; on != nil && !on.Ignore && !slices.Contains(on.Key, dividing) {
		add("on_conflict.key", fmt.Sprintf("key: [%s]", strings.Join(append(slices.Clone(on.Key), dividing), ", ")),
			"a key of a partitioned table holds the column that divides it, %s: the server knows no other", dividing)
	}
	if c.autocommit() {
		add("explicit_commits", "leave one of them out", "explicit_commits: false and partition do not go together")
	}
	if strings.Contains(strings.ToUpper(c.CreateSuffix), "PARTITION BY") {
		add("create_suffix", "leave one of them out", "create_suffix and partition both divide the table")
	}
	if names, err := parseNaming(string(c.Table)); err == nil {
		switch {
		case names.fixed == "":
			add("partition", "a fixed table name", "a table that is named by a template is not partitioned by weir")
		case len(names.fixed) > longestPartitioned:
			add("table", fmt.Sprintf("at most %d bytes", longestPartitioned), "too long for the names of its partitions")
		}
	}
	return bad
}

// divides reports whether a table can be partitioned by c.
func (c column) divides() bool {
	return c.natural() == cellTime && slices.Contains([]pgKind{pgTimestamptz, pgTimestamp, pgDate}, c.pgKind())
}

// start is when the period of t begins.
func (p *Partition) start(t time.Time) time.Time {
	t = t.UTC()
	y, m, d := t.Date()
	switch p.By {
	case "hour":
		return time.Date(y, m, d, t.Hour(), 0, 0, 0, time.UTC)
	case "week":
		return time.Date(y, m, d-(int(t.Weekday())+6)%7, 0, 0, 0, 0, time.UTC)
	case "month":
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// next is when the period of t ends.
func (p *Partition) next(t time.Time) time.Time {
	t = p.start(t)
	switch p.By {
	case "hour":
		return t.Add(time.Hour)
	case "week":
		return t.AddDate(0, 0, 7)
	case "month":
		return t.AddDate(0, 1, 0)
	}
	return t.AddDate(0, 0, 1)
}

// covers reports whether a row of that time is to have a partition, when it is now.
func (p *Partition) covers(t, now time.Time) bool {
	keep := p.Keep
	if keep == 0 {
		keep = withoutKeep
	}
	end := p.next(now)
	for range p.Ahead {
		end = p.next(end)
	}
	return t.Before(end) && !t.Before(p.start(now.Add(-keep)))
}

func (p *Partition) layout() string {
	switch p.By {
	case "hour":
		return "2006_01_02_15"
	case "month":
		return "2006_01"
	}
	return "2006_01_02"
}

// name is that of the partition that begins at start.
func (p *Partition) name(table string, start time.Time) string {
	return table + "_p" + start.Format(p.layout())
}

// began is when the partition of that name begins; ok says that it is one of ours.
func (p *Partition) began(table, name string) (start time.Time, ok bool) {
	digits, ok := strings.CutPrefix(name, table+"_p")
	if !ok || !partitionDigits.MatchString(digits) {
		return start, false
	}
	start, err := time.Parse(p.layout(), digits)
	return start, err == nil && start.Equal(p.start(start))
}

var partitionDigits = regexp.MustCompile(`^[0-9_]+$`)

// bounds are a period in SQL, for every type of column that may divide a table.
func (p *Partition) bounds(start time.Time) string {
	const form = "2006-01-02 15:04:05+00"
	return fmt.Sprintf("FROM ('%s') TO ('%s')", start.Format(form), p.next(start).Format(form))
}

// missing are the periods of messages for which there is to be a partition, in order.
func (p *Partition) missing(c *column, msgs []*router.Message, mine []int32, now time.Time) []time.Time {
	found := map[time.Time]bool{}
	var s scratch
	for _, i := range mine {
		s.reset()
		if v := c.cell(msgs[i], &s); v.kind == cellTime {
			if t := time.Unix(0, int64(v.num)); p.covers(t, now) {
				found[p.start(t)] = true
			}
		}
	}
	starts := make([]time.Time, 0, len(found))
	for t := range found {
		starts = append(starts, t)
	}
	slices.SortFunc(starts, time.Time.Compare)
	return starts
}
