package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/wasmhost"
)

func newFilterInspectCommand() *cobra.Command {
	var settings filterSettings
	cmd := &cobra.Command{
		Use:   "inspect MODULE",
		Short: "Show what a module is, what it needs, and why it would be refused",
		Args:  cobra.ExactArgs(1),
	}
	settings.flags(cmd)
	cmd.RunE = func(c *cobra.Command, args []string) error {
		_, cfg, err := settings.guest(args[0])
		if err != nil {
			return err
		}
		host, err := openHost(c.Context(), wasmhost.Options{})
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
	line("name", strings.TrimSpace(r.Name+" "+r.Version))
	line("abi", r.ABI)
	line("size", fmt.Sprintf("%d bytes", r.Size))
	line("sha256", r.SHA256)
	line("memory", r.Memory)
	line("wants", strings.Join(r.Wants, "\n         "))
	line("imports", strings.Join(r.Imports, "\n         "))
	line("exports", strings.Join(r.Exports, "\n         "))
	if len(r.Refused) == 0 {
		line("verdict", "may be loaded")
		return
	}
	line("refused", strings.Join(r.Refused, "\n         "))
}
