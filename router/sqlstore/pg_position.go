package sqlstore

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/router"
)

// reached is what a connection knows of positions. It is forgotten with the connection.
type reached struct {
	at     map[router.RunID]uint64
	pruned bool // what is of no use any more was removed
}

const (
	reachedRuns = 1000 // that are remembered at most
	// How long a session waits for the end of a transaction that another one left open, before it says so.
	positionWait = "5s"
)

func (r *reached) set(run router.RunID, at uint64) {
	if r.at == nil || len(r.at) >= reachedRuns {
		r.at = map[router.RunID]uint64{}
	}
	r.at[run] = at
}

// position implements router.Positioner.
//
// A plain SELECT would return the old position while the COMMIT of a connection
// that was lost is still being done: an UPDATE waits for its end. It also keeps the row from prunePositions.
func (d *postgres) position(ctx context.Context, run router.RunID) (at uint64, known bool, err error) {
	if d.conn != nil && !d.conn.IsClosed() {
		if at, ok := d.reached.at[run]; ok {
			return at, true, nil
		}
	}
	if err := d.connect(ctx); err != nil {
		return 0, false, err
	}
	host, _ := os.Hostname()
	sql := fmt.Sprintf(`BEGIN; SET LOCAL lock_timeout = '%s';
UPDATE %[2]s SET moved = now() WHERE run = '%[3]s' RETURNING pos;
INSERT INTO %[2]s (run, pos, destination, host) VALUES ('%[3]s', 0, %[4]s, %[5]s) ON CONFLICT DO NOTHING;
COMMIT`, positionWait, d.positionTable(), run, literal(d.name), literal(host))
	for range 3 {
		results, err := d.first(ctx, func() string { return sql })
		if err != nil {
			return 0, false, d.positionFailure(ctx, err)
		}
		found, inserted := results[2], results[3].CommandTag.RowsAffected() == 1
		switch {
		case len(found.Rows) == 1:
			if _, err := fmt.Sscan(string(found.Rows[0][0]), &at); err != nil {
				return 0, false, router.NeedsOperator(fmt.Errorf("read the position in %s: %w", d.positionTable(), err))
			}
		case !inserted:
			continue // a copy of ours noted it just now
		}
		d.idle = true
		d.reached.set(run, at)
		return at, !inserted, nil
	}
	return 0, false, fmt.Errorf("read the position in %s: it comes and goes", d.positionTable())
}

// positionFailure ends the transaction in which a position was asked for.
func (d *postgres) positionFailure(ctx context.Context, err error) error {
	if done, ok := err.(finished); ok {
		return done.error
	}
	f := pgFailure("read the position in "+d.positionTable(), err)
	d.rollback(ctx)
	switch f.code {
	case "55P03":
		f.err = fmt.Errorf("%w: a transaction that an earlier connection left is still under way", f.err)
	case "42P01": // it has gone
		if err := d.makeAgain(ctx); err != nil {
			return err
		}
		f.class = temp
	case "42501":
		return router.NeedsOperator(fmt.Errorf("%w: %s", f, d.positionGrants()))
	}
	return beforeRows(f)
}

// positionSQL moves the position of the transaction's run. It changes no row
// unless that is where the writer knew it.
func (d *postgres) positionSQL() string {
	return fmt.Sprintf("UPDATE %s SET pos = %d, moved = now() WHERE run = '%s' AND pos = %d; ", d.positionTable(), d.span.To, d.span.Run, d.span.From)
}

// positionMoved makes an error of the results of a BEGIN whose positionSQL moved nothing.
func (d *postgres) positionMoved(results []*pgconn.Result) error {
	for _, r := range results {
		if r.CommandTag.Update() && r.CommandTag.RowsAffected() == 0 {
			delete(d.reached.at, d.span.Run)
			return fmt.Errorf("run %s is not at %d: %w", d.span.Run, d.span.From, router.ErrMoved)
		}
	}
	return nil
}

// positionTable is its quoted name: it stands beside the table of the rows.
func (d *postgres) positionTable() string { return table{d.table.schema, positionTable}.sql() }

const positionColumns = "run uuid PRIMARY KEY, pos bigint NOT NULL, destination text, host text, " +
	"moved timestamptz NOT NULL DEFAULT now()"

func (d *postgres) positionGrants() string {
	return fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO …", d.positionTable())
}

// createPositions makes the table of positions when there is none. It never is
// made in a transaction with rows, which would hold up everybody else's.
func (d *postgres) createPositions(ctx context.Context) error {
	t := table{d.table.schema, positionTable}
	// Every transaction changes a row: room for its versions on the page.
	sql := fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s) WITH (fillfactor = 50)", t.sql(), positionColumns)
	made, err := d.make(ctx, t, sql)
	if f, ok := err.(*failure); ok && f.code == "42501" {
		return router.NeedsOperator(fmt.Errorf("%w: as a user who may: %s; %s", f, sql, d.positionGrants()))
	}
	if err != nil {
		return err
	}
	if made {
		d.log.Info("created the table of positions", "table", t.String())
	}
	return nil
}

// prunePositions removes runs that nobody has moved or asked for in a long time, as far as
// we may: once for each connection, behind its first transaction, when all that we need were
// asked for. Rows of a server whose clock was not set are left alone.
func (d *postgres) prunePositions(ctx context.Context) {
	if d.reached.pruned {
		return
	}
	d.reached.pruned = true
	d.exec(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE run IN (SELECT run FROM %[1]s
 WHERE moved < now() - interval '90 days' AND moved > '2020-01-01' FOR UPDATE SKIP LOCKED)`, d.positionTable()))
}

// A backend is the server's end of a connection.
type backend struct {
	pid   uint32
	start string // pids are used again
}

const backendStart = "to_char(backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"

// takeOver ends what the connection before this one may have left on the server,
// where its transaction would hold the position until the server notices. What
// waits for a standby has committed here already, and is left to wait.
func (d *postgres) takeOver(ctx context.Context) error {
	old := d.self
	d.self = backend{}
	if old.pid != 0 {
		_, err := d.exec(ctx, fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %d AND pid <> pg_backend_pid() AND wait_event IS DISTINCT FROM 'SyncRep' AND %s = '%s'",
			old.pid, backendStart, old.start))
		if err != nil && d.conn.IsClosed() {
			d.self = old
			return beforeRows(pgFailure("end the session of the lost connection", err))
		}
	}
	result, err := d.exec(ctx, "SELECT "+backendStart+" FROM pg_stat_activity WHERE pid = pg_backend_pid()")
	if err != nil {
		return beforeRows(pgFailure("look for our own session", err))
	}
	if len(result.Rows) == 1 {
		d.self = backend{d.conn.PID(), string(result.Rows[0][0])}
	}
	return nil
}
