package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A Backup says how a SQLite database is copied.
type Backup struct {
	Path     string                  // of the copy
	Force    bool                    // a file that is there is replaced, when the copy is complete
	Check    string                  // PRAGMA quick_check or integrity_check of the copy; "": none
	Progress func(done, total int64) // bytes; may be nil
}

// A BackupReport tells what a copy cost.
type BackupReport struct {
	Bytes int64         // of the copy
	Read  time.Duration // for which the transaction was open that keeps the WAL from being emptied
	Check time.Duration
}

const backupPages = 256 // that are copied between two looks at ctx

// Backup copies the SQLite database, as it is at one moment, while others write to it. The copy is there under its name when it is complete, checked
// and on the disk, or not at all; it is one file, in journal mode DELETE, with the mode of the original.
//
// It is copied page by page inside of one read transaction. Without that, the backup of SQLite begins anew whenever somebody
// else commits, and does not end beside a busy weir. The WAL of the original grows meanwhile by what is written.
func (r *Reader) Backup(ctx context.Context, b Backup) (report BackupReport, err error) {
	if r.lite == nil {
		return report, lookError{errors.New("a PostgreSQL database is not copied by weir"), "pg_dump, or pg_basebackup for the whole server"}
	}
	c := &copying{Backup: b, from: r.lite}
	if err := c.place(); err != nil {
		return report, err
	}
	defer c.clean()
	report, err = c.copy(ctx)
	if err == nil && r.lite.frozen && !r.lite.current() { // a weir has begun to write: now it can be read beside that
		if err = r.Reopen(ctx); err == nil {
			report, err = c.copy(ctx)
		}
	}
	if err == nil {
		report.Check, err = c.settle(ctx)
	}
	if err == nil {
		err = c.publish()
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return report, err
}

// copying is a backup under way.
type copying struct {
	Backup
	from   *liteReader
	source string // the file that is copied
	temp   string // what the copy is called until it is complete
}

// place looks whether the copy can be put where it is wanted, and begins its file.
func (c *copying) place() error {
	if c.source = c.from.path; c.from.schema != "" {
		err := sqlitex.ExecuteTransient(c.from.conn, "SELECT file FROM pragma_database_list WHERE name = ?", &sqlitex.ExecOptions{
			Args: []any{c.from.schema}, ResultFunc: func(s *sqlite.Stmt) error { c.source = s.ColumnText(0); return nil }})
		if err != nil {
			return c.from.failed("find the tables of", err)
		}
	}
	original, err := os.Stat(c.source)
	if err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	if real, err := filepath.EvalSymlinks(c.Path); err == nil {
		c.Path = real // a link stays one
	}
	if dir := filepath.Dir(c.Path); !exists(dir) {
		return lookError{fmt.Errorf("there is no directory %s", dir), "make it, or another place"}
	}
	if err := c.mayBe(original); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.Path), filepath.Base(c.Path)+".partial-*")
	if err != nil {
		return fmt.Errorf("begin the copy: %w", err)
	}
	c.temp = f.Name()
	return errors.Join(f.Chmod(original.Mode().Perm()), f.Close())
}

// mayBe reports what stands against a copy of that name.
func (c *copying) mayBe(original os.FileInfo) error {
	here, err := os.Lstat(c.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("begin the copy: %w", err)
	}
	real, err := filepath.EvalSymlinks(c.source)
	if err != nil {
		return fmt.Errorf("begin the copy: %w", err)
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", "-reserve"} {
		if filepath.Base(c.Path) == filepath.Base(real)+suffix && sameDirectory(c.Path, real) && suffix != "" {
			return lookError{fmt.Errorf("%s would be taken for a part of the database itself", c.Path), "another name"}
		}
		if part, err := os.Stat(c.source + suffix); err == nil && here != nil && os.SameFile(part, here) {
			return lookError{fmt.Errorf("%s is the database itself", c.Path), "another name"}
		}
	}
	for _, suffix := range []string{"-wal", "-journal", "-shm"} {
		if _, err := os.Lstat(c.Path + suffix); err == nil {
			return lookError{fmt.Errorf("%s%s is there, which would be taken for a part of the copy", c.Path, suffix), "another name, or remove it if no program has that database open"}
		}
	}
	switch {
	case here == nil:
		return nil
	case here.IsDir():
		return lookError{fmt.Errorf("%s is a directory", c.Path), "name a file in it, such as " + filepath.Join(c.Path, filepath.Base(c.source))}
	case !here.Mode().IsRegular():
		return lookError{fmt.Errorf("%s is no file", c.Path), "another name"}
	case !c.Force:
		return lookError{fmt.Errorf("%s is there already: %w", c.Path, fs.ErrExist), "another name, or --force to replace it"}
	}
	return nil
}

