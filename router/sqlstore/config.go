package sqlstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// A Config is a destination `sqlite:` or `postgres:` of the configuration file.
// When transactions end (flush_*) is the writer's matter and not in here.
type Config struct {
	// SQLite is the database file, relative to state_dir.
	SQLite string `yaml:"sqlite"`
	// Postgres is a connection string, as URL or as key=value pairs, without the
	// password or with it.
	Postgres config.Secret `yaml:"postgres"`
	// Password goes before any password in Postgres. It is read anew at each connect.
	Password config.Secret `yaml:"password,with=postgres"`
	Libpq    Libpq         `yaml:",inline"`
	// StatementTimeout is how long a statement on a PostgreSQL server may take
	// (nil: a minute, 0: for ever).
	StatementTimeout *time.Duration `yaml:"statement_timeout,off,with=postgres"`
	// Pooler says that the server is reached through a proxy that pools transactions.
	Pooler bool `yaml:"pooler,with=postgres"`
	// Partition divides the table by time; nil: it is as it is.
	Partition *Partition `yaml:"partition,with=postgres"`

	// Table is the name, or schema.name; both parts are quoted. Default: logs.
	// With values in the name (logs_${app_name}) each message says which table it goes into.
	Table  config.Template `yaml:"table"`
	Tables `yaml:",inline"`
	// Columns are filled instead of the default ones, AddColumns beside them.
	Columns    config.Map[Column] `yaml:"columns"`
	AddColumns config.Map[Column] `yaml:"add_columns"`
	// Indexes are names of columns; each gets an index when weir creates the
	// table. nil: one on received_at, if there is such a column; empty: none.
	Indexes []string `yaml:"indexes"`

	// Retention says what is removed from a SQLite database, nothing by default.
	Retention Retention `yaml:"retention,with=sqlite"`
	// FullText is the column of a SQLite table that gets a full-text index; "": none.
	FullText string `yaml:"full_text,with=sqlite"`

	// ExplicitCommits wraps the rows in BEGIN and COMMIT (nil and true). Without,
	// each row is its own transaction.
	ExplicitCommits *bool `yaml:"explicit_commits"`
	// Connections is how many write at once, each its own transactions; the rows
	// of one sender go over one of them. 0, which is absent: 1.
	Connections int `yaml:"connections,some"`
	// SessionStatements run on every new connection before everything but
	// weir's own settings.
	SessionStatements []string `yaml:"session_statements"`
}

// A Column says what one column of the table is filled with. Exactly one of
// From, Value and Template is set.
type Column struct {
	From     string          `yaml:"from"`     // see router.ParseRef
	Value    *Constant       `yaml:"value"`    // the same for all rows
	Template config.Template `yaml:"template"` // see router.ParseTemplate
	Type     string          `yaml:"type"`     // SQL type for CREATE TABLE; default: by what fills it
	NullIf   *string         `yaml:"null_if"`  // this text is NULL
	Default  *Constant       `yaml:"default"`  // in place of NULL
}

// UnmarshalConfig reads `host: hostname` or `host: {from: hostname, type: …}`.
func (c *Column) UnmarshalConfig(v *config.Value) {
	if v.IsScalar() {
		v.Decode(&c.From)
		return
	}
	type plain Column
	v.Decode((*plain)(c))
}

// A Constant is a value that the configuration gives: text, a number or a truth value.
type Constant struct {
	Text  string
	Typed bool // not text: Text is a number, true or false
}

// UnmarshalConfig reads a scalar.
func (c *Constant) UnmarshalConfig(v *config.Value) {
	switch v.Type() {
	case "":
		v.Errorf("text, a number, true or false", "not a single value")
	case "int":
		var n int64
		v.Decode(&n)
		c.Text, c.Typed = fmt.Sprint(n), true
	case "float":
		var f float64
		v.Decode(&f)
		c.Text, c.Typed = fmt.Sprint(f), true
	case "bool":
		var b bool
		v.Decode(&b)
		c.Text, c.Typed = fmt.Sprint(b), true
	default:
		v.Decode(&c.Text)
	}
}

