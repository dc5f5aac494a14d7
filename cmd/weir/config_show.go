package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/admin"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/sqlstore"
)

// newConfigCommand is the parent of what shows the configuration.
func newConfigCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Look at the configuration, and at what it may hold"}
	c.AddCommand(newConfigExampleCommand(), newConfigSchemaCommand(), newConfigShowCommand())
	return c
}

func newConfigShowCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration with its defaults and without its secrets",
		Long: `Show prints what is in effect: what all files say together and the defaults of
all that they leave out, as one file that means the same where it is read in the
present directory. References stay as they are written, and secrets are never
printed.

With --origin a comment behind each value says where it comes from: file and
line, the anchor that an alias means, the variables and files that a reference
names, or "default".

Without a file it is the built-in configuration, as it is written: a file to
begin with.`,
		Args: cobra.NoArgs,
	}
	addConfigFlag(c)
	origin := c.Flags().Bool("origin", false, "say behind each value where it comes from")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if configPaths(c) == nil && !*origin {
			_, err := io.WriteString(c.OutOrStdout(), builtin)
			return err
		}
		s, doc := loadSettings(c)
		if doc.Err() != nil {
			return refuse(c, doc)
		}
		s.complete()
		if *origin {
			return doc.ShowOrigin(c.OutOrStdout(), s, builtinName)
		}
		return doc.Show(c.OutOrStdout(), s)
	}
	return c
}

// complete puts in the defaults that hold where the settings say nothing, to be
// shown. It adds nothing that would be refused if it were written.
func (s *settings) complete() {
	if s.Admin != nil && s.Admin.Listen == "" {
		s.Admin.Listen = admin.DefaultListen
	}
	for i := range s.Sources {
		s.Sources[i].Value.Complete()
	}
	for i := range s.Filters {
		if f := &s.Filters[i].Value; f.Config == nil {
			f.Config = json.RawMessage("{}")
		}
	}
	for i := range s.Destinations {
		s.Destinations[i].Value.complete()
	}
}

func (d *destination) complete() {
	if c, ok := d.Kind.(*sqlstore.Config); ok {
		c.Complete()
	}
	if free := config.Size(defaultKeepFree); d.Buffer.Disk > 0 && d.Buffer.KeepFree == nil {
		d.Buffer.KeepFree = &free
	}
}