func sameDirectory(one, other string) bool {
	a, err := os.Stat(filepath.Dir(one))
	if err != nil {
		return false
	}
	b, err := os.Stat(filepath.Dir(other))
	return err == nil && os.SameFile(a, b)
}

// copy fills the file, which the next attempt fills anew.
func (c *copying) copy(ctx context.Context) (report BackupReport, err error) {
	from := c.from.conn
	defer from.SetInterrupt(from.SetInterrupt(ctx.Done()))
	to, err := sqlite.OpenConn(c.temp, sqlite.OpenReadWrite)
	if err != nil {
		return report, c.failed("begin the copy", err)
	}
	defer to.Close()
	for _, s := range []string{"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF"} { // it is thrown away when something happens
		if err := sqlitex.ExecuteTransient(to, s, nil); err != nil {
			return report, c.failed("begin the copy", err)
		}
	}
	began := time.Now()
	if err := sqlitex.ExecuteTransient(from, "BEGIN", nil); err != nil {
		return report, c.from.failed("read", err)
	}
	defer func() {
		from.SetInterrupt(nil)
		sqlitex.ExecuteTransient(from, "ROLLBACK", nil)
		report.Read = time.Since(began)
	}()
	var pages, size int64
	err = sqlitex.ExecuteTransient(from, "SELECT page_count, page_size FROM pragma_page_count(?1), pragma_page_size(?1)", &sqlitex.ExecOptions{
		Args: []any{c.from.schemaName()}, ResultFunc: func(s *sqlite.Stmt) error {
			pages, size = s.ColumnInt64(0), s.ColumnInt64(1)
			return nil
		}}) // the transaction sees the database as it is now
	if err != nil {
		return report, c.from.failed("read", err)
	}
	report.Bytes = pages * size
	if free, _, ok := diskSpace(filepath.Dir(c.Path)); ok && free < report.Bytes {
		return report, lookError{fmt.Errorf("the copy needs %s, and %s are free where %s is to be", sized(report.Bytes), sized(free), c.Path), "make room there, or another place"}
	}
	backup, err := sqlite.NewBackup(to, "main", from, c.from.schemaName())
	if err != nil {
		return report, c.failed("begin the copy", err)
	}
	defer backup.Close()
	for more := true; more; {
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		if more, err = backup.Step(backupPages); err != nil {
			return report, c.failed("copy", err)
		}
		if c.Progress != nil {
			c.Progress(int64(backup.PageCount()-backup.Remaining())*size, report.Bytes)
		}
	}
	return report, nil
}

// settle makes the copy one file that is readable without companions, and checks it.
func (c *copying) settle(ctx context.Context) (took time.Duration, err error) {
	conn, err := sqlite.OpenConn(c.temp, sqlite.OpenReadWrite)
	if err != nil {
		return 0, c.failed("check the copy", err)
	}
	defer func() {
		if e := conn.Close(); err == nil && e != nil {
			err = c.failed("close the copy", e)
		}
	}()
	conn.SetInterrupt(ctx.Done())
	for _, s := range []string{"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = DELETE"} {
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			return 0, c.failed("check the copy", err)
		}
	}
	if c.Check == "" {
		return 0, nil
	}
	began := time.Now()
	var bad []string
	err = sqlitex.ExecuteTransient(conn, "PRAGMA "+c.Check+"(3)", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		if line := s.ColumnText(0); line != "ok" {
			bad = append(bad, line)
		}
		return nil
	}})
	if err != nil {
		return 0, c.failed("check the copy", err)
	}
	if len(bad) > 0 {
		return 0, lookError{fmt.Errorf("the copy is damaged, and so is the original where it was copied from: %s", strings.Join(bad, "; ")), "sqlite3 " + c.source + " .recover brings out what can be read"}
	}
	return time.Since(began), nil
}

// publish brings the copy onto the disk and gives it its name.
func (c *copying) publish() error {
	if err := syncPath(c.temp); err != nil {
		return fmt.Errorf("sync the copy: %w", err)
	}
	if _, err := os.Lstat(c.Path); err == nil && !c.Force {
		return fmt.Errorf("%s has been made by somebody else meanwhile: %w", c.Path, fs.ErrExist)
	}
	if err := os.Rename(c.temp, c.Path); err != nil {
		return fmt.Errorf("name the copy: %w", err)
	}
	if err := syncPath(filepath.Dir(c.Path)); err != nil {
		return fmt.Errorf("sync the directory of the copy: %w", err)
	}
	return nil
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// clean removes what an attempt leaves.
func (c *copying) clean() {
	if c.temp == "" {
		return
	}
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		os.Remove(c.temp + suffix)
	}
}

func (c *copying) failed(attempt string, err error) error {
	f := liteFailure(attempt, err)
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultFull {
		return lookError{f, "make room where " + c.Path + " is to be"}
	}
	return f
}
