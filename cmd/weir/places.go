package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/deadletter"
	"github.com/weirlog/weir/router/file"
	"github.com/weirlog/weir/router/sqlstore"
)

// try looks at all that shows without loading filters, listening or opening anything. It is one for check and run, so
// that run starts with nothing that check refuses. missing reports that nothing is wrong but what this machine does not
// give: another time it may.
func (s *settings) try(doc *config.Document) (missing bool) {
	s.tryShared(doc)
	s.tryListeners(doc)
	s.tryMemory(doc)
	missing = doc.Err() == nil
	s.tryPlaces(doc)
	return missing && doc.Err() != nil
}

// A written is a file that a destination writes into.
type written struct {
	name string // of the destination
	key  string // by which its kind is known
	path string
	at   config.Place
	sql  *sqlstore.Config // nil: it is of lines
}

// written lists the files of all destinations, in their order.
func (s *settings) written(doc *config.Document) (all []written) {
	for _, e := range s.Destinations {
		if e.Value.kind == nil || doc.Wrong("destinations", e.Name, e.Value.kind.key) {
			continue
		}
		w := written{name: e.Name, key: e.Value.kind.key, at: doc.At("destinations", e.Name, e.Value.kind.key)}
		switch d := e.Value.Kind.(type) {
		case *sqlstore.Config:
			w.path, w.sql = d.SQLite, d
		case *file.Config:
			w.path = d.File
		}
		if w.path == "" {
			continue
		}
		if !filepath.IsAbs(w.path) {
			w.path = filepath.Join(s.StateDir, w.path)
		}
		all = append(all, w)
	}
	return all
}

// realPath is one name for all names of a file that need not exist yet.
func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(real, filepath.Base(path))
	}
	return path
}

// tryShared looks for files that several destinations write into.
func (s *settings) tryShared(doc *config.Document) {
	byPath := map[string][]written{}
	letters := realPath(filepath.Join(s.StateDir, deadletter.FileName))
	var paths []string
	for _, w := range s.written(doc) {
		path := realPath(w.path)
		if path == letters {
			doc.Errorf(w.at, "another name", "%s: weir keeps its dead letters in %s", w.key, w.path)
			continue
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			continue // a pipe or a device has room for all
		}
		if byPath[path] = append(byPath[path], w); len(byPath[path]) == 1 {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		all := byPath[path]
		first := all[0]
		var bases []written
		for i, w := range all {
			if w.sql != nil {
				bases = append(bases, w)
			}
			if i == 0 {
				continue
			}
			switch {
			case (w.sql == nil) != (first.sql == nil):
				doc.Clash(w.at, first.at, "a file for each", "destinations %s and %s write into %s, one a database and one lines: neither could be read", first.name, w.name, w.path)
			case w.sql == nil:
				doc.Clash(w.at, first.at, "a file for each, or one destination that several routes name", "%s writes into %s already: what one takes back would take lines of the other", first.name, w.path)
			}
		}
		if len(bases) > 1 {
			warnSharedBase(doc, bases)
		}
	}
}

// warnSharedBase tells what destinations do to each other that write into one database.
func warnSharedBase(doc *config.Document, all []written) {
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = w.name
	}
	doc.Warnf(all[1].at, "a file for each", "destinations %s write into %s, one at a time: no longer holds that destinations do not wait for each other", listOf(names), all[1].path)
	for _, w := range all {
		if w.sql.Retention == (sqlstore.Retention{}) {
			continue
		}
		var others []string
		for _, o := range all {
			if o.name != w.name && tableOf(o.sql) == tableOf(w.sql) && o.sql.Retention != w.sql.Retention {
				others = append(others, o.name)
			}
		}
		if len(others) > 0 {
			doc.Warnf(doc.At("destinations", w.name, "retention"), "a table or a file for each, or the same retention for all", "destination %s: its retention removes the rows of %s too: they write into one table", w.name, listOf(others))
		}
	}
}

// tableOf is the name of a destination's table, by which SQLite knows it.
func tableOf(c *sqlstore.Config) string {
	if c.Table == "" {
		return "logs"
	}
	return strings.ToLower(string(c.Table))
}

