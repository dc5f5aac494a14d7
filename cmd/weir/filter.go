package main

import (
	"path/filepath"
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

// filterName is what a filter that no configuration names is called: its file or folder.
func filterName(module string) string {
	name, stock := strings.CutPrefix(module, "stock:")
	if abs, err := filepath.Abs(name); err == nil && !stock {
		name = filepath.Base(abs)
	}
	return strings.TrimSuffix(name, ".wasm")
}
