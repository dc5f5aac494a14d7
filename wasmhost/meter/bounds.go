package meter

import "fmt"

// bounds are the limits of a table (elements) or memory (pages).
type bounds struct {
	min, max uint32
	hasMax   bool
}

func (rw *rewriter) readLimits(what string) bounds {
	r := &rw.r
	at := r.pos
	var b bounds
	switch flag := r.byte(); {
	case flag == 0 || flag == 1:
		b.hasMax = flag == 1
	case flag&0x04 != 0 && flag < 0x10:
		r.fail(at, what, memory64.reason(), memory64.remedy)
	case flag == 2 || flag == 3:
		r.fail(at, what, threads.reason(), threads.remedy)
	case flag&0x08 != 0 && flag < 0x10:
		r.fail(at, what, pageSizes.reason(), pageSizes.remedy)
	default:
		r.fail(at, what, fmt.Sprintf("malformed: no limits begin with %#x", flag), "")
	}
	b.min = r.u32()
	if b.hasMax {
		b.max = r.u32()
		if b.max < b.min && r.err == nil {
			r.fail(at, what, fmt.Sprintf("its minimum %d is above its maximum %d", b.min, b.max), "")
		}
	}
	return b
}

// lower makes limit the maximum where there is none or a larger one.
func (b bounds) lower(limit uint32) bounds {
	if !b.hasMax || b.max > limit {
		b.max, b.hasMax = limit, true
	}
	return b
}

func appendLimits(w []byte, b bounds) []byte {
	if !b.hasMax {
		return appendU32(append(w, 0), b.min)
	}
	return appendU32(appendU32(append(w, 1), b.min), b.max)
}

func (rw *rewriter) tableSection() {
	n, ok := rw.enter(secTable, 100)
	if !ok {
		return
	}
	r := &rw.r
	rw.emit(secTable, func(w []byte) []byte {
		w = appendU32(w, n)
		for range n {
			if r.err != nil {
				return nil
			}
			at := r.pos
			init := !r.empty() && r.b[r.pos] == 0x40
			if init {
				if r.byte(); r.byte() != 0 {
					r.fail(at, "table", "malformed: a table with an initial value begins with 0x40 0x00", "")
				}
				w = append(w, 0x40, 0)
			}
			t := rw.refType("table")
			w = appendValueType(w, t)
			b := rw.readLimits("table")
			if limit := rw.limits.TableElements; b.min > limit && r.err == nil {
				r.fail(at, fmt.Sprintf("table %d", rw.tables), fmt.Sprintf("it begins with %d elements, the limit is %d", b.min, limit), "")
			}
			w = appendLimits(w, b.lower(rw.limits.TableElements))
			if init {
				w = rw.constant(w, t)
			}
			rw.tables++
		}
		rw.leave(secTable)
		return w
	})
}

func (rw *rewriter) memorySection() {
	n, ok := rw.enter(secMemory, maxEntries)
	if !ok {
		return
	}
	r := &rw.r
	if n+rw.memories > 1 {
		r.fail(rw.section[secMemory].start, "memory section", multiMemory.reason(), multiMemory.remedy)
	}
	rw.emit(secMemory, func(w []byte) []byte {
		w = appendU32(w, n)
		for range n {
			at := r.pos
			b := rw.readLimits("memory")
			if limit := rw.limits.MemoryPages; b.min > limit && r.err == nil {
				r.fail(at, "memory", fmt.Sprintf("it begins with %s of memory, and the filter may have %s", sizeOf(b.min), sizeOf(limit)),
					"raise the filter's memory:, or build with a smaller stack and fewer static buffers")
			}
			if r.err == nil && (b.min > 65536 || b.max > 65536) {
				r.fail(at, "memory", "malformed: more than 65536 pages", "")
			}
			b = b.lower(rw.limits.MemoryPages)
			w = appendLimits(w, b)
			rw.memories++
			rw.out.Memory = &Pages{Min: b.min, Max: b.max}
		}
		rw.leave(secMemory)
		return w
	})
}

// sizeOf is that of so many pages, as configurations have it.
func sizeOf(pages uint32) string {
	if pages%16 == 0 {
		return fmt.Sprintf("%dMiB", pages/16)
	}
	return fmt.Sprintf("%dKiB", pages*64)
}
