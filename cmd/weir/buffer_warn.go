package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/spool"
	"github.com/weirlog/weir/router/sqlstore"
)

// warnBuffers tells of disk buffers that cannot become as large as they may, of room that cannot stay free, and of disk
// buffers that nobody empties.
func (s *settings) warnBuffers(doc *config.Document) {
	s.warnFree(doc)
	s.warnRetention(doc)
	s.warnLeft(doc)
}

// warnFree tells when the file system has no room for the disk buffers, in the order of the destinations.
func (s *settings) warnFree(doc *config.Document) {
	free, known := spool.Free(bufferDir(s.StateDir))
	if !known {
		return
	}
	var all, used, keep config.Size
	for _, e := range s.Destinations {
		b := &e.Value.Buffer
		if b.Disk == 0 {
			continue
		}
		for _, dir := range findSpools(s.StateDir, []string{e.Name}) {
			used += config.Size(spool.Bytes(dir.path))
		}
		all, keep = all+b.Disk, max(keep, config.Size(b.spool().KeepFree))
		room := max(0, config.Size(free)+used-keep)
		if all <= room {
			continue
		}
		if b.KeepFree != nil && *b.KeepFree > config.Size(free)+used {
			doc.Warnf(doc.At("destinations", e.Name, "buffer", "keep_free"), "a smaller keep_free:, or a larger file system",
				"destination %s: %s are to stay free, but of the file system of %s only %s are (%s free, %s in use by disk buffers): its disk buffer takes nothing",
				e.Name, about(*b.KeepFree), bufferDir(s.StateDir), about(config.Size(free)+used), about(config.Size(free)), about(used))
			continue
		}
		what := "its disk buffer may take"
		if all > b.Disk {
			what = "its disk buffer and those before it may take"
		}
		doc.Warnf(doc.At("destinations", e.Name, "buffer", "disk"), "a smaller disk:, or a larger file system",
			"destination %s: %s %s, but in %s there is room for %s (%s free, %s in use by them, %s of keep_free): it is full before that",
			e.Name, what, about(all), bufferDir(s.StateDir), about(room), about(config.Size(free)), about(used), about(keep))
	}
}

// warnRetention tells when a file system has not so much room that what the retention keeps free can ever be free.
func (s *settings) warnRetention(doc *config.Document) {
	for _, e := range s.Destinations {
		c, ok := e.Value.Kind.(*sqlstore.Config)
		if !ok || c.Retention.KeepFree <= 0 {
			continue
		}
		path := c.SQLite
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.StateDir, path)
		}
		free, known := spool.Free(filepath.Dir(path))
		if !known {
			continue
		}
		used := config.Size(0)
		for _, suffix := range []string{"", "-wal", "-reserve"} {
			if info, err := os.Stat(path + suffix); err == nil {
				used += config.Size(info.Size())
			}
		}
		if has := config.Size(free) + used; c.Retention.KeepFree > has {
			doc.Warnf(doc.At("destinations", e.Name, "retention", "keep_free"), "a smaller keep_free:, or a larger file system",
				"destination %s: %s are to stay free, but of the file system of %s only %s would be without its database: the retention cannot reach that, whatever it removes",
				e.Name, about(c.Retention.KeepFree), filepath.Dir(path), about(has))
		}
	}
}

// warnLeft tells of disk buffers that nobody empties: of destinations that are renamed, gone, or have none any more.
func (s *settings) warnLeft(doc *config.Document) {
	type left struct {
		messages int
		unknown  error // why they cannot be counted
	}
	all := map[string]left{}
	var names []string
	for _, dir := range findSpools(s.StateDir, nil) {
		if d := s.Destinations.Get(dir.destination); d != nil && d.Buffer.Disk > 0 {
			continue
		}
		l := all[dir.destination]
		sum, err := spool.Look(dir.path)
		if l.messages += sum.Messages; err != nil {
			l.unknown = err
		}
		all[dir.destination] = l
		if !slices.Contains(names, dir.destination) {
			names = append(names, dir.destination)
		}
	}
	for _, name := range names {
		l := all[name]
		what := fmt.Sprintf("%d messages in it reach nobody", l.messages)
		switch {
		case l.unknown != nil:
			what = fmt.Sprintf("what is in it reaches nobody, and cannot be counted: %v", l.unknown)
		case l.messages == 0:
			continue
		}
		hint := "a destination " + name + " with buffer: {disk: …} that empties it, or remove the directory when nothing of it is wanted (weir spool ls)"
		doc.Warnf(doc.At("destinations"), hint, "the disk buffer %s belongs to no destination with a disk buffer: %s",
			filepath.Join(bufferDir(s.StateDir), name), what)
	}
}
