package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/weirlog/weir/router"
	"github.com/weirlog/weir/router/admin"
	"github.com/weirlog/weir/router/config"
	"github.com/weirlog/weir/router/socket"
)

// A listener is an address that weir is to listen on.
type listener struct {
	of      string // "source edge", "admin"
	address string // scheme://…
	at      config.Place
}

// tryListeners looks whether all that is to be listened on can be, as far as that
// shows without doing it.
func (s *settings) tryListeners(doc *config.Document) {
	var all []listener
	if s.Admin != nil && !doc.Wrong("admin") {
		all = append(all, listener{"admin", withScheme(s.Admin.Address()), doc.At("admin", "listen")})
	}
	for _, e := range s.Sources {
		for i, address := range e.Value.Listen {
			at := doc.At("sources", e.Name, "listen", fmt.Sprint(i))
			if !doc.Wrong("sources", e.Name, "listen", fmt.Sprint(i)) {
				all = append(all, listener{"source " + e.Name, address, at})
			}
		}
	}
	for _, e := range s.Sources {
		tryOwner(doc, e.Name, &e.Value)
	}
	for i, l := range all {
		s.tryPath(doc, l)
		for _, other := range all[:i] {
			if other.of != l.of && socket.Overlap(other.address, l.address) {
				doc.Clash(l.at, other.at, "another address, or one source that several routes name", "%s listens where %s does", l.of, other.of)
				break
			}
		}
	}
}

// listen opens the sources' sockets, all or none. Of what cannot be had everything is told in doc, the admin's address too.
func (p *plant) listen(s *settings, doc *config.Document, rc *router.Config) error {
	for i, e := range s.Sources {
		source, err := listenOn(doc, &e, p.log)
		if err != nil {
			return fmt.Errorf("source %s: %w", e.Name, err)
		}
		if source == nil {
			continue
		}
		p.log.Info("listening", "source", e.Name, "on", source.Addrs())
		p.sources = append(p.sources, source)
		rc.Sources[i].Source = source
	}
	if doc.Err() != nil {
		if s.Admin != nil {
			if server, err := admin.Listen(*s.Admin, admin.Subject{Gatherer: p.registry}, p.log); err != nil {
				refuseListener(doc, doc.At("admin", "listen"), s.Admin.Address(), err)
			} else {
				server.Close()
			}
		}
		return errNotHad
	}
	return nil
}

// listenOn listens on all addresses of a source. Of those that cannot be had all are told in doc, and the source is nil.
func listenOn(doc *config.Document, e *config.Entry[socket.Config], log *slog.Logger) (*socket.Source, error) {
	c, refused := e.Value, 0 // addresses up to the last one that was refused
	for {
		source, err := socket.Listen(e.Name, c, log)
		failed, ok := errors.AsType[*socket.ListenError](err)
		switch {
		case ok:
			refuseListener(doc, doc.At("sources", e.Name, "listen", fmt.Sprint(refused+failed.Index)), failed.Address, failed.Err)
			refused += failed.Index + 1
			if c.Listen = c.Listen[failed.Index+1:]; len(c.Listen) > 0 {
				continue
			}
			return nil, nil
		case err == nil && refused > 0:
			return nil, source.Close()
		}
		return source, err
	}
}

// refuseListener tells, at its place, why something cannot be listened on.
func refuseListener(doc *config.Document, at config.Place, address string, err error) {
	hint := ""
	address = withScheme(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another address, or end what listens there (ss -lptu shows it)"
		if who := holder(address); who != "" {
			hint = "another address, or end what listens there: " + who
		}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "an address that this machine has (ip addr), or 0.0.0.0 for all of them"
	case errors.Is(err, syscall.EACCES) && !strings.HasPrefix(address, "unix"):
		hint = "a port from 1024 on, or AmbientCapabilities=CAP_NET_BIND_SERVICE for weir in systemd"
	case errors.Is(err, fs.ErrPermission):
		hint = "a directory that weir may write to"
	}
	doc.Errorf(at, hint, "listen on %s: %v", address, err)
}

// withScheme is scheme://… also for the admin's address.
func withScheme(address string) string {
	if !strings.Contains(address, "://") {
		return "tcp://" + address
	}
	return address
}

// tryOwner looks whether this machine knows whose the sockets are to be.
func tryOwner(doc *config.Document, name string, c *socket.Config) {
	if _, err := strconv.Atoi(c.Owner); err != nil && c.Owner != "" {
		if _, err := user.Lookup(c.Owner); err != nil {
			doc.Errorf(doc.At("sources", name, "owner"), "a user of this machine (getent passwd), or a number", "there is no user %s", c.Owner)
		}
	}
	if _, err := strconv.Atoi(c.Group); err != nil && c.Group != "" {
		if _, err := user.LookupGroup(c.Group); err != nil {
			doc.Errorf(doc.At("sources", name, "group"), "a group of this machine (getent group), or a number", "there is no group %s", c.Group)
		}
	}
}

// tryPath looks whether the file of a unix socket can be made. weir makes state_dir,
// and no other directory.
func (s *settings) tryPath(doc *config.Document, l listener) {
	scheme, path, _ := strings.Cut(l.address, "://")
	if !strings.HasPrefix(scheme, "unix") || strings.HasPrefix(path, "@") {
		return
	}
	if len(path) > socket.MostPath {
		doc.Errorf(l.at, "a shorter path", "%s has %d bytes, and the path of a unix socket at most %d", path, len(path), socket.MostPath)
		return
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err) && dir == filepath.Clean(s.StateDir):
	case os.IsNotExist(err):
		doc.Errorf(l.at, "make it, with RuntimeDirectory= of systemd if it is below /run", "there is no directory %s for the socket", dir)
	case err != nil:
		doc.Errorf(l.at, "", "look at the directory of the socket: %v", err)
	case !info.IsDir():
		doc.Errorf(l.at, "a path in a directory", "%s is no directory", dir)
	default:
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket == 0 {
			doc.Errorf(l.at, "another path, or move it away", "%s is there and no socket", path)
		} else if err := tryDirectory(dir); errors.Is(err, fs.ErrPermission) && dir != filepath.Clean(s.StateDir) {
			doc.Errorf(l.at, "a directory that weir may write to, such as RuntimeDirectory= of systemd makes", "%v", err)
		}
	}
}
