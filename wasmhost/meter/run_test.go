package meter

import (
	"bytes"
	"testing"
)

// padded writes a signed number in some more bytes than it needs.
func padded(v int64, more int) []byte {
	w := appendSigned(nil, v)
	sign := byte(0)
	if v < 0 {
		sign = 0x7f
	}
	for range more {
		w[len(w)-1] |= 0x80
		w = append(w, sign)
	}
	return w
}

// paddedU32 is the same for an unsigned one.
func paddedU32(v uint32, more int) []byte {
	w := appendU32(nil, v)
	for range more {
		w[len(w)-1] |= 0x80
		w = append(w, 0)
	}
	return w
}

// TestRunsAreWhatTheInstructionsAreOneByOne: numbers in forms that are too long are in no run, and lead to the same
// module. Each stands among instructions that are in one.
func TestRunsAreWhatTheInstructionsAreOneByOne(t *testing.T) {
	numbers := []int64{0, 1, 63, 64, -1, -64, -65, 127, 128, 8191, 8192, -8192, -8193, 1<<20 - 1, 1 << 20, -1 << 20, -1<<20 - 1, 1<<27 - 1, 1 << 27, -1 << 27, -1<<27 - 1, 1<<31 - 1, -1 << 31}
	same := func(code func(more int) []byte, most int) {
		t.Helper()
		made := func(more int) []byte {
			locals := many(200, i32)
			body := append([]byte{opLocalGet, 127, opDrop, opLocalGet, 0, opDrop}, code(more)...)
			return rewrite(t, program{locals: locals, body: append(body, opI32Const, 1, opDrop, opLocalGet, 1, opDrop)}.module()).Bytes
		}
		want := made(0)
		for more := 1; more <= most; more++ {
			if got := made(more); !bytes.Equal(want, got) {
				t.Errorf("% x and % x lead to different modules:\n% x\n% x", code(0), code(more), want, got)
			}
		}
		if !bytes.Contains(want, code(0)) {
			t.Errorf("% x was changed: % x", code(0), want)
		}
	}
	for _, n := range numbers {
		long := len(appendSigned(nil, n))
		same(func(more int) []byte { return append(append([]byte{opI32Const}, padded(n, more)...), opDrop) }, 5-long)
		same(func(more int) []byte { return append(append([]byte{opI64Const}, padded(n, more)...), opDrop) }, 9-long)
		if n < 0 {
			continue
		}
		n := uint32(n)
		same(func(more int) []byte {
			return append(append([]byte{opI32Const, 0, 0x28, 2}, paddedU32(n, more)...), opDrop)
		}, 5-len(appendU32(nil, n)))
	}
	for local := range uint32(200) {
		same(func(more int) []byte { return append(append([]byte{opLocalGet}, paddedU32(local, more)...), opDrop) }, 3)
	}
}

// TestRunsEndWhereFunctionsDo: what would read behind a body's last byte does not pass for a run.
func TestRunsEndWhereFunctionsDo(t *testing.T) {
	for _, cut := range [][]byte{{opLocalGet}, {opI32Const}, {opI32Const, 0x80}, {opI32Const, 0x80, 0x80, 0x80}} {
		code := append(many(10, 0x01), cut...)
		refused(t, functionsOf(1, "\x00"+string(code)), "function 0", "malformed")
	}
	for _, cut := range [][]byte{{0x28, 2}, {0x28, 2, 0x80}, {0x28, 2, 0x80, 0x80, 0x80}} { // and the end
		refused(t, ops(append(many(10, 0x01), cut...)...), "malformed")
	}
}

// TestRunsCheckWhatTheyName: locals that there are not, alignments that are not, memories that are not.
func TestRunsCheckWhatTheyName(t *testing.T) {
	quiet := "\x01\x01\x01\x01\x01\x01\x01\x01\x0b"
	refused(t, functionsOf(1, "\x00\x20\x00\x1a"+quiet), "local 0, but there are 0")
	refused(t, functionsOf(1, "\x01\x05\x7f\x20\x05\x1a"+quiet), "local 5, but there are 5")
	refused(t, functionsOf(1, "\x00\x41\x00\x28\x02\x00\x1a"+quiet), "the module has no memory")
	refused(t, ops(append([]byte{opI32Const, 0, 0x28, 0x20, 0, opDrop}, quiet[:8]...)...), "alignment")
	refused(t, ops(append([]byte{opI32Const, 0, 0x28, 0x42, 0, opDrop}, quiet[:8]...)...), "several memories")
}
