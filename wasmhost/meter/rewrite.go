package meter

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Rewrite returns module with its meter built in, its memory and tables bounded by limits, its function indices moved
// past the meter's import, and every instruction in its shortest form. Of the custom sections it keeps name, producers
// and target_features; the others may speak of functions by number.
//
// It checks every index against what the guest itself declared, so that the guest cannot reach what is added, and
// leaves the checking of types to the compiler: what it makes of an invalid module is invalid too.
//
// Errors are *Refused. Time and memory are bounded by the module's length, whatever its bytes declare.
func Rewrite(module []byte, limits Limits) (*Module, error) {
	rw := newRewriter(module, limits)
	rw.header()
	rw.split()
	rw.declarations()
	rw.code()
	rw.rest()
	if err := rw.r.err; err != nil {
		return nil, err
	}
	rw.out.Bytes, rw.out.Catches = rw.w, rw.catches
	return rw.out, nil
}

// The sections by their numbers in the binary format.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	secTag
	sections
)

var sectionNames = [sections]string{"custom", "type", "import", "function", "table", "memory", "global", "export",
	"start", "element", "code", "data", "data count", "tag"}

// span is a part of the module by offsets; start 0 means that there is none.
type span struct{ start, end int }

// rewriter holds one module on its way. Its reader fails once and then reads nothing, so the steps need no checks
// between them.
type rewriter struct {
	module []byte
	limits Limits
	r      reader
	w      []byte
	out    *Module

	section [sections]span // contents
	customs []custom       // those that are kept

	bodyBytes uint32 // the largest body allowed

	// What the guest declared; the counts that its indices are checked against.
	types       []funcType
	funcs       []uint32 // the type of each function, imported ones first
	named       []bool   // the functions that may be reached by reference
	imported    uint32   // functions among the imports, and thereby tick's index in the result
	tables      uint32
	memories    uint32
	globals     uint32 // and thereby the counter's index in the result
	globalTypes []valueType
	tags        []uint32 // the type of each
	elements    uint32
	datas       uint32

	tickType, keepType uint32

	lists   lists
	labels  [][2]uint32       // the lists of each type's parameters and results
	blocks  map[uint32]uint32 // the types of blocks without parameters, by their list of results
	catches bool              // a try_table has clauses

	params, locals, squares uint64 // of the types and functions so far: what they ask of the compiler
}

func newRewriter(module []byte, limits Limits) *rewriter {
	if limits.TableElements == 0 {
		limits.TableElements = 65536
	}
	limits.MemoryPages = min(limits.MemoryPages, 65536)
	return &rewriter{module: module, limits: limits, bodyBytes: MaxBodyBytes, out: &Module{}}
}

type custom struct {
	name string
	span
}

// added is how many functions the meter imports.
func (rw *rewriter) added() uint32 {
	n := uint32(1)
	if rw.limits.Exceptions {
		n++
	}
	return n
}

// function moves a function index of the guest past those.
func (rw *rewriter) function(i uint32) uint32 {
	if i >= rw.imported {
		i += rw.added()
	}
	return i
}

// name notes a function that an element segment, a constant or ref.func names.
func (rw *rewriter) name(f uint32) {
	if rw.named == nil {
		rw.named = make([]bool, len(rw.funcs))
	}
	if f < uint32(len(rw.named)) {
		rw.named[f] = true
	}
}

func (rw *rewriter) header() {
	r, m := &rw.r, rw.module
	r.b = m
	switch {
	case len(m) > MaxModuleBytes:
		r.fail(0, "module", fmt.Sprintf("%d bytes, the limit is %d", len(m), MaxModuleBytes), "strip it: clang -s; Rust -C strip=symbols; wasm-opt --strip-debug")
	case len(m) == 0:
		r.fail(0, "module", "the file is empty", "")
	case bytes.HasPrefix(m, []byte("\x00aot")):
		r.fail(0, "module", "a WAMR AOT file, which is machine code", "give the .wasm that it was made from")
	case bytes.HasPrefix(bytes.TrimLeft(m[:min(len(m), 4096)], " \t\r\n"), []byte("(")):
		r.fail(0, "module", "WebAssembly text, not binary", "wat2wasm FILE.wat")
	case len(m) < 8 || string(m[:4]) != "\x00asm":
		r.fail(0, "module", "not a WebAssembly module: it does not begin with \\0asm", "")
	case string(m[4:8]) == "\x0d\x00\x01\x00":
		r.fail(4, "module", "a component (WASI 0.2), not a core module", "build for wasm32-wasip1, not wasip2")
	case binary.LittleEndian.Uint32(m[4:8]) != 1:
		r.fail(4, "module", fmt.Sprintf("binary version %d, known is 1", binary.LittleEndian.Uint32(m[4:8])), "")
	default:
		r.pos = 8
	}
}

