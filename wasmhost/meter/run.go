package meter

// Most instructions are copied as they are: of their kinds, and written in the shortest form already. They are copied
// in runs, which takes a third off the time of a large module.

// asIs says what stands behind the opcode of an instruction that can be in a run.
type asIs byte

const (
	notAsIs asIs = iota
	nothing
	oneLocal   // of 128 at most
	oneNumber  // a signed LEB of 4 bytes at most: that fits 32 bits
	oneAddress // alignment, offset of 4 bytes at most
)

var inRun = func() (t [256]asIs) {
	for op := range t {
		switch i := instrs[op]; {
		case i.name == "" || growth[op] == gone || op == opEnd || op == opElse:
		case i.imm == immNone:
			t[op] = nothing
		case i.imm == immLocal:
			t[op] = oneLocal
		case i.imm == immI32 || i.imm == immI64:
			t[op] = oneNumber
		case i.imm == immMemory:
			t[op] = oneAddress
		}
	}
	return t
}()

// run copies the instructions from here on that can be in a run, maybe none.
func (w *walker) run(b *body) {
	code, height, base := w.r.b, w.height, w.frames[len(w.frames)-1].base
	locals := byte(min(w.locals, 128))
	from := w.r.pos
	at, n, sets, uses := from, 0, 0, 0
scan:
	for at < len(code)-6 { // the longest of them
		op := code[at]
		next := at + 1
		switch inRun[op] {
		case notAsIs:
			break scan
		case oneLocal:
			if code[next] >= locals {
				break scan
			}
			next++
			uses++
			if op != opLocalGet {
				sets++
			}
		case oneNumber:
			if next = shortSigned(code, next); next == 0 {
				break scan
			}
		case oneAddress:
			if code[next] >= 32 || w.rw.memories == 0 {
				break scan
			}
			if next = shortUnsigned(code, next+1); next == 0 {
				break scan
			}
		}
		height.grow(int(growth[op]), base)
		at = next
		n++
	}
	if n == 0 {
		return
	}
	w.buf = append(w.buf, code[from:at]...)
	w.r.pos, w.height = at, height
	b.ops += n
	w.points[w.point].units += uint32(n)
	w.work.sets += uint64(sets)
	w.work.uses += uint64(uses)
}

// shortUnsigned is behind an unsigned LEB of 4 bytes at most, in its shortest form; else 0.
func shortUnsigned(code []byte, at int) int {
	if code[at] < 0x80 {
		return at + 1
	}
	for i := at + 1; i < at+4; i++ {
		if c := code[i]; c < 0x80 {
			if c == 0 {
				return 0
			}
			return i + 1
		}
	}
	return 0
}

// shortSigned is the same for a signed one: its last byte does not just repeat the sign of the one before.
func shortSigned(code []byte, at int) int {
	if code[at] < 0x80 {
		return at + 1
	}
	for i := at + 1; i < at+4; i++ {
		if c := code[i]; c < 0x80 {
			if sign := code[i-1] & 0x40; c == 0 && sign == 0 || c == 0x7f && sign != 0 {
				return 0
			}
			return i + 1
		}
	}
	return 0
}
