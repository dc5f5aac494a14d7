package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/deadletter"
	"github.com/weirlog/weir/wasmhost"
)

// A dlqReplay is what a replay is told, and what it opens.
type dlqReplay struct {
	settings *settings
	flags    *filterSettings
	log      *slog.Logger
	to       string // a destination instead of their own
	through  string // a filter to begin with
	dry      bool
	prints   bool // rows go to standard output

	host    *wasmhost.Host
	guests  map[string]*wasmhost.Guest // by the name under which they were asked for
	ways    map[deadletter.Rejecter]dlqWay
	targets []router.Destination
}

// dlqWay is where the letters of one rejecter go; or why not.
type dlqWay struct {
	way *deadletter.Way
	err error
}

// prepare finds the ways of all letters that are selected, and loads the filters on them.
func (r *dlqReplay) prepare(ctx context.Context, reader *deadletter.Reader, selected deadletter.Selection) error {
	rejecters, err := reader.Rejecters(selected)
	if err != nil {
		return err
	}
	r.guests, r.ways = map[string]*wasmhost.Guest{}, map[deadletter.Rejecter]dlqWay{}
	var first []deadletter.Stage
	if r.through != "" {
		s, err := r.fix(ctx)
		if err != nil {
			return err
		}
		first = []deadletter.Stage{s}
	}
	for _, who := range rejecters {
		names, to, err := r.wiring(who)
		if err != nil {
			r.ways[who] = dlqWay{err: err}
			continue
		}
		way := &deadletter.Way{Route: who.Route, To: to, Stages: slices.Clone(first)}
		for _, name := range names {
			s, err := r.stage(ctx, name)
			if err != nil {
				return err
			}
			way.Stages = append(way.Stages, s)
		}
		r.ways[who] = dlqWay{way: way}
	}
	return nil
}

// wiring is which filters of the configuration letters pass, and where they go.
func (r *dlqReplay) wiring(who deadletter.Rejecter) (filters, to []string, err error) {
	known := r.settings.Destinations.Names()
	if who.Destination != "" {
		switch {
		case r.to != "":
			return nil, []string{r.to}, nil
		case !slices.Contains(known, who.Destination):
			return nil, nil, fmt.Errorf("destination %s is not in the configuration; --to sends them to another", who.Destination)
		}
		return nil, []string{who.Destination}, nil
	}
	for _, e := range r.settings.Routes {
		if e.Name != who.Route {
			continue
		}
		at := slices.Index(e.Value.Filters, who.Filter)
		if at < 0 {
			break
		}
		if to = e.Value.To; r.to != "" {
			to = []string{r.to}
		}
		return e.Value.Filters[at+1:], to, nil
	}
	if r.to == "" {
		return nil, nil, fmt.Errorf("route %s has no filter %s in the configuration; --to says where its letters go, past all filters", who.Route, who.Filter)
	}
	r.log.Warn("letters of a filter that is not in the configuration go past the filters of their route", "route", who.Route, "filter", who.Filter, "to", r.to)
	return nil, []string{r.to}, nil
}

// fix loads the filter of --through.
func (r *dlqReplay) fix(ctx context.Context) (deadletter.Stage, error) {
	if slices.Contains(r.settings.Filters.Names(), r.through) {
		return r.stage(ctx, r.through)
	}
	m, cfg, err := r.flags.guest(r.through)
	if err != nil {
		return deadletter.Stage{}, usagef("--through %s: no filter of that name in the configuration, and %v", r.through, err)
	}
	return r.load(ctx, filterName(m.name), "\x00"+r.through, cfg)
}

// stage is a filter of the configuration, loaded once.
func (r *dlqReplay) stage(ctx context.Context, name string) (deadletter.Stage, error) {
	for _, e := range r.settings.Filters {
		if e.Name == name {
			return r.load(ctx, name, name, e.Value)
		}
	}
	panic("BUG: a route has a filter that is not in the configuration: " + name)
}

func (r *dlqReplay) load(ctx context.Context, name, key string, cfg wasmhost.Config) (s deadletter.Stage, err error) {
	if r.host == nil {
		if r.host, err = openHost(ctx, wasmhost.Options{Log: r.log}); err != nil {
			return s, err
		}
	}
	g := r.guests[key]
	if g == nil {
		if g, err = r.host.Load(ctx, name, cfg); err != nil {
			return s, usageError{err}
		}
		r.guests[key] = g
	}
	return deadletter.Stage{Name: name, Filter: g.Filter(0)}, nil
}

// way says where a letter goes.
func (r *dlqReplay) way(l *deadletter.Letter) (*deadletter.Way, error) {
	w, known := r.ways[l.Rejecter()]
	if !known {
		return nil, errors.New("they came while the replay began")
	}
	return w.way, w.err
}

// open opens a destination of the configuration, beside that of a running weir.
func (r *dlqReplay) open(ctx context.Context, name string) (deadletter.Target, error) {
	for _, e := range r.settings.Destinations {
		if e.Name != name {
			continue
		}
		d := e.Value
		opened, err := d.kind.open(ctx, d.Kind, site{name: name, stateDir: r.settings.StateDir, log: r.log})
		if err != nil {
			return deadletter.Target{}, err
		}
		r.targets = append(r.targets, opened)
		r.prints = r.prints || d.kind.key == "stdout"
		return deadletter.Target{Destination: opened, Messages: d.FlushLines, Bytes: int(d.FlushBytes)}, nil
	}
	return deadletter.Target{}, deadletter.ErrUnknown
}

// close closes what was opened.
func (r *dlqReplay) close() {
	ctx := context.Background()
	for _, g := range r.guests {
		g.Close(ctx)
	}
	if r.host != nil {
		r.host.Close(ctx)
	}
	for _, d := range r.targets {
		if err := d.Close(); err != nil {
			r.log.Error("a destination does not close", "error", err)
		}
	}
}