// split finds the sections, checks their order and begins the result.
func (rw *rewriter) split() {
	r := &rw.r
	last := 0
	for !r.empty() {
		at := r.pos
		id := r.byte()
		size := r.u32()
		start := r.pos
		r.take(size)
		if r.err != nil {
			return
		}
		if id == secCustom {
			rw.custom(start, r.pos)
			continue
		}
		if id >= sections {
			r.fail(at, "section", fmt.Sprintf("malformed: no section has the number %d", id), "")
			return
		}
		if rank := sectionRank(id); rank <= last {
			r.fail(at, sectionNames[id]+" section", "malformed: it stands twice or out of order", "")
			return
		} else {
			last = rank
		}
		rw.section[id] = span{start, r.pos}
	}
	if r.err == nil { // the meter makes Go's code longer by a tenth
		code := rw.section[secCode]
		rw.w = append(make([]byte, 0, len(rw.module)+(code.end-code.start)/4+1024), rw.module[:8]...)
	}
}

// sectionRank is a section's place in a module: the data count goes before the code, tags before the globals.
func sectionRank(id byte) int {
	switch id {
	case secDataCount:
		return 2*secCode - 1
	case secTag:
		return 2*secGlobal - 1
	}
	return 2 * int(id)
}

func (rw *rewriter) custom(start, end int) {
	r := &rw.r
	sub := reader{b: rw.module[:end], pos: start}
	name := sub.name("custom section")
	if sub.err != nil {
		r.err = sub.err
		r.pos = len(r.b)
		return
	}
	switch name {
	case "name", "producers", "target_features":
	case "go:buildid":
		rw.bodyBytes = MaxGoBodyBytes
		return
	default:
		return
	}
	if sub.empty() {
		return // wazero stumbles over an empty one at a module's end
	}
	for _, c := range rw.customs {
		if c.name == name {
			r.fail(start, "custom section "+name, "malformed: it stands twice", "")
		}
	}
	rw.customs = append(rw.customs, custom{name, span{sub.pos, end}})
}

// enter sets the reader on a section and returns its count, which it holds below limit; false when it is absent.
func (rw *rewriter) enter(id int, limit uint32) (uint32, bool) {
	s := rw.section[id]
	if rw.r.err != nil || s.start == 0 {
		return 0, false
	}
	rw.r.b, rw.r.pos = rw.module[:s.end], s.start
	n := rw.r.u32()
	if n > limit && rw.r.err == nil {
		rw.r.fail(s.start, sectionNames[id]+" section", fmt.Sprintf("%d entries, the limit is %d", n, limit), "")
	}
	return n, rw.r.err == nil
}

// leave checks that a section was read to its end.
func (rw *rewriter) leave(id int) {
	if r := &rw.r; r.err == nil && rw.section[id].start != 0 && !r.empty() {
		r.fail(r.pos, sectionNames[id]+" section", "malformed: it goes on behind its last entry", "")
	}
}

// emit writes a section whose content fill appends.
func (rw *rewriter) emit(id byte, fill func(w []byte) []byte) {
	if rw.r.err != nil {
		return
	}
	// In its place, and its size, which stands before it, when that is known: a section of megabytes is not copied.
	var size [binary.MaxVarintLen32]byte
	at := len(rw.w) + 1
	w := fill(append(append(rw.w, id), size[:]...))
	if rw.r.err != nil {
		return
	}
	n := copy(w[at:], appendU32(size[:0], uint32(len(w)-at-len(size))))
	rw.w = append(w[:at+n], w[at+len(size):]...)
}

// count reads how many entries a later section has, which earlier ones refer to.
func (rw *rewriter) count(id int, limit uint32) uint32 {
	n, _ := rw.enter(id, limit)
	return n
}

// index reads an index below n.
func (rw *rewriter) index(what string, n uint32) uint32 {
	r := &rw.r
	at := r.pos
	i := r.u32()
	if i >= n && r.err == nil {
		r.fail(at, what, fmt.Sprintf("index %d, but there are %d", i, n), "")
	}
	return i
}
