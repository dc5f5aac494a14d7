package sqlstore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// Tables says how tables are made, and what happens to rows that meet others.
type Tables struct {
	// MaxTables is how many tables a template may name, not counting those that
	// differ in a time only (0: 100). Rows of more go to the dead letters.
	MaxTables int `yaml:"max_tables,some"`
	// Create makes tables that are missing (nil and true).
	Create *bool `yaml:"create"`
	// CreateSuffix stands behind CREATE TABLE (…).
	CreateSuffix string `yaml:"create_suffix"`
	// Alter adds columns that a table lacks.
	Alter bool `yaml:"alter"`
	// OnConflict says what becomes of a row whose unique key is there already; nil: it is refused.
	OnConflict *OnConflict `yaml:"on_conflict"`
	// OnSchemaError says what becomes of rows that a table takes none of: wait (""
	// too) until somebody mends the table, or reject.
	OnSchemaError string `yaml:"on_schema_error"`
}

// OnConflict is `ignore`, or which key decides and what is updated.
type OnConflict struct {
	Ignore bool
	Key    []string `yaml:"key,required"`
	Update []string `yaml:"update"` // nil: all columns but those of the key
}

// UnmarshalConfig reads `ignore` or `{key: [a, b], update: [c]}`.
func (c *OnConflict) UnmarshalConfig(v *config.Value) {
	if !v.IsScalar() {
		type plain OnConflict
		v.Decode((*plain)(c))
		return
	}
	var word string
	if v.Decode(&word); word != "ignore" {
		v.Errorf("ignore, or {key: [COLUMN, …], update: [COLUMN, …]}", "%q is no way to treat rows that are there already", word)
	}
	c.Ignore = true
}

const defaultMaxTables = 100

func (c *Config) maxTables() int {
	if c.MaxTables == 0 {
		return defaultMaxTables
	}
	return c.MaxTables
}

func (c *Config) create() bool { return c.Create == nil || *c.Create }

func (c *Config) rejectSchemaErrors() bool { return c.OnSchemaError == "reject" }

// updates lists the columns that a row of a key that is there replaces.
func (c *Config) updates() []string {
	on := c.OnConflict
	switch {
	case on == nil || on.Ignore:
		return nil
	case on.Update != nil:
		return on.Update
	}
	var all []string
	for _, name := range c.columns().Names() {
		if !slices.Contains(on.Key, name) {
			all = append(all, name)
		}
	}
	return all
}

// conflictSQL is the end of an INSERT that says what becomes of rows that are there already.
func (c *Config) conflictSQL() string {
	on, update := c.OnConflict, c.updates()
	switch {
	case on == nil:
		return ""
	case on.Ignore:
		return " ON CONFLICT DO NOTHING"
	case len(update) == 0:
		return fmt.Sprintf(" ON CONFLICT (%s) DO NOTHING", quoteAll(on.Key))
	}
	set := make([]string, len(update))
	for i, name := range update {
		set[i] = fmt.Sprintf("%s = excluded.%[1]s", quote(name))
	}
	return fmt.Sprintf(" ON CONFLICT (%s) DO UPDATE SET %s", quoteAll(on.Key), strings.Join(set, ", "))
}

// checkTables tells what is wrong in Table and Tables.
func (c *Config) checkTables() []config.Problem {
	var bad []config.Problem
	add := func(path, hint, format string, args ...any) {
		bad = append(bad, config.Problem{Path: path, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	names, err := parseNaming(string(c.Table))
	switch ref := bareRef(string(c.Table)); {
	case ref != "":
		bad = append(bad, config.Problem{Path: "table", Part: "$" + ref, What: "$" + ref + " is no reference", Hint: strings.Replace(string(c.Table), "$"+ref, "${"+ref+"}", 1)})
	case err != nil:
		bad = append(bad, badTable(string(c.Table), err))
	case names.fixed == positionTable:
		add("table", "another name", "%s is weir's own", positionTable)
	case names.fixed != "":
		if c.MaxTables != 0 {
			add("max_tables", "leave it out", "there is one table: its name has no value in it")
		}
	case c.SQLite != "" && c.autocommit():
		add("explicit_commits", "leave it out, or one table", "false is not possible with several tables")
	case names.prefix == "":
		add("table", "logs_"+string(c.Table), "whoever sends messages could name any table: begin with text of your own")
	}
	if c.MaxTables < 0 || c.MaxTables > 10_000 {
		add("max_tables", "1 to 10000", "%d tables", c.MaxTables)
	}
	if !c.create() {
		for _, set := range []struct {
			key string
			is  bool
		}{{"create_suffix", c.CreateSuffix != ""}, {"indexes", len(c.Indexes) > 0}} {
			if set.is {
				add(set.key, "leave it out, or create: true", "weir makes no table, so %s has no effect", set.key)
			}
		}
	}
	if !goodSuffix(c.CreateSuffix) {
		add("create_suffix", "WITH (fillfactor = 100)", "cannot stand behind CREATE TABLE (…): more than one statement, or something left open")
	}
	if c.OnSchemaError != "" {
		bad = append(bad, config.OneOf("on_schema_error", c.OnSchemaError, "wait", "reject")...)
	}
	if on := c.OnConflict; on != nil && !on.Ignore {
		if len(on.Key) == 0 {
			add("on_conflict.key", "key: [COLUMN], or on_conflict: ignore", "no column says what a conflict is")
		}
		columns := c.columns()
		for _, list := range []struct {
			key   string
			names []string
		}{{"key", on.Key}, {"update", on.Update}} {
			seen := map[string]bool{}
			for i, name := range list.names {
				path := fmt.Sprintf("on_conflict.%s.%d", list.key, i)
				switch {
				case columns.Get(name) == nil:
					add(path, config.Suggest(name, columns.Names()), "no column %s", name)
				case seen[name]:
					add(path, "leave it out", "%s is there already", name)
				case list.key == "update" && slices.Contains(on.Key, name):
					add(path, "leave it out", "%s is part of the key", name)
				}
				seen[name] = true
			}
		}
	}
	return bad
}

// badTable tells what is wrong with a table's name.
func badTable(name string, err error) config.Problem {
	switch p := badTemplate("table", name, err); {
	case p.Part != "":
		return p
	case strings.Contains(name, "${timestamp}"):
		return config.Problem{Path: "table", Part: "${timestamp}", What: "${timestamp} would make a table for each moment", Hint: "${timestamp:%Y_%m_%d}"}
	case strings.Contains(name, "${"):
		return p
	default:
		p.Hint = "a name, or schema.name"
		return p
	}
}

// bareRef is a value of the message that a text names by $hostname, without the braces; "": none.
func bareRef(text string) string {
	for _, m := range bareDollar.FindAllStringSubmatch(text, -1) {
		if _, err := router.ParseRef(m[1]); err == nil {
			return m[1]
		}
	}
	return ""
}

var bareDollar = regexp.MustCompile(`(?:^|[^$])\$([a-z][a-z_]*)`)

// goodSuffix lets by clauses of a CREATE TABLE, and nothing behind it. It keeps
// mistakes out, not enemies.
func goodSuffix(s string) bool {
	var quote rune
	open := 0
	for _, r := range s {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '(':
			open++
		case r == ')':
			if open--; open < 0 {
				return false
			}
		case r == ';' || r == 0:
			return false
		}
	}
	return quote == 0 && open == 0 && !strings.Contains(s, "--") && !strings.Contains(s, "/*")
}
