package sqlstore

import (
	"fmt"
	"time"
)

const (
	minPages = 16 // of a step that gives pages back
	maxPages = 4096
)

// giveBack gives some of the free pages back to the disk, when they are many or the
// disk is short: the next rows will want some again.
func (d *lite) giveBack(time.Time, bool) (worked bool, f *failure) {
	c := &d.tending
	p := &c.pages
	if !d.cfg.Retention.on() || p.vacuum != 2 {
		p.giving = false
		return false, nil
	}
	free, total, ok := d.disk()
	short := ok && d.cfg.Retention.KeepFree > 0 && free < d.wantedFree(total)
	switch {
	case p.free == 0 || !short && p.free <= p.count/16+64:
		p.giving = false
	case short || p.free > p.count/8+256:
		p.giving = true
	}
	if !p.giving {
		return false, nil
	}
	p.step = max(p.step, minPages)
	began, before := time.Now(), p.free
	if f := d.run("give pages back", fmt.Sprintf("PRAGMA %s.incremental_vacuum(%d)", quote(d.schemaName()), p.step)); f != nil {
		return false, f
	}
	p.step = adapt(p.step, time.Since(began), minPages, maxPages)
	if short {
		// The file becomes shorter when the WAL has been moved into it.
		if f := d.truncateWAL(); f != nil && f.class != temp {
			return false, f
		}
	}
	if f := d.count(); f != nil {
		return false, f
	}
	p.giving = p.giving && p.free < before
	return true, nil
}
