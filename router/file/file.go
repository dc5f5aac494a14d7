// Package file holds the destinations that write record JSON, one message a
// line, into a file or to standard output, and the one that writes nothing.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/config"
)

// A Config is a destination `file: PATH` of the configuration file.
type Config struct {
	// File is appended to, and made when it is not there. Relative paths start at state_dir.
	File string `yaml:"file"`
}

// Check implements config.Checker.
func (c Config) Check() []config.Problem {
	if c.File == "" {
		return []config.Problem{{Path: "file", What: "no path", Hint: "file: messages.jsonl"}}
	}
	return config.OddPath("file", c.File, "one file, which logrotate moves away; each line says whose it is, and when")
}

// A File appends messages to a file as record JSON, one a line.
//
// What Write returned nil for is on the disk: the file is synced once a
// transaction. A transaction that fails is cut off again, so that a line is
// never there twice; only when that fails too, or when the machine stops in the
// middle of it, may some of its lines stay, and they come again. A file that
// was moved away (logrotate) is left and made anew before the next transaction.
type File struct {
	path string
	file *os.File // nil: to be opened
	out  lines
}

// Open opens the file, and ends its last line if that was torn. dir is where
// relative paths start.
func Open(dir string, c Config) (*File, error) {
	f := &File{path: c.File}
	if !filepath.IsAbs(f.path) {
		f.path = filepath.Join(dir, f.path)
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

// Path is where the file is.
func (f *File) Path() string { return f.path }

func (f *File) open() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o750); err != nil {
		return router.NeedsOperator(err)
	}
	file, err := os.OpenFile(f.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return router.NeedsOperator(err)
	}
	if err := endLastLine(file); err != nil {
		file.Close()
		return passing(fmt.Errorf("end the last line of %s: %w", f.path, err))
	}
	if dir, err := os.Open(filepath.Dir(f.path)); err == nil { // the name must survive, too
		dir.Sync()
		dir.Close()
	}
	f.file = file
	return nil
}

// endLastLine appends a line end when the file does not end with one.
func endLastLine(file *os.File) error {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return err
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = file.Write([]byte{'\n'})
	return err
}

// Write appends msgs and syncs the file. It rejects nothing.
func (f *File) Write(ctx context.Context, msgs []*router.Message, _ func([]router.Rejected) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := f.current()
	if err != nil {
		return err
	}
	err = f.out.write(f.file, msgs)
	if err == nil {
		err = f.file.Sync()
	}
	regular := info.Mode().IsRegular()
	if err == nil || !regular && (errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)) {
		return nil // what is no regular file cannot be synced
	}
	if regular {
		f.file.Truncate(info.Size())
	}
	f.close() // after a failed sync the kernel calls the pages clean: begin anew
	return passing(fmt.Errorf("append to %s: %w", f.path, err))
}

// current makes sure that the open file is the one that has the name, and tells
// its state.
func (f *File) current() (os.FileInfo, error) {
	if f.file != nil {
		open, err := f.file.Stat()
		if err != nil {
			return nil, err
		}
		if named, err := os.Stat(f.path); err == nil && os.SameFile(open, named) {
			return open, nil
		}
		f.close()
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f.file.Stat()
}

// passing marks what does not pass by itself.
func passing(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EACCES) {
		return router.NeedsOperator(err)
	}
	return err
}

func (f *File) close() {
	f.file.Close()
	f.file = nil
}

// Close closes the file.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// lines writes messages as record JSON, one a line, in pieces of bounded size.
type lines struct{ buf []byte }

const piece = 256 << 10

func (l *lines) write(w io.Writer, msgs []*router.Message) error {
	l.buf = l.buf[:0]
	for i, m := range msgs {
		l.buf = append(router.AppendRecord(l.buf, m), '\n')
		if len(l.buf) < piece && i < len(msgs)-1 {
			continue
		}
		if _, err := w.Write(l.buf); err != nil {
			return err
		}
		l.buf = l.buf[:0]
	}
	if cap(l.buf) > 2*piece {
		l.buf = nil
	}
	return nil
}
