// Package toolchain begins filters and builds them: one file a language, which knows the folder that its authors start
// from, how such a folder is recognised, and the compiler that makes a module of it.
//
// All it writes comes out of the program itself, SDKs included. Compilers are those of the machine; one that is missing
// is told with what to install.
package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A language is what is known about one.
type language struct {
	name     string   // as in --lang
	source   string   // the file that an author edits, below the folder; @NAME@ stands for the filter's name
	needs    string   // what is to be installed, in the words of the README
	before   []string // commands that come before the first build
	settings bool     // a new filter has one below `config:`
	marks    string   // the files by which a folder of it is recognised, for people
	owns     func(dir string) bool
	sdk      func() []file        // what of the SDK stands in a new folder; nil: nothing
	ready    func(f finder) error // a *Missing when the compiler is not there
	build    func(b *building) error
}

// languages in the order in which a folder is tried: the ones with a project file of their own come first, because
// such a folder may hold sources of other languages too.
var languages = []*language{&rust, &golang, &assemblyscript, &c, &wat}

// Languages returns the names that New takes, sorted.
func Languages() []string {
	var names []string
	for _, l := range languages {
		names = append(names, l.name)
	}
	slices.Sort(names)
	return names
}

// Ready returns a [*Missing] when the compiler of a language is not installed on this machine. What a build fetches into
// its folder is not looked at.
func Ready(lang string) error {
	l := languageNamed(lang)
	if l == nil {
		return usagef("no language %q (there are %s)", lang, strings.Join(Languages(), ", "))
	}
	return l.ready(machine)
}

// Recognised lists the files by which Build knows the language of a folder.
func Recognised() string {
	var marks []string
	for _, l := range languages {
		marks = append(marks, l.marks)
	}
	return strings.Join(marks, ", ")
}

func languageNamed(name string) *language {
	i := slices.IndexFunc(languages, func(l *language) bool { return l.name == name })
	if i < 0 {
		return nil
	}
	return languages[i]
}

// A building is one build under way.
type building struct {
	ctx    context.Context
	dir    string    // absolute
	module string    // what is to be made, absolute
	told   io.Writer // what the compiler says
	tools  finder
}

// Build makes the module of the folder dir, NAME.wasm in it, where NAME is the folder's own name, and returns its path
// below dir. What the compiler says goes to told. The file appears when it is whole, so that a weir that watches it
// never reads a part. The error is a [*Missing] when there is no compiler.
func Build(ctx context.Context, dir string, told io.Writer) (module string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err != nil {
		return "", usagef("build: no folder %s", dir)
	} else if !info.IsDir() {
		return "", usagef("build: %s is no folder (build takes the folder of a filter, run and test take modules)", dir)
	}
	i := slices.IndexFunc(languages, func(l *language) bool { return l.owns(abs) })
	if i < 0 {
		return "", usagef("build %s: no sources that weir knows how to build (%s)", dir, Recognised())
	}
	name := filepath.Base(abs) + ".wasm"
	temporary, err := os.MkdirTemp("", "weir-build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	b := &building{ctx: ctx, dir: abs, module: filepath.Join(temporary, name), told: told, tools: machine}
	if err := languages[i].build(b); err != nil {
		return "", fmt.Errorf("build %s: %w", dir, err)
	}
	if err := replace(filepath.Join(abs, name), b.module); err != nil {
		return "", fmt.Errorf("build %s: %w", dir, err)
	}
	return filepath.Join(dir, name), nil
}

// replace puts the content of from into path, whole or not at all.
func replace(path, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("the compiler wrote no module: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".weir-build-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone when all went well
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// run runs a compiler in the folder. What it says is passed on as it is.
func (b *building) run(env []string, tool string, args ...string) error {
	return b.runInto(b.told, env, tool, args...)
}

// runInto is run, with what the compiler prints on its standard output in out.
func (b *building) runInto(out io.Writer, env []string, tool string, args ...string) error {
	cmd := exec.CommandContext(b.ctx, tool, args...)
	cmd.Dir, cmd.Env = b.dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, b.told
	if err := cmd.Run(); err != nil {
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		return fmt.Errorf("%s: %w", filepath.Base(tool), err)
	}
	return nil
}

// sources returns the files in dir with one of these extensions, sorted, below dir.
func sources(dir string, extensions ...string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(extensions, filepath.Ext(e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}

func exists(parts ...string) bool {
	_, err := os.Stat(filepath.Join(parts...))
	return !errors.Is(err, fs.ErrNotExist)
}

// A Missing says that a tool is not installed, or not complete.
type Missing struct {
	What    string // what there is not
	Install string // how to get it
}

func (m *Missing) Error() string { return m.What + "\n" + strings.TrimRight(m.Install, "\n") }

// NewerSource returns a source file of the folder, below it, that was changed after the module was built; "": none, or
// there is no such module.
func NewerSource(dir, module string) string {
	built, err := os.Stat(module)
	if err != nil {
		return ""
	}
	newer := ""
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir
		case d.IsDir():
			if path != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "target") {
				return fs.SkipDir
			}
		case slices.Contains(sourceExtensions, filepath.Ext(path)):
			if info, err := d.Info(); err == nil && info.ModTime().After(built.ModTime()) {
				newer, _ = filepath.Rel(dir, path)
				return fs.SkipAll
			}
		}
		return nil
	})
	return newer
}

var sourceExtensions = append([]string{".go", ".h", ".rs", ".ts", ".wat"}, cExtensions...)
