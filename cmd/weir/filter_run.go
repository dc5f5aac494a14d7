package main

import (
	"bufio"
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/wasmhost"
)

const mostRecord = 16 << 20 // bytes of one line of input

func newFilterRunCommand() *cobra.Command {
	var settings filterSettings
	cmd := &cobra.Command{
		Use:   "run MODULE",
		Short: "Run record JSON lines from standard input through a filter",
		Long: `Run reads record JSON, one object a line, gives each to the filter as the router would, and prints what
becomes of it: a record a line. What the filter drops or rejects is told on standard error.

MODULE is a .wasm file, stock:NAME, or the folder of a filter.`,
		Example: `  echo '{"severity":7,"message":"tick"}' | weir filter run stock:severity
  weir parse < /var/log/messages | weir filter run mask.wasm --config '{"mask":"#"}'`,
		Args: cobra.ExactArgs(1),
	}
	settings.flags(cmd)
	settings.running(cmd)
	cmd.RunE = func(c *cobra.Command, args []string) error {
		log, err := newLogger(c)
		if err != nil {
			return err
		}
		module, _, err := moduleAt(args[0])
		if err != nil {
			return err
		}
		cfg, err := settings.filter(module)
		if err != nil {
			return err
		}
		host, err := openHost(c.Context(), log)
		if err != nil {
			return err
		}
		defer host.Close(c.Context())
		guest, err := host.Load(c.Context(), filterName(cfg.Module), cfg)
		if err != nil {
			return usageError{err}
		}
		defer guest.Close(c.Context())
		return filterRecords(c, guest)
	}
	return cmd
}

// filterRecords gives each line of standard input to the guest.
func filterRecords(c *cobra.Command, guest *wasmhost.Guest) error {
	in := bufio.NewScanner(c.InOrStdin())
	in.Buffer(make([]byte, 64<<10), mostRecord)
	out := bufio.NewWriter(c.OutOrStdout())
	defer out.Flush()
	failed := false
	for n := 1; in.Scan(); n++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		outcome, err := guest.Try(c.Context(), line)
		if err != nil {
			if c.Context().Err() != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "line %d: %v\n", n, err)
			failed = true
			continue
		}
		switch outcome.Verdict {
		case "drop":
			fmt.Fprintf(c.ErrOrStderr(), "line %d: dropped\n", n)
			continue
		case "reject":
			fmt.Fprintf(c.ErrOrStderr(), "line %d: rejected (%s): %s\n", n, outcome.Code, outcome.Reason)
			continue
		case "skip":
			fmt.Fprintf(c.ErrOrStderr(), "line %d: kept, skips the rest of its chain\n", n)
		}
		out.Write(outcome.Record)
		out.WriteByte('\n')
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if failed {
		return errSaid
	}
	return nil
}
