package main

import (
	"strings"

	"github.com/spf13/cobra"
)

func newFilterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "filter",
		Short: "Begin, build, test and measure filters, and look at their modules",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newFilterBenchCommand(), newFilterBuildCommand(), newFilterInspectCommand(), newFilterNewCommand(), newFilterRunCommand(), newFilterTestCommand())
	return cmd
}

// filterName is what a filter that no configuration names is called in the log.
func filterName(module string) string {
	name := strings.TrimPrefix(module, "stock:")
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], ".wasm")
}
