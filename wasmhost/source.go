package wasmhost

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weirlog/weir/filters/stock"
	"github.com/weirlog/weir/wasmhost/meter"
)

// A source is what a filter's `module:` leads to.
type source struct {
	module   []byte   // at most one byte more than a module may have
	hash     string   // SHA-256 of module, in hexadecimal
	path     string   // of the module; "": stock
	manifest Manifest // zero when there is none
	text     []byte   // of the manifest
}

// open reads what a filter is made of.
func (c *Config) open() (source, error) {
	if name, ok := c.Stock(); ok {
		b, ok := stock.Module(name)
		if !ok {
			return source{}, fmt.Errorf("no stock filter %q (there are %s)", name, strings.Join(stock.Names(), ", "))
		}
		return source{module: b, hash: hashOf(b)}, nil
	}
	s := source{path: c.Module}
	info, err := os.Stat(c.Module)
	if err == nil && info.IsDir() {
		s.manifest, s.text, s.path, err = readManifest(c.Module)
	}
	if err == nil {
		s.module, err = readMost(s.path, meter.MaxModuleBytes+1)
	}
	s.hash = hashOf(s.module)
	return s, err
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func readMost(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noWaiting, 0) // a pipe is refused below, and not waited for
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), most)) + bytes.MinRead) // at once: io.ReadAll makes a large file five times
	_, err = b.ReadFrom(io.LimitReader(f, most))
	return b.Bytes(), err
}

// sum tells whether two sources are the same.
func (s source) sum() string { return s.hash + " " + hashOf(s.text) }

// about begins the report on the module.
func (s source) about() Report {
	m := &s.manifest
	return Report{Name: printable(m.Name), Description: printable(m.Description), Version: printable(m.Version), Wants: m.Wants.describe(), Size: len(s.module), SHA256: s.hash}
}
