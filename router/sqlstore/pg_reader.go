package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// pgReader is a connection to a PostgreSQL server whose transactions are read-only.
type pgReader struct {
	cfg    *Config
	schema string         // of the table; "": the search path's
	conn   *pgconn.PgConn // nil: closed
	place  string         // user@host:port/database
	told   string         // snapshot that news told of
	begin  string         // how a transaction begins, with "; " behind it

	patience time.Duration // of news
}

// pgPatience is how long news waits: a server that is gone without a word shall not look like one
// where nothing happens.
const pgPatience = 10 * time.Second

// open connects with the writer's settings. A standby will do: nothing is written.
func (d *pgReader) open(ctx context.Context) error {
	settings, err := pgSettings(d.cfg)
	if err != nil {
		return err
	}
	text, err := d.cfg.Postgres.Reveal()
	if err != nil {
		return err
	}
	if d.cfg.Libpq.target(text) == "" {
		settings.ValidateConnect = nil
	}
	if settings.RuntimeParams["application_name"] == "weir" {
		settings.RuntimeParams["application_name"] = "weir reader"
	}
	settings.AfterNetConnect = nil // a search may take long, and is interrupted by its user
	d.place = place(settings)
	if d.conn, err = pgconn.ConnectConfig(ctx, settings); err != nil {
		d.conn = nil
		return d.failed("connect to "+d.place, err)
	}
	set := d.sessionSettings()
	if d.cfg.Pooler { // there is no session
		d.begin = "BEGIN READ ONLY; " + strings.Join(set, "")
		return nil
	}
	d.begin = "BEGIN READ ONLY; "
	for _, s := range append(set, "SET default_transaction_read_only = on; ") {
		if _, err := d.conn.Exec(ctx, s).ReadAll(); err != nil {
			return d.failed("set up the session: "+strings.TrimSuffix(s, "; "), err)
		}
	}
	return nil
}

// sessionSettings are those session statements that decide what is found, such as
// SET search_path or SET ROLE, and ours; each with "; " behind it.
func (d *pgReader) sessionSettings() (set []string) {
	local := func(s string) string {
		if d.cfg.Pooler {
			s, _ = setLocal(s)
		}
		return s + "; "
	}
	for _, s := range d.cfg.SessionStatements {
		if m := setWords.FindStringSubmatch(strings.TrimRight(s, "; \t\r\n")); m != nil && !strings.Contains(m[2], ";") && !setEncoding.MatchString(m[2]) && !setTransient.MatchString(m[2]) {
			set = append(set, local(strings.TrimRight(s, "; \t\r\n")))
		}
	}
	for _, s := range []string{"TimeZone = 'UTC'", "DateStyle = 'ISO'", "bytea_output = 'hex'", "statement_timeout = 0"} {
		set = append(set, local("SET "+s))
	}
	return set
}

// failed is an error of the server's, or of the way to it, for a person.
func (d *pgReader) failed(attempt string, err error) error {
	f := pgFailure(attempt, err)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: %w", context.Canceled, f)
	}
	hint := ""
	switch {
	case f.code == "28P01":
		hint = "the password is wrong: see password: of the destination"
	case strings.HasPrefix(f.code, "28"):
		hint = "the server does not let this user in: see postgres: of the destination, and pg_hba.conf"
	case f.code == "3D000":
		hint = "see postgres: of the destination"
	case f.code == "42501":
		hint = "GRANT SELECT to the user that the destination names"
	case f.code == "25006":
		hint = "weir reads in a read-only transaction"
	case f.code == "" && d.conn == nil:
		hint = "does the server run, and is it reachable from here?"
	default:
		return f
	}
	return lookError{f, hint}
}

func (d *pgReader) close() {
	if d.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pgCloseTimeout)
	defer cancel()
	d.conn.Close(ctx)
	d.conn, d.told = nil, ""
}
