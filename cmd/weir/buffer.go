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
	Sync     syncing       `yaml:"sync"`
	WhenFull string        `yaml:"when_full"`
	Age      time.Duration `yaml:"age"`
	KeepFree *config.Size  `yaml:"keep_free"`
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

func (b *buffer) check() []config.Problem {
	bad := config.OneOf("buffer.when_full", b.WhenFull, string(router.Block), string(router.DropOldest), string(router.DropNewest))
	add := func(key, hint, format string, args ...any) {
		bad = append(bad, config.Problem{Path: "buffer." + key, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	if b.Disk == 0 {
		for key, set := range map[string]bool{"sync": b.Sync != 0, "age": b.Age != 0, "keep_free": b.KeepFree != nil} {
			if set {
				add(key, "disk: 1GiB, or leave it out", "%s has no effect without a disk buffer", key)
			}
		}
		slices.SortFunc(bad, func(x, y config.Problem) int { return strings.Compare(x.Path, y.Path) })
		return bad
	}
	if b.Disk < spool.MinSize {
		add("disk", "1GiB", "%v is too small, the least is %v", b.Disk, config.Size(spool.MinSize))
	}
	if s := time.Duration(b.Sync); s < 0 || s > time.Minute {
		add("sync", "batch, or up to 1m", "%v between syncs", s)
	}
	if b.Age < 0 || b.Age > 0 && b.Age < time.Minute {
		add("age", "14d", "messages would be given up after %v", b.Age)
	}
	return bad
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
		s, err := spool.Open(filepath.Join(bufferDir(at.stateDir), at.name, fmt.Sprintf("%d.%d", n, k)), c, at.log.With("destination", at.name))
		if err != nil {
			return all, fmt.Errorf("destination %s: %w", at.name, err)
		}
		all[k].Spool = s
		prometheus.WrapRegistererWith(prometheus.Labels{"connection": fmt.Sprint(k), "destination": at.name}, metrics).MustRegister(s)
	}
	if d.Buffer.Disk > 0 {
		err = d.openOld(ctx, at, n, &all)
	}
	return all, err
}

// openOld opens what another number of connections has left behind. Also where it is empty: it knows senders that resume.
func (d *destination) openOld(ctx context.Context, at site, n int, all *[]router.Connection) error {
	old, _ := filepath.Glob(filepath.Join(bufferDir(at.stateDir), at.name, "*.*"))
	for _, dir := range old {
		if strings.HasPrefix(filepath.Base(dir), fmt.Sprintf("%d.", n)) {
			continue
		}
		s, err := spool.Open(dir, d.Buffer.spool(), at.log.With("destination", at.name))
		if err != nil {
			return fmt.Errorf("destination %s: %w", at.name, err)
		}
		if n := s.Backlog().Messages; n > 0 {
			at.log.Info("the number of connections has changed; what waits for the old ones is written first", "destination", at.name, "directory", dir, "messages", n)
		}
		*all = append(*all, router.Connection{Spool: s, Old: true})
		if (*all)[len(*all)-1].Destination, err = d.kind.open(ctx, d.Kind, at); err != nil {
			return err
		}
	}
	slices.SortStableFunc((*all)[n:], func(x, y router.Connection) int { return x.Spool.Backlog().Oldest.Compare(y.Spool.Backlog().Oldest) })
	return nil
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

// warnBuffers tells of disk buffers that nobody empties: of destinations that are renamed, gone, or have none any more.
func (s *settings) warnBuffers(doc *config.Document) {
	left, _ := filepath.Glob(filepath.Join(bufferDir(s.StateDir), "*", "*.*"))
	told := map[string]bool{}
	for _, dir := range left {
		name := filepath.Base(filepath.Dir(dir))
		d := s.Destinations.Get(name)
		if told[name] || d != nil && d.Buffer.Disk > 0 {
			continue
		}
		told[name] = true
		hint := "a destination " + name + " with buffer: {disk: …} that empties it, or remove the directory when nothing of it is wanted (weir spool ls)"
		doc.Warnf(doc.At("destinations"), hint, "the disk buffer %s belongs to no destination with a disk buffer: what is in it reaches nobody", filepath.Dir(dir))
	}
}
