package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/admin"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/deadletter"
	"github.com/weirlog/weir/router/socket"
	"github.com/weirlog/weir/wasmhost"
)

// settings is the configuration file.
type settings struct {
	Memory       config.Size                 `yaml:"memory"`
	StateDir     string                      `yaml:"state_dir"`
	DrainTimeout time.Duration               `yaml:"drain_timeout"`
	Admin        *admin.Config               `yaml:"admin"`
	Sources      config.Map[socket.Config]   `yaml:"sources"`
	Filters      config.Map[wasmhost.Config] `yaml:"filters"`
	Destinations config.Map[destination]     `yaml:"destinations"`
	Routes       config.Map[route]           `yaml:"routes"`
	DeadLetters  deadletter.Config           `yaml:"dead_letters"`
}

// route wires the others by name.
type route struct {
	From    []string `yaml:"from,required"`
	Match   *match   `yaml:"match"`
	Else    bool     `yaml:"else,omitempty"`
	Filters []string `yaml:"filters"`
	To      []string `yaml:"to,required"`
}

// notYet are keys that later versions of weir know.
var notYet = []string{
	"sources.*.tls",
	"filters.*.stack",
}

const defaultMemory = 64 << 20

// newSettings is the configuration before any file is read.
func newSettings() *settings {
	s := &settings{Memory: defaultMemory, StateDir: "/var/lib/weir", DrainTimeout: 30 * time.Second}
	s.DeadLetters.Defaults()
	return s
}

func (s *settings) Check() []config.Problem {
	return config.OddPath("state_dir", s.StateDir, "/var/lib/weir")
}

func (r *route) Check() []config.Problem {
	var bad []config.Problem
	if len(r.From) == 0 {
		bad = append(bad, config.Problem{Path: "from", What: "a route from no source", Hint: "from: [SOURCE]"})
	}
	if len(r.To) == 0 {
		bad = append(bad, config.Problem{Path: "to", What: "a route to no destination", Hint: "to: [DESTINATION]"})
	}
	if len(r.To) > 64 {
		bad = append(bad, config.Problem{Path: "to", What: fmt.Sprintf("%d destinations", len(r.To)), Hint: "at most 64; a second route"})
	}
	if r.Else && r.Match != nil {
		bad = append(bad, config.Problem{Path: "else", What: "else: true takes all that no other route takes, and match would leave some of it out", Hint: "one of the two; what match takes can have a route of its own"})
	}
	return bad
}

// configPaths are the files that the flags name or that are found, in the order
// of search; none is the built-in configuration.
func configPaths(c *cobra.Command) []string {
	if paths, _ := c.Flags().GetStringArray("config"); len(paths) > 0 {
		return paths
	}
	for _, path := range []string{"weir.yaml", "/etc/weir/weir.yaml"} {
		if _, err := os.Stat(path); err == nil {
			return []string{path}
		}
	}
	return nil
}

func addConfigFlag(c *cobra.Command) {
	c.Flags().StringArrayP("config", "c", nil, "configuration `file`, or a directory of *.yaml; may be given more than once (default ./weir.yaml, /etc/weir/weir.yaml, built-in)")
}

// loadSettings reads and wires the configuration, and makes its paths usable.
// Whether they can be used says the document's Err.
func loadSettings(c *cobra.Command) (*settings, *config.Document) {
	s := newSettings()
	opts := config.Options{NotYet: notYet, Stdin: c.InOrStdin()}
	opts.Width, _ = terminalSize(c.ErrOrStderr())
	var doc *config.Document
	if paths := configPaths(c); paths != nil {
		doc = config.Load(s, opts, paths...)
	} else {
		doc = config.Parse(s, opts, builtinName, []byte(builtin))
	}
	if doc.Readable() {
		s.wire(doc)
		s.warn(doc)
		s.resolve(doc)
	}
	return s, doc
}

// refuse tells all mistakes of a configuration.
func refuse(c *cobra.Command, doc *config.Document) error {
	fmt.Fprintln(c.ErrOrStderr(), doc.Err())
	n := len(doc.Mistakes()) - len(doc.Warnings())
	if n == 1 {
		return usagef("1 mistake in the configuration")
	}
	return usagef("%d mistakes in the configuration", n)
}

// resolve makes paths usable: those of modules, sockets and state_dir are
// relative to their file.
func (s *settings) resolve(doc *config.Document) {
	s.StateDir = doc.At("state_dir").Resolve(s.StateDir)
	if s.Admin != nil {
		s.Admin.Listen = resolveSocket(doc.At("admin", "listen"), s.Admin.Listen)
	}
	for _, e := range s.Sources {
		for i, l := range e.Value.Listen {
			e.Value.Listen[i] = resolveSocket(e.Place, l)
		}
	}
	for i := range s.Filters {
		f := &s.Filters[i]
		if _, stock := f.Value.Stock(); !stock {
			f.Value.Module = f.Place.Resolve(f.Value.Module)
		}
		for k := range f.Value.FS {
			f.Value.FS[k].Path = f.Place.Resolve(f.Value.FS[k].Path)
		}
	}
	for _, r := range s.Routes {
		r.Value.Match.resolve()
	}
}

// stateFlag is the flag --state-dir, of commands that look at what a weir keeps.
type stateFlag struct{ dir *string }

func addStateFlag(cmd *cobra.Command) stateFlag {
	addConfigFlag(cmd)
	return stateFlag{cmd.Flags().String("state-dir", "", "the `directory` where the router keeps its state (default: as configured)")}
}

// find makes dir the state directory.
func (f stateFlag) find(c *cobra.Command) error {
	if *f.dir != "" {
		return nil
	}
	s, doc := loadSettings(c)
	if doc.Err() != nil {
		return refuse(c, doc)
	}
	*f.dir = s.StateDir
	return nil
}

// resolveSocket makes the path of a unix socket relative to the file that names
// it. Other addresses, and sockets without a file, stay as they are.
func resolveSocket(at config.Place, address string) string {
	scheme, path, ok := strings.Cut(address, "://")
	if !ok || !strings.HasPrefix(scheme, "unix") || strings.HasPrefix(path, "@") {
		return address
	}
	return scheme + "://" + at.Resolve(path)
}

// routerConfig is the router's view of the settings, without the parts that must
// be acquired: sources, destinations and the filters of each stage.
func (s *settings) routerConfig() router.Config {
	rc := router.Config{Memory: int64(s.Memory), Drain: s.DrainTimeout, Lanes: runtime.GOMAXPROCS(0)}
	for _, e := range s.Sources {
		rc.Sources = append(rc.Sources, router.SourceConfig{Name: e.Name, MaxMessage: int(e.Value.MaxMessage)})
	}
	for _, e := range s.Destinations {
		d := e.Value
		rc.Destinations = append(rc.Destinations, router.DestinationConfig{Name: e.Name, WhenFull: router.WhenFull(d.Buffer.WhenFull),
			Flush: router.Flush{Messages: d.FlushLines, Bytes: int(d.FlushBytes), After: d.FlushTimeout, Severity: int(d.FlushSeverity)}})
	}
	for _, e := range s.Routes {
		r := router.Route{Name: e.Name, From: e.Value.From, Match: e.Value.Match.forRouter(), Else: e.Value.Else, To: e.Value.To}
		for _, name := range e.Value.Filters {
			r.Filters = append(r.Filters, router.Stage{Name: name})
		}
		rc.Routes = append(rc.Routes, r)
	}
	return rc
}
