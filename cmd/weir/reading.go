package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/sqlstore"
)

// readingFlags are those of commands that look at what a destination stored.
type readingFlags struct{ stateFlag }

func addReadingFlags(cmd *cobra.Command) readingFlags { return readingFlags{addStateFlag(cmd)} }

// A reading is a database to look at.
type reading struct {
	name     string // of the destination; "": a file that no destination names
	cfg      sqlstore.Config
	stateDir string       // where its relative path begins
	settings *destination // nil: a file that no destination names
}

// open connects to it.
func (r *reading) open(ctx context.Context) (*sqlstore.Reader, error) {
	return sqlstore.OpenReader(ctx, r.cfg, r.stateDir)
}

// find makes of DEST|FILE.db what is meant: the name of a destination, or a database
// file, with the settings of the destination that names the file, if one does. "" is the
// first SQL destination of the configuration; which one that is of several, is told on standard error.
func (f readingFlags) find(c *cobra.Command, arg string) (*reading, error) {
	s, doc := loadSettings(c)
	isFile := looksLikeFile(arg)
	if doc.Err() != nil {
		if isFile { // it needs no configuration
			return &reading{cfg: sqlstore.Config{SQLite: arg}}, nil
		}
		return nil, refuse(c, doc)
	}
	if *f.dir == "" {
		*f.dir = s.StateDir
	}
	var names []string
	for _, e := range s.Destinations {
		if _, ok := e.Value.Kind.(*sqlstore.Config); ok {
			names = append(names, e.Name)
		}
	}
	if arg == "" && len(names) > 0 {
		if arg = names[0]; len(names) > 1 {
			fmt.Fprintf(c.ErrOrStderr(), "reading %s, the first of %s; another one by its name: %s %s\n", arg, strings.Join(names, ", "), c.CommandPath(), names[1])
		}
	}
	for _, name := range names {
		d := s.Destinations.Get(name)
		if cfg := d.Kind.(*sqlstore.Config); name == arg || isFile && sameFile(arg, cfg.SQLite, *f.dir) {
			return &reading{name, *cfg, *f.dir, d}, nil
		}
	}
	other := s.Destinations.Get(arg)
	near := config.Nearest(arg, names)
	switch {
	case other != nil:
		return nil, usagef("destination %s is %s: only sqlite and postgres can be asked for what they stored", arg, other.kind.key)
	case isFile:
		return &reading{cfg: sqlstore.Config{SQLite: arg}}, nil
	case len(names) == 0:
		return nil, usagef("no destination of the configuration is sqlite or postgres; name a database file")
	case near != "":
		return nil, usagef("there is neither a destination nor a file %s; did you mean %s?", arg, near)
	}
	return nil, usagef("there is neither a destination nor a file %s; the configuration has %s", arg, strings.Join(names, ", "))
}

// looksLikeFile reports whether somebody means a database file by that, if no destination has the name.
func looksLikeFile(arg string) bool {
	if strings.ContainsRune(arg, filepath.Separator) || slices.Contains([]string{".db", ".sqlite", ".sqlite3"}, filepath.Ext(arg)) {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

// sameFile reports whether the file is that of a destination.
func sameFile(file, configured, stateDir string) bool {
	if configured == "" {
		return false
	}
	if !filepath.IsAbs(configured) {
		configured = filepath.Join(stateDir, configured)
	}
	one, err := os.Stat(file)
	if err != nil {
		return false
	}
	other, err := os.Stat(configured)
	return err == nil && os.SameFile(one, other)
}
