package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// deepestMatch is how many matches may be in each other.
const deepestMatch = 8

// A listened is a listener of a source that a route takes from, as messages name it.
type listened struct{ source, listener string }

func (l listened) unix() bool { return strings.HasPrefix(l.listener, "unix") }

// wireMatches checks what a match says against the sources that its route takes from, and against itself.
func (s *settings) wireMatches(doc *config.Document) {
	for _, r := range s.Routes {
		m := r.Value.Match
		if m == nil || m.conditions() == 0 {
			continue
		}
		if n := m.depth(); n > deepestMatch {
			doc.Errorf(m.place, "fewer not and any in each other", "route %s: %d matches in each other: at most %d", r.Name, n, deepestMatch)
			continue
		}
		m.odd(func(at config.Place, never bool, what, hint string) {
			if never {
				doc.Errorf(at, hint, "%s", what)
			} else {
				doc.Warnf(at, hint, "route %s: %s", r.Name, what)
			}
		})
		if all := s.listened(r.Value.From); len(all) > 0 {
			reach(doc, r.Name, m, all)
		}
		contradict(doc, m, ^uint32(0), ^uint8(0))
	}
}

// listened lists the listeners of sources; nil when one of the sources is unknown.
func (s *settings) listened(sources []string) (all []listened) {
	for _, name := range sources {
		i := slices.Index(s.Sources.Names(), name)
		if i < 0 {
			return nil
		}
		for _, l := range s.Sources[i].Value.Listen {
			all = append(all, listened{name, resolveSocket(s.Sources[i].Place, l)})
		}
	}
	return all
}

// reach tells of sources, listeners and peers that no message on the route can have. all is
// what the matches around m leave.
func reach(doc *config.Document, route string, m *match, all []listened) {
	all = reachBy(doc, m.Source, glob.exact, all, func(l listened) string { return l.source }, "source", "route "+route+" takes from")
	all = reachBy(doc, m.Listener, glob.ofListener, all, func(l listened) string { return l.listener }, "listener", "there is")
	if len(m.Peer) > 0 && !slices.ContainsFunc(all, func(l listened) bool { return !l.unix() }) {
		doc.Errorf(m.Peer[0].place, "listener: or hostname:", "senders on unix sockets have no address, and no others can get here")
	}
	for i := range m.Not {
		reach(doc, route, &m.Not[i], all)
	}
	for i := range m.Any {
		reach(doc, route, &m.Any[i], all)
	}
}

func reachBy(doc *config.Document, list some[glob], compile func(glob) router.Glob, all []listened, of func(listened) string, key, there string) (left []listened) {
	if len(list) == 0 {
		return all
	}
	var known []string
	for _, l := range all {
		if !slices.Contains(known, of(l)) {
			known = append(known, of(l))
		}
	}
	wrong := false
	for _, g := range list {
		p := compile(g)
		fits := func(l listened) bool { return p.Matches([]byte(of(l))) }
		if !slices.ContainsFunc(all, fits) {
			doc.Errorf(g.place, config.Suggest(g.text, known), "%s %s can never be: %s %s", key, asWritten(g.text), there, strings.Join(known, ", "))
			wrong = true
			continue
		}
		for _, l := range all {
			if fits(l) && !slices.Contains(left, l) {
				left = append(left, l)
			}
		}
	}
	if wrong { // what is meant in its place may leave any of them
		return all
	}
	return left
}

// contradict tells of conditions that cannot hold together, where that is cheap to see. The sets
// are what the matches around m leave.
func contradict(doc *config.Document, m *match, facilities uint32, severities uint8) {
	if set := m.facilities(); set != 0 {
		if facilities &= set; facilities == 0 {
			doc.Errorf(m.Facility[0].place, "one of those, or leave it out", "no message can have this facility: the match around it takes others")
			return
		}
	}
	if set := m.severities(); set != 0 {
		if severities &= set; severities == 0 {
			doc.Errorf(m.Severity[0].place, "one of those, or leave it out", "no message can have this severity: the match around it takes others")
			return
		}
	}
	for i := range m.Not {
		not := &m.Not[i]
		if not.conditions() == 1 {
			leftF, leftS := facilities&^not.facilities(), severities&^not.severities()
			if leftF&(1<<24-1) == 0 || leftS == 0 || not.forRouter() == nil || sameTexts(m, not) {
				doc.Errorf(not.place, "less of it, or leave it out", "this leaves nothing of what the match takes")
				return
			}
			facilities, severities = leftF, leftS
		}
		contradict(doc, not, ^uint32(0), ^uint8(0))
	}
	for i := range m.Any {
		contradict(doc, &m.Any[i], facilities, severities)
	}
}

// sameTexts reports whether not, which has one key, takes all the texts that m lists for it.
func sameTexts(m, not *match) bool {
	for _, key := range []struct {
		of      func(*match) some[glob]
		compile func(glob) router.Glob
	}{
		{func(m *match) some[glob] { return m.Hostname }, glob.folded}, {func(m *match) some[glob] { return m.AppName }, glob.exact},
		{func(m *match) some[glob] { return m.ProcID }, glob.exact}, {func(m *match) some[glob] { return m.MsgID }, glob.exact},
		{func(m *match) some[glob] { return m.Source }, glob.exact}, {func(m *match) some[glob] { return m.Listener }, glob.ofListener},
	} {
		own, others := buildAll(key.of(m), key.compile), buildAll(key.of(not), key.compile)
		if len(own) == 0 || len(others) == 0 {
			continue
		}
		return !slices.ContainsFunc(own, func(g router.Glob) bool {
			return !g.Plain() || !slices.ContainsFunc(others, func(o router.Glob) bool { return o.Matches([]byte(g.String())) })
		})
	}
	return false
}

