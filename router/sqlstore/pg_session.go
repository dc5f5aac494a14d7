package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

const (
	pgStatementTimeout = time.Minute      // unless statement_timeout says otherwise
	pgAnswerMargin     = 10 * time.Second // at most: the server is heard of so much later
)

// statementTimeout is how long a statement may take; 0: for ever.
func (c *Config) statementTimeout() time.Duration {
	if c.StatementTimeout == nil {
		return pgStatementTimeout
	}
	return *c.StatementTimeout
}

// checkSession tells what is wrong in the settings of the connection.
func (c *Config) checkSession() []config.Problem {
	text, err := c.Postgres.Reveal()
	if err != nil {
		return []config.Problem{{Path: "postgres", What: err.Error()}}
	}
	bad := c.Libpq.check(text)
	if !c.Password.Empty() && saysPassword(text) {
		bad = append(bad, config.Problem{Path: "password", What: "the connection string has a password as well", Hint: "say it once, here"})
	}
	if limit := c.statementTimeout(); limit != 0 && limit < time.Second {
		bad = append(bad, config.Problem{Path: "statement_timeout", What: fmt.Sprintf("%s is too short", config.TimeText(limit)), Hint: "1s or more, or off"})
	}
	if len(bad) == 0 {
		settings, err := pgSettings(c)
		if err != nil {
			bad = append(bad, config.Problem{Path: "postgres", What: err.Error(), Hint: dsnHint(text)})
		} else {
			bad = append(bad, strangeWords(settings)...)
		}
	}
	return append(bad, append(c.checkPooler(), c.checkPartition()...)...)
}

// dsnHint is the way out for a connection string that cannot be read.
func dsnHint(text string) string {
	if scheme, _, ok := strings.Cut(text, "://"); ok && !isURL(text) && !strings.Contains(scheme, "=") {
		return "postgres:// in place of " + scheme + "://"
	}
	if isURL(text) {
		return "postgres://user@host:5432/database, with %20, %40 and %2F for a space, @ and / in it"
	}
	return "postgres://user@host/database, or host=… user=… dbname=…"
}

// onlyPostgres tells which settings a sqlite destination cannot have.
func (c *Config) onlyPostgres() (bad []config.Problem) {
	add := func(path string) {
		bad = append(bad, config.Problem{Path: path, What: path + " has no meaning for sqlite", Hint: "leave it out"})
	}
	if !c.Password.Empty() {
		add("password")
	}
	words, err := c.Libpq.words()
	if err != nil {
		add("sslpassword")
	}
	for _, w := range words {
		add(w[0])
	}
	if c.StatementTimeout != nil {
		add("statement_timeout")
	}
	if c.Pooler {
		add("pooler")
	}
	if c.Partition != nil {
		add("partition")
	}
	return bad
}

// sessionSQL is what weir sets for a session, or for a transaction when local.
//
// A wait for a lock ends before the statement does, so that it is known for
// one: 55P03 passes and never costs a row, while 57014 may be a row's fault. A
// transaction that we left open because our machine died is ended by the
// server: it holds the row of our position.
//
// Asking pg_settings keeps servers that do not know one of them content.
func (c *Config) sessionSQL(local bool) string {
	limit := c.statementTimeout()
	if limit == 0 {
		return ""
	}
	ms := limit.Milliseconds()
	if local {
		return fmt.Sprintf("SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %d; SET LOCAL idle_in_transaction_session_timeout = %d; ", ms, max(1, ms/2), 2*ms)
	}
	return fmt.Sprintf("SELECT pg_catalog.set_config(s.name, v.value, false) FROM pg_catalog.pg_settings s JOIN (VALUES ('statement_timeout', '%d'), ('lock_timeout', '%d'),"+
		" ('idle_in_transaction_session_timeout', '%d'), ('tcp_user_timeout', '%d')) v (name, value) ON v.name = s.name",
		ms, max(1, ms/2), 2*ms, pgUserTimeout.Milliseconds())
}

// beginSession makes a new connection ours: limits, session statements, the end
// of the one before, and the statement that every transaction needs.
func (d *postgres) beginSession(ctx context.Context) error {
	if d.cfg.Pooler {
		return d.tryLocals(ctx)
	}
	if err := d.limitSession(ctx); err != nil {
		return err
	}
	for i, s := range d.cfg.SessionStatements {
		if _, err := d.exec(ctx, s); err != nil {
			return &StatementError{i, beforeRows(pgFailure(fmt.Sprintf("session statement %q", s), err))}
		}
		if d.conn.TxStatus() != 'I' {
			return &StatementError{i, router.NeedsOperator(fmt.Errorf("session statement %q: leaves a transaction open", s))}
		}
	}
	if e := d.conn.ParameterStatus("client_encoding"); e != "UTF8" {
		return router.NeedsOperator(fmt.Errorf("session statements: client_encoding is %s, weir writes UTF8", e))
	}
	if err := d.takeOver(ctx); err != nil {
		return err
	}
	// Planned once: it runs in every transaction.
	if _, err := d.exec(ctx, "PREPARE weir_print(text) AS "+printSQL("$1")); err != nil {
		return beforeRows(pgFailure("prepare", err))
	}
	return nil
}

// A StatementError is what became of a session statement.
type StatementError struct {
	Index int // in Config.SessionStatements
	Err   error
}

func (e *StatementError) Error() string { return e.Err.Error() }
func (e *StatementError) Unwrap() error { return e.Err }

// limitSession applies sessionSQL to the connection.
func (d *postgres) limitSession(ctx context.Context) error {
	sql := d.cfg.sessionSQL(false)
	if sql == "" {
		return nil
	}
	if _, err := d.exec(ctx, sql); err != nil {
		return beforeRows(pgFailure("set statement_timeout", err))
	}
	return nil
}

// A patientConn gives a connection up on which nothing moved for limit: a
// server that hangs, or a proxy before one that has gone, acknowledges bytes
// and never answers. While bytes move in either direction it waits on.
type patientConn struct {
	net.Conn
	limit time.Duration

	mu    sync.Mutex
	given time.Time // the deadline that pgx set because a context ended
}

// patient wraps connections so.
func patient(limit time.Duration) func(context.Context, *pgconn.Config, net.Conn) (net.Conn, error) {
	return func(_ context.Context, _ *pgconn.Config, c net.Conn) (net.Conn, error) {
		return &patientConn{Conn: c, limit: limit}, nil
	}
}

// moved puts the end of patience off.
func (c *patientConn) moved() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given.IsZero() {
		_ = c.Conn.SetDeadline(time.Now().Add(c.limit)) // a closed connection tells at its use
	}
}

func (c *patientConn) Read(p []byte) (int, error) {
	c.moved()
	n, err := c.Conn.Read(p)
	return n, c.told(err)
}

func (c *patientConn) Write(p []byte) (int, error) {
	c.moved()
	n, err := c.Conn.Write(p)
	c.moved() // a read that is waiting meanwhile waits on
	return n, c.told(err)
}

// SetDeadline is pgx's way to end an operation.
func (c *patientConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given = t; t.IsZero() {
		t = time.Now().Add(c.limit)
	}
	return c.Conn.SetDeadline(t)
}

// told makes of our own timeout an error that says so: pgx takes a timeout for
// the end of a context and would keep the connection.
func (c *patientConn) told(err error) error {
	timeout, ok := errors.AsType[net.Error](err)
	if !ok || !timeout.Timeout() {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.given.IsZero() {
		return err
	}
	return fmt.Errorf("nothing was heard of the server for %v", c.limit)
}
