package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/sqlstore"
	"github.com/weirlog/weir/router/syslog"
)

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

// newDestination is a destination of a kind before it is read.
func newDestination(k *kind) *destination {
	return &destination{kind: k, Kind: k.settings(), FlushLines: k.flushLines, FlushBytes: 4 << 20,
		FlushTimeout: time.Second, FlushSeverity: -1, Buffer: buffer{WhenFull: string(router.Block)}}
}

// severity is a word of RFC 5427 or syslog(3), or its number; off is -1.
type severity int

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
		v.Errorf(config.Suggest(word, severityWords()), "%q is no severity", word)
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
		v.Errorf("{sqlite: logs.db}, or another kind: "+kindKeys(), "a destination needs to say of what kind it is")
		return
	case len(found) == 0 && slices.Contains(v.Keys(), "<<"):
		v.Errorf("write the keys out, or give the whole value an anchor", "merge keys are not used here, and no other key says what kind of destination this is")
		return
	case len(found) == 0:
		hint := "one of " + kindKeys()
		for _, key := range v.Keys() {
			if near := config.Typo(key, d.Keys()); near != "" {
				hint = near + ": in place of " + key + ":"
			}
		}
		v.Errorf(hint, "no key says what kind of destination this is")
		return
	case len(found) > 1:
		v.Errorf("two destinations, each with its name", "two destinations in one: %s and %s", found[0].key, found[1].key)
		return
	}
	*d = *newDestination(found[0])
	v.Decode((*destinationKeys)(d))
}

// destinationKeys are a destination's keys, without what reads them.
type destinationKeys destination

// Keys are those by which its kind is known.
func (d *destination) Keys() (keys []string) {
	for _, k := range destinationKinds {
		keys = append(keys, k.key)
	}
	return keys
}

// KindsWith are those that have a setting.
func (d *destination) KindsWith(key string) (keys []string) {
	for _, k := range destinationKinds {
		if config.HasKey(k.settings(), key) {
			keys = append(keys, k.key)
		}
	}
	return keys
}

func (d *destination) Check() []config.Problem {
	var bad []config.Problem
	if c, ok := d.Kind.(*sqlstore.Config); ok && c.SQLite == "" && c.Postgres.Empty() {
		hint := map[string]string{"sqlite": "logs.db", "postgres": "postgres://user@host/database"}[d.kind.key]
		bad = append(bad, config.Problem{Path: d.kind.key, What: "nothing says where the database is", Hint: hint})
	} else if c, ok := d.Kind.(config.Checker); ok {
		bad = c.Check()
	}
	bad = append(bad, d.Buffer.check(d.connections(), d.FlushBytes)...)
	if c, ok := d.Kind.(*sqlstore.Config); ok && d.Buffer.Disk > 0 && c.ExplicitCommits != nil && !*c.ExplicitCommits {
		bad = append(bad, config.Problem{Path: "buffer.disk", What: "a disk buffer in front of a database without explicit commits would store rows twice after a crash", Hint: "leave explicit_commits out"})
	}
	if d.FlushLines < 1 || d.FlushLines > 1_000_000 {
		bad = append(bad, config.Problem{Path: "flush_lines", What: fmt.Sprintf("%d rows make no transaction", d.FlushLines), Hint: "1 to 1000000"})
	}
	if d.FlushBytes < 1 {
		bad = append(bad, config.Problem{Path: "flush_bytes", What: "a transaction of no bytes", Hint: "4MiB"})
	}
	if d.FlushTimeout < time.Millisecond || d.FlushTimeout > time.Hour {
		bad = append(bad, config.Problem{Path: "flush_timeout", What: fmt.Sprintf("%s between transactions", config.TimeText(d.FlushTimeout)), Hint: "1ms to 1h"})
	}
	return bad
}

// remote reports whether a destination's database is on another machine.
func (d *destination) remote() bool {
	c, ok := d.Kind.(*sqlstore.Config)
	return ok && c.Remote()
}
