package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/admin"
)

// compilePatience is how long compiling may take.
const compilePatience = 2 * time.Minute

func newReloadCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reload",
		Short: "Make a running weir read its filters' modules again",
		Long: `Reload asks the weir that runs with this configuration, by its admin address,
to read the modules of its filters again. A module that has changed is judged,
compiled and started beside the old one and takes over between two batches; one
that is refused leaves the old one at work, and the exit code is 1.

weir finds changed modules by itself within a few seconds; this command waits
until it is done, and tells what came of it.`,
		Args: cobra.NoArgs,
	}
	flag := addAdminFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		at, err := flag.find(c)
		if err != nil {
			return err
		}
		var all []admin.Reloaded
		if err := ask(c.Context(), at, http.MethodPost, "/reload", compilePatience, &all, http.StatusOK, http.StatusUnprocessableEntity); err != nil {
			return err
		}
		refused := false
		for _, r := range all {
			switch {
			case r.Error != "":
				refused = true
				fmt.Fprintf(c.OutOrStdout(), "%s: refused, the one before it goes on: %s\n", r.Filter, r.Error)
			case r.Changed:
				fmt.Fprintf(c.OutOrStdout(), "%s: changed\n", r.Filter)
			default:
				fmt.Fprintf(c.OutOrStdout(), "%s: the same since %s\n", r.Filter, r.Loaded.Local().Format(time.DateTime))
			}
		}
		if refused {
			return errSaid
		}
		return nil
	}
	return c
}
