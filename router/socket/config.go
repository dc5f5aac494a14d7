package socket

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a gateway may have none

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/syslog"
)

// Config is what a source listens on and how it reads what comes.
type Config struct {
	Listen         []string      `yaml:"listen,required"` // unix://, unixgram://, udp://, tcp:// and an address
	Format         string        `yaml:"format"`          // auto, rfc5424, rfc3164, json, raw
	Framing        string        `yaml:"framing"`         // of streams: auto, octet, lf
	MaxMessage     config.Size   `yaml:"max_message"`     // longer ones are cut
	Timezone       string        `yaml:"timezone"`        // of timestamps that carry no zone; IANA name
	MaxConnections int           `yaml:"max_connections"` // of all stream listeners together
	IdleTimeout    time.Duration `yaml:"idle_timeout,off"`
	Hostname       string        `yaml:"hostname"`       // sent, peer, sent_or_peer
	ReceiveBuffer  config.Size   `yaml:"receive_buffer"` // of UDP sockets, in the kernel; 0: the system's
	Mode           string        `yaml:"mode"`           // of unix sockets, octal
	Owner          string        `yaml:"owner"`          // of unix sockets, name or number; empty: ours
	Group          string        `yaml:"group"`
	WhenHeld       *WhenHeld     `yaml:"when_held"` // of datagrams; nil: drop after 1s on unixgram, wait on udp
}

// WhenHeld says what becomes of datagrams while the router takes no more.
type WhenHeld struct {
	After time.Duration `yaml:"after"` // how long the sender may be held
	Then  string        `yaml:"then"`  // drop: throw away and count; wait: hold on
}

const (
	defaultMaxConnections = 1000
	leastMessage          = 256
	mostMessage           = 16 << 20
)

// Defaults sets what the file leaves out.
func (c *Config) Defaults() {
	*c = Config{Format: "auto", Framing: "auto", MaxMessage: 64 << 10, Timezone: "UTC", MaxConnections: defaultMaxConnections,
		Hostname: "sent_or_peer", Mode: "0666"}
}

// Defaults sets what the file leaves out.
func (w *WhenHeld) Defaults() { *w = WhenHeld{After: time.Second, Then: "drop"} }

// Complete puts in what holds where the file says nothing, so that it can be
// shown. Of listeners for which different things hold it shows neither.
func (c *Config) Complete() {
	unix, udp := false, false
	for _, l := range c.Listen {
		unix = unix || strings.HasPrefix(l, "unixgram://")
		udp = udp || strings.HasPrefix(l, "udp://")
	}
	if c.WhenHeld == nil && unix != udp {
		c.WhenHeld = new(WhenHeld)
		c.WhenHeld.Defaults()
		if udp {
			c.WhenHeld.Then = "wait"
		}
	}
}

// OtherNames are what other programs call the keys.
func (*Config) OtherNames() map[string]string {
	const scheme = "remove it: listen: [udp://0.0.0.0:514] says it"
	return map[string]string{"address": "listen", "addr": "listen", "bind": "listen", "port": "listen", "host": "listen", "ip": "listen", "url": "listen", "path": "listen: [unix:///run/weir.sock]",
		"type": scheme, "protocol": scheme, "transport": scheme, "network": scheme, "parser": "format", "codec": "format", "max_length": "max_message", "max_size": "max_message", "tz": "timezone", "time_zone": "timezone"}
}

