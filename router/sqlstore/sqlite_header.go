package sqlstore

import (
	"io"
	"os"
)

// liteMagic begins every SQLite database that is not empty. Source: https://www.sqlite.org/fileformat2.html, 1.3.
const liteMagic = "SQLite format 3\x00"

// MaybeSQLite reports whether a file may be a SQLite database, or become one: it is empty, begins as one, or cannot be read.
func MaybeSQLite(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err != nil
	}
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	begin := make([]byte, len(liteMagic))
	n, err := io.ReadFull(f, begin)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return true
	}
	return n == 0 || string(begin[:n]) == liteMagic
}
