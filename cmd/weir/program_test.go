package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
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

// ledgerOf reads the lines that weir prints at its end, by what they are of, as in "route=main", and checks that they balance.
func ledgerOf(t *testing.T, text string) map[string]map[string]int {
	t.Helper()
	all := map[string]map[string]int{}
	for _, line := range regexp.MustCompile(`(?m)^ledger ((route|destination)=\S+) (.*)$`).FindAllStringSubmatch(text, -1) {
		a := map[string]int{}
		for f := range strings.FieldsSeq(line[3]) {
			key, value, _ := strings.Cut(f, "=")
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(line[0])
			}
			a[key] = n
		}
		in, out := a["received"]+a["created"], a["dropped"]+a["rejected"]+a["lost"]+a["delivered"]
		if line[2] == "destination" {
			in, out = a["delivered"]+a["resumed"], a["stored"]+a["rejected"]+a["lost"]+a["kept"]
		}
		if in != out || a["in_flight"] != 0 {
			t.Errorf("the ledger of %s does not balance: %v", line[1], a)
		}
		all[line[1]] = a
	}
	return all
}
