package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFine   = 0
	exitFailed = 1 // while running
	exitUsage  = 2 // wrong usage or configuration
)

// newRootCommand lists every subcommand: one line each, in the order of help.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "A log router: socket to WebAssembly to SQL",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().String("log-format", "auto", "form of weir's own log on stderr: text, json, or auto (text on a terminal)")
	root.PersistentFlags().String("log-level", "info", "least level that is logged: debug, info, warn, error")
	root.AddCommand(
		newCheckCommand(),
		newCompileCommand(),
		newConfigCommand(),
		newDLQCommand(),
		newFilterCommand(),
		newLoggenCommand(),
		newLogsCommand(),
		newParseCommand(),
		newQueryCommand(),
		newReloadCommand(),
		newRunCommand(),
		newSpoolCommand(),
		newStatusCommand(),
		newVersionCommand(),
	)
	return root
}

// execute runs weir with the given arguments and returns its exit code. What
// goes wrong before a command's own RunE is wrong usage.
func execute(args []string, in io.Reader, out, errout io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errout)
	started := false
	var mark func(c *cobra.Command)
	mark = func(c *cobra.Command) {
		if accepts := c.Args; accepts != nil && !c.HasSubCommands() {
			c.Args = func(c *cobra.Command, args []string) error {
				err := accepts(c, args)
				if err != nil && strings.HasPrefix(err.Error(), "unknown command ") { // says cobra.NoArgs, as if there were commands
					err = noArguments(c, args[0])
				}
				return err
			}
		}
		if run := c.RunE; run != nil {
			c.RunE = func(c *cobra.Command, args []string) error {
				started = true
				return run(c, args)
			}
		}
		for _, sub := range c.Commands() {
			mark(sub)
		}
	}
	mark(root)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitFine
	}
	if !started {
		err = usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	}
	if !errors.Is(err, errSaid) {
		fmt.Fprintf(errout, "weir: %s\n", strings.TrimSuffix(err.Error(), "\n"))
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// noArguments tells that a command takes none, and what was meant by the first one.
func noArguments(c *cobra.Command, arg string) error {
	_, err := os.Stat(arg)
	if ext := filepath.Ext(arg); c.Flags().Lookup("config") != nil && (err == nil || ext == ".yaml" || ext == ".yml") {
		return fmt.Errorf("%s takes no arguments, and the configuration with -c: -c %s", c.CommandPath(), printable(arg))
	}
	return fmt.Errorf("%s takes no arguments, and there is %q", c.CommandPath(), arg)
}

// A usageError is what the person at the terminal must mend: arguments or the
// configuration. weir exits with 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef is fmt.Errorf for a usageError.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// errSaid is returned, or wrapped, by a command that has told its failure
// already: nothing more is printed, only the exit code is set.
var errSaid = errors.New("already told")

// newLogger is weir's own log as the flags want it. It goes to the command's
// standard error.
func newLogger(c *cobra.Command) (*slog.Logger, error) {
	format, _ := c.Flags().GetString("log-format")
	word, _ := c.Flags().GetString("log-level")
	var level slog.Level
	switch word {
	case "debug", "info", "warn", "error":
		level.UnmarshalText([]byte(word)) // cannot fail
	default:
		return nil, usagef("--log-level %s: want debug, info, warn or error", word)
	}
	w := c.ErrOrStderr()
	opts := &slog.HandlerOptions{Level: level}
	switch {
	case format == "text", format == "auto" && isTerminal(w):
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case format == "json", format == "auto":
		opts.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration { // else a number of nanoseconds without a unit
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, usagef("--log-format %s: want text, json or auto", format)
}

// isTerminal reports whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
