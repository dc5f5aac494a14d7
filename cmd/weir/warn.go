package main

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/sqlstore"
	"github.com/weirlog/weir/wasmhost"
)

var (
	redacts = regexp.MustCompile(`(?i)redact|mask|anonym|pseudonym|scrub|privacy|gdpr|pii`)
	// Statements that let a commit return before its rows are safe.
	liteUnsafe = regexp.MustCompile(`(?i)\bpragma\s+(?:\w+\.)?(?:synchronous\s*[=(]\s*["']?(?:off|normal|0|1)\b|journal_mode\s*[=(]\s*["']?(?:off|memory)\b)`)
	pgUnsafe   = regexp.MustCompile(`(?i)\bsynchronous_commit\b["']?\s*(?:=|,|\bto\b)\s*["']?(?:off|local|false|no|0)\b`)
	remark     = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/`) // in SQL
)

// unsafeCommits is what is told of commits that return too early.
const unsafeCommits = "destination %s: commits return before rows are safe: no longer holds that nothing acknowledged is lost, when the database's machine crashes"

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
		if redacts.MatchString(e.Name) || redacts.MatchString(e.Value.Module) {
			warnPass(doc, &e)
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
		if mode, what := c.Exposed(); what != "" {
			at := doc.At("destinations", e.Name, "postgres")
			if doc.Has("destinations", e.Name, "sslmode") {
				at = doc.At("destinations", e.Name, "sslmode")
			}
			doc.Warnf(at, "sslmode: verify-full, with sslrootcert", "destination %s: with sslmode %s %s: no longer holds that messages reach nobody but the server", e.Name, mode, what)
		}
		unsafe := pgUnsafe
		if e.Value.kind.key == "sqlite" {
			unsafe = liteUnsafe
		}
		for i, stmt := range c.SessionStatements {
			if unsafe.MatchString(remark.ReplaceAllString(stmt, " ")) {
				doc.Warnf(doc.At("destinations", e.Name, "session_statements", fmt.Sprint(i)), "leave it out", unsafeCommits, e.Name)
			}
		}
		if dsn, err := c.Postgres.Reveal(); err == nil {
			if plain, err := url.PathUnescape(dsn); err == nil {
				dsn = plain
			}
			if pgUnsafe.MatchString(dsn) {
				doc.Warnf(doc.At("destinations", e.Name, "postgres"), "leave synchronous_commit out", unsafeCommits, e.Name)
			}
		}
	}
	s.warnMatches(doc)
	for _, r := range s.Routes {
		s.warnRoute(doc, r.Name, r.Value, datagrams)
	}
}

// warnShared tells of another route of the same source, whose local destination
// gets nothing while the source is held because of remote.
func (s *settings) warnShared(doc *config.Document, name string, r route, remote string) {
	for _, other := range s.Routes {
		for i, to := range other.Value.To {
			d := s.Destinations.Get(to)
			shared := slices.IndexFunc(other.Value.From, func(from string) bool { return slices.Contains(r.From, from) })
			if other.Name == name || d == nil || d.kind == nil || d.remote() || shared < 0 {
				continue
			}
			doc.Warnf(doc.At("routes", other.Name, "to", fmt.Sprint(i)), "buffer: {disk: 1GiB}, or {when_full: drop_oldest}, on "+remote+"; or a source of its own for each",
				"route %s: while %s of route %s cannot be reached, source %s is held and nothing reaches %s either: no longer holds that destinations do not wait for each other",
				other.Name, remote, name, other.Value.From[shared], to)
			return
		}
	}
}

// warnPass tells of a filter that redacts, and lets by what it fails on.
func warnPass(doc *config.Document, e *config.Entry[wasmhost.Config]) {
	if e.Value.OnError == wasmhost.Pass {
		doc.Warnf(doc.At("filters", e.Name, "on_error"), "on_error: reject", "filter %s: what it fails on goes on as it came: no longer holds that everything stored is redacted", e.Name)
	}
}

// warnGuests is warn for what only the modules' manifests say.
func (s *settings) warnGuests(doc *config.Document, guests []*wasmhost.Guest) {
	for _, g := range guests {
		if r := g.Report(); redacts.MatchString(r.Name) || redacts.MatchString(r.Description) {
			if i := slices.Index(s.Filters.Names(), g.Name()); i >= 0 {
				warnPass(doc, &s.Filters[i])
			}
		}
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
			if remote == "" && d.Buffer.WhenFull == string(router.Block) && d.Buffer.Disk == 0 {
				remote = to
			}
		} else {
			local = to
		}
	}
	if remote == "" {
		return
	}
	if local == "" {
		s.warnShared(doc, name, r, remote)
	} else {
		doc.Warnf(doc.At("routes", name, "to"), "buffer: {disk: 1GiB}, or {when_full: drop_oldest}, on "+remote+"; or a source of its own for each",
			"route %s: while %s cannot be reached, nothing reaches %s either: no longer holds that destinations do not wait for each other", name, remote, local)
	}
	for _, from := range r.From {
		if l := datagrams[from]; l != "" {
			doc.Warnf(doc.At("routes", name, "from"), "buffer: {disk: 1GiB} on "+remote+", or a stream (tcp://, unix://) for what must not be lost",
				"route %s: while %s cannot be reached and memory is full, datagrams of %s are lost: no longer holds that senders wait and nothing is lost", name, remote, l)
		}
	}
}
