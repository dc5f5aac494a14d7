package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// within waits until something is so, and for no longer than most; then why tells what is wrong.
func within(t *testing.T, most time.Duration, so func() bool, why func() string) {
	t.Helper()
	for began := time.Now(); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > most {
			t.Fatal(why())
		}
	}
}

// askAdmin asks the weir that runs in dir, at its socket admin.sock.
func askAdmin(t *testing.T, dir, path string) string {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "admin.sock"))
	}}}
	r, err := client.Get("http://weir" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// metricOf is the sum of a metric's values whose labels contain all of these, and how many there are.
func metricOf(t *testing.T, text, name string, labels ...string) (sum float64, n int) {
	t.Helper()
next:
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if own, _, _ := strings.Cut(series, "{"); own != name {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(series, l) {
				continue next
			}
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(line)
		}
		sum += v
		n++
	}
	return sum, n
}
