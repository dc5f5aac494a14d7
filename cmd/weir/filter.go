package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/wasmhost"
)

func newFilterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "filter",
		Short: "Begin, build, test and measure filters, and look at their modules",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newFilterBuildCommand(), newFilterInspectCommand(), newFilterNewCommand(), newFilterRunCommand())
	return cmd
}

const mostRecord = 16 << 20 // bytes of one line of input

func newFilterRunCommand() *cobra.Command {
	var settings string
	cmd := &cobra.Command{
		Use:   "run MODULE",
		Short: "Run record JSON lines from standard input through a filter",
		Long: `Run reads record JSON, one object a line, gives each to the filter as the router would, and prints what
becomes of it: a record a line. What the filter drops or rejects is told on standard error.

MODULE is a .wasm file, or stock:NAME.`,
		Example: `  echo '{"severity":7,"message":"tick"}' | weir filter run stock:severity
  weir parse < /var/log/messages | weir filter run mask.wasm --config '{"mask":"#"}'`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&settings, "config", "", "the filter's config, as JSON")
	var cfg wasmhost.Config
	cfg.Defaults()
	flags.DurationVar(&cfg.Time, "time", cfg.Time, "of the guest's own work, for one message")
	flags.StringVar(&cfg.OnError, "on-error", cfg.OnError, "what becomes of a message on which the filter fails: reject, pass, drop")
	memory := flags.String("memory", "16MiB", "of one instance")
	cmd.RunE = func(c *cobra.Command, args []string) error {
		log, err := newLogger(c)
		if err != nil {
			return err
		}
		cfg.Module = args[0]
		if cfg.Memory, err = sizeFlag("memory", *memory); err != nil {
			return err
		}
		if cfg.Config = json.RawMessage(settings); settings != "" && !json.Valid(cfg.Config) {
			return usagef("--config: not JSON")
		}
		if err := problems(&cfg); err != nil {
			return err
		}
		host, err := wasmhost.Open(c.Context(), wasmhost.Options{Log: log, MaxMessage: mostRecord})
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

func newFilterInspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect MODULE",
		Short: "Show what a module is, what it needs, and why it would be refused",
		Args:  cobra.ExactArgs(1),
	}
	memory := cmd.Flags().String("memory", "16MiB", "what the filter may have")
	cmd.RunE = func(c *cobra.Command, args []string) error {
		var cfg wasmhost.Config
		cfg.Defaults()
		cfg.Module = args[0]
		var err error
		if cfg.Memory, err = sizeFlag("memory", *memory); err != nil {
			return err
		}
		if err := problems(&cfg); err != nil {
			return err
		}
		host, err := wasmhost.Open(c.Context(), wasmhost.Options{})
		if err != nil {
			return err
		}
		defer host.Close(c.Context())
		report, err := host.Inspect(cfg)
		if err != nil {
			return usageError{err}
		}
		printReport(c.OutOrStdout(), report)
		if len(report.Refused) > 0 {
			return fmt.Errorf("%s would be refused: %w", cfg.Module, errSaid)
		}
		return nil
	}
	return cmd
}

func printReport(w io.Writer, r wasmhost.Report) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-9s%s\n", name, value)
		}
	}
	line("abi", r.ABI)
	line("size", fmt.Sprintf("%d bytes", r.Size))
	line("sha256", r.SHA256)
	line("memory", r.Memory)
	line("imports", strings.Join(r.Imports, "\n         "))
	line("exports", strings.Join(r.Exports, "\n         "))
	if len(r.Refused) == 0 {
		line("verdict", "may be loaded")
		return
	}
	line("refused", strings.Join(r.Refused, "\n         "))
}

// filterName is what a filter that no configuration names is called in the log.
func filterName(module string) string {
	name := strings.TrimPrefix(module, "stock:")
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], ".wasm")
}

// problems tells what is wrong in values that came from flags.
func problems(cfg *wasmhost.Config) error {
	for _, p := range cfg.Check() {
		if p.Hint != "" {
			p.What += " (" + p.Hint + ")"
		}
		return usagef("%s: %s", p.Path, p.What)
	}
	return nil
}

// sizeFlag reads a size as the configuration writes it.
func sizeFlag(name, value string) (config.Size, error) {
	n, err := config.ParseSize(value)
	if err != nil {
		return 0, usagef("--%s %s: %v", name, value, err)
	}
	return n, nil
}
