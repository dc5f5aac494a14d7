package wasmhost

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
)

// compile keeps the compiler's panics from the process: the module is a stranger's.
func (h *Host) compile(ctx context.Context, module []byte) (c wazero.CompiledModule, err error) {
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, fmt.Errorf("the compiler failed on it: %v", r)
		}
	}()
	c, err = h.runtime.CompileModule(ctx, module)
	if err != nil && h.cacheDir != "" && isCacheError(err) {
		// A damaged file, or a full disk: then the module is in memory already.
		h.log.Warn("compile cache does not work and is emptied", "dir", h.cacheDir, "error", err)
		if err = emptyDirectory(h.cacheDir); err == nil {
			c, err = h.runtime.CompileModule(ctx, module)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("not a valid module: %w", err)
	}
	return c, nil
}
