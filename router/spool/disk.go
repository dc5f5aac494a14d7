package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// disk is a directory of segments. The second implementation fails on demand.
type disk interface {
	list() ([]string, error)                // names, sorted
	create(name string) (file, error)       // a new one, for writing
	open(name string) (file, error)         // for reading
	edit(name string) (file, error)         // for both
	remove(name string) error               //
	replace(name string, data []byte) error // whole or not at all; not durable
	load(name string) ([]byte, error)
	sync() error // what was created and removed is durable
	free() (bytes int64, known bool)
	close() error
}

type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error // data, and what is needed to find it
	Size() (int64, error)
	Close() error
}

// directory is a disk's real one.
type directory struct {
	path string
	self *os.File
}

// openDirectory makes the directory when it is not there, and locks it.
func openDirectory(path string) (*directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	self, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := lock(self); err != nil {
		self.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s is used by another weir", path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &directory{path, self}, nil
}

// Free is how many bytes weir's user may still write on the file system of a directory, or of that in which it would be made.
// known is false on systems other than Linux.
func Free(dir string) (bytes int64, known bool) {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return freeBytes(dir)
		}
		dir = filepath.Dir(dir)
	}
}

func (d *directory) list() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d *directory) create(name string) (file, error) {
	return d.openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}
func (d *directory) open(name string) (file, error) { return d.openFile(name, os.O_RDONLY) }
func (d *directory) edit(name string) (file, error) { return d.openFile(name, os.O_RDWR) }

func (d *directory) openFile(name string, flag int) (file, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), flag, 0o600)
	if err != nil {
		return nil, err
	}
	return dataFile{f}, nil
}

// remove frees the file's space at once: a reader that still has it open would keep it otherwise.
func (d *directory) remove(name string) error {
	path := filepath.Join(d.path, name)
	f, openErr := os.OpenFile(path, os.O_WRONLY, 0)
	err := os.Remove(path)
	if openErr == nil {
		if err == nil {
			f.Truncate(0)
		}
		f.Close()
	}
	return err
}

func (d *directory) replace(name string, data []byte) error {
	path := filepath.Join(d.path, name)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (d *directory) load(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(d.path, name))
}
func (d *directory) sync() error         { return d.self.Sync() }
func (d *directory) free() (int64, bool) { return freeBytes(d.path) }
func (d *directory) close() error        { return d.self.Close() }

type dataFile struct{ *os.File }

func (f dataFile) Sync() error { return syncData(f.File) }

func (f dataFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
