package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Update returns file, whose cases were read by ReadCases, with what came in place of what was expected, for those
// results that differ. Comments, order, and the way in which lines are written stay. skipped are the cases that a
// change of what is expected cannot mend: a module that does not start, or starts where it should not.
func Update(file []byte, results []Result) (updated []byte, skipped []Result, err error) {
	lines := bytes.SplitAfter(file, []byte("\n"))
	for _, r := range results {
		if len(r.Differences) == 0 {
			continue
		}
		if r.Got.Verdict == Refused != (r.Case.Verdict == Refused) || r.Host {
			skipped = append(skipped, r)
			continue
		}
		line := lines[r.Case.Line-1]
		object := bytes.TrimSpace(line)
		lead, trail, _ := bytes.Cut(line, object)
		if object, err = rewrite(object, &r); err != nil {
			return nil, nil, fmt.Errorf("%d: %w", r.Case.Line, err)
		}
		lines[r.Case.Line-1] = concat(lead, object, trail)
	}
	return bytes.Join(lines, nil), skipped, nil
}

// rewrite puts what came into a case's line, where the case says something about it or something came.
func rewrite(line []byte, r *Result) ([]byte, error) {
	type change struct {
		name  string
		value any
		when  bool
	}
	want, got := &r.Case, &r.Got
	differs := map[string]bool{}
	for _, d := range r.Differences {
		name, _, _ := bytes.Cut([]byte(d.Member), []byte("."))
		name, _, _ = bytes.Cut(name, []byte("["))
		differs[string(name)] = true
	}
	var out any = got.Out
	if !given(got.Out) {
		out = nil
	} else {
		out = asWritten(got.Out, want.In)
	}
	var emit []json.RawMessage
	for _, e := range got.Emit {
		emit = append(emit, asEmitted(e, want))
	}
	if emit == nil {
		emit = []json.RawMessage{}
	}
	for _, c := range []change{
		{"out", out, differs["out"]},
		{"verdict", got.Verdict, differs["verdict"]},
		{"fail", got.Fail, differs["fail"]},
		{"log", lines(got.Log), differs["log"]},
		{"emit", emit, differs["emit"]},
		{"to", lines(got.To), differs["to"]},
		{"metrics", got.Metrics, differs["metrics"]},
	} {
		if !c.when {
			continue
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(c.value); err != nil {
			return nil, err
		}
		var err error
		if line, err = splice(line, c.name, bytes.TrimSpace(b.Bytes())); err != nil {
			return nil, err
		}
	}
	return line, nil
}

// lines is a list that is [] rather than null.
func lines(list []string) []string { return append([]string{}, list...) }

// asWritten leaves out of a record what people leave out: what weir fills in where the message that came in, nil in a
// tick, says nothing about it.
func asWritten(record, in json.RawMessage) json.RawMessage {
	for name, filled := range map[string]string{"received_at": `"1970-01-01T00:00:00Z"`, "facility": "1", "severity": "5"} {
		if !has(in, name) && string(valueOf(record, name)) == filled {
			record = cut(record, name)
		}
	}
	return record
}

// asEmitted is asWritten for a message that the filter created.
func asEmitted(record json.RawMessage, c *Case) json.RawMessage {
	for _, name := range filledIn {
		if c.Tick {
			record = cut(record, name)
		}
	}
	return asWritten(record, c.In)
}
