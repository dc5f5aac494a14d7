package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/file"
	"github.com/weirlog/weir/router/sqlstore"
	"github.com/weirlog/weir/wasmhost"
)

func newCheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Say what is wrong with a configuration, and how much memory it needs",
		Long: `Check does what run does at start, short of opening listeners: it reads the
configuration, loads and initialises the filters, looks at the directories and
adds up the memory. It exits with 0 or 2, and changes nothing unless --connect
is given.

With --connect it makes, as run would, the tables, weir_positions and SQLite
files that are missing: it opens the databases, runs the session statements and
compares the columns.`,
		Args: cobra.NoArgs,
	}
	addConfigFlag(c)
	connect := c.Flags().Bool("connect", false, "also open the databases, and make the tables, weir_positions and SQLite files that are missing")
	c.RunE = func(c *cobra.Command, _ []string) error { return check(c, *connect) }
	return c
}

func check(c *cobra.Command, connect bool) error {
	log, err := newLogger(c)
	if err != nil {
		return err
	}
	s, doc := loadSettings(c)
	var guests []*wasmhost.Guest
	if doc.Err() == nil {
		s.resolve(doc)
		host, loaded, err := loadGuests(c.Context(), s, doc, "", log)
		if err != nil {
			return usageError{err}
		}
		guests = loaded
		defer closeGuests(host, guests)
		s.tryPlaces(doc)
		s.tryMemory(doc)
		s.warnBuffers(doc)
		if connect && doc.Err() == nil {
			s.tryConnections(c.Context(), doc, site{log: log, stateDir: s.StateDir})
		}
	}
	for _, w := range doc.Warnings() {
		fmt.Fprintln(c.ErrOrStderr(), w)
	}
	if doc.Err() != nil {
		return refuse(c, doc)
	}
	s.printSum(c.OutOrStdout(), guests)
	fmt.Fprintf(c.OutOrStdout(), "%s: fine\n", strings.Join(doc.Files(), ", "))
	return nil
}

// loadGuests loads every filter, as many at once as there are cores. What is wrong with one is a mistake at its
// module; the error is about the host alone.
func loadGuests(ctx context.Context, s *settings, doc *config.Document, cache string, log *slog.Logger) (*wasmhost.Host, []*wasmhost.Guest, error) {
	longest := 0
	for _, e := range s.Sources {
		longest = max(longest, int(e.Value.MaxMessage))
	}
	host, err := wasmhost.Open(ctx, wasmhost.Options{CacheDir: cache, Compiler: compiler(), Log: log, MaxMessage: longest})
	if err != nil {
		return nil, nil, err
	}
	loaded := make([]*wasmhost.Guest, len(s.Filters))
	errs := make([]error, len(s.Filters))
	var loading sync.WaitGroup
	atOnce := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, e := range s.Filters {
		atOnce <- struct{}{}
		loading.Go(func() {
			loaded[i], errs[i] = host.Load(ctx, e.Name, e.Value)
			<-atOnce
		})
	}
	loading.Wait()
	var guests []*wasmhost.Guest
	for i, e := range s.Filters {
		if err := errs[i]; err != nil {
			at := doc.At("filters", e.Name, "module")
			if missing, ok := errors.AsType[*fs.PathError](err); ok && missing.Path == e.Value.Module && errors.Is(err, fs.ErrNotExist) {
				doc.Errorf(at, "a path relative to "+e.Place.File()+", or stock:NAME", "module: no file %s", e.Value.Module)
				continue
			}
			doc.Errorf(at, "", "%v", err)
			continue
		}
		guests = append(guests, loaded[i])
	}
	return host, guests, nil
}

func closeGuests(host *wasmhost.Host, guests []*wasmhost.Guest) error {
	var errs []error
	for _, g := range guests {
		errs = append(errs, g.Close(context.Background()))
	}
	return errors.Join(append(errs, host.Close(context.Background()))...)
}

// tryPlaces looks whether what run would make can be made.
func (s *settings) tryPlaces(doc *config.Document) {
	if err := tryDirectory(s.StateDir); err != nil {
		doc.Errorf(doc.At("state_dir"), "state_dir: a directory that weir may write to", "state_dir: %v", err)
		return
	}
	for _, e := range s.Destinations {
		path, key := "", e.Value.kind.key
		switch d := e.Value.Kind.(type) {
		case *sqlstore.Config:
			path = d.SQLite
		case *file.Config:
			path = d.File
		}
		if path == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.StateDir, path)
		}
		at := doc.At("destinations", e.Name, key)
		if err := tryDirectory(filepath.Dir(path)); err != nil {
			doc.Errorf(at, "a path in a directory that weir may write to", "%s: %v", key, err)
		} else if info, err := os.Stat(path); err == nil && info.IsDir() {
			doc.Errorf(at, "a file in it", "%s: %s is a directory", key, path)
		} else if kind := sqlstore.NetworkFilesystem(filepath.Dir(path)); key == "sqlite" && kind != "" {
			doc.Warnf(at, "a local disk, or PostgreSQL", "destination %s: %s is on a network file system (%s), where SQLite may damage it: no longer holds that nothing acknowledged is lost", e.Name, path, kind)
		}
	}
}

// tryDirectory reports whether files can be made in a directory, which need not
// exist yet.
func tryDirectory(dir string) error {
	info, err := os.Stat(dir)
	for up := dir; errors.Is(err, fs.ErrNotExist) && filepath.Dir(up) != up; {
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
	if err != nil {
		return fmt.Errorf("cannot write into %s: %w", dir, errors.Unwrap(err))
	}
	f.Close()
	return os.Remove(f.Name())
}

// tryConnections opens every destination and its database.
func (s *settings) tryConnections(ctx context.Context, doc *config.Document, at site) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		doc.Errorf(doc.At("state_dir"), "", "%v", err)
		return
	}
	for _, e := range s.Destinations {
		at.name = e.Name
		d, err := e.Value.kind.open(ctx, e.Value.Kind, at)
		if err == nil {
			if c, ok := d.(interface{ Connect(context.Context) error }); ok {
				err = c.Connect(ctx)
			}
			err = errors.Join(err, d.Close())
		}
		if err != nil {
			doc.Errorf(doc.At("destinations", e.Name, e.Value.kind.key), "", "%s: %v", e.Name, err)
		}
	}
}
