package wasmhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sysfs"

	"github.com/weirlog/weir/router/config"
)

// A Grant lets a guest use a directory, or one file of one.
type Grant struct {
	// Path is a directory or a regular file, relative to weir's own directory.
	Path string `yaml:"path,required"`
	// As is where the guest sees it, such as /data or /data/sites.csv.
	As string `yaml:"as,required"`
	// Write allows changes too: without it nothing can be changed or made.
	Write bool `yaml:"write"`
}

func (g Grant) as() string { return cleanGuestPath(g.As) }

// checkGrants tells what is wrong in fs: and env: themselves.
func (c *Config) checkGrants() (p []config.Problem) {
	for i, g := range c.FS {
		switch {
		case g.Path == "":
			p = append(p, config.Problem{Path: fmt.Sprintf("fs.%d.path", i), What: "no path", Hint: "a directory or a file"})
		case !strings.HasPrefix(g.As, "/") || g.as() == "/":
			p = append(p, config.Problem{Path: fmt.Sprintf("fs.%d.as", i), What: fmt.Sprintf("%q is no place for the guest to find it", g.As), Hint: "an absolute path, such as /data"})
		case slices.ContainsFunc(c.FS[:i], func(o Grant) bool { return o.as() == g.as() }):
			p = append(p, config.Problem{Path: fmt.Sprintf("fs.%d.as", i), What: fmt.Sprintf("%s is there twice", g.As), Hint: "one place for each"})
		}
	}
	for _, e := range c.Env {
		if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") {
			p = append(p, config.Problem{Path: "env." + e.Name, What: fmt.Sprintf("%q is no name of an environment variable", e.Name), Hint: "NAME: value"})
		}
	}
	return p
}

// A variable is one of a guest's environment.
type variable struct{ name, value string }

// reveal reads the environment that a filter is granted.
func (c *Config) reveal() (all []variable, err error) {
	for _, e := range c.Env {
		value, err := e.Value.Reveal()
		if err == nil && strings.Contains(value, "\x00") {
			err = errors.New("it has a NUL byte")
		}
		if err != nil {
			return nil, fmt.Errorf("env: %s: %w", e.Name, err)
		}
		all = append(all, variable{e.Name, value})
	}
	return all, nil
}

// granted is what a filter's grants are at work: held open, so that nothing that is put into their place later is used.
type granted []*mount

// A mount is a directory that the guest sees: one of the machine's, or one that has just the granted files.
type mount struct {
	as    string
	dir   *os.Root // nil: only files
	write bool
	files []mountedFile
}

type mountedFile struct {
	name  string // that the guest sees
	in    *os.Root
	real  string // in that directory
	write bool
}

// openGrants opens what a filter may use.
func openGrants(grants []Grant) (all granted, err error) {
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	at := func(as string) *mount {
		for _, m := range all {
			if m.as == as {
				return m
			}
		}
		all = append(all, &mount{as: as})
		return all[len(all)-1]
	}
	for _, g := range grants {
		info, err := os.Stat(g.Path)
		switch {
		case err != nil:
			return all, fmt.Errorf("fs: %w", err)
		case info.IsDir():
			m := at(g.as())
			if len(m.files) > 0 {
				return all, fmt.Errorf("fs: %s has granted files already, so it cannot be a granted directory too", g.As)
			}
			if m.dir, err = os.OpenRoot(g.Path); err != nil {
				return all, fmt.Errorf("fs: %w", err)
			}
			m.write = g.Write
		case info.Mode().IsRegular():
			m := at(path.Dir(g.as()))
			if m.dir != nil || m.as == "/" {
				return all, fmt.Errorf("fs: %s: a file cannot stand in %s: give it a directory of its own", g.As, m.as)
			}
			in, err := os.OpenRoot(filepath.Dir(g.Path))
			if err != nil {
				return all, fmt.Errorf("fs: %w", err)
			}
			f := mountedFile{name: path.Base(g.as()), in: in, real: filepath.Base(g.Path), write: g.Write}
			m.files = append(m.files, f)
			if _, err := in.Stat(f.real); err != nil {
				return all, fmt.Errorf("fs: %s cannot be granted: %w (a link out of its directory is not followed: grant what it leads to)", g.Path, err)
			}
		default:
			return all, fmt.Errorf("fs: %s is neither a directory nor a regular file", g.Path)
		}
	}
	return all, nil
}

func (all granted) close() {
	for _, m := range all {
		if m.dir != nil {
			m.dir.Close()
		}
		for _, f := range m.files {
			f.in.Close()
		}
	}
}

// mounts gives an instance the grants of its program.
func (in *instance) mounts(c wazero.ModuleConfig) wazero.ModuleConfig {
	p := in.program
	for _, v := range p.env {
		c = c.WithEnv(v.name, v.value)
	}
	if len(p.granted) == 0 {
		return c
	}
	mounts := wazero.NewFSConfig()
	for _, m := range p.granted {
		mounts = mounts.(sysfs.FSConfig).WithSysFSMount(&grantedFS{in: in, mount: m}, m.as)
	}
	return c.WithFSConfig(mounts)
}

// lookup is where a path of a mount really is; "." is the directory itself.
func (m *mount) lookup(name string) (root *os.Root, real string, write bool, err error) {
	if name == "" {
		name = "."
	}
	if m.dir != nil {
		return m.dir, name, m.write, nil
	}
	for _, f := range m.files {
		if f.name == name {
			return f.in, f.real, f.write, nil
		}
	}
	return nil, "", false, fs.ErrNotExist
}
