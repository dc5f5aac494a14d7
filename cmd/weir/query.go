package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/sqlstore"
)

func newQueryCommand() *cobra.Command {
	q := &query{}
	cmd := &cobra.Command{
		Use:   "query [DEST|FILE.db] [SQL|-]",
		Short: "Ask a database that weir writes, in SQL, and change nothing",
		Long: `Ask a database that weir writes, in SQL, and change nothing.

DEST is a destination of the configuration that is sqlite or postgres; without
it, the first one. SQL is one statement that returns rows; - reads it from
standard input. Without SQL the tables and their columns are listed.`,
		Example: `  weir query 'SELECT app_name, count(*) FROM logs GROUP BY 1 ORDER BY 2 DESC'
  weir query central 'SELECT * FROM logs WHERE severity <= 3' --format csv > errors.csv
  weir query archive --backup copy.db`,
		Args: cobra.MaximumNArgs(2),
	}
	q.place = addReadingFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&q.format, "format", "auto", "table, list (a line for each value), json (an object a line), csv, or auto: table on a terminal, else json")
	f.IntVar(&q.limit, "limit", 1000, "how many rows at most; 0: all. Without this flag json and csv show all")
	f.DurationVar(&q.timeout, "timeout", 30*time.Second, "how long the query may take; 0: as long as it likes, while the database keeps what it needs for it")
	f.StringVar(&q.file, "file", "", "read the SQL from this `file`")
	f.BoolVar(&q.wide, "wide", false, "cut nothing to the width of the terminal")
	q.copying.add(cmd)
	cmd.RunE = q.run
	return cmd
}

// query is what was typed.
type query struct {
	place   readingFlags
	format  string
	limit   int
	timeout time.Duration
	file    string
	wide    bool
	copying copying
}

func (q *query) run(c *cobra.Command, args []string) error {
	dest, sql, err := q.split(c, args)
	if err != nil {
		return err
	}
	if err := q.check(c, sql); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends it at once
	from, err := q.place.find(c, dest)
	if err != nil {
		return err
	}
	limited, done := ctx, context.CancelFunc(func() {})
	if q.timeout > 0 && (q.copying.to == "" || c.Flags().Changed("timeout")) {
		limited, done = context.WithTimeoutCause(ctx, q.timeout, fmt.Errorf("it took longer than %v (--timeout)", q.timeout))
	}
	defer done()
	if q.copying.to != "" {
		return q.copying.run(limited, c, from)
	}
	return q.ask(limited, ctx, c, from, sql)
}

