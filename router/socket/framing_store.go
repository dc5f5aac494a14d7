package socket

// tailMin is the first capacity of the tail, which doubles from there. A tail of
// this size is kept for the next frame, a larger one is given back.
const tailMin = 512

// Unfinished is how many bytes of an unfinished frame are stored.
func (f *Framer) Unfinished() int {
	if f.kept {
		return 0
	}
	return len(f.tail) + f.headLen
}

// Release gives the store for unfinished frames back. What is in it is gone.
func (f *Framer) Release() {
	f.grow(0)
	f.kept = false
}

// storeLine keeps what belongs to the line's first Max bytes, and reports
// whether the line is longer. CRs behind them may yet turn out to be its end.
func (f *Framer) storeLine(part []byte) (over bool) {
	n := min(len(part), f.Max-len(f.tail))
	f.store(part[:n])
	for _, c := range part[n:] {
		if c != '\r' {
			return true
		}
		f.crs++
	}
	return false
}

// store appends to the tail.
func (f *Framer) store(part []byte) {
	if need := len(f.tail) + len(part); need > cap(f.tail) {
		size := max(cap(f.tail), tailMin)
		for size < need {
			size *= 2
		}
		if !f.grow(size) {
			return
		}
	}
	f.tail = append(f.tail, part...)
}

// grow changes the tail's capacity.
func (f *Framer) grow(size int) bool {
	if f.Grow != nil && size != cap(f.tail) && !f.Grow(cap(f.tail), size) {
		f.bad = true
		return false
	}
	if size == 0 {
		f.tail = nil
		return true
	}
	tail := make([]byte, len(f.tail), size)
	copy(tail, f.tail)
	f.tail = tail
	return true
}

// hand gives the tail out as a frame.
func (f *Framer) hand() []byte {
	f.kept = true
	return f.tail
}

// reset empties the tail after it was handed out.
func (f *Framer) reset() {
	f.kept, f.crs = false, 0
	f.tail = f.tail[:0]
	if cap(f.tail) > tailMin {
		f.grow(0)
	}
}
