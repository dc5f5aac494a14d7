// Package admin is weir's HTTP server for those who look after it: metrics,
// health, readiness.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// DefaultListen is where the server listens when the configuration names no address.
const DefaultListen = "127.0.0.1:9600"

// Config is the `admin:` section.
type Config struct {
	// Listen is host:port or unix:///path. Without a host it is the loopback
	// address; empty is DefaultListen.
	Listen string `yaml:"listen"`
}

// Check implements config.Checker.
func (c Config) Check() []config.Problem {
	if _, _, err := c.address(); err != nil {
		return []config.Problem{{Path: "listen", What: err.Error(), Hint: c.hint()}}
	}
	return nil
}

// hint is the way out for an address that is none.
func (c Config) hint() string {
	text := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(c.Listen, "/"), "http://"), "tcp://")
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		text = "127.0.0.1:" + text
	} else if net.ParseIP(text) != nil {
		text = net.JoinHostPort(text, "9600")
	}
	if fixed := (Config{Listen: text}); text != c.Listen {
		if _, _, err := fixed.address(); err == nil {
			return text
		}
	}
	return "127.0.0.1:9600 or unix:///run/weir/admin.sock"
}

// address returns what net.Listen wants to know.
func (c Config) address() (network, address string, err error) {
	if c.Listen == "" {
		return "tcp", DefaultListen, nil
	}
	if path, ok := strings.CutPrefix(c.Listen, "unix://"); ok {
		if path == "" {
			return "", "", errors.New("the path of the socket is missing")
		}
		return "unix", path, nil
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(c.Listen, "tcp://"))
	if err != nil || strings.Contains(host, "/") {
		return "", "", fmt.Errorf("%q is not host:port", c.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", fmt.Errorf("%q is no port", port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return "tcp", net.JoinHostPort(host, port), nil
}

// A Server answers on one address. It needs no authentication: it shows
// numbers and reasons, never messages, and changes nothing but to read again
// what the configuration names.
type Server struct {
	listener net.Listener
	http     *http.Server
	reporter *reporter
	log      *slog.Logger
}

// A Subject is what a Server shows. All of it is used by many goroutines at once.
type Subject struct {
	Gatherer prometheus.Gatherer
	// Parts is the state of every part of the router, for /readyz.
	Parts func() []router.Part
	// Plan is what the configuration says, for /status: names in their order, addresses, files. The rest is filled in from
	// Gatherer and Parts, which must not wait for any part of the router.
	Plan Status
	// Stopping reports whether the router stops, and how long that may still take, for /status. nil: it never does.
	Stopping func() (left time.Duration, is bool)
	// Reload reads the modules again, for /reload.
	Reload func(context.Context) []Reloaded
}

// Reloaded is what became of one filter's reload.
type Reloaded struct {
	Filter  string `json:"filter"`
	Changed bool   `json:"changed"`
	Error   string `json:"error,omitempty"`
	// Loaded is when the module that is at work was.
	Loaded time.Time `json:"loaded"`
}

// Listen takes the address. What connects before Run waits.
func Listen(cfg Config, subject Subject, log *slog.Logger) (*Server, error) {
	network, address, err := cfg.address()
	if err != nil {
		return nil, fmt.Errorf("admin: listen: %w", err)
	}
	l, err := listen(network, address)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // whoever asks knows the address
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	if err != nil {
		return nil, err
	}
	return newServer(l, subject, log), nil
}

// newServer answers on a listener, which is its own from then on.
func newServer(l net.Listener, subject Subject, log *slog.Logger) *Server {
	r := &reporter{subject: subject, history: newHistory(time.Now())}
	return &Server{
		listener: limit(l, mostConnections),
		reporter: r,
		log:      log,
		http: &http.Server{
			Handler:           handler(r, log),
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      answerTime,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what clients did wrong
		},
	}
}

// listen is net.Listen, but takes the place of a unix socket that nobody
// listens on any more. Only ECONNREFUSED says so for certain.
func listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if network != "unix" {
		return l, err
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		c, dialErr := net.DialTimeout(network, address, time.Second)
		if dialErr == nil {
			c.Close()
		}
		if !errors.Is(dialErr, syscall.ECONNREFUSED) {
			return nil, err
		}
		if err := os.Remove(address); err != nil {
			return nil, fmt.Errorf("remove a dead socket: %w", err)
		}
		l, err = net.Listen(network, address)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(address, 0o660); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Dial connects to a server of this configuration, for commands.
func (c Config) Dial(ctx context.Context) (net.Conn, error) {
	network, address, err := c.address()
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Address is where a server of this configuration listens, for people.
func (c Config) Address() string {
	network, address, err := c.address()
	switch {
	case err != nil:
		return c.Listen
	case network == "unix":
		return "unix://" + address
	}
	return address
}

// Addr is the address that was taken: with port 0 in the configuration, the
// port that the system chose.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run answers until ctx ends, then finishes the answers under way, for at most
// a second, and returns nil. Any other return is a failure.
func (s *Server) Run(ctx context.Context) error {
	var helpers sync.WaitGroup
	defer helpers.Wait()
	watched, unwatch := context.WithCancel(ctx)
	defer unwatch()
	helpers.Go(func() { s.reporter.watch(watched) })
	finished := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(finished)
		last, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.http.Shutdown(last) != nil {
			s.http.Close()
		}
	})
	err := s.http.Serve(s.listener)
	if !stop() { // ctx has ended
		<-finished
		return nil
	}
	if errors.Is(err, http.ErrServerClosed) { // by Close
		return nil
	}
	return fmt.Errorf("admin: serve: %w", err)
}

// Close gives the address back and cuts what is still connected.
func (s *Server) Close() error {
	err := s.http.Close()
	if closeErr := s.listener.Close(); !errors.Is(closeErr, net.ErrClosed) { // Run was never called
		err = errors.Join(err, closeErr)
	}
	return err
}
