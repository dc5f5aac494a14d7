package sqlstore

import (
	"context"
	"fmt"
	"io/fs"
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
	db     looker // that one
}

// OpenReader connects to the database of cfg, which must have passed Check.
// Relative paths begin at stateDir. Whether the table is there is seen later:
// weir may make it at any time. A connection that is lost is an error of what is
// under way; see Reopen.
func OpenReader(ctx context.Context, cfg Config, stateDir string) (*Reader, error) {
	r, err := NewReader(cfg, stateDir)
	if err != nil {
		return nil, err
	}
	return r, r.Reopen(ctx)
}

// NewReader is OpenReader without a connection: Follow waits for one.
func NewReader(cfg Config, stateDir string) (*Reader, error) {
	r := &Reader{cfg: cfg}
	var err error
	if r.naming, err = parseNaming(string(cfg.Table)); err != nil {
		return nil, err
	}
	if cfg.SQLite == "" {
		r.pg = &pgReader{cfg: &r.cfg, schema: r.naming.schema, patience: pgPatience}
		r.db = r.pg
		return r, nil
	}
	path := cfg.SQLite
	if !filepath.IsAbs(path) {
		path = filepath.Join(stateDir, path)
	}
	r.lite = &liteReader{cfg: &r.cfg, schema: r.naming.schema, path: path}
	r.db = r.lite
	return r, nil
}

// Reopen connects anew: after a lost connection, or to a file that has taken the place of another.
func (r *Reader) Reopen(ctx context.Context) error {
	r.Close()
	err := r.db.open(ctx)
	if err != nil {
		r.Close()
	}
	return err
}

// Close ends the connection.
func (r *Reader) Close() {
	r.db.close()
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

// A missingFile is fs.ErrNotExist in words for a person.
type missingFile string

func (m missingFile) Error() string { return "there is no file " + string(m) }

func (m missingFile) Is(err error) bool { return err == fs.ErrNotExist }
