package sqlstore

import (
	"path/filepath"
	"regexp"
)

// lookAtFilesystem warns of a file system on which SQLite may damage the file.
func (d *lite) lookAtFilesystem() {
	c := &d.tending
	if c.network = c.filesystem(filepath.Dir(d.path)); c.network != "" {
		d.log.Warn("the database is on a network file system; SQLite may damage it there. Put it on a local disk, or use PostgreSQL",
			"file", d.path, "filesystem", c.network, "wal", !d.cfg.ownJournal())
	}
}

var journalStatement = regexp.MustCompile(`(?i)^\s*pragma\s+(?:\w+\s*\.\s*)?journal_mode\s*[=(]`)

// ownJournal reports whether a session statement chooses the journal mode: then
// weir leaves it alone, so that a file on a network drive never gets a WAL.
func (c *Config) ownJournal() bool {
	for _, s := range c.SessionStatements {
		if journalStatement.MatchString(s) {
			return true
		}
	}
	return false
}
