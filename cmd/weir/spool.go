package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/spool"
)

func newSpoolCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "spool",
		Short: "Look at the disk buffers: messages that wait for a destination",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newSpoolListCommand(), newSpoolVerifyCommand())
	return cmd
}

func newSpoolListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [DESTINATION]",
		Short: "List the disk buffers and the runs of weir that filled them",
		Args:  cobra.MaximumNArgs(1),
	}
	find := addSpoolFlags(cmd, "auto")
	cmd.RunE = func(c *cobra.Command, args []string) error {
		buffers, asJSON, err := find(c, args)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(c.OutOrStdout())
		rows := []spoolRow{}
		for _, b := range buffers {
			sum, err := spool.Look(b.path)
			if errors.Is(err, fs.ErrNotExist) { // the running weir has removed it
				continue
			}
			if err != nil {
				return err
			}
			rows = append(rows, newSpoolRow(b, &sum))
		}
		if asJSON {
			for _, r := range rows {
				line, err := json.Marshal(r)
				if err != nil {
					return err
				}
				out.Write(append(line, '\n'))
			}
		} else {
			writeSpoolTable(out, rows)
		}
		return out.Flush()
	}
	return cmd
}

func newSpoolVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [DESTINATION]",
		Short: "Read all of the disk buffers and tell what is damaged",
		Args:  cobra.MaximumNArgs(1),
	}
	find := addSpoolFlags(cmd, "text")
	cmd.RunE = func(c *cobra.Command, args []string) error {
		buffers, asJSON, err := find(c, args)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(c.OutOrStdout())
		defer out.Flush()
		bad := 0
		for _, b := range buffers {
			places := []spool.Damage{}
			check, err := spool.Verify(b.path, func(d spool.Damage) { places = append(places, d) })
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			bad += len(places)
			if asJSON {
				err = json.NewEncoder(out).Encode(map[string]any{"destination": b.destination, "connection": b.connection, "segments": check.Segments,
					"messages": check.Messages, "missing": check.Missing, "unfinished_bytes": check.Torn, "damaged": places})
				if err != nil {
					return err
				}
				continue
			}
			for _, d := range places {
				fmt.Fprintf(out, "%s: %d bytes from offset %d on: %s\n", filepath.Join(b.path, d.Segment), d.Size, d.Offset, d.What)
			}
			fmt.Fprintf(out, "%s connection %s: %d messages in %d segments, %d places damaged, %d messages missing", printable(b.destination), printable(b.connection),
				check.Messages, check.Segments, len(places), check.Missing)
			if check.Torn > 0 {
				fmt.Fprintf(out, ", %d bytes at the end unfinished (weir writes there, or was killed)", check.Torn)
			}
			fmt.Fprintln(out)
		}
		if bad > 0 {
			out.Flush()
			return fmt.Errorf("%d places are damaged; what is undamaged is delivered all the same", bad)
		}
		return nil
	}
	return cmd
}

// A spoolDir is one disk buffer: of a connection of a destination.
type spoolDir struct{ destination, connection, path string }

// addSpoolFlags adds the flags that say where the buffers are and how to show them. The function that
// it returns finds them, those of one destination when it is named.
func addSpoolFlags(cmd *cobra.Command, defaultFormat string) func(c *cobra.Command, args []string) (buffers []spoolDir, asJSON bool, err error) {
	state := addStateFlag(cmd)
	format := addFormat(cmd, defaultFormat)
	return func(c *cobra.Command, args []string) (buffers []spoolDir, asJSON bool, err error) {
		if asJSON, err = format(c); err != nil {
			return nil, false, err
		}
		if err := state.find(c); err != nil {
			return nil, false, err
		}
		dir := *state.dir
		if _, err := os.Stat(dir); err != nil {
			return nil, false, fmt.Errorf("look for disk buffers in the state directory: %w", err)
		}
		buffers = findSpools(dir, args)
		switch {
		case len(buffers) == 0 && len(args) > 0:
			return nil, false, fmt.Errorf("there is no disk buffer of a destination %s in %s", args[0], bufferDir(dir))
		case len(buffers) == 0:
			fmt.Fprintf(c.ErrOrStderr(), "no disk buffers in %s: no destination has buffer: {disk: …}, or weir never ran\n", dir)
		}
		return buffers, asJSON, nil
	}
}

func findSpools(stateDir string, only []string) (buffers []spoolDir) {
	paths, _ := filepath.Glob(filepath.Join(globQuoted(bufferDir(stateDir)), "*", "*.*")) // sorted
	for _, path := range paths {
		b := spoolDir{filepath.Base(filepath.Dir(path)), filepath.Base(path), path}
		if info, err := os.Stat(path); err == nil && info.IsDir() && (len(only) == 0 || only[0] == b.destination) {
			buffers = append(buffers, b)
		}
	}
	return buffers
}

// globQuoted is the pattern that matches path and nothing else.
func globQuoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// A spoolRow is what is shown of one disk buffer.
type spoolRow struct {
	Destination string     `json:"destination"`
	Connection  string     `json:"connection"`
	Messages    int        `json:"messages"`
	Bytes       int64      `json:"bytes"`
	Segments    int        `json:"segments"`
	Oldest      *time.Time `json:"oldest,omitempty"`
	Runs        []spoolRun `json:"runs"`
}

type spoolRun struct {
	Run          string `json:"run"`
	First        uint64 `json:"first"`
	Last         uint64 `json:"last"`
	Acknowledged uint64 `json:"acknowledged"`
	Segments     int    `json:"segments"`
	Bytes        int64  `json:"bytes"`
}

func newSpoolRow(b spoolDir, sum *spool.Summary) spoolRow {
	row := spoolRow{Destination: b.destination, Connection: b.connection, Messages: sum.Messages, Bytes: sum.Bytes, Segments: sum.Segments, Runs: []spoolRun{}}
	if !sum.Oldest.IsZero() {
		oldest := sum.Oldest.UTC()
		row.Oldest = &oldest
	}
	for _, r := range sum.Runs {
		name := r.Run.String()
		if r.Run == (router.RunID{}) {
			name = "damaged"
		}
		row.Runs = append(row.Runs, spoolRun{name, r.First, r.Last, r.Acknowledged, r.Segments, r.Bytes})
	}
	return row
}

// writeSpoolTable writes a line for each buffer and, below it, one for each run.
func writeSpoolTable(w io.Writer, rows []spoolRow) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DESTINATION\tCONNECTION\tMESSAGES\tBYTES\tOLDEST\tRUN\tFROM\tTO\tACKNOWLEDGED")
	for _, r := range rows {
		oldest := "-"
		if r.Oldest != nil {
			oldest = r.Oldest.Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t\t\t\t\n", printable(r.Destination), printable(r.Connection), r.Messages, r.Bytes, oldest)
		for _, run := range r.Runs {
			fmt.Fprintf(t, "\t\t\t%d\t\t%s\t%d\t%d\t%d\n", run.Bytes, run.Run, run.First, run.Last, run.Acknowledged)
		}
	}
	t.Flush()
}
