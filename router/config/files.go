package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// stdin is the path that stands for standard input.
const stdin = "-"

// Load reads files into a value, given by pointer. A path may name a directory:
// then its *.yaml are read in the order of their names, but for hidden ones and
// what lies in directories of it. The path "-" is Options.Stdin. The document is
// always returned; whether the value is usable says its Err.
func Load(into any, opts Options, paths ...string) *Document {
	d := newDocument(into, opts)
	var read []os.FileInfo
	texts := map[*file][]byte{}
	for _, path := range paths {
		for _, name := range d.expandDir(path) {
			f := d.open(name)
			text, info, err := d.read(name)
			for i, other := range read {
				if err == nil && os.SameFile(other, info) {
					err = fmt.Errorf("the same file is given twice: it is %s", d.files[i].name)
				}
			}
			read = append(read, info)
			if err != nil {
				f.broken = true
				d.add(Mistake{Place: Place{file: f}, What: err.Error()})
				continue
			}
			f.split(text)
			texts[f] = text
		}
	}
	for _, f := range d.files {
		if text, ok := texts[f]; ok {
			d.parse(f, text)
		}
	}
	d.decode(into)
	d.tellIdle()
	return d
}

// expandDir lists the files that a path stands for.
func (d *Document) expandDir(path string) (names []string) {
	info, err := os.Stat(path)
	if path == stdin || err != nil || !info.IsDir() {
		return []string{path}
	}
	at := Place{file: &file{name: path}}
	entries, err := os.ReadDir(path) // in the order of names
	if err != nil {
		d.add(Mistake{Place: at, What: plain(err).Error()})
		return nil
	}
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		switch ext := filepath.Ext(e.Name()); {
		case strings.HasPrefix(e.Name(), "."): // of editors, of a mounted ConfigMap
		case ext == ".yaml":
			names = append(names, name)
		case ext == ".yml":
			d.add(Mistake{Place: Place{file: &file{name: name}}, Warning: true, What: "this file is not read: of a directory weir reads *.yaml", Hint: "end its name in .yaml, or name it with a -c of its own"})
		}
	}
	if len(names) == 0 {
		d.add(Mistake{Place: at, What: "no *.yaml in this directory", Hint: "the files themselves; directories in it are not looked into"})
	}
	return names
}

// largest is how long a file may be. Longer ones are something else.
const largest = 1 << 20

// read reads a file, or standard input, for which there is no info.
func (d *Document) read(name string) ([]byte, os.FileInfo, error) {
	var in io.Reader
	var info os.FileInfo
	if name == stdin {
		switch in = d.opts.Stdin; {
		case slices.Contains(d.Files()[:len(d.files)-1], stdin):
			return nil, nil, errors.New("standard input is given twice")
		case in == nil:
			return nil, nil, errors.New("standard input is no configuration here")
		}
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, plain(err)
		}
		defer f.Close()
		if info, err = f.Stat(); err != nil {
			return nil, nil, plain(err)
		}
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, largest+1))
	switch {
	case err != nil:
		return nil, nil, plain(err)
	case len(text) > largest:
		return nil, nil, fmt.Errorf("larger than %d MiB: no configuration file", largest>>20)
	}
	return text, info, nil
}

// plain leaves out of an error the name, which stands before it.
func plain(err error) error {
	switch p, ok := errors.AsType[*fs.PathError](err); {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case ok:
		return fmt.Errorf("cannot be read: %w", p.Err)
	}
	return err
}

// anchored is where another file has the anchor that f lacks, if one has.
func (d *Document) anchored(f *file, name string) Place {
	anchor := regexp.MustCompile(`(?:^|[\s,\[{])(&` + regexp.QuoteMeta(name) + `)(?:[\s,\]}]|$)`)
	for _, other := range d.files {
		if other == f {
			continue
		}
		for i, line := range other.lines {
			if at := anchor.FindStringSubmatchIndex(line); at != nil {
				return Place{other, i + 1, len([]rune(line[:at[2]])) + 1}
			}
		}
	}
	return Place{}
}
