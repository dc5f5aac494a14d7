package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/filters/toolchain"
	"github.com/weirlog/weir/wasmhost"
)

func newFilterBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build [FOLDER]",
		Short: "Build the filter in a folder with the compiler of its language",
		Long: `Build makes FOLDER/NAME.wasm, where NAME is the folder's own name, out of the sources in it, and looks whether weir
would load it. The language is recognised by the files: ` + toolchain.Recognised() + `.
A compiler that is missing is told with what to install.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			module, err := toolchain.Build(c.Context(), dir, c.ErrOrStderr())
			if errors.Is(err, toolchain.ErrUsage) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			report, err := inspectModule(c, module)
			if err != nil {
				return err
			}
			if len(report.Refused) > 0 {
				return fmt.Errorf("%s is built, but would be refused:\n  %s", module, strings.Join(report.Refused, "\n  "))
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s, %d bytes, may be loaded\n", module, report.ABI, report.Size)
			return nil
		},
	}
}

// inspectModule looks at a module under the default limits.
func inspectModule(c *cobra.Command, module string) (wasmhost.Report, error) {
	host, err := openHost(c.Context(), wasmhost.Options{})
	if err != nil {
		return wasmhost.Report{}, err
	}
	defer host.Close(c.Context())
	var cfg wasmhost.Config
	cfg.Defaults()
	cfg.Module = module
	return host.Inspect(cfg)
}