// wireElse checks that what is left of a source has one route at most.
func (s *settings) wireElse(doc *config.Document) {
	first := map[string]string{} // source: its route with else
	for _, r := range s.Routes {
		if !r.Value.Else {
			continue
		}
		for _, from := range r.Value.From {
			if other, twice := first[from]; twice && other != r.Name {
				doc.Clash(doc.At("routes", r.Name, "else"), doc.At("routes", other, "else"), "else: true on one of them; a route may have several destinations",
					"routes %s and %s both take what no other route of source %s took", other, r.Name, from)
				continue
			}
			first[from] = r.Name
		}
	}
}

// warnMatches tells which messages of a source go nowhere.
func (s *settings) warnMatches(doc *config.Document) {
	if doc.Err() != nil {
		return // with what is wrong mended, it may be different
	}
	for _, e := range s.Sources {
		var matching, all []route
		var names []string
		for _, r := range s.Routes {
			if !slices.Contains(r.Value.From, e.Name) {
				continue
			}
			all = append(all, r.Value)
			if r.Value.Match != nil && !r.Value.Else {
				matching = append(matching, r.Value)
				names = append(names, r.Name)
			}
		}
		if len(all) == 0 || len(matching) < len(all) || takeAll(matching) {
			continue
		}
		missed := "route " + names[0] + " does not match"
		switch n := len(names); {
		case n > 6:
			missed = fmt.Sprintf("none of its %d routes (%s, %s, …, %s) matches", n, names[0], names[1], names[n-1])
		case n > 1:
			missed = "none of the routes " + strings.Join(names, ", ") + " matches"
		}
		doc.Warnf(e.Place, "a route for the rest: from: ["+e.Name+"] and else: true", "source %s: what %s is counted as unrouted and stored nowhere", e.Name, missed)
	}
	s.warnElse(doc)
	s.warnTwice(doc)
	for _, r := range s.Routes {
		if r.Value.Match == nil {
			continue
		}
		if r.Value.Match.forRouter() == nil {
			doc.Warnf(r.Value.Match.place, "leave match out", "route %s: this match takes everything", r.Name)
		}
	}
}

// warnTwice tells of a route whose messages another one brings to the same destination anyway. What filters leave, or
// make of it, is not known.
func (s *settings) warnTwice(doc *config.Document) {
	everything := func(r route) bool { return !r.Else && len(r.Filters) == 0 && (r.Match == nil || takeAll([]route{r})) }
	for k, r := range s.Routes {
		for i, to := range r.Value.To {
			if d := s.Destinations.Get(to); d == nil || d.kind == nil || d.kind.key == "discard" || r.Value.Else || len(r.Value.Filters) > 0 {
				continue
			}
			for n, all := range s.Routes {
				from := slices.IndexFunc(r.Value.From, func(name string) bool { return slices.Contains(all.Value.From, name) })
				if n == k || from < 0 || !everything(all.Value) || everything(r.Value) && k < n || !slices.Contains(all.Value.To, to) {
					continue
				}
				doc.Warnf(doc.At("routes", r.Name, "to", fmt.Sprint(i)), "another destination, or match: on route "+all.Name,
					"route %s: what it brings from source %s to %s is stored there twice: route %s brings everything", r.Name, r.Value.From[from], to, all.Name)
				break
			}
		}
	}
}

// warnElse tells of an else that has nothing to wait for, or gets nothing.
func (s *settings) warnElse(doc *config.Document) {
	for _, r := range s.Routes {
		if !r.Value.Else {
			continue
		}
		alone, taken := true, "" // of all its sources
		for _, from := range r.Value.From {
			all := ""
			for _, other := range s.Routes {
				if other.Name != r.Name && slices.Contains(other.Value.From, from) {
					alone = false
					if !other.Value.Else && (other.Value.Match == nil || takeAll([]route{other.Value})) {
						all = other.Name
					}
				}
			}
			if taken = all; all == "" {
				break
			}
		}
		at := doc.At("routes", r.Name, "else")
		switch {
		case alone:
			doc.Warnf(at, "leave else out", "route %s: no other route takes from %s, so that else is everything", r.Name, strings.Join(r.Value.From, ", "))
		case taken != "":
			doc.Warnf(at, "match: on route "+taken, "route %s: nothing is left for it: route %s takes everything", r.Name, taken)
		}
	}
}

// takeAll reports whether it is cheap to see that no message is left by the matches of routes together.
func takeAll(routes []route) bool {
	var facilities uint32
	var severities uint8
	for _, r := range routes {
		m := r.Match.build()
		if m.Everything() {
			return true
		}
		if r.Match.conditions() != 1 {
			continue
		}
		facilities |= m.Facilities
		severities |= m.Severities
		if len(m.Not) == 1 && slices.ContainsFunc(routes, func(o route) bool { return reflect.DeepEqual(o.Match.build(), m.Not[0]) }) {
			return true
		}
	}
	return facilities == 1<<24-1 || severities == 1<<8-1
}
