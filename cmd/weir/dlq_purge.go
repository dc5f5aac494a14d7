package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func newDLQPurgeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge [NUMBER...]",
		Short: "Remove dead letters for good",
		Long: `Purge removes the letters with these numbers, or those that the flags select, and tells how many. All of them go only
with --yes. It may be used while weir runs, also when the store is full.`,
		Example: `  weir dlq purge --destination central --code 22 --until 7d
  weir dlq purge --yes`,
	}
	place, which := addDLQPlace(cmd), addDLQSelection(cmd)
	yes := cmd.Flags().Bool("yes", false, "remove all letters, when nothing else says which")
	cmd.RunE = func(c *cobra.Command, _ []string) error {
		selected, err := which.selection(time.Now())
		if err != nil {
			return err
		}
		if selected.All() && !*yes {
			return usagef("this would remove all dead letters: say which (a number, --destination, --route, --filter, --code, --since, --until), or --yes")
		}
		reader, err := place.look(c, selected)
		if err != nil || reader == nil {
			return err
		}
		defer reader.Close()
		editor, err := place.editor(c)
		if err != nil || editor == nil {
			return err
		}
		defer editor.Close()
		n, err := editor.Purge(selected)
		fmt.Fprintf(c.OutOrStdout(), "%s purged\n", counted(n))
		return err
	}
	return cmd
}
