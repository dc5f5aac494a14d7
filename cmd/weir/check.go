package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/filters/stock"
	"github.com/weirlog/weir/router"
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
adds up the memory. It changes nothing and exits with 0 or 2.

With --connect it also opens the databases, runs the session statements and
compares the columns; tables and SQLite files that are missing are made, as run
would make them.`,
		Args: cobra.NoArgs,
	}
	addConfigFlag(c)
	connect := c.Flags().Bool("connect", false, "also open the databases")
	c.RunE = func(c *cobra.Command, _ []string) error { return check(c, *connect) }
	return c
}

func check(c *cobra.Command, connect bool) error {
	log, err := newLogger(c)
	if err != nil {
		return err
	}
	s, doc := loadSettings(c)
	if doc.Err() == nil {
		s.resolve(doc)
		host, guests, err := loadGuests(c.Context(), s, doc, "", log)
		if err != nil {
			return usageError{err}
		}
		defer closeGuests(host, guests)
		s.tryPlaces(doc)
		s.tryMemory(doc)
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
	s.printSum(c.OutOrStdout())
	fmt.Fprintf(c.OutOrStdout(), "%s: fine\n", strings.Join(doc.Files(), ", "))
	return nil
}

// loadGuests loads every filter. What is wrong with one is a mistake at its
// module; the error is about the host alone.
func loadGuests(ctx context.Context, s *settings, doc *config.Document, cache string, log *slog.Logger) (*wasmhost.Host, []*wasmhost.Guest, error) {
	longest := 0
	for _, e := range s.Sources {
		longest = max(longest, int(e.Value.MaxMessage))
	}
	host, err := wasmhost.Open(ctx, wasmhost.Options{CacheDir: cache, Log: log, MaxMessage: longest})
	if err != nil {
		return nil, nil, err
	}
	var guests []*wasmhost.Guest
	for _, e := range s.Filters {
		g, err := host.Load(ctx, e.Name, e.Value)
		if err != nil {
			at := doc.At("filters", e.Name, "module")
			if errors.Is(err, fs.ErrNotExist) {
				doc.Errorf(at, "a path relative to "+e.Place.File()+", or stock:NAME", "module: no file %s", e.Value.Module)
				continue
			}
			doc.Errorf(at, "", "%v", err)
			continue
		}
		guests = append(guests, g)
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
		if err := tryDirectory(filepath.Dir(path)); err != nil {
			doc.Errorf(doc.At("destinations", e.Name, key), "a path in a directory that weir may write to", "%s: %v", key, err)
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

// tryMemory asks the router whether the memory suffices for its shares.
func (s *settings) tryMemory(doc *config.Document) {
	for _, e := range s.Sources {
		least := e.Value.MaxMessage
		if slices.ContainsFunc(e.Value.Listen, func(l string) bool { return strings.HasPrefix(l, "tcp://") || strings.HasPrefix(l, "unix://") }) {
			least += config.Size(e.Value.MaxConnections) * connectionMemory
		}
		if least > s.Memory {
			doc.Errorf(doc.At("sources", e.Name, "max_connections"), fmt.Sprintf("memory: %v, or fewer connections", roundUp(least)),
				"source %s: %d connections of %v and one message of %v are more than memory: %v", e.Name, e.Value.MaxConnections, config.Size(connectionMemory), e.Value.MaxMessage, s.Memory)
		}
	}
	if doc.Err() != nil {
		return
	}
	c := s.routerConfig()
	for i := range c.Destinations {
		c.Destinations[i].Destination = file.Discard{}
	}
	for i := range c.Routes {
		for k := range c.Routes[i].Filters {
			c.Routes[i].Filters[k].Filters = make([]router.Filter, runtime.GOMAXPROCS(0))
		}
	}
	if _, err := router.New(c); err != nil {
		doc.Errorf(doc.At("memory"), "more memory, or a smaller max_message", "%v", err)
	}
}

// connectionMemory is what an idle connection costs.
const connectionMemory = 4 << 10

func roundUp(n config.Size) config.Size { return (n + 1<<20 - 1) &^ (1<<20 - 1) }

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

// memorySum is what weir needs when everything is full.
type memorySum struct {
	messages, guests config.Size
	rows             []string // one for each filter
}

const (
	ownMemory  = 48 << 20 // what weir needs without messages and filters
	codeGrowth = 8        // bytes of machine code and its tables for each byte of a module, at most
)

func (s *settings) memorySum() memorySum {
	sum := memorySum{messages: s.Memory}
	for _, e := range s.Filters {
		n := runtime.GOMAXPROCS(0)
		if e.Value.Instances == wasmhost.One {
			n = 1
		}
		code := config.Size(moduleSize(&e.Value)) * codeGrowth
		one := e.Value.Memory*config.Size(n) + code
		sum.guests += one
		sum.rows = append(sum.rows, fmt.Sprintf("  %9s  filter %s: %d × %v and %v of code", about(one), e.Name, n, e.Value.Memory, about(code)))
	}
	return sum
}

// moduleSize is how many bytes a filter's module has; 0 when it cannot be read.
func moduleSize(f *wasmhost.Config) int64 {
	if name, ok := f.Stock(); ok {
		b, _ := stock.Module(name)
		return int64(len(b))
	}
	info, err := os.Stat(f.Module)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (m memorySum) total() config.Size { return m.messages + m.guests + ownMemory }

func (s *settings) printSum(w io.Writer) {
	sum := s.memorySum()
	fmt.Fprintf(w, "memory, when everything is full:\n")
	fmt.Fprintf(w, "  %9s  messages in flight (memory:)\n", about(sum.messages))
	for _, row := range sum.rows {
		fmt.Fprintln(w, row)
	}
	fmt.Fprintf(w, "  %9s  weir itself\n", about(ownMemory))
	fmt.Fprintf(w, "  %9s  in all\n", about(sum.total()))
}

// about is a size in MiB, for sums.
func about(n config.Size) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

var (
	redacts = regexp.MustCompile(`(?i)redact|mask|anonym|pseudonym|scrub|privacy|gdpr|pii`)
	// Statements that let a commit return before its rows are safe.
	liteUnsafe = regexp.MustCompile(`(?i)\bpragma\s+(?:\w+\.)?(?:synchronous\s*[=(]\s*["']?(?:off|normal|0|1)\b|journal_mode\s*[=(]\s*["']?(?:off|memory)\b)`)
	pgUnsafe   = regexp.MustCompile(`(?i)\bsynchronous_commit\b["']?\s*(?:=|\bto\b)\s*["']?(?:off|local|false|0)\b`)
)

// warn tells which promise falls by a setting that is allowed.
func (s *settings) warn(doc *config.Document) {
	datagrams := map[string]string{} // source: its first datagram listener
	for _, e := range s.Sources {
		for _, l := range e.Value.Listen {
			if strings.HasPrefix(l, "udp://") || strings.HasPrefix(l, "unixgram://") {
				datagrams[e.Name] = l
				break
			}
		}
	}
	for _, e := range s.Filters {
		if e.Value.OnError == wasmhost.Pass && (redacts.MatchString(e.Name) || redacts.MatchString(e.Value.Module)) {
			doc.Warnf(doc.At("filters", e.Name, "on_error"), "on_error: reject", "filter %s: what it fails on goes on as it came: no longer holds that everything stored is redacted", e.Name)
		}
	}
	for _, e := range s.Destinations {
		c, ok := e.Value.Kind.(*sqlstore.Config)
		if !ok {
			continue
		}
		if c.ExplicitCommits != nil && !*c.ExplicitCommits {
			doc.Warnf(doc.At("destinations", e.Name, "explicit_commits"), "leave it out", "destination %s: each row is its own transaction, many times slower, and an attempt that is repeated stores rows twice: no longer holds that nothing is stored twice", e.Name)
		}
		unsafe := pgUnsafe
		if e.Value.kind.key == "sqlite" {
			unsafe = liteUnsafe
		}
		for i, stmt := range c.SessionStatements {
			if unsafe.MatchString(stmt) {
				doc.Warnf(doc.At("destinations", e.Name, "session_statements", fmt.Sprint(i)), "leave it out", "destination %s: commits return before rows are safe: no longer holds that nothing acknowledged is lost, when the database's machine crashes", e.Name)
			}
		}
	}
	for _, r := range s.Routes {
		s.warnRoute(doc, r.Name, r.Value, datagrams)
	}
}

// warnRoute looks at a route with a destination on another machine.
func (s *settings) warnRoute(doc *config.Document, name string, r route, datagrams map[string]string) {
	local, remote := "", ""
	for _, to := range r.To {
		d := s.Destinations.Get(to)
		if d == nil || d.kind == nil {
			continue
		}
		if d.remote() {
			if remote == "" && d.Buffer.WhenFull == string(router.Block) {
				remote = to
			}
		} else {
			local = to
		}
	}
	if remote == "" {
		return
	}
	if local != "" {
		doc.Warnf(doc.At("routes", name, "to"), "buffer: {when_full: drop_oldest} on "+remote+", or a route of its own for it",
			"route %s: while %s cannot be reached, nothing reaches %s either: no longer holds that destinations do not wait for each other", name, remote, local)
	}
	for _, from := range r.From {
		if l := datagrams[from]; l != "" {
			doc.Warnf(doc.At("routes", name, "from"), "a stream (tcp://, unix://) for what must not be lost",
				"route %s: while %s cannot be reached and memory is full, datagrams of %s are lost: no longer holds that senders wait and nothing is lost", name, remote, l)
		}
	}
}

// remote reports whether a destination's database is on another machine.
func (d *destination) remote() bool {
	c, ok := d.Kind.(*sqlstore.Config)
	return ok && c.Remote()
}
