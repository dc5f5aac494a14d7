package wasmhost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// isCacheError tells whether the compile cache failed and not the module; wazero's errors have no types.
func isCacheError(err error) bool {
	_, file := errors.AsType[*fs.PathError](err)
	return file || strings.Contains(err.Error(), "compilationcache:")
}

// emptyDirectory removes the files below dir and keeps the folders.
func emptyDirectory(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Remove(path)
	})
}
