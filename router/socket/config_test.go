package socket

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/router/config"
)

func TestSettingsAreChecked(t *testing.T) {
	check := func(want string, edit func(*Config)) {
		t.Helper()
		var c Config
		c.Defaults()
		c.Listen = []string{"udp://127.0.0.1:5514"}
		edit(&c)
		var got []string
		for _, p := range c.Check() {
			got = append(got, p.Path+": "+p.What)
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("got  %s\nwant %s", s, want)
		}
	}
	listen := func(l ...string) func(*Config) { return func(c *Config) { c.Listen = l } }
	check("", func(*Config) {})
	check("", listen("unix:///run/s", "unix://@abstract", "unixgram:///dev/log", "tcp://[::1]:514", "udp://:514", "tcp://localhost:1", "udp://0.0.0.0:514"))
	check("listen: a source that listens on nothing", listen())
	check(`listen.0: "127.0.0.1:514" does not say how to listen`, listen("127.0.0.1:514"))
	check("listen.1: http:// is no way to listen", listen("udp://127.0.0.1:1", "http://127.0.0.1:1"))
	check("listen.0: tls:// is not in this version of weir", listen("tls://0.0.0.0:6514"))
	check("listen.0: an address without a port", listen("udp://127.0.0.1"))
	check("listen.0: a port without an address", listen("udp://5514"))
	check(`listen.0: "99999" is no port`, listen("udp://127.0.0.1:99999"))
	check("listen.0: an IPv6 address without brackets", listen("udp://::1:514"))
	check(`listen.0: "log.example.com" is no address`, listen("tcp://log.example.com:514"))
	check("listen.0: * is no address", listen("tcp://*:514"))
	check("listen.0: a socket without a path", listen("unix://"))
	check("listen.0: the path has 120 bytes, and a unix socket takes at most 107", listen("unix:///"+strings.Repeat("x", 119)))
	check("listen.1: udp://127.0.0.1:1 is there twice: it is listen.0 too", listen("udp://127.0.0.1:1", "udp://127.0.0.1:1"))
	check(`format: unknown word "syslog"`, func(c *Config) { c.Format = "syslog" })
	check("max_message: 16B is not between 256B and 16MiB", func(c *Config) { c.MaxMessage = 16 })
	check("timezone: there is no time zone Berlin", func(c *Config) { c.Timezone = "Berlin" })
	check(`mode: "888" is no mode of a file`, func(c *Config) { c.Mode = "888" })
	check("max_connections: 0 connections", func(c *Config) { c.MaxConnections = 0 })
	check("idle_timeout: 1ms is too short", func(c *Config) { c.IdleTimeout = time.Millisecond })
	check(`when_held.then: unknown word "block"`, func(c *Config) { c.WhenHeld = &WhenHeld{Then: "block"} })
	check("framing: framing has no effect: nothing here listens on unix:// or tcp://; "+
		"idle_timeout: idle_timeout has no effect: nothing here listens on unix:// or tcp://; "+
		"owner: owner has no effect: nothing here listens on unix:// or unixgram://",
		func(c *Config) { c.Framing, c.IdleTimeout, c.Owner = "lf", time.Minute, "root" })
	check("receive_buffer: receive_buffer has no effect: nothing here listens on udp://; "+
		"when_held: when_held has no effect: nothing here listens on udp:// or unixgram://",
		func(c *Config) {
			c.Listen, c.ReceiveBuffer, c.WhenHeld = []string{"tcp://127.0.0.1:1"}, config.Size(1<<20), &WhenHeld{Then: "drop"}
		})
	check("timezone: timezone has no effect with format: raw", func(c *Config) { c.Format, c.Timezone = "raw", "Europe/Berlin" })
}

func TestIPv6WildcardTakesIPv4UnlessThatIsListedToo(t *testing.T) {
	check := func(want string, all ...string) {
		t.Helper()
		var parsed []address
		for _, text := range all {
			a, _, err := parseAddress(text)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, a)
		}
		if got := parsed[0].net(parsed); got != want {
			t.Errorf("%v: %s", all, got)
		}
	}
	check("tcp", "tcp://[::]:514")
	check("tcp", "tcp://[::]:514", "udp://0.0.0.0:514", "tcp://0.0.0.0:515")
	check("tcp6", "tcp://[::]:514", "tcp://0.0.0.0:514")
	check("udp6", "udp://[::1]:514")
	check("udp4", "udp://0.0.0.0:514")
}
