package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/router/config"
)

var goodName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// checkNames tells of names that cannot be labels of metrics and parts of paths.
func checkNames[T any](doc *config.Document, all config.Map[T]) {
	for _, e := range all {
		if !goodName.MatchString(e.Name) {
			doc.Errorf(e.Place, "letters, digits, _ - and . (at most 63)", "%q is no name", e.Name)
		}
	}
}

const leastMemory = 1 << 20

// wire checks what no part can check alone: limits of the whole, and the names
// by which things hang together.
func (s *settings) wire(doc *config.Document) {
	if s.Memory < leastMemory {
		doc.Errorf(doc.At("memory"), "64MiB; at least 1MiB", "%v is too little to move messages in", s.Memory)
	}
	if s.DrainTimeout < time.Second {
		doc.Errorf(doc.At("drain_timeout"), "30s; at least 1s", "%s is too short to end a transaction", config.TimeText(s.DrainTimeout))
	}
	if s.StateDir == "" {
		doc.Errorf(doc.At("state_dir"), "/var/lib/weir", "no directory")
	}
	used := map[string]bool{}
	sections := map[string]string{} // what a name is
	for _, kind := range []struct {
		what  string
		names []string
	}{{"route", s.Routes.Names()}, {"destination", s.Destinations.Names()}, {"filter", s.Filters.Names()}, {"source", s.Sources.Names()}} {
		for _, name := range kind.names {
			sections[name] = kind.what
		}
	}
	checkNames(doc, s.Sources)
	checkNames(doc, s.Filters)
	checkNames(doc, s.Destinations)
	checkNames(doc, s.Routes)
	for _, r := range s.Routes {
		refer := func(key, kind, section string, list, known []string, once bool) {
			if doc.Stray() || len(known) == 0 && doc.Wrong(section) {
				return // it did not decode, or stands elsewhere: that is told already
			}
			for i, name := range list {
				at := doc.At("routes", r.Name, key, fmt.Sprint(i))
				switch {
				case slices.Contains(known, name):
				case kind == "filter" && (strings.HasPrefix(name, "stock:") || strings.HasSuffix(name, ".wasm")):
					doc.Errorf(at, "filters: {NAME: {module: "+name+"}}, and that NAME here", "%q is a module, and a route names filters", name)
				case sections[name] != "":
					doc.Errorf(at, config.Suggest(name, known), "no %s is named %q: that is a %s", kind, name, sections[name])
				default:
					doc.Unknown(at, kind, name, known)
				}
				if once && slices.Contains(list[:i], name) {
					doc.Errorf(at, "once", "route %s names %s twice", r.Name, name)
				}
				used[section+"."+name] = true
			}
		}
		refer("from", "source", "sources", r.Value.From, s.Sources.Names(), true)
		refer("filters", "filter", "filters", r.Value.Filters, s.Filters.Names(), false)
		refer("to", "destination", "destinations", r.Value.To, s.Destinations.Names(), true)
	}
	s.wireMatches(doc)
	s.wireElse(doc)
	switch {
	case doc.Empty():
		doc.Errorf(doc.At(), "sources:, destinations: and routes:, as weir.example.yaml has them", "there is no setting in it")
	case len(s.Routes) == 0 && !doc.Wrong("routes") && !doc.Stray():
		doc.Errorf(doc.At("routes"), "routes: {main: {from: [SOURCE], to: [DESTINATION]}}", "no route: nothing would be moved")
		missing := func(section, hint, what string) {
			if !doc.Has(section) && !doc.Wrong(section) {
				doc.Errorf(doc.At(section), hint, "%s", what)
			}
		}
		missing("sources", "sources: {edge: {listen: [udp://0.0.0.0:514]}}", "no source: nothing would come in")
		missing("destinations", "destinations: {archive: {sqlite: logs.db}}", "no destination: nothing would be stored")
	}
	if len(s.Routes) == 0 || doc.Wrong("routes") || doc.Stray() {
		return // what seems unused may be meant
	}
	unused := func(section, what string, place config.Place, name string) {
		if !used[section+"."+name] {
			doc.Warnf(place, "name it in a route, or remove it", "%s %s is used by no route", what, name)
		}
	}
	for _, e := range s.Sources {
		if !used["sources."+e.Name] {
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
