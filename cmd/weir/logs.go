package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/config"
)

func newLogsCommand() *cobra.Command {
	l := &logs{}
	cmd := &cobra.Command{
		Use:   "logs [DEST|FILE.db]",
		Short: "Show the messages that weir stored, and follow them",
		Long: `Show the messages that weir stored, the oldest first.

DEST is a destination of the configuration that is sqlite or postgres; without
it, the first one. A file needs no configuration. Nothing is changed, and a weir
that writes there is not disturbed.`,
		Example: `  weir logs -f
  weir logs --since 1h --severity warning
  weir logs --host 'web-*' --app sshd --grep 'failed password' -n all
  weir logs central --since yesterday --until today --format json`,
		Args: cobra.MaximumNArgs(1),
	}
	l.place = addReadingFlags(cmd)
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&l.follow, "follow", "f", false, "go on with each message that is stored, until Ctrl-C")
	f.StringVarP(&l.number, "lines", "n", "50", "how many messages, the newest: a number or all")
	f.StringVar(&l.since, "since", "", "only messages received since this `time`: 1h (so long ago), 2d, 10:00, 2026-11-30, \"2026-11-30 10:00\", 2026-11-30T10:00:00Z, today, yesterday")
	f.StringVar(&l.until, "until", "", "only messages received before this `time`, said in the same way")
	f.StringVar(&l.severity, "severity", "", "only messages at least as severe: a `word` or number; also =err, err..crit, '>=notice'")
	f.StringArrayVar(&l.hosts, "host", nil, "only messages of this host: a `glob` of * and ?, any letter case; again: or")
	f.StringArrayVar(&l.apps, "app", nil, "only messages of this program: a `glob` of * and ?; again: or")
	f.StringVar(&l.grep, "grep", "", "only messages that hold this `text`; without capital letters in it, whatever the case of theirs")
	f.StringVar(&l.regex, "regex", "", "only messages that this regular `expression` (RE2) fits; its case as with --grep")
	f.BoolVar(&l.exact, "case-sensitive", false, "tell capital letters from small ones in --grep and --regex; =false: never")
	f.BoolVarP(&l.reverse, "reverse", "r", false, "the newest first")
	f.StringVar(&l.format, "format", "text", "text, json (an object a line, all columns), csv (all columns)")
	f.BoolVar(&l.utc, "utc", false, "times in UTC, read and shown, in place of this machine's time zone")
	f.StringVar(&l.color, "color", "auto", "auto (on a terminal, unless NO_COLOR is set), always or never")
	f.StringVar(&l.table, "table", "", "the `table` of a file that no destination names (default logs, or the only one that looks like it)")
	cmd.RunE = l.run
	return cmd
}

// logs is what was typed.
type logs struct {
	place                       readingFlags
	follow, exact, reverse, utc bool
	number, since, until        string
	severity, grep, regex       string
	hosts, apps                 []string
	format, color, table        string
}

func (l *logs) run(c *cobra.Command, args []string) error {
	look, err := l.look(c, time.Now())
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends it at once
	arg := ""
	if len(args) > 0 {
		arg = args[0]
	}
	from, err := l.place.find(c, arg)
	if err != nil {
		return err
	}
	if l.table != "" {
		if from.settings != nil {
			return usagef("--table: the configuration says which table destination %s has", from.name)
		}
		from.cfg.Table = config.Template(l.table)
	}
	if from.settings != nil {
		look.Late = from.settings.FlushTimeout
	}
	look.Late += 5 * time.Second
	out := bufio.NewWriterSize(c.OutOrStdout(), 64<<10)
	err = l.show(ctx, c, from, look, out)
	if e := out.Flush(); e != nil {
		err = fmt.Errorf("write standard output: %w", e)
	}
	if errors.Is(err, syscall.EPIPE) { // | head
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("stopped before the end of the search")
	}
	return err
}
