package toolchain

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weirlog/weir/filters/sdk"
)

// One archive a language, and every.txtar with what is the same in all. @NAME@ is the filter's name, @SOURCE@ the file
// to edit, @NEEDS@ what is to be installed, @COMMANDS@ what is typed before the first build, @CASES@ and @CONFIG@ the
// cases and the lines of YAML of a filter with a setting; the last three have their newlines.
//
//go:embed templates/*.txtar
var templates embed.FS

// A file is to be written into a new folder.
type file struct {
	name string // with slashes
	data []byte
}

// A Folder is a new filter.
type Folder struct {
	Name   string   // the folder, below the current one, and the filter
	Files  []string // what was written, below the folder, but for the SDK
	SDK    string   // where the SDK is, below the folder; "": there is none
	Source string   // the one to edit
	Before []string // commands to be run in it before the first build
}

// ErrUsage marks what the one who types must put otherwise.
var ErrUsage = errors.New("wrong usage")

type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }
func (e usageError) Unwrap() error      { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

var goodName = regexp.MustCompile("^[a-z][a-z0-9_-]{0,63}$")

// New writes the folder of a new filter into the folder in: sources, the SDK, a README and cases. It never writes over
// anything: the folder must not be there, or be empty. Errors that are the user's are [ErrUsage].
func New(in, name, lang string) (Folder, error) {
	l := languageNamed(lang)
	switch {
	case l == nil:
		return Folder{}, usagef("new: no language %q (there are %s)", lang, strings.Join(Languages(), ", "))
	case !goodName.MatchString(name):
		return Folder{}, usagef("new: %q is no name for a filter: a-z, 0-9, - and _, beginning with a letter, at most 64 (mask, drop-debug)", name)
	case name == "weir", name == "weir-filter":
		return Folder{}, usagef("new: a filter cannot be called %s, as the SDK in its folder is (mask, drop-debug)", name)
	}
	dir := filepath.Join(in, name)
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return Folder{}, usagef("new: the folder %s is there already, with %s in it: take another name, or remove it", name, entries[0].Name())
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Folder{}, usagef("new: there is something called %s already, which is no folder: take another name", name)
	}
	folder := Folder{Name: name, Source: strings.ReplaceAll(l.source, "@NAME@", name), Before: l.before}
	for _, f := range l.files(name) {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return Folder{}, fmt.Errorf("new: %w", err)
		}
		if err := writeNew(path, f.data); err != nil {
			return Folder{}, fmt.Errorf("new: %w", err)
		}
		if below, _, deep := strings.Cut(f.name, "weir/"); deep && below == "" {
			folder.SDK = "weir"
		} else {
			folder.Files = append(folder.Files, f.name)
		}
	}
	return folder, nil
}

// writeNew writes a file that must not be there.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// files returns what stands in a new folder of the language.
func (l *language) files(name string) []file {
	commands := ""
	for _, c := range l.before {
		commands += c + "\n"
	}
	cases, config := "", ""
	if l.settings {
		cases = `{"name":"the kind is a setting","config":{"kind":"security"},"in":{"message":"audit: on"},"out":{"message":"audit: on","kind":"security"},"verdict":"keep"}
{"name":"an unknown setting is refused","config":{"knd":"security"},"verdict":"refused"}
`
		config = "    config: { kind: audit }\n"
	}
	fill := strings.NewReplacer("@CASES@", cases, "@CONFIG@", config,
		"@SOURCE@", strings.ReplaceAll(l.source, "@NAME@", name), "@NAME@", name, "@NEEDS@", l.needs, "@COMMANDS@", commands)
	var files []file
	for _, archive := range []string{l.name, "every"} {
		b, err := templates.ReadFile("templates/" + archive + ".txtar")
		if err != nil {
			panic("BUG: embedded templates: " + err.Error())
		}
		for _, f := range txtar.Parse(b).Files {
			files = append(files, file{fill.Replace(f.Name), []byte(fill.Replace(string(f.Data)))})
		}
	}
	if l.sdk != nil {
		files = append(files, l.sdk()...)
	}
	return files
}

// sdkFiles returns the SDK of a language for a place below a new folder.
func sdkFiles(language, below string) []file {
	var files []file
	for _, f := range sdk.Files(language) {
		files = append(files, file{below + f.Name, f.Data})
	}
	return files
}