// Check tells what is wrong with the settings, as far as that shows without
// opening a socket.
func (c *Config) Check() []config.Problem {
	bad := slices.Concat(
		config.OneOf("format", c.Format, "auto", "rfc5424", "rfc3164", "json", "raw"),
		config.OneOf("framing", c.Framing, "auto", "octet", "lf"),
		config.OneOf("hostname", c.Hostname, "sent", "peer", "sent_or_peer"),
	)
	problem := func(path, hint, format string, args ...any) {
		bad = append(bad, config.Problem{Path: path, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	has := map[string]bool{}
	for i, l := range c.Listen {
		path := "listen." + strconv.Itoa(i)
		a, hint, err := parseAddress(l)
		if err != nil {
			problem(path, hint, "%v", err)
			continue
		}
		for k, other := range c.Listen[:i] {
			if b, _, err := parseAddress(other); err == nil && a.network == b.network && a.at == b.at && a.path == b.path && (a.path != "" || a.at.Port() != 0) {
				problem(path, "once", "%s is there twice: it is listen.%d too", l, k)
				break
			}
		}
		has[a.network] = true
	}
	if len(c.Listen) == 0 {
		problem("listen", "[udp://127.0.0.1:5514]", "a source that listens on nothing")
	}
	if c.MaxMessage < leastMessage || c.MaxMessage > mostMessage {
		problem("max_message", "64KiB", "%v is not between %v and %v", c.MaxMessage, config.Size(leastMessage), config.Size(mostMessage))
	}
	if c.MaxConnections < 1 {
		problem("max_connections", strconv.Itoa(defaultMaxConnections), "%d connections", c.MaxConnections)
	}
	if c.IdleTimeout < 0 || c.IdleTimeout > 0 && c.IdleTimeout < time.Second {
		problem("idle_timeout", "1s or more, or off", "%s is too short", config.TimeText(c.IdleTimeout))
	}
	if c.ReceiveBuffer < 0 || c.ReceiveBuffer > 1<<30 {
		problem("receive_buffer", "4MiB", "%v is more than a buffer in the kernel can be", c.ReceiveBuffer)
	}
	if _, err := time.LoadLocation(c.Timezone); err != nil || c.Timezone == "Local" {
		problem("timezone", zoneHint(c.Timezone), "there is no time zone %s", c.Timezone)
	}
	if mode, err := strconv.ParseUint(c.Mode, 8, 32); err != nil || mode > 0o777 {
		problem("mode", "octal, such as 0660", "%q is no mode of a file", c.Mode)
	}
	if w := c.WhenHeld; w != nil {
		bad = append(bad, config.OneOf("when_held.then", w.Then, "drop", "wait")...)
		if w.After < 0 || w.After > time.Hour {
			problem("when_held.after", "1s", "%s is not between 0s and 1h", config.TimeText(w.After))
		}
	}
	if len(bad) > 0 {
		return bad
	}

	stream, unix := has["unix"] || has["tcp"], has["unix"] || has["unixgram"]
	idle := func(path string, set bool, needs string) {
		if set {
			problem(path, "leave it out", "%s has no effect: nothing here listens on %s", path, needs)
		}
	}
	idle("framing", c.Framing != "auto" && !stream, "unix:// or tcp://")
	idle("max_connections", c.MaxConnections != defaultMaxConnections && !stream, "unix:// or tcp://")
	idle("idle_timeout", c.IdleTimeout != 0 && !stream, "unix:// or tcp://")
	idle("receive_buffer", c.ReceiveBuffer != 0 && !has["udp"], "udp://")
	idle("mode", c.Mode != "0666" && !unix, "unix:// or unixgram://")
	idle("owner", c.Owner != "" && !unix, "unix:// or unixgram://")
	idle("group", c.Group != "" && !unix, "unix:// or unixgram://")
	idle("when_held", c.WhenHeld != nil && !has["udp"] && !has["unixgram"], "udp:// or unixgram://")
	if c.Timezone != "UTC" && (c.Format == "json" || c.Format == "raw") {
		problem("timezone", "leave it out", "timezone has no effect with format: %s", c.Format)
	}
	return bad
}

var offset = regexp.MustCompile(`^(?:UTC|GMT)?([+-])0?(\d{1,2})(?::?00)?$`)

// zoneHint is what somebody meant who wrote that for a time zone.
func zoneHint(zone string) string {
	if at := offset.FindStringSubmatch(zone); at != nil { // POSIX counts them the other way round
		return "Etc/GMT" + strings.NewReplacer("+", "-", "-", "+").Replace(at[1]) + at[2] + " (west of Greenwich is +), or a name such as Europe/Berlin"
	}
	words := strings.Split(strings.ReplaceAll(strings.ToLower(zone), " ", "_"), "/")
	for i, w := range words {
		parts := strings.Split(w, "_")
		for k, p := range parts {
			if p != "" {
				parts[k] = strings.ToUpper(p[:1]) + p[1:]
			}
		}
		words[i] = strings.Join(parts, "_")
	}
	if name := strings.Join(words, "/"); name != zone && len(words) > 1 {
		if _, err := time.LoadLocation(name); err == nil {
			return name
		}
	}
	return "a name such as Europe/Berlin, as in /usr/share/zoneinfo, or UTC"
}

func (c *Config) framing() Framing {
	switch c.Framing {
	case "octet":
		return FramingOctet
	case "lf":
		return FramingLF
	}
	return FramingAuto
}

func (c *Config) format() syslog.Format {
	switch c.Format {
	case "rfc5424":
		return syslog.RFC5424
	case "rfc3164":
		return syslog.RFC3164
	case "json":
		return syslog.PRIOnly
	case "raw":
		return syslog.Raw
	}
	return syslog.Auto
}
