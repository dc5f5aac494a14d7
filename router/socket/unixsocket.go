package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// A socketFile is the file of a unix socket that we bound. The zero value is
// none: an abstract socket.
type socketFile struct {
	path string
	made os.FileInfo
}

// removeStale removes a socket file that nobody listens on any more, as a
// killed process leaves it behind. What is no socket is never removed, and
// neither is one whose owner is alive: only a refused connection proves that
// it is dead.
func removeStale(network, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s exists and is no socket: move it away, or listen elsewhere", path)
	}
	c, err := net.DialTimeout(network, path, time.Second)
	switch {
	case err == nil:
		c.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s exists and cannot be asked whether somebody listens there: %w", path, err)
	}
	return fmt.Errorf("%s is in use: another process listens there (%w)", path, syscall.EADDRINUSE)
}

// owned sets mode and owner of a socket that was just bound.
func (c *Config) owned(path string) (f socketFile, err error) {
	if path[0] == '@' {
		return socketFile{}, nil
	}
	mode, err := strconv.ParseUint(c.Mode, 8, 32)
	if err != nil {
		return f, fmt.Errorf("mode %q: %w", c.Mode, err)
	}
	uid, gid := -1, -1
	if c.Owner != "" {
		if uid, err = lookupID(c.Owner, func(name string) (string, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", err
			}
			return u.Uid, nil
		}); err != nil {
			return f, err
		}
	}
	if c.Group != "" {
		if gid, err = lookupID(c.Group, func(name string) (string, error) {
			g, err := user.LookupGroup(name)
			if err != nil {
				return "", err
			}
			return g.Gid, nil
		}); err != nil {
			return f, err
		}
	}
	if uid >= 0 || gid >= 0 {
		if err := os.Chown(path, uid, gid); err != nil {
			return f, err
		}
	}
	if err := os.Chmod(path, fs.FileMode(mode)); err != nil {
		return f, err
	}
	made, err := os.Lstat(path)
	return socketFile{path, made}, err
}

// lookupID reads a number, or looks a name up.
func lookupID(name string, look func(string) (string, error)) (int, error) {
	if id, err := strconv.Atoi(name); err == nil {
		return id, nil
	}
	id, err := look(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(id)
}

// remove takes the file away, if it is still ours.
func (f socketFile) remove() {
	if f.path == "" {
		return
	}
	now, err := os.Lstat(f.path)
	if err == nil && os.SameFile(now, f.made) && now.ModTime().Equal(f.made.ModTime()) { // inode numbers are used again
		os.Remove(f.path)
	}
}
