package sqlstore

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// A proxy that pools transactions (pgbouncer's pool_mode=transaction) gives
// every transaction a session that others had before. Nothing may be left in it
// and nothing found: settings go with each transaction, statements have no
// names, and the pid that the proxy tells is not a server's.

// poolerParameters are the startup parameters that pgbouncer takes (its manual, ignore_startup_parameters).
var poolerParameters = map[string]bool{"application_name": true, "client_encoding": true, "datestyle": true, "timezone": true, "standard_conforming_strings": true}

var (
	setWords     = regexp.MustCompile(`(?is)^\s*SET\s+(?:(SESSION|LOCAL)\s+)?(.*\S)\s*$`)
	setTransient = regexp.MustCompile(`(?i)^(?:CONSTRAINTS|TRANSACTION)\b`) // are a transaction's anyway
	setForGood   = regexp.MustCompile(`(?i)^CHARACTERISTICS\b`)
	setEncoding  = regexp.MustCompile(`(?i)^(?:NAMES|"?client_encoding"?)\b`)
)

// setLocal is a SET as it goes into each transaction, or why it cannot.
func setLocal(statement string) (sql, why string) {
	m := setWords.FindStringSubmatch(strings.TrimRight(statement, "; \t\r\n"))
	switch {
	case m == nil || strings.Contains(m[2], ";"):
		return "", "behind a pooler there is no session: only SET can be said, in each transaction"
	case setEncoding.MatchString(m[2]):
		return "", "weir writes UTF8"
	case setTransient.MatchString(m[2]):
		return "SET " + m[2], ""
	case setForGood.MatchString(m[2]) && strings.EqualFold(m[1], "SESSION"):
		return "", "behind a pooler there is no session: SET TRANSACTION …"
	case strings.HasPrefix(strings.ToUpper(m[2]), "AUTHORIZATION") && strings.EqualFold(m[1], "SESSION"):
		return "SET LOCAL SESSION " + m[2], ""
	}
	return "SET LOCAL " + m[2], ""
}

// locals are the statements with which each transaction begins behind a pooler, each with "; " behind it.
func (c *Config) locals() []string {
	var all []string
	for s := range strings.SplitSeq(strings.TrimSuffix(c.sessionSQL(true), "; "), "; ") {
		if s != "" {
			all = append(all, s+"; ")
		}
	}
	for _, s := range c.SessionStatements {
		sql, _ := setLocal(s)
		all = append(all, sql+"; ")
	}
	return all
}

// checkPooler tells what cannot be together with pooler.
func (c *Config) checkPooler() (bad []config.Problem) {
	if !c.Pooler {
		return nil
	}
	add := func(path, hint, format string, args ...any) {
		bad = append(bad, config.Problem{Path: path, What: fmt.Sprintf(format, args...), Hint: hint})
	}
	if c.autocommit() {
		add("explicit_commits", "leave one of them out", "explicit_commits: false and pooler: true do not go together: settings go with a transaction")
	}
	for i, s := range c.SessionStatements {
		if sql, why := setLocal(s); sql == "" {
			add(fmt.Sprintf("session_statements.%d", i), "SET NAME = 'value'; what is more, by ALTER ROLE … SET on the server", "%s", why)
		}
	}
	settings, err := pgSettings(c)
	if err != nil {
		return bad
	}
	for name := range settings.RuntimeParams {
		if !poolerParameters[strings.ToLower(name)] {
			add("postgres", "session_statements: [SET …]", "a pooler does not take %s in the connection string", name)
		}
	}
	return bad
}

// pooled runs SQL outside of a transaction block, or which begins one, with the
// locals in it. Statements that are sent together are a transaction by themselves.
func (d *postgres) pooled(ctx context.Context, sql string) ([]*pgconn.Result, error) {
	set := d.locals
	rest, begins := strings.CutPrefix(sql, beginWord)
	text, from := strings.Join(set, ""), 0
	if begins {
		text, from = beginWord+text, 1
	}
	results, err := d.conn.Exec(ctx, text+rest).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) <= from+len(set) {
		return []*pgconn.Result{{}}, nil
	}
	return append(results[:from], results[from+len(set):]...), results[len(results)-1].Err
}

const beginWord = "BEGIN; "

// tryLocals runs each session statement once, so that one that fails is told by its text.
func (d *postgres) tryLocals(ctx context.Context) error {
	for _, s := range d.cfg.SessionStatements {
		sql, _ := setLocal(s)
		_, err := d.conn.Exec(ctx, beginWord+sql+"; ROLLBACK").ReadAll()
		if err == nil {
			continue
		}
		f := pgFailure(fmt.Sprintf("session statement %q", s), err)
		d.rollback(ctx)
		return beforeRows(f)
	}
	if e := d.conn.ParameterStatus("client_encoding"); e != "UTF8" {
		return router.NeedsOperator(fmt.Errorf("client_encoding is %s behind the pooler, weir writes UTF8", e))
	}
	return nil
}