// Check tells what is wrong in the configuration. It opens nothing.
func (c *Config) Check() []config.Problem {
	var bad []config.Problem
	add := func(path, hint, format string, args ...any) {
		bad = append(bad, config.Problem{Path: path, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	switch lite, pg := c.SQLite != "", !c.Postgres.Empty(); {
	case lite && pg:
		add("postgres", "two destinations, each with its name", "both sqlite and postgres")
	case !lite && !pg:
		add("", "sqlite: logs.db or postgres: postgres://user@host/database", "neither sqlite nor postgres")
	case lite:
		bad = append(bad, c.onlyPostgres()...)
	case pg:
		bad = append(bad, c.checkSession()...)
	}
	bad = append(bad, c.checkCare()...)
	bad = append(bad, c.checkTables()...)
	if len(c.Columns) > 0 && len(c.AddColumns) > 0 {
		add("add_columns", "put them into columns", "columns replaces the default columns, so there is nothing to add to")
	}
	switch {
	case c.Connections < 0 || c.Connections > 64:
		add("connections", "1 to 64", "%d connections", c.Connections)
	case c.Connections > 1 && c.SQLite != "":
		add("connections", "leave it out", "a SQLite file has one writer")
	case c.Connections > 1 && c.autocommit():
		add("connections", "leave explicit_commits out", "several connections need explicit commits")
	}
	columns := c.columns()
	names := map[string]bool{}
	for _, list := range []struct {
		key     string
		columns config.Map[Column]
	}{{"columns", c.Columns}, {"add_columns", c.AddColumns}} {
		for _, e := range list.columns {
			path := list.key + "." + e.Name
			for _, p := range e.Value.check(e.Name) {
				p.Path = strings.TrimSuffix(path+"."+p.Path, ".")
				bad = append(bad, p)
			}
			if !goodName(e.Name) {
				add(path, "at most 63 bytes, no NUL", "not a column name")
			}
		}
	}
	for _, e := range columns {
		folded := strings.ToLower(e.Name)
		switch {
		case names[folded] && len(c.Columns) == 0:
			add("add_columns."+e.Name, "another name, or columns: to say all of them", "there is a column %s already", e.Name)
		case names[folded] && c.SQLite != "":
			add("columns."+e.Name, "another name", "there is a column %s already: SQLite does not tell upper and lower case apart", e.Name)
		}
		if folded == "id" && c.SQLite != "" && len(c.Columns) == 0 {
			add("add_columns."+e.Name, "another name", "id is the key of weir's own table")
		}
		names[folded] = true
	}
	for i, name := range c.Indexes {
		if columns.Get(name) == nil {
			add(fmt.Sprintf("indexes.%d", i), config.Suggest(name, columns.Names()), "no column %s", name)
		}
	}
	for i, s := range c.SessionStatements {
		if strings.TrimSpace(s) == "" {
			add(fmt.Sprintf("session_statements.%d", i), "leave it out", "an empty statement")
		}
	}
	return bad
}

// check looks at the column of that name.
func (c *Column) check(name string) []config.Problem {
	var bad []config.Problem
	var set []string
	for _, by := range []struct {
		key string
		is  bool
	}{{"from", c.From != ""}, {"value", c.Value != nil}, {"template", c.Template != ""}} {
		if by.is {
			set = append(set, by.key)
		}
	}
	switch {
	case len(set) == 0:
		of := nearestRef(name)
		if of == "" {
			of = "hostname"
		}
		bad = append(bad, config.Problem{What: "nothing fills this column", Hint: "from: " + of + ", or value: or template:"})
	case len(set) > 1:
		bad = append(bad, config.Problem{What: "this column is filled twice, by " + strings.Join(set, " and "), Hint: "one of them"})
	}
	if c.From != "" {
		if _, err := router.ParseRef(c.From); err != nil {
			bad = append(bad, badRef("from", c.From, err))
		}
	}
	if c.Template != "" {
		if _, err := router.ParseTemplate(string(c.Template)); err != nil {
			bad = append(bad, badTemplate("template", string(c.Template), err))
		}
	}
	if c.Type != "" && !goodType(c.Type) {
		bad = append(bad, config.Problem{Path: "type", What: fmt.Sprintf("%q is no SQL type", c.Type), Hint: "bigint, varchar(20), timestamptz"})
	}
	if c.Value != nil && (c.NullIf != nil || c.Default != nil) {
		bad = append(bad, config.Problem{What: "null_if and default have no effect on a constant", Hint: "leave them out"})
	}
	return bad
}

// badRef tells of a value of a message that there is not.
func badRef(path, ref string, err error) config.Problem {
	p := config.Problem{Path: path, What: err.Error(), Hint: nearestRef(ref)}
	switch {
	case p.Hint != "": // it says it better
		p.What = fmt.Sprintf("%q is none of the message's keys", ref)
	case len(ref) > 1 && strings.ToUpper(ref) == ref && strings.ToLower(ref) != ref:
		p.Hint = "${env:" + ref + "} for an environment variable"
	}
	return p
}

// badTemplate tells of the first reference in a template that there is not.
func badTemplate(path, text string, err error) config.Problem {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "${")
		ref, next, closed := strings.Cut(after, "}")
		if !found || !closed {
			return config.Problem{Path: path, What: err.Error()}
		}
		name, _, _ := strings.Cut(ref, ":")
		if _, wrong := router.ParseRef(name); wrong != nil {
			p := badRef(path, name, wrong)
			if p.Part = "${" + name; p.Hint != "" && !strings.HasPrefix(p.Hint, "$") {
				p.Hint = "${" + p.Hint + strings.TrimPrefix(ref, name) + "}"
			}
			return p
		}
		rest = next
	}
}

// nearestRef is what somebody meant who wrote s for a value of a message; "" when nothing is near.
func nearestRef(s string) string {
	keys := router.KeyNames[1:]
	if first, rest, ok := strings.Cut(s, "."); ok && rest != "" {
		if near := config.Nearest(first, []string{"fields", "sd"}); near != "" {
			return near + "." + rest
		}
		return ""
	}
	return config.Nearest(s, keys)
}

// goodType lets by what CREATE TABLE may have behind a column's name: a type
// and constraints. It keeps mistakes out, not enemies: the file is the operator's.
func goodType(s string) bool {
	open := 0
	for _, c := range s {
		switch {
		case c == '(':
			open++
		case c == ')':
			if open--; open < 0 {
				return false
			}
		case c == ';' || c < ' ' || c == ',' && open == 0:
			return false
		}
	}
	first := s[0] | 0x20
	return open == 0 && (first >= 'a' && first <= 'z' || s[0] == '"')
}

func goodName(s string) bool {
	return s != "" && len(s) <= 63 && strings.IndexByte(s, 0) < 0
}

// table is a name in its parts.
type table struct{ schema, name string }

func parseTable(s string) (table, error) {
	if s == "" {
		return table{name: "logs"}, nil
	}
	schema, name, ok := strings.Cut(s, ".")
	if !ok {
		schema, name = "", s
	}
	if !goodName(name) || ok && !goodName(schema) || strings.Contains(name, ".") {
		return table{}, fmt.Errorf("%q is no table name", s)
	}
	return table{schema, name}, nil
}

// sql is the quoted name.
func (t table) sql() string {
	if t.schema == "" {
		return quote(t.name)
	}
	return quote(t.schema) + "." + quote(t.name)
}

func (t table) String() string {
	if t.schema == "" {
		return t.name
	}
	return t.schema + "." + t.name
}

// quote makes an identifier of s, in both databases.
func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	return strings.Join(quoted, ", ")
}

// defaultColumns are filled when the configuration does not say.
var defaultColumns = []string{"received_at", "timestamp", "facility", "severity", "hostname", "app_name", "proc_id", "msg_id",
	"structured_data", "fields", "message", "peer"}

// columns lists what is to be filled, in the order of the table.
func (c *Config) columns() config.Map[Column] {
	if len(c.Columns) > 0 {
		return c.Columns
	}
	var all config.Map[Column]
	for _, name := range defaultColumns {
		all = append(all, config.Entry[Column]{Name: name, Value: Column{From: name}})
	}
	return append(all, c.AddColumns...)
}

// indexes lists the columns to be indexed.
func (c *Config) indexes() []string {
	if c.Indexes != nil {
		return c.Indexes
	}
	if c.columns().Get("received_at") != nil {
		return []string{"received_at"}
	}
	return nil
}

func (c *Config) autocommit() bool { return c.ExplicitCommits != nil && !*c.ExplicitCommits }
