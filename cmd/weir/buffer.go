package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/spool"
	"github.com/weirlog/weir/router/sqlstore"
)

// buffer says where messages wait for a destination, and what happens when that is full: the
// destination's share of the memory, or a disk buffer in front of it.
type buffer struct {
	Disk     config.Size   `yaml:"disk"` // 0: no disk buffer
	Sync     syncing       `yaml:"sync,with=disk"`
	WhenFull string        `yaml:"when_full"`
	Age      time.Duration `yaml:"age,off,with=disk"`
	KeepFree *config.Size  `yaml:"keep_free,with=disk"`
}

// syncing is how long messages may wait for the disk; 0: for nothing else ("batch").
type syncing time.Duration

func (s *syncing) UnmarshalConfig(v *config.Value) {
	var word string
	if v.Type() == "string" && v.Decode(&word) && word == "batch" {
		return
	}
	v.Decode((*time.Duration)(s))
}

// String is what UnmarshalConfig reads.
func (s syncing) String() string {
	if s == 0 {
		return "batch"
	}
	return time.Duration(s).String()
}

const defaultKeepFree = 64 << 20

// check looks at the settings, for so many connections and bytes of a transaction.
func (b *buffer) check(connections int, flush config.Size) []config.Problem {
	bad := config.OneOf("buffer.when_full", b.WhenFull, string(router.Block), string(router.DropOldest), string(router.DropNewest))
	add := func(key, hint, format string, args ...any) {
		bad = append(bad, config.Problem{Path: "buffer." + key, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	if b.Disk == 0 {
		idle := func(key string, set bool) {
			if set {
				add(key, "disk: 1GiB, or leave it out", "%s has no effect without a disk buffer", key)
			}
		}
		idle("sync", b.Sync != 0)
		idle("age", b.Age != 0)
		idle("keep_free", b.KeepFree != nil)
		return bad
	}
	b.checkDisk(config.Size(connections), flush, add)
	if s := time.Duration(b.Sync); s < 0 || s > time.Minute {
		add("sync", "batch, or up to 1m", "%s between syncs", config.TimeText(s))
	}
	if b.Age < 0 || b.Age > 0 && b.Age < time.Minute {
		add("age", "14d", "messages would be given up after %s", config.TimeText(b.Age))
	}
	return bad
}

// checkDisk refuses what has no room for two transactions of each connection: one that is written, and one that comes meanwhile.
func (b *buffer) checkDisk(connections, flush config.Size, add func(key, hint, format string, args ...any)) {
	each, least, why := b.Disk/connections, config.Size(spool.MinSize), "is too small"
	if flush > least/2 {
		least, why = 2*flush, fmt.Sprintf("has no room for two transactions of flush_bytes: %v", flush)
	}
	if each >= spool.MinSize && flush <= each/2 {
		return
	}
	hint := fmt.Sprintf("at least %v", connections*least)
	if least > spool.MinSize {
		hint += ", or a smaller flush_bytes"
	}
	if connections == 1 {
		add("disk", hint, "%v %s", b.Disk, why)
		return
	}
	add("disk", hint+", or fewer connections", "%v are %v for each of %d connections, which %s", b.Disk, about(each), connections, why)
}

// spool is the storage's view of the settings.
func (b *buffer) spool() spool.Config {
	c := spool.Config{Size: int64(b.Disk), Age: b.Age, KeepFree: defaultKeepFree}
	if b.KeepFree != nil {
		c.KeepFree = int64(*b.KeepFree)
	}
	return c
}

// bufferDir is where disk buffers are: in it a directory for each destination, and in that one for each connection, by
// their number and its own: central/4.0 to central/4.3.
func bufferDir(stateDir string) string { return filepath.Join(stateDir, "buffer") }

// connections is how many connections write to a destination.
func (d *destination) connections() int {
	if c, ok := d.Kind.(*sqlstore.Config); ok {
		return max(1, c.Connections)
	}
	return 1
}

// open opens the connections of a destination with their disk buffers, and those buffers of an earlier number of
// connections that are not empty. All of them or none.
func (d *destination) open(ctx context.Context, at site, metrics prometheus.Registerer) (all []router.Connection, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeConnections(all))
			all = nil
		}
	}()
	n := d.connections()
	for k := range n {
		conn := router.Connection{Sync: time.Duration(d.Buffer.Sync)}
		if conn.Destination, err = d.kind.open(ctx, d.Kind, at); err != nil {
			return all, err
		}
		all = append(all, conn)
		if m, ok := conn.Destination.(prometheus.Collector); ok {
			prometheus.WrapRegistererWith(prometheus.Labels{"connection": fmt.Sprint(k)}, metrics).MustRegister(m)
		}
		if d.Buffer.Disk == 0 {
			continue
		}
		c := d.Buffer.spool()
		c.Size /= int64(n)
		dir := filepath.Join(bufferDir(at.stateDir), at.name, fmt.Sprintf("%d.%d", n, k))
		s, err := spool.Open(dir, c, at.log.With("destination", at.name))
		if err != nil {
			return all, fmt.Errorf("destination %s: %w", at.name, err)
		}
		all[k].Spool = s
		tellBacklog(at, "messages of an earlier run wait in the disk buffer", dir, s)
		prometheus.WrapRegistererWith(prometheus.Labels{"connection": fmt.Sprint(k), "destination": at.name}, metrics).MustRegister(s)
	}
	if d.Buffer.Disk > 0 {
		err = d.openOld(ctx, at, n, &all)
	}
	return all, err
}

// openOld opens what another number of connections has left behind. Also where it is empty: it knows senders that resume.
func (d *destination) openOld(ctx context.Context, at site, n int, all *[]router.Connection) error {
	for _, old := range findSpools(at.stateDir, []string{at.name}) {
		if strings.HasPrefix(old.connection, fmt.Sprintf("%d.", n)) {
			continue
		}
		s, err := spool.Open(old.path, d.Buffer.spool(), at.log.With("destination", at.name))
		if err != nil {
			return fmt.Errorf("destination %s: %w", at.name, err)
		}
		tellBacklog(at, "the number of connections has changed; what waits for the old ones is written first", old.path, s)
		*all = append(*all, router.Connection{Spool: s, Old: true})
		if (*all)[len(*all)-1].Destination, err = d.kind.open(ctx, d.Kind, at); err != nil {
			return err
		}
	}
	slices.SortStableFunc((*all)[n:], func(x, y router.Connection) int { return x.Spool.Backlog().Oldest.Compare(y.Spool.Backlog().Oldest) })
	return nil
}

// tellBacklog says what is in a disk buffer at the start, unless it is empty.
func tellBacklog(at site, what, dir string, s *spool.Spool) {
	if b := s.Backlog(); b.Messages > 0 {
		at.log.Info(what, "destination", at.name, "directory", dir, "messages", b.Messages, "bytes", b.Waiting, "oldest", max(0, time.Since(b.Oldest)).Round(time.Second))
	}
}

func closeConnections(all []router.Connection) (err error) {
	for _, c := range all {
		if c.Destination != nil {
			err = errors.Join(err, c.Destination.Close())
		}
		if c.Spool != nil {
			err = errors.Join(err, c.Spool.Close())
		}
	}
	return err
}
