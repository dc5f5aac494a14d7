package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/filters/toolchain"
)

func newFilterNewCommand() *cobra.Command {
	var lang string
	languages := strings.Join(toolchain.Languages(), ", ")
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Begin a filter: a folder with sources, the SDK, a README and cases",
		Long: `New writes the folder NAME: a filter that builds and passes its cases, to be changed into what you want.
Everything in it comes out of weir itself. Nothing is ever written over.

Languages: ` + languages + `.`,
		Example: `  weir filter new mask --lang go && cd mask && weir filter build && weir filter test`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&lang, "lang", "", "the language: "+languages)
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if lang == "" {
			return usagef("new: which language? --lang %s", strings.ReplaceAll(languages, ", ", "|"))
		}
		folder, err := toolchain.New(".", args[0], lang)
		if errors.Is(err, toolchain.ErrUsage) {
			return usageError{err}
		}
		if err != nil {
			return err
		}
		out := c.OutOrStdout()
		for _, f := range folder.Files {
			fmt.Fprintf(out, "%s/%s\n", folder.Name, f)
		}
		if folder.SDK != "" {
			fmt.Fprintf(out, "%s/%s (the SDK)\n", folder.Name, folder.SDK)
		}
		steps := append(append([]string{"cd " + folder.Name}, folder.Before...), "weir filter build", "weir filter test")
		fmt.Fprintf(c.ErrOrStderr(), "\nEdit %s/%s. Next:\n  %s\n", folder.Name, folder.Source, strings.Join(steps, " && "))
		if err := toolchain.Ready(lang); err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "\nBefore that, %v\n", err)
		}
		return nil
	}
	return cmd
}
