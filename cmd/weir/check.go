package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/config"
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
	if doc.Readable() {
		host, loaded, err := loadGuests(c.Context(), s, doc, "", log)
		if err != nil {
			return usageError{err}
		}
		guests = loaded
		defer closeGuests(host, guests)
		s.warnGuests(doc, guests)
		s.try(doc)
		if doc.Err() == nil {
			s.warnBuffers(doc)
			warnMachine(doc, s.memorySum(guests).total())
		}
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

// loadGuests loads every filter whose settings are well, as many at once as there are cores. What is wrong with one is
// a mistake at its setting; the error is about the host alone.
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
		if doc.Wrong("filters", e.Name) {
			tryModule(doc, &e)
			continue
		}
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
			tellGuest(doc, &e, err)
		} else if loaded[i] != nil {
			guests = append(guests, loaded[i])
		}
	}
	return host, guests, nil
}

// tryModule looks whether a filter that is not loaded, because of its other settings, has a module at least.
func tryModule(doc *config.Document, e *config.Entry[wasmhost.Config]) {
	if _, stock := e.Value.Stock(); stock || e.Value.Module == "" || doc.Wrong("filters", e.Name, "module") {
		return
	}
	if _, err := os.Stat(e.Value.Module); errors.Is(err, fs.ErrNotExist) {
		tellGuest(doc, e, err)
	}
}

// tellGuest tells why a filter cannot be loaded, at its settings.
func tellGuest(doc *config.Document, e *config.Entry[wasmhost.Config], err error) {
	if missing, ok := errors.AsType[*fs.PathError](err); ok && missing.Path == e.Value.Module && errors.Is(err, fs.ErrNotExist) {
		hint := "a path relative to " + e.Place.File() + ", or stock:NAME"
		if near := nearFile(e.Value.Module); near != "" {
			hint = near
		}
		doc.Errorf(doc.At("filters", e.Name, "module"), hint, "module: no file %s", e.Value.Module)
		return
	}
	all := settingErrors(err)
	for _, s := range all {
		at := doc.At(append([]string{"filters", e.Name}, s.Setting)...)
		if !doc.Has("filters", e.Name, s.Setting) {
			at = doc.At("filters", e.Name, "module")
		}
		doc.Errorf(at, s.Hint, "filter %s: %v", e.Name, s.Err)
	}
	if inner := errors.Unwrap(err); len(all) == 0 && inner != nil {
		doc.Errorf(doc.At("filters", e.Name, "module"), "", "filter %s: %v", e.Name, inner) // without "load"
	} else if len(all) == 0 {
		doc.Errorf(doc.At("filters", e.Name, "module"), "", "filter %s: %v", e.Name, err)
	}
}

// settingErrors are those of a filter's settings in what Load says.
func settingErrors(err error) (all []*wasmhost.SettingError) {
	switch e := err.(type) {
	case *wasmhost.SettingError:
		return []*wasmhost.SettingError{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, settingErrors(one)...)
		}
	case interface{ Unwrap() error }:
		return settingErrors(e.Unwrap())
	}
	return all
}

// nearFile is a file whose name is nearly that of path, beside it; "": there is none.
func nearFile(path string) string {
	entries, _ := os.ReadDir(filepath.Dir(path))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if near := config.Typo(filepath.Base(path), names); near != "" {
		return filepath.Join(filepath.Dir(path), near)
	}
	return ""
}

func closeGuests(host *wasmhost.Host, guests []*wasmhost.Guest) error {
	var errs []error
	for _, g := range guests {
		errs = append(errs, g.Close(context.Background()))
	}
	return errors.Join(append(errs, host.Close(context.Background()))...)
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
			tellConnection(doc, &e, err)
		}
	}
}

// tellConnection tells why a destination cannot be opened, at the setting that it is about.
func tellConnection(doc *config.Document, e *config.Entry[destination], err error) {
	at := doc.At("destinations", e.Name, e.Value.kind.key)
	what, hint := strings.TrimPrefix(err.Error(), "destination "+e.Name+": "), ""
	if failed, ok := errors.AsType[*sqlstore.StatementError](err); ok {
		at = doc.At("destinations", e.Name, "session_statements", fmt.Sprint(failed.Index))
	}
	op, _ := errors.AsType[*net.OpError](err)
	if host, ok := errors.AsType[*net.DNSError](err); ok {
		what, hint = "no host is named "+host.Name, "the host in postgres:, or the machine's resolver (getent hosts "+host.Name+")"
	} else if op != nil && op.Addr != nil && errors.Is(err, syscall.ECONNREFUSED) {
		what, hint = "nobody listens on "+op.Addr.String(), "the host and port in postgres:, or start the server"
	}
	doc.Errorf(at, hint, "destination %s: %s", e.Name, what)
}
