package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/admin"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/deadletter"
	"github.com/weirlog/weir/router/socket"
	"github.com/weirlog/weir/router/syslog"
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

// destination is a kind's settings among those that every destination has.
type destination struct {
	Kind          any           `yaml:",inline"` // settings of the kind, by pointer
	FlushLines    int           `yaml:"flush_lines"`
	FlushBytes    config.Size   `yaml:"flush_bytes"`
	FlushTimeout  time.Duration `yaml:"flush_timeout"`
	FlushSeverity severity      `yaml:"flush_severity"`
	Buffer        buffer        `yaml:"buffer"`
	kind          *kind
}

// buffer says what happens when a destination's share of the memory is full.
type buffer struct {
	WhenFull string `yaml:"when_full"`
}

// route wires the others by name.
type route struct {
	From    []string `yaml:"from,required"`
	Filters []string `yaml:"filters"`
	To      []string `yaml:"to,required"`
}

// severity is a word of RFC 5427 or syslog(3), or its number; off is -1.
type severity int

// notYet are keys that later versions of weir know.
var notYet = []string{
	"sources.*.tls", "routes.*.match", "routes.*.else", "destinations.*.buffer.disk", "destinations.*.buffer.sync", "destinations.*.buffer.keep_free",
	"destinations.*.connections", "destinations.*.pooler", "destinations.*.on_conflict", "destinations.*.partition", "destinations.*.retention", "destinations.*.alter",
	"filters.*.abi", "filters.*.exceptions", "filters.*.stack", "filters.*.fs", "filters.*.env", "filters.*.mode", "filters.*.function", "filters.*.event_format",
}

const defaultMemory = 64 << 20

// newSettings is the configuration before any file is read.
func newSettings() *settings {
	s := &settings{Memory: defaultMemory, StateDir: "/var/lib/weir", DrainTimeout: 30 * time.Second}
	s.DeadLetters.Defaults()
	return s
}

func (s *severity) UnmarshalConfig(v *config.Value) {
	var word string
	if !v.Decode(&word) {
		return
	}
	if word == "off" {
		*s = -1
		return
	}
	n, ok := syslog.ParseSeverity(word)
	if !ok {
		for _, p := range config.OneOf("", word, severityWords()...) {
			v.Errorf(p.Hint, "%q is no severity", word)
		}
	}
	*s = severity(n)
}

// String is the word that UnmarshalConfig reads.
func (s severity) String() string {
	if s < 0 {
		return "off"
	}
	return syslog.SeverityName(uint8(s))
}

func severityWords() []string {
	words := []string{"off"}
	for n := range uint8(8) {
		words = append(words, syslog.SeverityName(n))
	}
	return words
}

// UnmarshalConfig finds the kind by its key, then reads all keys strictly.
func (d *destination) UnmarshalConfig(v *config.Value) {
	var found []*kind
	for _, key := range v.Keys() {
		for i := range destinationKinds {
			if destinationKinds[i].key == key {
				found = append(found, &destinationKinds[i])
			}
		}
	}
	switch {
	case !v.IsMap():
		v.Errorf(kindKeys()+": and its settings", "a destination needs to say what it is")
		return
	case len(found) == 0:
		v.Errorf("one of "+kindKeys(), "no key says what kind of destination this is")
		return
	case len(found) > 1:
		v.Errorf("a name for each", "two destinations in one: %s and %s", found[0].key, found[1].key)
		return
	}
	*d = destination{kind: found[0], Kind: found[0].settings(), FlushLines: found[0].flushLines, FlushBytes: 4 << 20,
		FlushTimeout: time.Second, FlushSeverity: -1, Buffer: buffer{WhenFull: string(router.Block)}}
	type plain destination
	v.Decode((*plain)(d))
}

