package wasmhost

import (
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	wasi "github.com/tetratelabs/wazero/sys"
)

// grantedFS is what one instance sees of a mount. It never leaves the granted directory, also not by symbolic links,
// opens nothing but directories and regular files, for all else may wait, and counts what is read and written as the
// guest's work.
type grantedFS struct {
	sys.UnimplementedFS
	in    *instance
	mount *mount
}

// mostOpen is how many files an instance may have open.
const mostOpen = 32

const changing = sys.O_WRONLY | sys.O_RDWR | sys.O_CREAT | sys.O_TRUNC | sys.O_APPEND

func (g *grantedFS) OpenFile(name string, flag sys.Oflag, perm fs.FileMode) (sys.File, sys.Errno) {
	name = path.Clean(name)
	if g.in.opened >= mostOpen {
		return nil, sys.EAGAIN // WASI's "too many open files" has no number in wazero
	}
	if g.mount.dir == nil && name == "." {
		if flag&changing != 0 {
			return nil, sys.EISDIR
		}
		return g.adapt(&listing{mount: g.mount}, flag, perm)
	}
	root, real, write, err := g.mount.lookup(name)
	if err != nil {
		return nil, sys.UnwrapOSError(err)
	}
	if flag&changing != 0 && !write {
		return nil, sys.EROFS
	}
	switch info, err := root.Stat(real); {
	case err == nil && !info.IsDir() && !info.Mode().IsRegular():
		return nil, sys.EPERM
	case err != nil && !(os.IsNotExist(err) && flag&sys.O_CREAT != 0):
		return nil, sys.UnwrapOSError(err)
	}
	f, err := root.OpenFile(real, osFlags(flag), perm&0o777)
	if err != nil {
		return nil, sys.UnwrapOSError(err)
	}
	if info, err := f.Stat(); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		f.Close()
		return nil, sys.EPERM
	}
	return g.adapt(f, flag, perm)
}

func osFlags(flag sys.Oflag) (n int) {
	switch {
	case flag&sys.O_RDWR != 0:
		n = os.O_RDWR
	case flag&sys.O_WRONLY != 0:
		n = os.O_WRONLY
	}
	for _, f := range []struct {
		theirs sys.Oflag
		ours   int
	}{{sys.O_CREAT, os.O_CREATE}, {sys.O_TRUNC, os.O_TRUNC}, {sys.O_APPEND, os.O_APPEND}, {sys.O_EXCL, os.O_EXCL}} {
		if flag&f.theirs != 0 {
			n |= f.ours
		}
	}
	return n | noWaiting
}

// adapt makes one of wazero's files of an open one.
func (g *grantedFS) adapt(f fs.File, flag sys.Oflag, perm fs.FileMode) (sys.File, sys.Errno) {
	adapted, errno := (&sysfs.AdaptFS{FS: one{f}}).OpenFile("f", flag, perm)
	if errno != 0 {
		f.Close()
		return nil, errno
	}
	g.in.opened++
	return &grantedFile{File: adapted, in: g.in}, 0
}

// one is a file system in which everything is the same open file.
type one struct{ f fs.File }

func (o one) Open(string) (fs.File, error) { return o.f, nil }

func (g *grantedFS) Stat(name string) (wasi.Stat_t, sys.Errno) {
	f, errno := g.OpenFile(name, sys.O_RDONLY, 0)
	if errno != 0 {
		return wasi.Stat_t{}, errno
	}
	defer f.Close()
	return f.Stat()
}

func (g *grantedFS) Lstat(name string) (wasi.Stat_t, sys.Errno) { return g.Stat(name) }

// change runs f where name may be changed.
func (g *grantedFS) change(name string, f func(root *os.Root, name string) error) sys.Errno {
	root, real, write, err := g.mount.lookup(path.Clean(name))
	switch {
	case err != nil:
		return sys.UnwrapOSError(err)
	case !write || g.mount.dir == nil:
		return sys.EROFS
	}
	return sys.UnwrapOSError(f(root, real))
}

func (g *grantedFS) Mkdir(name string, perm fs.FileMode) sys.Errno {
	return g.change(name, func(r *os.Root, name string) error { return r.Mkdir(name, perm&0o777) })
}

func (g *grantedFS) Rmdir(name string) sys.Errno {
	return g.change(name, func(r *os.Root, name string) error {
		if info, err := r.Lstat(name); err == nil && !info.IsDir() {
			return sys.ENOTDIR
		}
		return r.Remove(name)
	})
}

func (g *grantedFS) Unlink(name string) sys.Errno {
	return g.change(name, func(r *os.Root, name string) error {
		if info, err := r.Lstat(name); err == nil && info.IsDir() {
			return sys.EISDIR
		}
		return r.Remove(name)
	})
}

func (g *grantedFS) Rename(from, to string) sys.Errno {
	return g.change(from, func(r *os.Root, from string) error { return r.Rename(from, path.Clean(to)) })
}

// grantedFile counts what goes through it. It is handed out in pieces, so that the clock is looked at between them.
type grantedFile struct {
	sys.File
	in     *instance
	closed bool
}

const mostPiece = 64 << 10

func (f *grantedFile) piece(buf []byte) []byte {
	buf = buf[:min(len(buf), mostPiece)]
	f.in.clock.Charge(len(buf))
	return buf
}

func (f *grantedFile) Read(buf []byte) (int, sys.Errno)  { return f.File.Read(f.piece(buf)) }
func (f *grantedFile) Write(buf []byte) (int, sys.Errno) { return f.File.Write(f.piece(buf)) }
func (f *grantedFile) Pread(buf []byte, off int64) (int, sys.Errno) {
	return f.File.Pread(f.piece(buf), off)
}
func (f *grantedFile) Pwrite(buf []byte, off int64) (int, sys.Errno) {
	return f.File.Pwrite(f.piece(buf), off)
}

func (f *grantedFile) Readdir(n int) ([]sys.Dirent, sys.Errno) {
	if n < 0 || n > 1000 {
		n = 1000
	}
	f.in.clock.Charge(n * 64)
	return f.File.Readdir(n)
}

// Close is called by the guest, or by wazero when the instance goes.
func (f *grantedFile) Close() sys.Errno {
	if !f.closed {
		f.closed = true
		f.in.opened--
	}
	return f.File.Close()
}

// listing is the directory that granted files stand in.
type listing struct {
	mount *mount
	at    int
}

func (l *listing) Stat() (fs.FileInfo, error) { return l, nil }
func (l *listing) Read([]byte) (int, error)   { return 0, sys.EISDIR }
func (l *listing) Close() error               { return nil }
func (l *listing) Name() string               { return path.Base(l.mount.as) }
func (l *listing) Size() int64                { return 0 }
func (l *listing) Mode() fs.FileMode          { return fs.ModeDir | 0o555 }
func (l *listing) ModTime() time.Time         { return time.Time{} }
func (l *listing) IsDir() bool                { return true }
func (l *listing) Sys() any                   { return nil }

func (l *listing) ReadDir(n int) (all []fs.DirEntry, err error) {
	for ; l.at < len(l.mount.files) && (n <= 0 || len(all) < n); l.at++ {
		f := l.mount.files[l.at]
		info, err := f.in.Stat(f.real)
		if err != nil {
			continue
		}
		all = append(all, fs.FileInfoToDirEntry(named{info, f.name}))
	}
	return all, nil
}

// named is a file's information under another name.
type named struct {
	fs.FileInfo
	name string
}

func (n named) Name() string { return n.name }
