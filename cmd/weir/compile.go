package main

import (
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/wasmhost"
)

// newCompileCommand is the process in which weir compiles a stranger's module: one that may die.
func newCompileCommand() *cobra.Command {
	return &cobra.Command{
		Use:    compileCommand,
		Short:  "Compile a module, for another weir process",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return wasmhost.Compile(c.InOrStdin(), c.OutOrStdout())
		},
	}
}

const compileCommand = "compile-module"

// compiler is the command that compiles modules, for every host that is opened here.
func compiler() []string { return []string{executable(), compileCommand} }

// executable is the program that runs: the very same, even when another version has been put in its place.
func executable() string {
	const link = "/proc/self/exe"
	if runtime.GOOS == "linux" {
		if _, err := os.Stat(link); err == nil {
			return link
		}
	}
	if path, err := os.Executable(); err == nil {
		return path
	}
	return os.Args[0]
}