func (d *destination) Check() []config.Problem {
	var bad []config.Problem
	if c, ok := d.Kind.(config.Checker); ok {
		bad = c.Check()
	}
	bad = append(bad, config.OneOf("buffer.when_full", d.Buffer.WhenFull, string(router.Block), string(router.DropOldest), string(router.DropNewest))...)
	if d.FlushLines < 1 || d.FlushLines > 1_000_000 {
		bad = append(bad, config.Problem{Path: "flush_lines", What: fmt.Sprintf("%d rows make no transaction", d.FlushLines), Hint: "1 to 1000000"})
	}
	if d.FlushBytes < 1 {
		bad = append(bad, config.Problem{Path: "flush_bytes", What: "a transaction of no bytes", Hint: "4MiB"})
	}
	if d.FlushTimeout < time.Millisecond || d.FlushTimeout > time.Hour {
		bad = append(bad, config.Problem{Path: "flush_timeout", What: fmt.Sprintf("%v between transactions", d.FlushTimeout), Hint: "1ms to 1h"})
	}
	return bad
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

// loadSettings reads and wires the configuration. Whether the settings are
// usable says the document's Err.
func loadSettings(c *cobra.Command) (*settings, *config.Document) {
	s := newSettings()
	opts := config.Options{NotYet: notYet}
	var doc *config.Document
	if paths := configPaths(c); paths != nil {
		doc = config.Load(s, opts, paths...)
	} else {
		doc = config.Parse(s, opts, builtinName, []byte(builtin))
	}
	if doc.Readable() {
		s.wire(doc)
		s.warn(doc)
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
	for _, e := range s.Sources {
		for i, l := range e.Value.Listen {
			if scheme, path, ok := strings.Cut(l, "://"); ok && strings.HasPrefix(scheme, "unix") && !strings.HasPrefix(path, "@") {
				e.Value.Listen[i] = scheme + "://" + e.Place.Resolve(path)
			}
		}
	}
	for i := range s.Filters {
		f := &s.Filters[i]
		if _, stock := f.Value.Stock(); !stock {
			f.Value.Module = f.Place.Resolve(f.Value.Module)
		}
	}
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// wire checks what no part can check alone: limits of the whole, and the names
// by which things hang together.
func (s *settings) wire(doc *config.Document) {
	if s.Memory < 1<<20 {
		doc.Errorf(doc.At("memory"), "64MiB; at least 1MiB", "%v is too little to move messages in", s.Memory)
	}
	if s.DrainTimeout < time.Second {
		doc.Errorf(doc.At("drain_timeout"), "30s; at least 1s", "%v is too short to end a transaction", s.DrainTimeout)
	}
	if s.StateDir == "" {
		doc.Errorf(doc.At("state_dir"), "/var/lib/weir", "no directory")
	}
	used, strange := map[string]bool{}, map[string]bool{}
	names := func(kind string, names []string) {
		for _, n := range names {
			if !goodName.MatchString(n) {
				doc.Errorf(doc.At(kind, n), "letters, digits, _ - and . (at most 63)", "%q is no name", n)
			}
		}
	}
	names("sources", s.Sources.Names())
	names("filters", s.Filters.Names())
	names("destinations", s.Destinations.Names())
	names("routes", s.Routes.Names())
	for _, r := range s.Routes {
		refer := func(key, kind, section string, list, known []string, once bool) {
			if len(known) == 0 && doc.Has(section) {
				return // it did not decode: that is told already
			}
			for i, name := range list {
				at := doc.At("routes", r.Name, key, fmt.Sprint(i))
				switch {
				case !slices.Contains(known, name):
					doc.Unknown(at, kind, name, known)
					strange[section] = true // one that seems unused may be meant
				case once && slices.Contains(list[:i], name):
					doc.Errorf(at, "once", "route %s names %s twice", r.Name, name)
				}
				used[section+"."+name] = true
			}
		}
		refer("from", "source", "sources", r.Value.From, s.Sources.Names(), true)
		refer("filters", "filter", "filters", r.Value.Filters, s.Filters.Names(), false)
		refer("to", "destination", "destinations", r.Value.To, s.Destinations.Names(), true)
	}
	if len(s.Routes) == 0 && !doc.Has("routes") {
		doc.Errorf(doc.At("routes"), "routes: {main: {from: […], to: […]}}", "no route: nothing would be moved")
	}
	unused := func(section, what string, place config.Place, name string) {
		if !used[section+"."+name] && !strange[section] {
			doc.Warnf(place, "name it in a route, or remove it", "%s %s is used by no route", what, name)
		}
	}
	for _, e := range s.Sources {
		if !used["sources."+e.Name] && !strange["sources"] {
			doc.Warnf(e.Place, "name it in the from: of a route, or remove it", "no route takes what source %s brings: it would be counted as unrouted", e.Name)
		}
	}
	for _, e := range s.Filters {
		unused("filters", "filter", e.Place, e.Name)
	}
	for _, e := range s.Destinations {
		unused("destinations", "destination", e.Place, e.Name)
	}
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
		r := router.Route{Name: e.Name, From: e.Value.From, To: e.Value.To}
		for _, name := range e.Value.Filters {
			r.Filters = append(r.Filters, router.Stage{Name: name})
		}
		rc.Routes = append(rc.Routes, r)
	}
	return rc
}

// newConfigCommand is the parent of what shows the configuration.
func newConfigCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	show := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration with its defaults and without its secrets",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if configPaths(c) == nil {
				_, err := io.WriteString(c.OutOrStdout(), builtin)
				return err
			}
			s, doc := loadSettings(c)
			if doc.Err() != nil {
				return refuse(c, doc)
			}
			return doc.Show(c.OutOrStdout(), s)
		},
	}
	addConfigFlag(show)
	c.AddCommand(show)
	return c
}
