//go:build !linux

package sqlstore

import "os"

// NetworkFilesystem names the kind of file system of a directory when a SQLite
// database is not safe there. It is not known here.
func NetworkFilesystem(dir string) string { return "" }

// diskSpace is not known here.
func diskSpace(dir string) (free, total int64, ok bool) { return 0, 0, false }

func allocate(f *os.File, size int64) error { return fill(f, size) }
