package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/admin"
)

// statusPatience is how long status waits for a weir that hangs.
const statusPatience = 5 * time.Second

func newStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Tell what a running weir does, and what is wrong with it",
		Long: `Status asks the weir that runs with this configuration, by its admin address,
what each of its sources, routes, filters and destinations does: how much, how
fast, what waits and since when, what failed and why. It answers also while a
database, a disk or a filter hangs. What an operator must know now comes first,
with the way out.

The exit code is 0 when all is well, 1 when something is wrong or nobody
answers, 2 when the question was wrong. With --watch it asks again and again
until Ctrl-C, also while weir restarts, and exits with 0.`,
		Example: `  weir status
  weir status --watch=5s
  weir status --admin unix:///run/weir/admin.sock --format json`,
	}
	flag := addAdminFlag(c)
	format := c.Flags().String("format", "text", "text or json, as GET /status answers; with --watch one line each time")
	every := c.Flags().Duration("watch", 0, "draw anew at this `interval` until Ctrl-C (--watch alone: 2s)")
	c.Flags().Lookup("watch").NoOptDefVal = "2s"
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && c.Flags().Changed("watch") { // --watch 5s
			if d, err := time.ParseDuration(args[0]); err == nil {
				*every = d
				return nil
			}
		}
		return cobra.NoArgs(c, args)
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *format != "text" && *format != "json" {
			return usagef("--format %s: want text or json", *format)
		}
		watch := c.Flags().Changed("watch")
		if watch && (*every < 100*time.Millisecond || *every > time.Hour) {
			return usagef("--watch %v: want 100ms to 1h", *every)
		}
		at, err := flag.find(c)
		if err != nil {
			return err
		}
		show := &statusShow{at: at, out: c.OutOrStdout(), json: *format == "json", terminal: isTerminal(c.OutOrStdout())}
		if watch {
			return show.watch(c.Context(), *every)
		}
		return show.once(c.Context())
	}
	return c
}

// A statusShow asks one weir and shows its answers.
type statusShow struct {
	at       *admin.Config
	out      io.Writer
	json     bool
	terminal bool // out is one
}

func (w *statusShow) ask(ctx context.Context) (*admin.Status, error) {
	var s admin.Status
	if err := ask(ctx, w.at, http.MethodGet, "/status", statusPatience, &s, http.StatusOK); err != nil {
		return nil, err
	}
	return &s, nil
}

// once shows one answer; errSaid when it tells of problems.
func (w *statusShow) once(ctx context.Context) error {
	s, err := w.ask(ctx)
	if err != nil {
		return err
	}
	if w.json {
		e := json.NewEncoder(w.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(s)
	} else {
		_, err = io.WriteString(w.out, drawStatus(s, w.at.Address(), w.colors()))
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	if s.Degraded {
		return errSaid
	}
	return nil
}

func (w *statusShow) colors() bool { return w.terminal && coloured() }
