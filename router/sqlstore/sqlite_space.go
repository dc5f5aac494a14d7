package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/weirlog/weir/router"
)

// On a full disk SQLite can neither delete rows nor checkpoint: both write. So
// weir stops inserting while there is still room for them, and keeps a file beside the
// database whose blocks it can give away when others have taken that room.

// space is what weir knows of the disk.
type space struct {
	full bool // SQLite has met the end of the disk since there was room
}

const (
	stopBytes    = 2 * liteWALBytes
	reserveBytes = 16 << 20
	reserveMin   = 1 << 20
	plentyOfDisk = 8                      // times stopBelow, above which nobody counts
	roomTime     = 200 * time.Millisecond // of removing rows before an attempt is given up
)

// stopBelow is the free space from which on nothing is inserted, on a disk of that size.
func stopBelow(total int64) int64 { return min(stopBytes, total/8) }

// reserveSize is that of the reserve file on a disk of that size; 0: none.
func reserveSize(total int64) int64 {
	if n := min(reserveBytes, total/16); n >= reserveMin {
		return n
	}
	return 0
}

func (d *lite) reserve() string { return d.home() + "-reserve" }

// keepReserve makes the reserve file when there is none and enough room for it.
func (d *lite) keepReserve() {
	free, total, ok := d.disk()
	size := reserveSize(total)
	if !ok || size == 0 {
		return
	}
	if info, err := os.Lstat(d.reserve()); err == nil && (info.Size() >= size || !info.Mode().IsRegular()) {
		return
	}
	if free < stopBelow(total)+size {
		return
	}
	f, err := os.OpenFile(d.reserve(), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		if err = errors.Join(allocate(f, size), f.Close()); err != nil {
			os.Remove(d.reserve())
		}
	}
	const what = "keep a reserve for a full disk"
	if err != nil {
		d.say(what, "", err)
		return
	}
	d.works(what)
}

// dropReserve gives the blocks of the reserve file away and reports whether there were any.
func (d *lite) dropReserve() bool {
	err := os.Remove(d.reserve())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.say("give the reserve away", "", err)
	}
	return err == nil
}

// fill writes zeros: blocks where they cannot be had otherwise.
func fill(f *os.File, size int64) error {
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}

// metFull notes that SQLite has met the end of the disk, and says so in f.
func (d *lite) metFull(f *failure) {
	free, total, ok := d.disk()
	if !ok || free >= stopBelow(total) {
		return // a limit of the file's own, such as max_page_count
	}
	switch f.code {
	case sqlite.ResultFull.String():
		f.class = down
	default:
		if f.class != down || free >= reserveMin {
			return
		}
	}
	d.tending.space.full = true
	f.err = fmt.Errorf("disk full: %w", f.err)
}

// room fails while the disk is too full to store anything. It first makes room
// if it can.
func (d *lite) room(ctx context.Context) error {
	c := &d.tending
	free, total, ok := d.disk()
	if !ok || !c.space.full && free >= plentyOfDisk*stopBelow(total) {
		c.gauge.full.Set(0)
		return nil
	}
	if free >= stopBelow(total)+d.unwritten() && !c.space.full {
		c.gauge.full.Set(0)
		return nil
	}
	c.gauge.full.Set(1)
	c.gauge.disk.Set(float64(free))
	reader, err := d.makeRoom(ctx)
	if err != nil {
		return err
	}
	free, total, ok = d.disk()
	if need := stopBelow(total) + d.unwritten(); ok && free < need {
		why := ""
		if reader {
			why = ", where a reader's transaction keeps the WAL from being emptied"
		}
		return router.NeedsOperator(fmt.Errorf("disk full: %s free where %s is, nothing is stored below %s%s: make room there",
			sized(free), d.path, sized(need), why))
	}
	c.space.full = false
	c.gauge.full.Set(0)
	return nil
}

// unwritten is by how much the file will grow when the WAL is moved into it. A
// disk with less than that is a dead end: the WAL cannot be emptied, and nothing else
// be removed, since that would go into the WAL.
func (d *lite) unwritten() int64 {
	p := &d.tending.pages
	if d.conn == nil || d.tending.home == "" || d.count() != nil {
		return 0
	}
	info, err := os.Stat(d.tending.home)
	if err != nil {
		return 0
	}
	return max(p.count*p.size-info.Size(), 0)
}

// cramped reports whether there is not even room for the work of the retention: the disk
// is short and the WAL cannot be emptied, so that all that is removed would only make it longer.
func (d *lite) cramped() bool {
	free, total, ok := d.disk()
	if !ok || free >= stopBelow(total)/2+d.unwritten() {
		return false
	}
	f := d.truncateWAL()
	if f != nil && f.class != temp && d.dropReserve() {
		f = d.truncateWAL()
	}
	return f != nil
}

// makeRoom empties the WAL and removes rows, as far as the retention allows. reader
// says that one keeps the WAL from being emptied.
func (d *lite) makeRoom(ctx context.Context) (reader bool, err error) {
	c := &d.tending
	if c.space.full {
		d.dropReserve()
	}
	err = d.connect(ctx)
	if err != nil && d.dropReserve() {
		err = d.connect(ctx)
	}
	if err != nil {
		return false, err
	}
	defer d.hurry(tendPatience)()
	if f := d.look(time.Now()); f != nil {
		return false, d.abort(f)
	}
	f := d.truncateWAL()
	if f != nil && f.class != temp && d.dropReserve() {
		f = d.truncateWAL()
	}
	reader = f != nil && f.class == temp
	if !d.cfg.Retention.on() {
		return reader, nil
	}
	c.removal.next = [len(c.removal.next)]time.Time{} // now, not when it is due
	for end := time.Now().Add(roomTime); time.Now().Before(end) && ctx.Err() == nil; {
		now := time.Now()
		if d.cramped() {
			break
		}
		worked, f := d.removeOld(now, c.clock.Trusted(now))
		if f == nil && !worked {
			worked, f = d.giveBack(now, true)
		}
		if f != nil {
			d.fails("remove old rows", f)
			break
		}
		if !worked {
			break
		}
	}
	if d.conn != nil {
		f := d.truncateWAL()
		reader = f != nil && f.class == temp
	}
	return reader, nil
}

// first opens the file for the first time. A full disk is no error then, and
// neither is another program that is writing: the first Write waits.
func (d *lite) first(ctx context.Context) error {
	err := d.connect(ctx)
	if err != nil {
		if free, total, ok := d.disk(); ok && free < stopBelow(total) && d.dropReserve() {
			err = d.connect(ctx)
		}
	}
	if f, ok := errors.AsType[*failure](err); ok && f.class == temp {
		d.log.Warn("the database cannot be opened at the moment", "error", err)
		err = nil
	}
	if err == nil {
		d.lookAtFilesystem()
	}
	return err
}

// newFile makes the file when there is none, for the group to read. SQLite gives
// its companions the same mode.
func (d *lite) newFile() error {
	if info, err := os.Stat(d.path); err == nil && info.IsDir() {
		return fmt.Errorf("open database: %s is a directory: name a file in it, such as %s", d.path, filepath.Join(d.path, "logs.db"))
	}
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if err != nil {
		return nil // there is one, or SQLite says it better
	}
	return f.Close()
}
