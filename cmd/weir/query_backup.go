package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/sqlstore"
)

// copying are the flags that have a SQLite database copied.
type copying struct {
	to, check string
	force     bool
}

func (b *copying) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.to, "backup", "", "copy the SQLite database into this `file`, as it is now, also while weir writes")
	f.BoolVar(&b.force, "force", false, "with --backup: replace a file that is there")
	f.StringVar(&b.check, "check", "quick", "with --backup: check the copy: quick, full (also the indexes; slower) or off")
}

// checks are the words of --check, and the pragmas.
var checks = map[string]string{"quick": "quick_check", "full": "integrity_check", "off": ""}

// refuse tells flags that cannot be together.
func (b *copying) refuse(c *cobra.Command, sql string) error {
	if b.to == "" {
		for _, name := range []string{"backup", "force", "check"} {
			if c.Flags().Changed(name) {
				return usagef("--%s wants a --backup FILE", name)
			}
		}
		return nil
	}
	if _, ok := checks[b.check]; !ok {
		return usagef("--check %s: want quick, full or off", b.check)
	}
	if sql != "" {
		return usagef("--backup copies the whole database: leave the SQL out")
	}
	for _, name := range []string{"format", "limit", "wide"} {
		if c.Flags().Changed(name) {
			return usagef("--%s has no meaning with --backup", name)
		}
	}
	return nil
}

// run copies the database.
func (b *copying) run(ctx context.Context, c *cobra.Command, from *reading) error {
	reader, err := from.open(ctx)
	if err != nil {
		return stopped(ctx, err)
	}
	defer reader.Close()
	began := time.Now()
	how := sqlstore.Backup{Path: b.to, Force: b.force, Check: checks[b.check]}
	w := c.ErrOrStderr()
	if isTerminal(w) {
		how.Progress = progress(w)
	}
	report, err := reader.Backup(ctx, how)
	if how.Progress != nil {
		fmt.Fprint(w, clearLine)
	}
	if err != nil {
		return stopped(ctx, err)
	}
	checked := "not checked"
	if how.Check != "" {
		checked = fmt.Sprintf("PRAGMA %s is fine", how.Check)
	}
	fmt.Fprintf(c.OutOrStdout(), "copied %s to %s in %v, %s\n", bytesOf(uint64(report.Bytes)), printable(b.to), time.Since(began).Round(time.Millisecond), checked)
	return nil
}

const clearLine = "\r\x1b[K"

// progress shows how far a copy is, now and then.
func progress(w io.Writer) func(done, total int64) {
	var next time.Time
	return func(done, total int64) {
		if now := time.Now(); now.After(next) || done == total {
			next = now.Add(200 * time.Millisecond)
			fmt.Fprintf(w, clearLine+"%3d%%  %s of %s", 100*done/max(total, 1), bytesOf(uint64(done)), bytesOf(uint64(total)))
			if done == total {
				fmt.Fprint(w, ", to be checked")
			}
		}
	}
}
