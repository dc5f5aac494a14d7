package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/deadletter"
)

func newDLQCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "Look at the dead letters: messages that nobody would take",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newDLQListCommand(), newDLQShowCommand(), newDLQReplayCommand(), newDLQPurgeCommand())
	return cmd
}

func newDLQListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [NUMBER...]",
		Short: "List dead letters, the newest last",
	}
	place, which, format := addDLQPlace(cmd), addDLQSelection(cmd), addFormat(cmd, "auto")
	n := cmd.Flags().IntP("number", "n", 100, "how many at most, the newest; 0: all")
	cmd.RunE = func(c *cobra.Command, _ []string) error {
		if *n < 0 {
			return usagef("-n %d: want 0 or more", *n)
		}
		asJSON, err := format(c)
		if err != nil {
			return err
		}
		selected, err := which.selection(time.Now())
		if err != nil {
			return err
		}
		reader, err := place.look(c, selected)
		if err != nil || reader == nil {
			return err
		}
		defer reader.Close()
		letters, err := reader.List(selected, *n)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(c.OutOrStdout())
		if asJSON {
			for i := range letters {
				writeLetterJSON(out, &letters[i])
			}
		} else {
			writeLetterTable(out, letters)
		}
		return out.Flush()
	}
	return cmd
}

func newDLQShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NUMBER",
		Short: "Show all that is known of one dead letter",
		Args:  cobra.ExactArgs(1),
	}
	place, format := addDLQPlace(cmd), addFormat(cmd, "text")
	cmd.RunE = func(c *cobra.Command, args []string) error {
		n, err := letterNumber(args[0])
		if err != nil {
			return err
		}
		asJSON, err := format(c)
		if err != nil {
			return err
		}
		reader, err := place.reader(c)
		if err != nil {
			return err
		}
		if reader == nil {
			return fmt.Errorf("%w: %d", deadletter.ErrNone, n)
		}
		defer reader.Close()
		letter, err := reader.Show(n)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(c.OutOrStdout())
		if asJSON {
			writeLetterJSON(out, &letter)
		} else {
			writeLetter(out, &letter)
		}
		return out.Flush()
	}
	return cmd
}

// addFormat adds the flag that says how to show what there is; the function that it returns tells whether as JSON.
func addFormat(cmd *cobra.Command, standard string) func(c *cobra.Command) (asJSON bool, err error) {
	format := cmd.Flags().String("format", standard, "text, json, or auto (text on a terminal)")
	return func(c *cobra.Command) (bool, error) {
		switch *format {
		case "text", "json":
			return *format == "json", nil
		case "auto":
			return !isTerminal(c.OutOrStdout()), nil
		}
		return false, usagef("--format %s: want text, json or auto", *format)
	}
}

func writeLetterTable(w io.Writer, letters []deadletter.Letter) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NUMBER\tTIME\tBY\tCODE\tCOLUMN\tREASON\tMESSAGE")
	for _, l := range letters {
		var record struct{ Message string }
		json.Unmarshal(l.Record, &record) // ours: it is valid
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Number, l.Time.Format(time.RFC3339), printable(rejectedBy(&l)),
			printable(l.Code), printable(l.Column), brief(l.Reason), brief(record.Message))
	}
	t.Flush()
}

// rejectedBy names the destination, or the route and its filter.
func rejectedBy(l *deadletter.Letter) string {
	if l.Destination != "" {
		return l.Destination
	}
	return l.Route + "/" + l.Filter
}

// brief is the beginning of s, fit for a column of a table.
func brief(s string) string {
	const most = 60
	s, _, _ = strings.Cut(s, "\n")
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most-1]) + "…"
	}
	return printable(s)
}

func writeLetter(w io.Writer, l *deadletter.Letter) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-12s %s\n", name, printable(value))
		}
	}
	line("number", strconv.FormatInt(l.Number, 10))
	line("time", l.Time.Format(time.RFC3339Nano))
	line("destination", l.Destination)
	line("route", l.Route)
	line("filter", l.Filter)
	line("code", l.Code)
	line("column", l.Column)
	line("reason", l.Reason)
	line("record", string(l.Record))
	switch {
	case l.Raw == nil:
		fmt.Fprintf(w, "%-12s (not known: a filter made the message)\n", "raw")
	default:
		fmt.Fprintf(w, "%-12s %s\n", "raw", strconv.Quote(string(l.Raw)))
	}
}

// printable is s without what would move the cursor, hide text or end the line:
// such characters are shown as escapes, as in a Go string.
func printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(s[:n])
		} else {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// writeLetterJSON writes one object and a line end; raw is base64.
func writeLetterJSON(w io.Writer, l *deadletter.Letter) {
	object := struct {
		Number      int64           `json:"number"`
		Time        time.Time       `json:"time"`
		Destination string          `json:"destination,omitempty"`
		Route       string          `json:"route,omitempty"`
		Filter      string          `json:"filter,omitempty"`
		Code        string          `json:"code"`
		Column      string          `json:"column,omitempty"`
		Reason      string          `json:"reason"`
		Record      json.RawMessage `json:"record"`
		Raw         string          `json:"raw_b64,omitempty"`
	}{l.Number, l.Time, l.Destination, l.Route, l.Filter, l.Code, l.Column, l.Reason, l.Record, base64.StdEncoding.EncodeToString(l.Raw)}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	encoder.Encode(object)
	w.Write(appendSafe(nil, line.Bytes()))
}
