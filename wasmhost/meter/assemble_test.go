package meter

// program is a module put together by hand for a test: one exported function "f" in a module that has one of
// everything. Its indices: types 0 ()->(), 1 (i32,i32)->i32, 2 f's; functions 0 "add" of type 1, 1 f; table 0 of funcref
// with 10 elements, the first two filled by element segment 0; memory 0; globals 0 (i32) and 1 (i64), mutable; data
// segment 0 of 16 bytes and element segment 1 of 2 functions, both passive.
type program struct {
	params, results []byte
	locals          []byte
	body            []byte // without the last end
	start           bool   // f runs at instantiation
	tag             bool   // there is tag 0, of type 0
}

const addFunc, ownFunc = 0, 1

func (p program) module() []byte {
	w := []byte("\x00asm\x01\x00\x00\x00")
	add := func(id byte, content ...byte) { w = appendBytes(append(w, id), content) }

	types := []byte{3, 0x60, 0, 0, 0x60, 2, i32, i32, 1, i32, 0x60}
	types = appendBytes(types, p.params)
	add(secType, appendBytes(types, p.results)...)
	add(secFunction, 2, 1, 2)
	add(secTable, 1, funcref, 0, 10)
	add(secMemory, 1, 0, 1)
	if p.tag {
		add(secTag, 1, 0, 0)
	}
	add(secGlobal, 2, i32, 1, opI32Const, 7, opEnd, i64, 1, opI64Const, 9, opEnd)
	add(secExport, 2, 1, 'f', byte(Func), ownFunc, 1, 'm', byte(Memory), 0)
	if p.start {
		add(secStart, ownFunc)
	}
	add(secElement, 2, 0, opI32Const, 0, opEnd, 2, addFunc, ownFunc, 1, 0, 2, addFunc, ownFunc)
	add(secDataCount, 1)

	var f []byte
	f = appendU32(f, uint32(len(p.locals)))
	for _, t := range p.locals {
		f = append(f, 1, t)
	}
	f = append(append(f, p.body...), opEnd)
	sum := []byte{0, opLocalGet, 0, opLocalGet, 1, opI32Add, opEnd}
	code := appendBytes([]byte{2}, sum)
	add(secCode, appendBytes(code, f)...)
	add(secData, appendBytes([]byte{1, 1}, []byte("0123456789abcdef"))...)
	return w
}
