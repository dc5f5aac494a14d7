package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// liteReader is a connection to a SQLite file that cannot write.
//
// A connection that reads a file in WAL mode makes the files -wal and -shm when
// they are missing, which they are when no program has the file open. It
// could leave them behind for somebody else to trip over. So a file that nobody
// has open is read as one that does not change, for as long as there is no -wal.
type liteReader struct {
	cfg    *Config
	schema string // of the table, "" is main
	path   string
	conn   *sqlite.Conn // nil: closed
	file   os.FileInfo  // of what conn has open
	frozen bool         // conn takes the file for one that does not change
	told   liteVersion  // what news told of
}

// liteVersion is another one when something has changed in a file, or another file is open.
type liteVersion struct {
	file         os.FileInfo
	data, schema int64
}

func (d *liteReader) open(ctx context.Context) error {
	header, err := d.look()
	if err != nil {
		return err
	}
	// Bytes 18 and 19 of the header (fileformat2.html, 1.3): 2 is WAL.
	d.frozen = len(header) > 19 && header[18] == 2 && header[19] == 2 && d.schema == "" && !exists(d.path+"-wal")
	return d.connect(ctx)
}

func (d *liteReader) connect(ctx context.Context) error {
	name := &url.URL{Scheme: "file", Path: d.path}
	query := url.Values{"mode": {"ro"}}
	if d.frozen {
		query.Set("immutable", "1")
	}
	abs, err := filepath.Abs(d.path)
	if err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	name.Path, name.RawQuery = filepath.ToSlash(abs), query.Encode()
	if d.conn, err = sqlite.OpenConn(name.String(), sqlite.OpenReadOnly|sqlite.OpenURI); err != nil {
		d.conn = nil
		return d.failed("open", err)
	}
	d.conn.SetInterrupt(ctx.Done())
	d.conn.SetBusyTimeout(liteBusy)
	statements := []string{"PRAGMA query_only = ON"}
	if d.schema != "" { // a database that a session statement attaches
		for _, s := range d.cfg.SessionStatements {
			if first := strings.Fields(s); len(first) > 0 && strings.EqualFold(first[0], "ATTACH") {
				statements = append(statements, strings.TrimRight(s, "; \t\n"))
			}
		}
	}
	for _, s := range append(statements, "SELECT count(*) FROM sqlite_schema") {
		if err := sqlitex.ExecuteTransient(d.conn, s, nil); err != nil {
			return d.failed("read", err)
		}
	}
	return nil
}

// look sees whether the file is there and is a database, and returns its first bytes.
func (d *liteReader) look() ([]byte, error) {
	f, err := os.Open(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, lookError{missingFile(d.path), "weir makes it when it starts; is it another folder, or another configuration (-c)?"}
	case errors.Is(err, fs.ErrPermission):
		return nil, lookError{err, "run this as the user that weir runs as, or as root (sudo)"}
	case err != nil:
		return nil, err
	}
	defer f.Close()
	if d.file, err = f.Stat(); err != nil {
		return nil, err
	}
	if d.file.IsDir() {
		return nil, lookError{fmt.Errorf("%s is a directory", d.path), "name the database file in it"}
	}
	header := make([]byte, 100)
	n, err := io.ReadFull(f, header)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("read %s: %w", d.path, err)
	}
	if header = header[:n]; n > 0 && !strings.HasPrefix(string(header), liteMagic) {
		return nil, lookError{fmt.Errorf("%s is not a SQLite database", d.path), "give the file that a destination names with sqlite:"}
	}
	return header, nil
}

// failed is an error of SQLite's for a person.
func (d *liteReader) failed(attempt string, err error) error {
	f := liteFailure(attempt+" "+d.path, err)
	hint := ""
	switch code := sqlite.ErrCode(err); code.ToPrimary() {
	case sqlite.ResultInterrupt:
		return fmt.Errorf("%w: %w", context.Canceled, f)
	case sqlite.ResultBusy, sqlite.ResultLocked:
		hint = "another program holds the database; try again when it is done"
	case sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultReadOnly, sqlite.ResultAuth:
		hint = "a reader needs to read " + filepath.Base(d.path) + "-wal and -shm too, and to make them in " + filepath.Dir(d.path) + " where they are missing: run this as the user that weir runs as, or as root (sudo)"
	case sqlite.ResultNotADB:
		hint = "this is not a SQLite database, or it is encrypted or damaged"
	case sqlite.ResultCorrupt:
		hint = "the file is damaged: sqlite3 " + d.path + " .recover brings out what can be read"
	default:
		return f
	}
	return lookError{f, hint}
}

// current reports whether conn still sees what the path leads to.
func (d *liteReader) current() bool {
	now, err := os.Stat(d.path)
	switch {
	case d.conn == nil:
		return false
	case err != nil: // it may be put back
		return !errors.Is(err, fs.ErrNotExist)
	case d.frozen:
		return os.SameFile(now, d.file) && now.ModTime().Equal(d.file.ModTime()) && now.Size() == d.file.Size() && !exists(d.path+"-wal")
	}
	return os.SameFile(now, d.file)
}

func (d *liteReader) close() {
	if d.conn != nil {
		d.conn.Close() // nothing was written: there is nothing to lose
		d.conn = nil
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
