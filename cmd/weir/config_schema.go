package main

import (
	_ "embed"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirlog/weir/router/admin"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/sqlstore"
)

func newConfigSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of the configuration, from which editors complete",
		Long: `Schema prints a JSON Schema (draft 7) of a configuration file of this weir. An
editor with a YAML language server completes from it, explains each setting, and
marks what is no setting. Save it, and name it in the first line of the file:

  weir config schema > weir.schema.json

  # yaml-language-server: $schema=weir.schema.json

What only weir can know (files, names of other parts, what works together) is
left to weir check.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(configSchema())
			return err
		},
	}
}

func newConfigExampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "example",
		Short: "Print a configuration with every setting, its default, and what it means",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), example)
			return err
		},
	}
}

// example is the file that shows every setting; what stands at the top of the tree is a link to it.
//
//go:embed weir.example.yaml
var example string

// configSchema is the JSON Schema of a configuration file.
func configSchema() []byte {
	s := newSettings()
	s.Admin = &admin.Config{Listen: admin.DefaultListen}
	return config.Schema(s, config.SchemaOptions{Example: example, Names: goodName.String()})
}

// Forms implements config.Former.
func (s *severity) Forms() []config.Form {
	return []config.Form{{Words: severityWords()}, {Pattern: "^" + severityPattern + "$"}, {Value: new(byNumber), Most: 7}}
}

// Forms implements config.Former.
func (s *syncing) Forms() []config.Form {
	return []config.Form{{Words: []string{"batch"}}, {Value: new(time.Duration)}}
}

// Forms implements config.Former: one for each kind, with its defaults.
func (d *destination) Forms() (forms []config.Form) {
	type plain destination
	for i := range destinationKinds {
		k := &destinationKinds[i]
		one := newDestination(k)
		if c, ok := one.Kind.(*sqlstore.Config); ok && k.key == "postgres" {
			c.Postgres = config.PlainSecret("host=db") // for what holds of it alone
			c.Libpq.SSLMode = "verify-full"            // which depends on the host
		}
		one.complete()
		if c, ok := one.Kind.(*sqlstore.Config); ok {
			c.Postgres, c.Libpq.SSLMode = config.Secret{}, ""
		}
		forms = append(forms, config.Form{Value: (*plain)(one), Key: k.key})
	}
	return forms
}
