package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
)

// partitions is what a destination remembers of its table's.
type partitions struct {
	clock  router.Clock
	next   time.Time         // of tend
	note   string            // what did not work, or ""
	others map[string]bool   // periods that a partition of somebody else's covers, by our name
	schema map[string]string // of tables, as the server found them
	now    func() time.Time  // nil: time.Now
}

const (
	partitionEvery = time.Minute
	partitionWait  = "1s" // for locks: a reader in a long transaction is met again a minute later
	// dropComment marks a partition before it is detached, so that one which was
	// left behind half way is known from one that somebody took out to keep it.
	dropComment = "weir drops this table"
)

func (p *partitions) time() time.Time {
	if p.now != nil {
		return p.now()
	}
	return time.Now()
}

// A part is a partition as the server lists it.
type part struct {
	name    string
	pending bool // its DETACH CONCURRENTLY was broken off
	left    bool // detached already, with our comment
}

// openPartitions looks at a table when it is opened: it is partitioned, and there
// is a place for the rows of now.
func (d *postgres) openPartitions(ctx context.Context, t *pgTable) error {
	p := d.cfg.Partition
	if p == nil {
		return nil
	}
	if t.kind != 'p' {
		return router.NeedsOperator(fmt.Errorf("table %s is not partitioned, and cannot be made so: ALTER TABLE %s RENAME TO …, then weir makes a new one; or leave partition: out", t, t.sql()))
	}
	now := d.partitions.time()
	if _, err := d.ensure(ctx, t, []time.Time{p.start(now)}); err != nil {
		return err
	}
	d.partitions.next = time.Time{} // the others, between transactions
	return nil
}

// list reads the partitions of t, and those that were left half way.
func (d *postgres) list(ctx context.Context, t *pgTable) ([]part, error) {
	result, err := d.exec(ctx, fmt.Sprintf(`SELECT n.nspname, c.relname, coalesce(to_jsonb(i) ->> 'inhdetachpending', 'false'), i.inhrelid IS NULL
 FROM pg_catalog.pg_class p JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
 LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = p.relnamespace AND c.relkind = 'r' AND starts_with(c.relname::text, p.relname || '_p')
  AND (c.relispartition OR pg_catalog.obj_description(c.oid, 'pg_class') = %s)
 LEFT JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = p.oid WHERE p.oid = %s::regclass`, literal(dropComment), literal(t.sql())))
	if err != nil {
		return nil, beforeRows(pgFailure("list the partitions of "+t.String(), err))
	}
	var parts []part
	for _, r := range result.Rows {
		if d.partitions.schema == nil {
			d.partitions.schema = map[string]string{}
		}
		d.partitions.schema[t.name] = string(r[0])
		if r[1] != nil {
			parts = append(parts, part{name: string(r[1]), pending: string(r[2]) == "true", left: string(r[3]) == "t"})
		}
	}
	return parts, nil
}

// ensure makes the partitions that begin at starts, as far as there are none. It
// returns how many it made, or others made meanwhile.
func (d *postgres) ensure(ctx context.Context, t *pgTable, starts []time.Time) (made int, err error) {
	p := d.cfg.Partition
	there, err := d.list(ctx, t)
	if err != nil {
		return 0, err
	}
	for _, start := range starts {
		name := p.name(t.name, start)
		if d.partitions.others[name] || slices.ContainsFunc(there, func(p part) bool { return p.name == name && !p.left }) {
			continue
		}
		one := table{d.partitions.schema[t.name], name}
		// Unlike PARTITION OF, ATTACH lets others write and read meanwhile.
		done, err := d.define(ctx, "create partition "+name, t.table, fmt.Sprintf(
			"CREATE TABLE %[1]s (LIKE %[2]s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING STORAGE); ALTER TABLE %[2]s ATTACH PARTITION %[1]s FOR VALUES %[3]s",
			one.sql(), t.sql(), p.bounds(start)))
		if f, ok := err.(*failure); ok {
			switch f.code {
			case "42P17", "42P16": // it would overlap another one
				if d.partitions.others == nil {
					d.partitions.others = map[string]bool{}
				}
				d.partitions.others[name] = true
				d.log.Info("another partition covers this period, or a part of it", "table", t.String(), "partition", name)
				continue
			case "42501":
				return made, router.NeedsOperator(fmt.Errorf("%w: partition: needs the table's owner: ALTER TABLE %s OWNER TO …", f, t.sql()))
			}
			return made, beforeRows(f)
		}
		if err != nil {
			return made, err
		}
		if !done { // there is a table of that name
			if there, err = d.list(ctx, t); err != nil {
				return made, err
			}
			if !slices.ContainsFunc(there, func(p part) bool { return p.name == name && !p.left }) {
				return made, router.NeedsOperator(fmt.Errorf("create partition %s: there is a table of that name, which is no partition of %s: rename, attach or drop it", name, t))
			}
		} else {
			d.log.Info("created the partition", "table", t.String(), "partition", name)
		}
		made++
	}
	return made, nil
}

// cover makes partitions for the rows of a transaction that the server found
// none for. It reports whether the rows may go in now.
func (d *postgres) cover(ctx context.Context, msgs []*router.Message, t *pgTable) (bool, error) {
	if d.conn == nil {
		return false, errors.New("make partitions: the connection was lost")
	}
	p := d.cfg.Partition
	made, err := d.ensure(ctx, t, p.missing(&d.columns[d.indexOf(p.Column)], msgs, t.mine, d.partitions.time()))
	return made > 0, err
}