// split tells the database from the statement. One argument is a statement when it is
// more than a word, which no name of a destination is, and no file that is there.
func (q *query) split(c *cobra.Command, args []string) (dest, sql string, err error) {
	given := false
	switch {
	case len(args) == 2:
		dest, sql, given = args[0], args[1], true
	case len(args) == 1 && (args[0] == "-" || strings.ContainsAny(args[0], " \t\n") && !isThere(args[0])):
		sql, given = args[0], true
	case len(args) == 1:
		dest = args[0]
	}
	switch {
	case given && q.file != "":
		return "", "", usagef("the SQL is given twice, as an argument and with --file")
	case sql == "-":
		sql, err = readSQL("standard input", c.InOrStdin())
	case q.file != "":
		f, err := os.Open(q.file)
		if err != nil {
			return "", "", usageError{fmt.Errorf("--file: %w", err)}
		}
		defer f.Close()
		sql, err = readSQL(q.file, f)
		return dest, sql, err
	case given && strings.TrimSpace(sql) == "":
		return "", "", usagef("the SQL is empty; without one the tables are listed")
	}
	return dest, sql, err
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// longestSQL is more than anybody writes.
const longestSQL = 16 << 20

func readSQL(name string, from io.Reader) (string, error) {
	sql, err := io.ReadAll(io.LimitReader(from, longestSQL+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the SQL from %s: %w", name, err)
	case len(sql) > longestSQL:
		return "", usagef("%s: more than 16 MiB are no statement", name)
	case strings.TrimSpace(string(sql)) == "":
		return "", usagef("%s: no SQL in it", name)
	}
	return string(sql), nil
}

// check tells flags that cannot be.
func (q *query) check(c *cobra.Command, sql string) error {
	switch q.format {
	case "auto", "table", "list", "json", "csv":
	default:
		return usagef("--format %s: want table, list, json, csv or auto", q.format)
	}
	if q.limit < 0 {
		return usagef("--limit %d: want 0 or more", q.limit)
	}
	if q.timeout < 0 {
		return usagef("--timeout %v: want 0 or more", q.timeout)
	}
	return q.copying.refuse(c, sql)
}

// ask runs the statement, or the listing, and shows what comes. ctx ends with the time that it may take, whole with a signal alone.
func (q *query) ask(ctx, whole context.Context, c *cobra.Command, from *reading, sql string) error {
	reader, err := from.open(ctx)
	if err != nil {
		return stopped(ctx, err)
	}
	defer reader.Close()
	out := newQueue(ctx, c.OutOrStdout())
	rows := q.rows(c, out)
	if sql == "" {
		err = reader.Tables(ctx, rows)
	} else {
		err = reader.Query(ctx, sql, rows)
	}
	reader.Close()                    // no transaction waits for whoever reads what comes out
	if err == nil || rows.shown > 0 { // what came before an error is shown
		if e := rows.End(); err == nil {
			err = e
		}
	}
	if e := out.close(whole); err == nil {
		err = e
	}
	switch {
	case err != nil:
		return tellQuery(c, sql, stopped(ctx, err))
	case rows.more:
		fmt.Fprintf(c.ErrOrStderr(), "%d rows shown, there are more: --limit 0 shows all\n", rows.shown)
	case rows.shown == 0 && isTerminal(c.OutOrStdout()):
		fmt.Fprintln(c.ErrOrStderr(), "no rows")
	}
	return nil
}

// stopped is err, or why ctx has ended if that is behind it.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Cause(ctx))) {
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return err
}

// rows is how the result is shown.
func (q *query) rows(c *cobra.Command, out io.Writer) *limited {
	terminal := isTerminal(c.OutOrStdout())
	format, most := q.format, q.limit
	if format == "auto" {
		format = "json"
		if terminal {
			format = "table"
		}
	}
	if (format == "json" || format == "csv") && !c.Flags().Changed("limit") {
		most = 0 // a program reads it, and would not notice that something is missing
	}
	switch format {
	case "json":
		return &limited{rowWriter: &jsonRows{w: out}, most: most}
	case "csv":
		return &limited{rowWriter: &csvRows{w: out, terminal: terminal}, most: most}
	}
	t := &tableRows{w: out, list: format == "list"}
	if terminal && !q.wide {
		t.fit, _ = terminalSize(c.OutOrStdout())
	}
	return &limited{rowWriter: t, most: most}
}

// tellQuery shows what a database has against a statement, with the place.
func tellQuery(c *cobra.Command, sql string, err error) error {
	e, ok := errors.AsType[*sqlstore.QueryError](err)
	if !ok {
		return err
	}
	w := c.ErrOrStderr()
	fmt.Fprintf(w, "weir: %s\n", printable(e.Error()))
	if e.Offset >= 0 && e.Offset <= len(sql) {
		writePlace(w, sql, e.Offset)
	}
	if e.Detail != "" {
		fmt.Fprintf(w, "  %s\n", printable(e.Detail))
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "  try: %s\n", printable(e.Hint))
	}
	return errSaid
}

// writePlace writes the line and a caret under the byte.
func writePlace(w io.Writer, sql string, at int) {
	before, after := sql[:at], sql[at:]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after, _, _ = strings.Cut(after, "\n")
	before, after = printable(strings.ReplaceAll(before, "\t", " ")), printable(strings.ReplaceAll(strings.TrimRight(after, "\r"), "\t", " "))
	const most = 60
	if n := cells(before); n > most { // keep the place in sight
		runes := []rune(before)
		before = "…" + string(runes[max(0, len(runes)-most/2):])
	}
	fmt.Fprintf(w, "    %s%s\n    %s^\n", before, cut(after, 2*most), strings.Repeat(" ", cells(before)))
}
