package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/filters/conformance"
	"github.com/weirlog/weir/filters/toolchain"
	"github.com/weirlog/weir/wasmhost"
)

func newFilterTestCommand() *cobra.Command {
	t := filterTest{}
	var casesFile string
	var update, kit bool
	cmd := &cobra.Command{
		Use:   "test [FOLDER | MODULE]",
		Short: "Give a filter its cases, and tell what comes out differently",
		Long: `Test gives each case of cases.jsonl (in the folder, or beside the module) to the filter: a record goes in, and what
comes out, the verdict, what is logged, emitted, routed and measured must be as the case says. The filter has a minute
for each message, unless --time says less.

Exit code 1: something differs. 2: the cases or the module cannot be used.`,
		Example: `  weir filter test
  weir filter test --update && git diff cases.jsonl
  weir filter test mask.wasm --cases more.jsonl -v
  weir filter test script.wasm --conformance`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&casesFile, "cases", "", "the file with the cases (default cases.jsonl beside the module)")
	flags.BoolVar(&update, "update", false, "write what came out into the cases that differ; comments and order stay")
	flags.BoolVarP(&t.verbose, "verbose", "v", false, "name the cases that pass, too")
	flags.BoolVar(&kit, "conformance", false, "run the cases of an SDK's script guest, which are in weir")
	t.settings.flags(cmd)
	t.settings.word(cmd, "time", "of the guest's own work, for one message (default 1m)")
	cmd.MarkFlagsMutuallyExclusive("cases", "conformance")
	cmd.MarkFlagsMutuallyExclusive("update", "conformance")
	cmd.RunE = func(c *cobra.Command, args []string) error {
		arg := "."
		if len(args) > 0 {
			arg = args[0]
		}
		m, err := moduleAt(arg)
		if err != nil {
			return err
		}
		t.module = m
		if source := toolchain.NewerSource(m.folder, m.file); source != "" {
			fmt.Fprintf(c.ErrOrStderr(), "%s is newer than %s: weir filter build %s\n", filepath.Join(m.folder, source), m.file, m.folder)
		}
		if kit {
			t.name, t.content = "conformance", conformance.SDK
			return t.run(c)
		}
		if t.name = casesFile; t.name == "" {
			if m.folder == "" {
				return usagef("%s has no folder with cases.jsonl: --cases FILE", m.name)
			}
			t.name = filepath.Join(m.folder, "cases.jsonl")
		}
		if t.content, err = os.ReadFile(t.name); errors.Is(err, os.ErrNotExist) {
			return usagef("no file %s: one line of JSON a case, docs/filters/testing.md has the format, or --cases FILE", t.name)
		} else if err != nil {
			return usageError{err}
		}
		if err := t.run(c); !update || err != nil && !errors.Is(err, errSaid) {
			return err
		}
		return t.update(c.OutOrStdout())
	}
	return cmd
}

// A filterTest is one run of weir filter test.
type filterTest struct {
	settings filterSettings
	module   guestModule
	name     string // of the file with the cases
	content  []byte
	verbose  bool

	failed []conformance.Result
	broken int // cases that could not be run
}

// run gives all cases to the module and tells the result. The error is errSaid when a case failed.
func (t *filterTest) run(c *cobra.Command) error {
	cases, err := conformance.ReadCases(bytes.NewReader(t.content))
	if err != nil {
		return usagef("%s:%w", t.name, err)
	}
	if len(cases) == 0 {
		return usagef("%s: no case in it", t.name)
	}
	if _, ok := t.settings.words["time"]; !ok {
		t.settings.words["time"] = forever.String()
	}
	filter, err := t.settings.filter(t.module)
	if err != nil {
		return err
	}
	filter.InitTime = max(filter.InitTime, filter.Time)
	if err := loadable(c, filter, cases); err != nil {
		return err
	}
	runner, err := conformance.NewRunner(c.Context(), conformance.Options{Name: filterName(t.module.name), Filter: filter, Dir: filepath.Dir(t.name), CacheDir: userCache(), Compiler: compiler()})
	if err != nil {
		return err
	}
	defer runner.Close(c.Context())
	out := c.OutOrStdout()
	for i := range cases {
		result, err := runner.Run(c.Context(), &cases[i])
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		t.tell(out, &cases[i], result, err)
	}
	bad := len(t.failed) + t.broken
	fmt.Fprintf(out, "%d cases: %d passed, %d failed\n", len(cases), len(cases)-bad, bad)
	if bad > 0 {
		return errSaid
	}
	return nil
}

// loadable is an error when no case can meet anything but a module that is refused: that is told once.
func loadable(c *cobra.Command, filter wasmhost.Config, cases []conformance.Case) error {
	if slices.ContainsFunc(cases, func(c conformance.Case) bool { return c.Settings != nil }) {
		return nil
	}
	host, err := openHost(c.Context(), wasmhost.Options{})
	if err != nil {
		return err
	}
	defer host.Close(c.Context())
	report, err := host.Inspect(filter)
	if err != nil {
		return usageError{err}
	}
	if len(report.Refused) > 0 {
		return usagef("%s would be refused:\n  %s", filter.Module, strings.Join(report.Refused, "\n  "))
	}
	return nil
}

// tell prints what came of a case, and keeps it.
func (t *filterTest) tell(out io.Writer, c *conformance.Case, r conformance.Result, err error) {
	place := fmt.Sprintf("%s:%d", t.name, c.Line)
	switch {
	case err != nil:
		t.broken++
		fmt.Fprintf(out, "BROKEN  %s: %s: %v\n", place, c.Name, err)
		return
	case len(r.Differences) == 0:
		if t.verbose {
			fmt.Fprintf(out, "ok      %s: %s\n", place, c.Name)
		}
		return
	}
	t.failed = append(t.failed, r)
	fmt.Fprintf(out, "FAILED  %s: %s\n", place, c.Name)
	for _, d := range r.Differences {
		fmt.Fprintf(out, "  %s\n    want  %s\n    got   %s\n", d.Member, indent(d.Want), indent(d.Got))
	}
	for _, line := range r.Told {
		fmt.Fprintf(out, "  weir: %s\n", indent(line))
	}
}

// indent keeps further lines of a text under its first.
func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n          ") }

// update writes what came into the file.
func (t *filterTest) update(out io.Writer) error {
	content, skipped, err := conformance.Update(t.content, t.failed)
	if err != nil {
		return fmt.Errorf("update %s:%w", t.name, err)
	}
	if n := len(t.failed) - len(skipped); n > 0 {
		if err := os.WriteFile(t.name, content, 0o666); err != nil {
			return fmt.Errorf("update: %w", err)
		}
		fmt.Fprintf(out, "%s: %d cases updated; look at the difference before you keep it\n", t.name, n)
	}
	if n := len(skipped) + t.broken; n > 0 {
		return fmt.Errorf("%s: %d cases cannot be updated: mend the filter, or them", t.name, n)
	}
	return nil
}
