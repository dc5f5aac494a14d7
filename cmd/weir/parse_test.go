package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// parseLines runs weir parse and returns the records that it prints.
func parseLines(t *testing.T, in []byte, args ...string) []map[string]any {
	t.Helper()
	var out, errout bytes.Buffer
	if code := execute(append([]string{"parse"}, args...), bytes.NewReader(in), &out, &errout); code != 0 {
		t.Fatalf("exit %d: %s", code, &errout)
	}
	var records []map[string]any
	for line := range strings.Lines(out.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		records = append(records, r)
	}
	return records
}

// eachCase decodes the lines of a file of cases.
func eachCase[T any](t *testing.T, path string, f func(c T)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c T
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		f(c)
	}
}

func TestParseShowsEveryConformanceCase(t *testing.T) {
	type fields struct {
		ID      string
		Input   []byte `json:"input_b64"`
		Receive string `json:"receive_time"`
		Zone    string `json:"receive_tz"`
		Expect  map[string]any
	}
	eachCase(t, "../../router/syslog/testdata/syslog.jsonl", func(c fields) {
		got := parseLines(t, c.Input, "--framing", "none", "--received-at", c.Receive, "--timezone", c.Zone)
		if c.Expect == nil {
			if len(got) > 0 {
				t.Errorf("%s: got %v", c.ID, got)
			}
			return
		}
		want := map[string]any{"received_at": c.Receive}
		for key, v := range c.Expect {
			sd, isObject := v.(map[string]any)
			if v != nil && key != "timestamp_rule" && (!isObject || len(sd) > 0) {
				want[key] = v
			}
		}
		if len(got) != 1 {
			t.Errorf("%s: %d records", c.ID, len(got))
			return
		}
		if b64, ok := want["message_b64"].(string); ok { // the text is shown beside
			raw, _ := base64.StdEncoding.DecodeString(b64)
			shown := ""
			for _, r := range string(raw) {
				shown += string(r)
			}
			want["message"] = shown
		}
		if ts, ok := want["timestamp"].(string); ok {
			at, err := time.Parse(time.RFC3339Nano, ts)
			if err != nil {
				t.Fatal(err)
			}
			want["timestamp"] = at.UTC().Format(time.RFC3339Nano)
		}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("%s: %s", c.ID, diff)
		}
	})
}

func TestParseCutsEveryConformanceStream(t *testing.T) {
	type stream struct {
		ID     string
		Input  []byte `json:"input_b64"`
		Max    int    `json:"max_message_bytes"`
		Expect [][]byte
	}
	eachCase(t, "../../router/socket/testdata/framing.jsonl", func(c stream) {
		var want []string
		for _, f := range c.Expect {
			if f = bytes.TrimRight(f, "\r\n\x00"); len(bytes.Trim(f, " \t\r\n\x00")) > 0 {
				want = append(want, base64.StdEncoding.EncodeToString(f))
			}
		}
		var got []string
		for _, r := range parseLines(t, c.Input, "--format", "raw", "--max-message", fmt.Sprint(c.Max)) {
			if b64, ok := r["message_b64"].(string); ok {
				got = append(got, b64)
				continue
			}
			got = append(got, base64.StdEncoding.EncodeToString([]byte(r["message"].(string))))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.ID, diff)
		}
	})
}
