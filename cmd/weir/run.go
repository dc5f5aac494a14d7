package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"
	_ "time/tzdata" // zones where the machine has none

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/admin"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/deadletter"
	"github.com/weirlog/weir/router/socket"
	"github.com/weirlog/weir/wasmhost"
)

func newRunCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the router",
		Long: `Run reads the configuration (-c, ./weir.yaml, /etc/weir/weir.yaml, or the
built-in one), listens, and moves messages until SIGTERM or SIGINT. Then it
closes its listeners, delivers and commits what it holds, prints the ledger and
exits; SIGHUP reads the filters' modules again, as weir reload does. It exits with 0 when nothing was lost, with 1 when something failed or was lost,
with 2 when the configuration is wrong. A second signal ends it at once.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return run(c) },
	}
	addConfigFlag(c)
	return c
}

// run is `weir run`. more are sources that no configuration names; every route takes from them.
func run(c *cobra.Command, more ...router.SourceConfig) error {
	log, err := newLogger(c)
	if err != nil {
		return err
	}
	s, doc := loadSettings(c)
	missing := false
	if doc.Readable() {
		missing = s.try(doc)
	}
	if doc.Err() != nil {
		if doc.Readable() { // everything that is wrong at once
			host, guests, err := loadGuests(c.Context(), s, doc, "", log)
			if err != nil {
				return err
			}
			closeGuests(host, guests)
		}
		if missing && !doc.Wrong("filters") {
			fmt.Fprintln(c.ErrOrStderr(), doc.Err())
			return errNotHad
		}
		return refuse(c, doc)
	}
	s.warnBuffers(doc)
	logWarnings(log, doc.Warnings(), nil)

	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	p := plant{more: more}
	defer p.close()
	if err := p.build(ctx, s, doc, log); err != nil {
		if errors.Is(err, errStopped) {
			log.Info("weir stops while its filters are loaded")
			return nil
		}
		if errors.Is(err, errNotHad) { // another time it may: no mistake of the configuration
			fmt.Fprintln(c.ErrOrStderr(), doc.Err())
			return err
		}
		if doc.Err() != nil {
			return refuse(c, doc)
		}
		return err
	}
	limitMemory(s.memorySum(p.guests))
	collectOften()
	debug.FreeOSMemory() // what loading the filters took
	if configPaths(c) == nil {
		io.WriteString(c.ErrOrStderr(), welcome)
	}
	return p.run(ctx, cancel, signals, c.ErrOrStderr())
}

// logWarnings tells what check prints, but for what was told before.
func logWarnings(log *slog.Logger, all, told []config.Mistake) {
	for _, w := range all {
		if !slices.Contains(told, w) {
			log.Warn(w.What, "at", w.Place.String(), "try", w.Hint)
		}
	}
}

// errNotHad is told at the end, when doc has what the machine does not give: a port
// that is taken, a directory that cannot be made.
var errNotHad = errors.New("cannot start")

// errShared is what takeSole says when another weir has the directory.
var errShared = errors.New("another weir uses it")

// errStopped is a signal's doing, before there was anything to drain.
var errStopped = errors.New("stopped")

// limitMemory keeps the collector from doubling what the configuration bounds.
func limitMemory(sum memorySum) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(sum.total() - sum.linear))
	}
}

// collectOften is for the time when memory is full of messages: at start it would only take time.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

// A plant is all that runs, in the order in which it is acquired.
type plant struct {
	log      *slog.Logger
	sole     *os.File // of state_dir; nil: it cannot be locked
	letters  *deadletter.Store
	host     *wasmhost.Host
	guests   []*wasmhost.Guest
	sources  []*socket.Source
	router   *router.Router
	admin    *admin.Server
	registry *prometheus.Registry
	more     []router.SourceConfig // beside those of the configuration
}

// build acquires everything. What a file says wrong is told in doc; an error
// without that is the machine's.
func (p *plant) build(ctx context.Context, s *settings, doc *config.Document, log *slog.Logger) (err error) {
	p.log = log
	p.registry = prometheus.NewRegistry()
	p.registry.MustRegister(admin.Process(version, commit())...)
	if err := p.claim(s, doc); err != nil {
		return err
	}
	letters := make(chan error, 1)
	go func() { // while the filters load
		var err error
		p.letters, err = deadletter.Open(s.StateDir, s.DeadLetters, log)
		letters <- err
	}()
	loading, loaded := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM) // compiling may take a minute
	p.host, p.guests, err = loadGuests(loading, s, doc, filepath.Join(s.StateDir, "modules"), log)
	stopped := loading.Err() != nil
	loaded()
	if err := errors.Join(<-letters, err); err != nil {
		return err
	}
	if stopped {
		return errStopped
	}
	if err := doc.Err(); err != nil {
		return err
	}
	told := doc.Warnings()
	s.warnGuests(doc, p.guests)
	warnMachine(doc, s.memorySum(p.guests).total())
	logWarnings(log, doc.Warnings(), told)
	p.registry.MustRegister(p.letters, p.host, p.host.UserMetrics())

	rc := s.routerConfig()
	rc.DeadLetters, rc.Log = p.letters, log
	for i, r := range rc.Routes {
		for k, stage := range r.Filters {
			for lane := range rc.Lanes {
				rc.Routes[i].Filters[k].Filters = append(rc.Routes[i].Filters[k].Filters, p.guest(stage.Name).Filter(lane))
			}
		}
	}
	if err := p.listen(s, doc, &rc); err != nil {
		return err
	}
	rc.Sources = append(rc.Sources, p.more...)
	for _, m := range p.more {
		for k, r := range rc.Routes {
			rc.Routes[k].From = append(slices.Clone(r.From), m.Name)
		}
	}
	if err := p.openDestinations(ctx, s, doc, &rc); err != nil {
		return err
	}
	if p.router, err = router.New(rc); err != nil {
		return err
	}
	p.registry.MustRegister(p.router, socket.Metrics(p.sources))
	if s.Admin != nil {
		if p.admin, err = admin.Listen(*s.Admin, admin.Subject{Gatherer: p.registry, Parts: p.parts, Plan: p.plan(s, doc), Stopping: p.router.Stopping, Reload: p.reload}, log); err != nil {
			refuseListener(doc, doc.At("admin", "listen"), s.Admin.Address(), err)
			return errors.Join(errNotHad, closeDestinations(rc.Destinations))
		}
	}
	return nil
}

// claim makes state_dir and keeps other weirs off it.
func (p *plant) claim(s *settings, doc *config.Document) (err error) {
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		doc.Errorf(doc.At("state_dir"), "a directory that weir may write to", "state_dir: %v", err)
		return errNotHad
	}
	if p.sole, err = takeSole(s.StateDir); err != nil {
		hint := ""
		if errors.Is(err, errShared) {
			hint = "a state_dir of its own for each weir, or end the other one"
		}
		doc.Errorf(doc.At("state_dir"), hint, "state_dir: %s: %v", s.StateDir, err)
		return errNotHad
	}
	return nil
}

// openDestinations opens all of them or none; they are the router's then.
func (p *plant) openDestinations(ctx context.Context, s *settings, doc *config.Document, rc *router.Config) error {
	for i, e := range s.Destinations {
		all, err := e.Value.open(ctx, site{name: e.Name, stateDir: s.StateDir, log: p.log}, p.registry)
		if err != nil {
			doc.Errorf(doc.At("destinations", e.Name, e.Value.kind.key), "", "%v", err)
			return errors.Join(errNotHad, closeDestinations(rc.Destinations[:i]))
		}
		d := &rc.Destinations[i]
		d.Destination, d.Spool, d.Sync, d.Beside = all[0].Destination, all[0].Spool, all[0].Sync, all[1:]
	}
	return nil
}

func closeDestinations(list []router.DestinationConfig) (err error) {
	for _, d := range list {
		err = errors.Join(err, closeConnections(d.Connections()))
	}
	return err
}

func (p *plant) guest(name string) *wasmhost.Guest {
	for _, g := range p.guests {
		if g.Name() == name {
			return g
		}
	}
	panic("BUG: a route has a filter that was not loaded: " + name)
}

// parts is the state of everything, for /readyz.
func (p *plant) parts() []router.Part {
	parts := append(p.router.Parts(), p.host.Parts()...)
	parts = append(parts, p.letters.Parts()...)
	return parts
}

// reload reads the modules again.
func (p *plant) reload(ctx context.Context) (all []admin.Reloaded) {
	for _, r := range p.host.Reload(ctx) {
		told := admin.Reloaded{Filter: r.Filter, Changed: r.Changed, Loaded: r.Loaded.UTC().Truncate(time.Second)}
		if r.Err != nil {
			told.Error = r.Err.Error()
		}
		all = append(all, told)
	}
	return all
}

// sameSignal is how close a second signal is the first one again: timeout(1), and
// a terminal with a supervisor, send each to the process and to its group.
const sameSignal = 500 * time.Millisecond

// run moves messages until a signal, or until a part fails. The second signal
// ends the process.
func (p *plant) run(ctx context.Context, cancel context.CancelFunc, signals <-chan os.Signal, errout io.Writer) error {
	var helpers sync.WaitGroup
	served, unserve := context.WithCancel(context.WithoutCancel(ctx)) // until the drain is over
	helpers.Go(func() {
		for first := (time.Time{}); ; {
			select {
			case <-served.Done():
				return
			case sig := <-signals:
				if sig == syscall.SIGHUP {
					helpers.Go(func() { p.reload(served) }) // tells by itself
					continue
				}
				if !first.IsZero() && time.Since(first) < sameSignal {
					continue
				}
				if !first.IsZero() {
					p.log.Error("second signal: weir ends at once", "signal", sig.String())
					p.router.Ledger().WriteTo(errout)
					tellLost(errout, p.router.Waiting())
					os.Exit(exitFailed)
				}
				first = time.Now()
				p.log.Info("weir stops", append([]any{"signal", sig.String()}, p.atStop()...)...)
				cancel()
			}
		}
	})
	helpers.Go(func() { p.host.Watch(served) })
	helpers.Go(func() { p.letters.Run(served) })
	if p.admin != nil {
		helpers.Go(func() {
			if err := p.admin.Run(served); err != nil {
				p.log.Error(err.Error())
			}
		})
	}
	if p.admin != nil {
		p.log.Info("admin", "on", p.admin.Addr().String())
	}
	p.log.Info("weir runs", "version", version, "pid", os.Getpid())
	err := p.router.Run(ctx)
	unserve()
	helpers.Wait()
	err = errors.Join(err, p.close())
	p.router.Ledger().WriteTo(errout)
	return err
}

// close releases what is not the router's. It may be called twice.
func (p *plant) close() error {
	var errs []error
	if p.admin != nil {
		errs = append(errs, p.admin.Close())
	}
	for _, s := range p.sources {
		errs = append(errs, s.Close())
	}
	if p.host != nil {
		errs = append(errs, closeGuests(p.host, p.guests))
	}
	if p.letters != nil {
		errs = append(errs, p.letters.Close())
	}
	if p.sole != nil {
		errs = append(errs, p.sole.Close())
	}
	*p = plant{log: p.log, router: p.router}
	return errors.Join(errs...)
}
