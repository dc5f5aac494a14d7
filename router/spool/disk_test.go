package spool

import (
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
)

// memDisk is a directory in memory that knows what a power cut would leave of it, and fails on demand.
type memDisk struct {
	mu      sync.Mutex
	names   map[string]*memFile // as processes see it
	durable map[string]*memFile // as it would be after a power cut
	size    int64               // bytes that fit; 0: any number
	fail    func(op string) error
}

func newMemDisk() *memDisk {
	return &memDisk{names: map[string]*memFile{}, durable: map[string]*memFile{}}
}

// memFile has what was written, and what of it is on the disk.
type memFile struct {
	disk   *memDisk
	data   []byte
	synced []byte
	dirty  []extent // written and not synced
}

type extent struct{ from, to int64 }

// fails sets what decides about failing.
func (d *memDisk) fails(fail func(op string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = fail
}

func (d *memDisk) failing(op string) error {
	if d.fail != nil {
		return d.fail(op)
	}
	return nil
}

func (d *memDisk) list() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), nil
}

func (d *memDisk) create(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.failing("create"); err != nil {
		return nil, err
	}
	if d.names[name] != nil {
		return nil, fs.ErrExist
	}
	f := &memFile{disk: d}
	d.names[name] = f
	return f, nil
}

func (d *memDisk) open(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.names[name]; f != nil {
		return f, nil
	}
	return nil, fs.ErrNotExist
}

func (d *memDisk) edit(name string) (file, error) { return d.open(name) }

func (d *memDisk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.failing("remove"); err != nil {
		return err
	}
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	delete(d.names, name)
	return nil
}

func (d *memDisk) replace(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.failing("replace"); err != nil {
		return err
	}
	f := &memFile{disk: d, data: slices.Clone(data), synced: slices.Clone(data)}
	d.names[name], d.durable[name] = f, f
	return nil
}

func (d *memDisk) load(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.names[name]; f != nil {
		return slices.Clone(f.data), nil
	}
	return nil, fs.ErrNotExist
}

func (d *memDisk) sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.failing("syncdir"); err != nil {
		return err
	}
	d.durable = maps.Clone(d.names)
	return nil
}

func (d *memDisk) used() (n int64) {
	for _, f := range d.names {
		n += int64(len(f.data))
	}
	return n
}

func (d *memDisk) free() (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.size - d.used(), d.size > 0
}

func (d *memDisk) close() error { return nil }

// powerCut leaves what was synced, and of the rest what chance has written.
func (d *memDisk) powerCut(r *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.names)) { // names that were not synced may be there
		f := d.names[name]
		if d.durable[name] == nil && r.IntN(2) == 0 {
			d.durable[name] = f
		}
	}
	d.names = maps.Clone(d.durable)
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		f := d.names[name]
		after := slices.Clone(f.synced)
		const page = 512
		for _, e := range f.dirty {
			for at := e.from; at < e.to; {
				to := min(e.to, (at/page+1)*page)
				if r.IntN(2) == 0 && to <= int64(len(f.data)) {
					after = append(after, make([]byte, max(0, int(to)-len(after)))...) // holes are zero
					copy(after[at:to], f.data[at:to])
				}
				at = to
			}
		}
		f.data, f.synced, f.dirty = after, slices.Clone(after), nil
	}
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.failing("read"); err != nil {
		return 0, err
	}
	if off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	err := f.disk.failing("write")
	if err != nil {
		p = p[:len(p)/2]
	}
	if more := off + int64(len(p)) - int64(len(f.data)); f.disk.size > 0 && more > 0 && f.disk.used()+more > f.disk.size {
		p = p[:max(0, int64(len(p))-(f.disk.used()+more-f.disk.size))]
		err = syscall.ENOSPC
	}
	end := off + int64(len(p))
	if end > int64(len(f.data)) {
		f.data = append(f.data, make([]byte, end-int64(len(f.data)))...)
	}
	copy(f.data[off:], p)
	f.dirty = append(f.dirty, extent{off, end})
	return len(p), err
}

func (f *memFile) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.failing("truncate"); err != nil {
		return err
	}
	f.data = f.data[:min(size, int64(len(f.data)))]
	f.data = slices.Clone(f.data)
	return nil
}

// Sync writes what is dirty. After it failed that counts as clean, and will never be written.
func (f *memFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	dirty := f.dirty
	f.dirty = nil
	if err := f.disk.failing("sync"); err != nil {
		return err
	}
	for _, e := range dirty {
		to := min(e.to, int64(len(f.data)))
		if e.from >= to {
			continue
		}
		f.synced = append(f.synced, make([]byte, max(0, int(to)-len(f.synced)))...)
		copy(f.synced[e.from:to], f.data[e.from:to])
	}
	f.synced = f.synced[:min(len(f.synced), len(f.data))]
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return int64(len(f.data)), nil
}

func (f *memFile) Close() error { return nil }