// tend implements router.Tender: partitions are made ahead of time, and old ones dropped.
func (d *postgres) tend(ctx context.Context) (more bool, note string) {
	p, c := d.cfg.Partition, &d.partitions
	if p == nil {
		return false, ""
	}
	now := c.time()
	trusted := c.clock.Trusted(now)
	if d.conn == nil || d.conn.IsClosed() || now.Before(c.next) && c.next.Sub(now) <= partitionEvery {
		return false, c.note
	}
	c.next = now.Add(partitionEvery)
	t := d.known[d.naming.fixed]
	if t == nil || !t.open || t.kind != 'p' {
		return false, c.note
	}
	more, err := d.tendTable(ctx, t, now, trusted)
	if more {
		c.next = now
	}
	words := ""
	if err != nil {
		words = "partitions: " + err.Error()
		d.rollback(ctx)
	}
	if words != c.note && err != nil {
		d.log.Warn("partitions are not as they should be; trying again every minute", "table", t.String(), "error", err)
	}
	c.note = words
	return more && err == nil, c.note
}

func (d *postgres) tendTable(ctx context.Context, t *pgTable, now time.Time, trusted bool) (more bool, err error) {
	p := d.cfg.Partition
	starts := []time.Time{p.start(now)}
	for range p.Ahead {
		starts = append(starts, p.next(starts[len(starts)-1]))
	}
	_, ahead := d.ensure(ctx, t, starts)
	if d.conn == nil || p.Keep == 0 {
		return false, ahead
	}
	there, err := d.list(ctx, t)
	if err != nil {
		return false, errors.Join(ahead, err)
	}
	var old []part
	for _, one := range there {
		if start, ok := p.began(t.name, one.name); ok && !p.next(start).After(now.Add(-p.Keep)) {
			old = append(old, one)
		}
	}
	if len(old) == 0 {
		return false, ahead
	}
	if trusted, err = d.trusted(ctx, t, now, trusted); err == nil && !trusted {
		err = errors.New("old ones stay while the clock is not to be trusted")
	}
	if err != nil {
		return false, errors.Join(ahead, err)
	}
	slices.SortFunc(old, func(a, b part) int { return strings.Compare(a.name, b.name) })
	if err := d.dropPartition(ctx, t, old[0]); err != nil {
		return false, errors.Join(ahead, err)
	}
	d.log.Info("dropped the partition", "table", t.String(), "partition", old[0].name)
	return len(old) > 1, ahead
}

// trusted asks also whether a row was received later than now. What senders say of their time proves nothing.
func (d *postgres) trusted(ctx context.Context, t *pgTable, now time.Time, clock bool) (bool, error) {
	column := &d.columns[d.indexOf(d.cfg.Partition.Column)]
	if !clock || column.ref.Key != router.KeyReceivedAt {
		return clock, nil
	}
	result, err := d.exec(ctx, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s WHERE %s > '%s')", t.sql(), quote(column.name), now.UTC().Add(time.Hour).Format("2006-01-02 15:04:05+00")))
	if err != nil {
		return false, pgFailure("look for rows newer than now", err)
	}
	return string(result.Rows[0][0]) == "f", nil
}

// dropPartition takes a partition out, without holding others up where the
// server can do that (14), and drops it.
func (d *postgres) dropPartition(ctx context.Context, t *pgTable, one part) error {
	attempt := "drop partition " + one.name
	name := table{d.partitions.schema[t.name], one.name}.sql()
	version, _, _ := strings.Cut(d.conn.ParameterStatus("server_version"), ".")
	major, _ := strconv.Atoi(version)
	if !one.left && major >= 14 && !d.cfg.Pooler {
		if err := d.detach(ctx, t, name, one.pending); err != nil {
			f := pgFailure("detach partition "+one.name, err)
			if f.code != "55000" && f.code != "0A000" { // there is a default partition
				return f
			}
		}
	}
	if _, err := d.exec(ctx, fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = '%s'; DROP TABLE %s; COMMIT", partitionWait, name)); err != nil {
		f := pgFailure(attempt, err)
		d.rollback(ctx)
		return f
	}
	return nil
}

// detach cannot stand in a transaction, so that lock_timeout is the session's meanwhile.
func (d *postgres) detach(ctx context.Context, t *pgTable, name string, pending bool) error {
	result, err := d.exec(ctx, "SELECT current_setting('lock_timeout')")
	if err != nil {
		return err
	}
	before := string(result.Rows[0][0])
	if _, err := d.exec(ctx, fmt.Sprintf("COMMENT ON TABLE %s IS %s; SET lock_timeout = '%s'", name, literal(dropComment), partitionWait)); err != nil {
		return err
	}
	how := "CONCURRENTLY"
	if pending {
		how = "FINALIZE"
	}
	_, err = d.exec(ctx, fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s %s", t.sql(), name, how))
	if d.conn.IsClosed() {
		return err
	}
	_, back := d.exec(ctx, "SET lock_timeout = "+literal(before))
	return errors.Join(err, back)
}
