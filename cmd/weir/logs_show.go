package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/sqlstore"
	"github.com/weirlog/weir/router/syslog"
)

// show gives what is found to out.
func (l *logs) show(ctx context.Context, c *cobra.Command, from *reading, q sqlstore.Look, out *bufio.Writer) error {
	to, err := l.writer(c, out)
	if err != nil {
		return err
	}
	tell := func(what string) { fmt.Fprintln(c.ErrOrStderr(), printable(what)) }
	reader, err := sqlstore.NewReader(from.cfg, from.stateDir)
	if err != nil {
		return usageError{err}
	}
	defer reader.Close()
	byLooks := from.settings == nil && l.table == "" // which table it is
	if l.follow {
		if byLooks && reader.Reopen(ctx) == nil {
			if err := reader.AnyTable(ctx); err != nil {
				return err
			}
		}
		return reader.Follow(ctx, q, tell, func(rows []*sqlstore.Row) error {
			for _, row := range rows {
				if err := to.row(row); err != nil {
					return err
				}
			}
			return out.Flush()
		})
	}
	if err := reader.Reopen(ctx); err != nil {
		return err
	}
	if byLooks {
		if err := reader.AnyTable(ctx); err != nil {
			return err
		}
	}
	view, err := reader.Look(ctx, q)
	if err != nil {
		return err
	}
	for _, what := range view.Slow() {
		tell(what)
	}
	if err := to.begin(view.Columns()); err != nil {
		return err
	}
	shown := 0
	err = view.Last(ctx, func(row *sqlstore.Row) error { shown++; return to.row(row) })
	switch bounded := !q.Since.IsZero() || !q.Until.IsZero(); {
	case err != nil:
	case shown == 0 && q.N != 0:
		tell("no messages")
	case shown == q.N && bounded && !c.Flags().Changed("lines") && isTerminal(c.ErrOrStderr()):
		out.Flush()
		tell(fmt.Sprintf("these are the newest %d; -n all shows all", shown))
	}
	return err
}

// A logWriter writes rows in one of the formats.
type logWriter interface {
	begin(columns []string) error
	row(*sqlstore.Row) error
}

func (l *logs) writer(c *cobra.Command, out io.Writer) (logWriter, error) {
	terminal := isTerminal(c.OutOrStdout())
	colors := false
	switch l.color {
	case "auto":
		colors = terminal && coloured()
	case "always", "never":
		colors = l.color == "always"
	default:
		return nil, usagef("--color %s: want auto, always or never", l.color)
	}
	switch l.format {
	case "text":
		zone := time.Local
		if l.utc {
			zone = time.UTC
		}
		return &textLogs{w: out, zone: zone, severity: terminal || colors, colors: colors}, nil
	case "json":
		return &jsonLogs{w: out}, nil
	case "csv":
		return &csvLogs{csvRows: csvRows{w: out, terminal: terminal}}, nil
	}
	return nil, usagef("--format %s: want text, json or csv", l.format)
}

// jsonLogs writes an object for each row, of the columns of its table.
type jsonLogs struct {
	w       io.Writer
	columns []string
	rows    *jsonRows
}

func (j *jsonLogs) begin([]string) error { return nil }

func (j *jsonLogs) row(r *sqlstore.Row) error {
	if columns := r.Columns(); j.rows == nil || !slices.Equal(columns, j.columns) {
		j.rows, j.columns = &jsonRows{w: j.w}, columns
		if err := j.rows.Columns(columns); err != nil {
			return err
		}
	}
	return j.rows.Row(r.Values)
}

// csvLogs writes one header; columns that it does not have are left out.
type csvLogs struct {
	csvRows
	columns []string
}

func (w *csvLogs) begin(columns []string) error {
	w.columns = columns
	return w.csvRows.Columns(columns)
}

func (w *csvLogs) row(r *sqlstore.Row) error {
	if w.columns == nil {
		if err := w.begin(r.Columns()); err != nil {
			return err
		}
	}
	return w.csvRows.Row(r.In(w.columns))
}

// textLogs writes a line for each row: when, which severity (if a person reads it), who, what.
type textLogs struct {
	w        io.Writer
	zone     *time.Location
	severity bool
	colors   bool
	line     []byte
}

func (t *textLogs) begin([]string) error { return nil }

func (t *textLogs) row(r *sqlstore.Row) error {
	b := t.line[:0]
	text := func(key router.Key) string { return printable(string(r.Get(key).Text)) }
	if at, ok := r.Time(); ok {
		b = at.In(t.zone).AppendFormat(b, "2006-01-02 15:04:05.000")
	} else if raw := text(router.KeyReceivedAt); raw != "" {
		b = append(b, raw...)
	} else {
		b = append(b, '-')
	}
	level, known := syslog.ParseSeverity(string(r.Get(router.KeySeverity).Text))
	color := plain
	if t.severity {
		word := text(router.KeySeverity)
		if known {
			word, color = syslog.SeverityName(level), hueOf(level)
		}
		b = append(b, ' ')
		b = append(b, color.in(fmt.Sprintf("%-7s", word), t.colors)...)
	}
	if host := text(router.KeyHostname); host != "" {
		b = append(append(b, ' '), host...)
	} else if peer := text(router.KeyPeer); peer != "" {
		b = append(append(b, ' '), peer...)
	}
	if who := whoSent(r); who != "" {
		b = append(append(append(b, ' '), who...), ':')
	}
	b = append(b, ' ')
	b = append(b, color.in(message(r), t.colors)...)
	t.line = append(b, '\n')
	_, err := t.w.Write(t.line)
	return err
}

// whoSent is app[proc], without the brackets where there is no proc.
func whoSent(r *sqlstore.Row) string {
	app, proc := printable(string(r.Get(router.KeyAppName).Text)), printable(string(r.Get(router.KeyProcID).Text))
	switch {
	case app == "":
		return printable(string(r.Tag().Text))
	case proc == "":
		return app
	}
	return app + "[" + proc + "]"
}

// message is the text of the message or, where no column holds it, all that there is.
func message(r *sqlstore.Row) string {
	if v := r.Get(router.KeyMessage); v.Kind != sqlstore.NullValue {
		return printable(string(v.Text))
	}
	var b []byte
	for i, v := range r.Values {
		if v.Kind != sqlstore.NullValue {
			b = append(b, ' ')
			b = append(append(b, printable(r.Columns()[i])...), '=')
			b = append(b, printable(strconv.Quote(string(shownBytes(v))))...)
		}
	}
	if len(b) == 0 {
		return ""
	}
	return string(b[1:])
}

// hueOf is how a severity is coloured.
func hueOf(severity uint8) hue {
	switch {
	case severity <= 3:
		return red
	case severity == 4:
		return yellow
	case severity == 5:
		return bold
	case severity == 7:
		return faint
	}
	return plain
}
