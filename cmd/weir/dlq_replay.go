package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/deadletter"
)

func newDLQReplayCommand() *cobra.Command {
	var through filterSettings
	cmd := &cobra.Command{
		Use:   "replay [NUMBER...]",
		Short: "Send dead letters again, and remove those that are stored",
		Long: `Replay sends the letters with these numbers, or those that the flags select, or all of them, to the destination that
rejected them. Letters of a filter go on behind it: through the rest of their route's filters, to the destinations of
that route. It opens the destinations of the configuration itself, and may be used while weir runs.

What is stored leaves the dead letters; what is refused again stays, with the new code and reason. A replay
that was killed is resolved by the next one: databases get nothing twice.

The exit code is 0 when no letter is left of those that were meant, else 1.`,
		Example: `  weir dlq replay --destination central --since 2h
  weir dlq replay --code 22 --through fix.wasm --dry-run
  weir dlq replay 17 18 --to quarantine`,
	}
	place, which := addDLQPlace(cmd), addDLQSelection(cmd)
	var r dlqReplay
	n := cmd.Flags().IntP("number", "n", 0, "how many at most, the oldest; 0: all")
	cmd.Flags().StringVar(&r.to, "to", "", "send them to this `destination` of the configuration instead")
	cmd.Flags().StringVar(&r.through, "through", "", "give them to this `filter` first: one of the configuration by its name, a .wasm file, stock:NAME, or the folder of a filter")
	cmd.Flags().BoolVar(&r.dry, "dry-run", false, "run the filters and tell what would be sent; change nothing")
	through.flags(cmd)
	cmd.RunE = func(c *cobra.Command, _ []string) error {
		if *n < 0 {
			return usagef("-n %d: want 0 or more", *n)
		}
		selected, err := which.selection(time.Now())
		if err != nil {
			return err
		}
		if r.log, err = newLogger(c); err != nil {
			return err
		}
		s, doc := loadSettings(c)
		if doc.Err() != nil {
			return refuse(c, doc)
		}
		r.settings, r.flags = s, &through
		if *place.dir == "" {
			*place.dir = s.StateDir
		}
		if r.to != "" && !slices.Contains(s.Destinations.Names(), r.to) {
			return usagef("--to %s: no such destination in %s", r.to, strings.Join(doc.Files(), ", "))
		}
		reader, err := place.look(c, selected)
		if err != nil || reader == nil {
			return err
		}
		defer reader.Close()
		if *n > 0 {
			if selected.Numbers, err = reader.Oldest(selected, *n); err != nil {
				return err
			}
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // the second signal ends it at once
		defer r.close()
		if err := r.prepare(ctx, reader, selected); err != nil {
			return err
		}
		editor, err := deadletter.OpenEditor(*place.dir)
		if err != nil {
			return err
		}
		defer editor.Close()
		report, err := editor.Replay(ctx, deadletter.Replay{Which: selected, Way: r.way, Open: r.open, Dry: r.dry, Log: r.log})
		out := c.OutOrStdout()
		if r.prints {
			out = c.ErrOrStderr()
		}
		writeReport(out, report, r.dry)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = errors.New("stopped by a signal; the next replay goes on")
		}
		if err == nil && report.Refused+report.LeftOut > 0 {
			err = errSaid
		}
		return err
	}
	return cmd
}

// mostReasons is how many reasons a report shows.
const mostReasons = 5

// writeReport tells what became of the letters, in a line, and why some are left, the commonest reason first.
func writeReport(w io.Writer, r deadletter.Report, dry bool) {
	var to []string
	for name, n := range r.To {
		to = append(to, fmt.Sprintf("%d to %s", n, name))
	}
	slices.Sort(to)
	if dry {
		fmt.Fprintf(w, "dry run: would replay %d, drop %d, filters refuse %d, left out %d\n", r.Replayed, r.Dropped, r.Refused, r.LeftOut)
		if len(to) > 0 {
			fmt.Fprintf(w, "  messages: %s\n", strings.Join(to, ", "))
		}
	} else {
		fmt.Fprintf(w, "replayed %d, dropped %d, still refused %d, left out %d\n", r.Replayed, r.Dropped, r.Refused, r.LeftOut)
	}
	if r.Earlier > 0 {
		fmt.Fprintf(w, "  %s of these had been stored by a replay that was broken off\n", counted(r.Earlier))
	}
	type reason struct {
		words string
		n     int
	}
	var reasons []reason
	for words, n := range r.Reasons {
		reasons = append(reasons, reason{words, n})
	}
	slices.SortFunc(reasons, func(a, b reason) int {
		if a.n != b.n {
			return b.n - a.n
		}
		return strings.Compare(a.words, b.words)
	})
	for i, x := range reasons {
		if i == mostReasons {
			fmt.Fprintf(w, "  and %d other reasons (weir dlq ls)\n", len(reasons)-i)
			break
		}
		fmt.Fprintf(w, "  %d: %s\n", x.n, printable(x.words))
	}
}