// listOf is a, b and c.
func listOf(names []string) string {
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return names[0]
}

// tryPlaces looks whether what run would make can be made.
func (s *settings) tryPlaces(doc *config.Document) {
	state := s.StateDir != "" && !(doc.Has("state_dir") && doc.Wrong("state_dir"))
	if state {
		if err := tryDirectory(s.StateDir); err != nil {
			state = errors.Is(err, syscall.ENOSPC)
			hint := "a directory that weir may write to"
			if !doc.Has("state_dir") {
				hint = "state_dir: DIRECTORY, one that weir may write to"
			}
			tellDirectory(doc, doc.At("state_dir"), hint, "state_dir", err)
		}
	}
	for _, w := range s.written(doc) {
		if !state && !filepath.IsAbs(w.path) || slices.Contains(above(w.path), filepath.Clean(s.StateDir)) && !state {
			continue // it goes where state_dir goes
		}
		w.try(doc)
	}
}

// above lists the directories that a path is in.
func above(path string) (all []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if all = append(all, dir); dir == filepath.Dir(dir) {
			return all
		}
	}
}

// try looks whether a destination can write into its file.
func (w *written) try(doc *config.Document) {
	info, err := os.Stat(w.path)
	switch {
	case err == nil && info.IsDir():
		doc.Errorf(w.at, "a file in it", "%s: %s is a directory", w.key, w.path)
		return
	case err == nil && w.sql == nil:
		if info.Mode().IsRegular() { // opening something else may wait, or do something
			f, err := os.OpenFile(w.path, os.O_RDWR|os.O_APPEND, 0)
			if err != nil {
				doc.Errorf(w.at, "a file that weir may write to", "%s: cannot write into %s: %v", w.key, w.path, errors.Unwrap(err))
				return
			}
			f.Close()
		}
		return
	}
	if err := tryDirectory(filepath.Dir(w.path)); err != nil {
		tellDirectory(doc, w.at, "a path in a directory that weir may write to", w.key, err)
		return
	}
	if w.sql == nil {
		return
	}
	if err == nil && !sqlstore.MaybeSQLite(w.path) {
		doc.Errorf(w.at, "another name, or move it away", "sqlite: %s is there and no database", w.path)
	}
	if kind := sqlstore.NetworkFilesystem(filepath.Dir(w.path)); kind != "" {
		doc.Warnf(w.at, "a local disk, or PostgreSQL", "destination %s: %s is on a network file system (%s), where SQLite may damage it: no longer holds that nothing acknowledged is lost", w.name, w.path, kind)
	}
}

// tellDirectory tells of a directory in which nothing can be made. weir starts on a full disk, too, and what it stores
// waits for room.
func tellDirectory(doc *config.Document, at config.Place, hint, key string, err error) {
	if errors.Is(err, syscall.ENOSPC) {
		doc.Warnf(at, "make room", "%s: %v: what is to be stored there waits", key, err)
		return
	}
	doc.Errorf(at, hint, "%s: %v", key, err)
}

// tryDirectory reports whether files can be made in a directory, which need not
// exist yet. syscall.ENOSPC: its disk is full.
func tryDirectory(dir string) error {
	info, err := os.Stat(dir)
	for up := dir; (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && filepath.Dir(up) != up; {
		up = filepath.Dir(up)
		info, err = os.Stat(up)
		dir = up
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory", dir)
	}
	f, err := os.CreateTemp(dir, ".weir-check-*")
	if err == nil {
		_, err = f.Write(make([]byte, 4096)) // a full disk takes names
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	} else if inner := errors.Unwrap(err); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("cannot write into %s: %w", dir, inner)
	}
	if errors.Is(err, syscall.ENOSPC) {
		return &fullDisk{dir}
	}
	return err
}

// A fullDisk is a directory whose file system is full.
type fullDisk struct{ dir string }

func (e *fullDisk) Error() string {
	return "no space is left on the file system of " + e.dir
}

func (e *fullDisk) Unwrap() error { return syscall.ENOSPC }
