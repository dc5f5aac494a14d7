package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by release builds: -ldflags "-X main.version=1.2.3".
var version = "dev"

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of weir and of what it was built with",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			from := ""
			if c := commit(); c != "" {
				from = " (" + c + ")"
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "weir %s%s %s %s/%s\n", version, from, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// commit is what weir was built from, "" when that is not known.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return s.Value[:12]
			}
		}
	}
	return ""
}
