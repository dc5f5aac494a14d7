package admin

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A piped listener has connections inside of the process, so that time may be that of a test.
type piped chan net.Conn

func (p piped) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p piped) Close() error   { close(p); return nil }
func (p piped) Addr() net.Addr { return &net.UnixAddr{Name: "piped", Net: "unix"} }

func (p piped) dial() net.Conn {
	here, there := net.Pipe()
	p <- there
	return here
}

// serveIn is a server on a piped listener; end stops it.
func serveIn(t *testing.T, subject Subject) (l piped, end func()) {
	l = make(piped, 2*mostConnections)
	s := newServer(l, subject, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return l, func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func request(t *testing.T, c net.Conn, method, path string) {
	t.Helper()
	if _, err := io.WriteString(c, method+" "+path+" HTTP/1.1\r\nHost: weir\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

func TestWhoDoesNotReadTheAnswerIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, end := serveIn(t, Subject{Gatherer: prometheus.NewRegistry(), Parts: noParts})
		defer end()
		c := l.dial()
		defer c.Close()
		request(t, c, "GET", "/status")
		time.Sleep(answerTime + time.Second)
		synctest.Wait()
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("the connection is open: %v", err)
		}
		if _, err := c.Write([]byte("x")); err == nil {
			t.Error("the connection is open")
		}
	})
}

func TestAReloadMayTakeLongerThanOtherAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, end := serveIn(t, Subject{Gatherer: prometheus.NewRegistry(), Parts: noParts, Reload: func(ctx context.Context) []Reloaded {
			time.Sleep(reloadTime - time.Second)
			if ctx.Err() != nil {
				t.Error("the reload is broken off")
			}
			return []Reloaded{{Filter: "slow"}}
		}})
		defer end()
		c := l.dial()
		defer c.Close()
		request(t, c, "POST", "/reload")
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(text), "slow") {
			t.Errorf("%s %v", text, err)
		}
	})
}

func TestConnectionsBeyondTheLimitWaitForOthersToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, end := serveIn(t, Subject{Gatherer: prometheus.NewRegistry(), Parts: noParts})
		defer end()
		answered := make(chan net.Conn, 2*mostConnections)
		ask := func() {
			c := l.dial()
			go func() {
				io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: weir\r\n\r\n")
				if r, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
					io.ReadAll(r.Body)
					answered <- c
				}
			}()
		}
		for range mostConnections + 3 {
			ask()
		}
		synctest.Wait()
		if n := len(answered); n != mostConnections {
			t.Errorf("%d are answered at once, want %d", n, mostConnections)
		}
		first := <-answered
		first.Close()
		synctest.Wait()
		if n := len(answered); n != mostConnections {
			t.Errorf("%d are answered with one more, want %d", n+1, mostConnections+1)
		}
		for len(answered) > 0 {
			(<-answered).Close()
			synctest.Wait()
		}
	})
}
