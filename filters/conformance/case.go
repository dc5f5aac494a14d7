// Package conformance has the one format in which cases of filters are written, gives cases to a module through the real
// host, and holds the cases that weir's host, its SDKs and its example filters must pass. README.md has the format, for
// people who write filters.
package conformance

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A Case is one message that goes into a filter, and what must come out. It is a line of a cases.jsonl file.
type Case struct {
	Name string `json:"name"`
	// Config is the filter's configuration; absent is {}.
	Config json.RawMessage `json:"config,omitempty"`
	// Settings are further settings of the filter, as `filters:` of a configuration has them. Paths in it are relative to
	// the file of the cases.
	Settings json.RawMessage `json:"settings,omitempty"`
	// In is the message as record JSON. It is absent when the verdict is Refused, and with Tick.
	In json.RawMessage `json:"in,omitempty"`
	// Tick calls weir_tick instead of giving a message. There is no In, Out and Verdict then.
	Tick bool `json:"tick,omitempty"`
	// Out is the message afterwards, as record JSON: all of it, but that received_at may be left out where In leaves it
	// out. null when the message does not go on.
	Out json.RawMessage `json:"out"`
	// Verdict is one of the constants below.
	Verdict string `json:"verdict"`
	// Fail is the text that the filter gave to fail. Absent: not compared.
	Fail *string `json:"fail,omitempty"`
	// Log is what the filter logged, each line as "level: text". Absent: not compared.
	Log []string `json:"log,omitempty"`
	// Emit is what the filter created, in order, each as Out. Absent: nothing.
	Emit []json.RawMessage `json:"emit,omitempty"`
	// To is the destinations that the filter named, in order. Absent: none.
	To []string `json:"to,omitempty"`
	// Destinations is those that the route has. Absent: every name is one.
	Destinations []string `json:"destinations,omitempty"`
	// Metrics is the filter's own metrics after this case. Absent: not compared; neither is any that is not named.
	Metrics map[string]float64 `json:"metrics,omitempty"`

	Line int `json:"-"` // in the file, from 1
}

// What a case's verdict can be.
const (
	Keep    = "keep"
	Drop    = "drop"
	Skip    = "skip"
	Reject  = "reject"
	Failed  = "failed"  // any other verdict, a trap, a limit passed
	Refused = "refused" // the module does not start with this configuration
)

// SDK is the cases of every SDK's script guest: sdk.jsonl.
//
//go:embed sdk.jsonl
var SDK []byte

// GoesOn reports whether the message is there after the verdict.
func (c *Case) GoesOn() bool { return c.Verdict == Keep || c.Verdict == Skip }

// ReadCases reads cases, one JSON object a line; empty lines and lines that start with # or // are left out. Errors
// begin with the line's number.
func ReadCases(r io.Reader) ([]Case, error) {
	var all []Case
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("//")) {
			continue
		}
		c := Case{Line: n}
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		err := d.Decode(&c)
		if err == nil && d.More() {
			err = errors.New("more than one object")
		}
		if err == nil {
			err = c.check()
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", n, err)
		}
		all = append(all, c)
	}
	return all, lines.Err()
}

func (c *Case) check() error {
	in, out := given(c.In), given(c.Out)
	switch {
	case c.Name == "":
		return errors.New("no name")
	case c.Tick && (in || out || c.Verdict != "" || c.Fail != nil || len(c.To) > 0 || c.Destinations != nil):
		return errors.New("a tick has no message: in, out, verdict, fail, to and destinations are not for it")
	case c.Tick:
	case !slices.Contains([]string{Keep, Drop, Skip, Reject, Failed, Refused}, c.Verdict):
		return fmt.Errorf("verdict %q: keep, drop, skip, reject, failed or refused", c.Verdict)
	case c.Verdict == Refused && (in || out || len(c.Emit) > 0 || len(c.To) > 0):
		return errors.New("a filter that is refused has neither in nor out")
	case c.Verdict != Refused && !in:
		return errors.New("no message: in is missing")
	case c.GoesOn() != out:
		return fmt.Errorf("verdict %s, and out is %s", c.Verdict, map[bool]string{true: "there", false: "missing"}[out])
	}
	return nil
}

func given(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }
