package main

import (
	"fmt"
	"regexp"
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
	if local != "" {
		doc.Warnf(doc.At("routes", name, "to"), "buffer: {when_full: drop_oldest} on "+remote+", or a source of its own for each",
			"route %s: while %s cannot be reached, nothing reaches %s either: no longer holds that destinations do not wait for each other", name, remote, local)
	}
	for _, from := range r.From {
		if l := datagrams[from]; l != "" {
			doc.Warnf(doc.At("routes", name, "from"), "a stream (tcp://, unix://) for what must not be lost",
				"route %s: while %s cannot be reached and memory is full, datagrams of %s are lost: no longer holds that senders wait and nothing is lost", name, remote, l)
		}
	}
}
