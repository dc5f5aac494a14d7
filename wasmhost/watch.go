package wasmhost

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	settle = 200 * time.Millisecond // a file is taken when it is the same twice, so far apart
	look   = 2 * time.Second        // between two looks that no event asks for: network file systems tell of none
)

// Watch reloads filters whose module or manifest changes (see [Guest.Reload]), until ctx ends: also when another file is
// moved into its place, or when a symbolic link on the way to it turns, as volumes of Kubernetes do. A file that is
// still being written is left alone until it rests.
func (h *Host) Watch(ctx context.Context) {
	w := watch{host: h, seen: map[*Guest]*sighting{}}
	var events chan fsnotify.Event // nil: there are none to be had
	var troubles chan error
	if n, err := fsnotify.NewWatcher(); err != nil {
		h.log.Warn("changes of modules are found by looking, for the system gives no notice", "every", look, "error", err)
	} else {
		defer n.Close()
		w.notifier, events, troubles = n, n.Events, n.Errors
	}
	w.check(ctx)
	due := time.Now().Add(look)
	timer := time.NewTimer(look)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-events:
			if !ok {
				events = nil
			}
		case _, ok := <-troubles: // such as events that were lost; as long as nobody takes it, none comes
			if !ok {
				troubles = nil
			}
		case <-timer.C:
		}
		now := time.Now()
		switch {
		case due.After(now.Add(settle)): // no look is put off, for in some directories something is written all the time
			due = now.Add(settle)
		case due.After(now):
		case w.check(ctx):
			due = time.Now().Add(settle)
		default:
			due = time.Now().Add(look)
		}
		timer.Reset(time.Until(due))
	}
}

type watch struct {
	host     *Host
	notifier *fsnotify.Watcher // nil: none
	watched  []string          // directories
	seen     map[*Guest]*sighting
}

// A sighting is what a filter's files were when they were looked at last.
type sighting struct {
	stamp string // of the files: cheap to have
	sum   string // of their bytes, when they are about to be taken; "": nothing is
	tried string // the sum that was tried last
}

// check looks at the files of each filter, and reports whether some are to be looked at again soon.
func (w *watch) check(ctx context.Context) (again bool) {
	w.host.mu.Lock()
	guests := slices.Clone(w.host.guests)
	w.host.mu.Unlock()
	var dirs []string
	for _, g := range guests {
		if _, stock := g.settings.Stock(); stock {
			continue
		}
		dirs = append(dirs, directories(g.settings.Module)...)
		s := w.seen[g]
		if s == nil {
			s = &sighting{}
			w.seen[g] = s
		}
		if s.look(ctx, g) {
			again = true
		}
	}
	w.follow(dirs)
	return again
}

// look takes a change that is the same twice, and reports whether it waits for the second time.
func (s *sighting) look(ctx context.Context, g *Guest) (again bool) {
	stamp := stampOf(g.settings.Module)
	if stamp == s.stamp && s.sum == "" {
		return false
	}
	s.stamp = stamp
	src, err := g.settings.open()
	sum := src.sum()
	if err != nil {
		sum = err.Error()
	}
	switch {
	case sum == s.tried, sum == g.program.Load().sum && s.tried == "":
		s.sum = ""
		return false
	case sum != s.sum:
		s.sum = sum
		return true
	}
	s.sum, s.tried = "", sum
	g.Reload(ctx) // tells by itself
	return false
}

// stampOf tells a module's files from others, without reading them.
func stampOf(module string) string {
	stamp := ""
	for _, name := range []string{module, filepath.Join(module, ManifestName)} {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		stamp += fmt.Sprint(info.Size(), info.ModTime().UnixNano(), fileID(info), " ")
		if info.IsDir() {
			for _, one := range modulesIn(module) {
				stamp += one + stampOf(one)
			}
		}
	}
	return stamp
}

// directories are those in which a change can turn a path into another file: its own, and those of the links on the way.
func directories(path string) (dirs []string) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		dirs = append(dirs, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return dirs
	}
	for range 40 { // links; as many as the kernel follows
		dirs = append(dirs, filepath.Dir(path))
		link, rest := firstLink(path)
		if link == "" {
			break
		}
		to, err := os.Readlink(link)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(link), to)
		}
		dirs = append(dirs, filepath.Dir(link))
		path = filepath.Join(to, rest)
	}
	return dirs
}

// firstLink is the first symbolic link on a path, and what comes behind it.
func firstLink(path string) (link, rest string) {
	parts := strings.Split(path, string(filepath.Separator))
	for i := 2; i <= len(parts); i++ {
		p := strings.Join(parts[:i], string(filepath.Separator))
		if info, err := os.Lstat(p); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return p, filepath.Join(parts[i:]...)
		}
	}
	return "", ""
}

// follow makes the notifier watch these directories and no others.
func (w *watch) follow(dirs []string) {
	if w.notifier == nil {
		return
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	for _, d := range w.watched {
		if !slices.Contains(dirs, d) {
			w.notifier.Remove(d) // an error says that it has gone
		}
	}
	for _, d := range dirs {
		w.notifier.Add(d) // again, in case that it is another of the same name; looking helps where this fails
	}
	w.watched = dirs
}

// Reloaded is what became of one filter's reload.
type Reloaded struct {
	Filter  string
	Changed bool
	Loaded  time.Time // of the module that is at work
	Err     error
}

// Reload reloads all filters whose module or manifest has changed.
func (h *Host) Reload(ctx context.Context) (all []Reloaded) {
	h.mu.Lock()
	guests := slices.Clone(h.guests)
	h.mu.Unlock()
	for _, g := range guests {
		changed, err := g.Reload(ctx)
		g.swap.mu.Lock()
		all = append(all, Reloaded{g.name, changed, g.swap.loaded, err})
		g.swap.mu.Unlock()
	}
	return all
}
