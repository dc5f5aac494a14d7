package wasmhost

import (
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
	module []byte // at most one byte more than a module may have
}

// open reads what a filter is made of.
func (c *Config) open() (source, error) {
	if name, ok := c.Stock(); ok {
		b, ok := stock.Module(name)
		if !ok {
			return source{}, fmt.Errorf("no stock filter %q (there are %s)", name, strings.Join(stock.Names(), ", "))
		}
		return source{module: b}, nil
	}
	b, err := readMost(c.Module, meter.MaxModuleBytes+1)
	return source{module: b}, err
}

func readMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// sum tells whether two sources are the same.
func (s source) sum() string {
	sum := sha256.Sum256(s.module)
	return hex.EncodeToString(sum[:])
}

// about begins the report on the module.
func (s source) about() Report {
	sum := sha256.Sum256(s.module)
	return Report{Size: len(s.module), SHA256: hex.EncodeToString(sum[:])}
}
