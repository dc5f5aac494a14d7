package sqlstore

import (
	"context"
	"fmt"
	"path/filepath"
)

// A Reader looks at what a destination stored, beside a weir that writes
// there. It changes nothing: what it runs is refused by the database when it
// would write. Its transactions are short, so that neither a WAL nor a lock is
// held on its behalf. It is for one goroutine.
type Reader struct {
	cfg    Config
	naming naming
	lite   *liteReader // one of the two
	pg     *pgReader
}

// OpenReader connects to the database of cfg, which must have passed Check.
// Relative paths begin at stateDir. Whether the table is there is seen later:
// weir may make it at any time. A connection that is lost is an error of what is
// under way; see Reopen.
func OpenReader(ctx context.Context, cfg Config, stateDir string) (*Reader, error) {
	r := &Reader{cfg: cfg}
	var err error
	if r.naming, err = parseNaming(string(cfg.Table)); err != nil {
		return nil, err
	}
	if cfg.SQLite == "" {
		r.pg = &pgReader{cfg: &r.cfg}
		return r, r.reopened(r.pg.open(ctx))
	}
	path := cfg.SQLite
	if !filepath.IsAbs(path) {
		path = filepath.Join(stateDir, path)
	}
	r.lite = &liteReader{cfg: &r.cfg, schema: r.naming.schema, path: path}
	return r, r.reopened(r.lite.open(ctx))
}

// reopened closes what a failed open has left.
func (r *Reader) reopened(err error) error {
	if err != nil {
		r.Close()
	}
	return err
}

// Reopen connects anew: after a lost connection, or to a file that has taken the place of another.
func (r *Reader) Reopen(ctx context.Context) error {
	r.Close()
	if r.pg != nil {
		return r.reopened(r.pg.open(ctx))
	}
	return r.reopened(r.lite.open(ctx))
}

// Close ends the connection.
func (r *Reader) Close() {
	if r.pg != nil {
		r.pg.close()
	}
	if r.lite != nil {
		r.lite.close()
	}
}

// Place tells what is looked at: the path of a file, or user@host:port/database.
func (r *Reader) Place() string {
	if r.pg != nil {
		return r.pg.place
	}
	return r.lite.path
}

// A lookError is what went wrong, and the way out of it.
type lookError struct {
	error
	hint string
}

func (e lookError) Unwrap() error { return e.error }

func (e lookError) Error() string { return fmt.Sprintf("%v: %s", e.error, e.hint) }
