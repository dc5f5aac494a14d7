package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

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
becomes of it: a record a line, and behind it the messages that the filter created. What the filter drops or rejects, and
the destinations that it chooses, are told on standard error. At the end it is ticked once and closed, as in weir.

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
		m, cfg, err := settings.guest(args[0])
		if err != nil {
			return err
		}
		host, err := openHost(c.Context(), wasmhost.Options{Log: log})
		if err != nil {
			return err
		}
		defer host.Close(c.Context())
		guest, err := host.Load(c.Context(), filterName(m.name), cfg)
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
	out := bufio.NewWriter(c.OutOrStdout())
	defer out.Flush()
	in := bufio.NewScanner(flushing{c.InOrStdin(), out})
	in.Buffer(make([]byte, 64<<10), mostRecord)
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
		tell := func(what string, args ...any) {
			fmt.Fprintf(c.ErrOrStderr(), "line %d: "+what+"\n", append([]any{n}, args...)...)
		}
		switch outcome.Verdict {
		case "drop":
			tell("dropped")
		case "reject":
			tell("rejected (%s): %s", outcome.Code, printable(outcome.Reason))
			continue
		case "skip":
			tell("kept, skips the rest of its chain")
		}
		if len(outcome.To) > 0 {
			tell("goes to %s only", strings.Join(outcome.To, ", "))
		}
		if outcome.Verdict != "drop" {
			out.Write(append(outcome.Record, '\n'))
		}
		for _, record := range outcome.Emitted {
			out.Write(append(record, '\n'))
		}
	}
	last, err := guest.TryFinish(c.Context())
	if err != nil {
		return err
	}
	for _, record := range last.Emitted {
		out.Write(append(record, '\n'))
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

// flushing is an input before which the output is flushed: who feeds a filter slowly sees each answer at once.
type flushing struct {
	io.Reader
	out *bufio.Writer
}

func (f flushing) Read(p []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, err
	}
	return f.Reader.Read(p)
}
