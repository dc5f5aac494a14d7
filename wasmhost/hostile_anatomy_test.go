package wasmhost

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
)

// An anatomy is a module taken apart as far as it takes to change it and put it together again: a rewriter of its own,
// so that what the meter believes of modules is not what its attackers are made with.
type anatomy struct {
	sections  []part
	types     []signatureOf
	functions []int // type of each function, imported ones first
	imported  int   // functions
	globals   []byte
	mutable   []int // i32 globals that may be set
	exported  []int // functions
	memory    bool
	tables    int
	bodies    []codeOf
}

type part struct {
	id   byte
	body []byte
}

type signatureOf struct{ params, results []byte }

type codeOf struct{ locals, code []byte }

// A cutter reads a module that a compiler has made; on anything else it panics.
type cutter struct{ b []byte }

func (c *cutter) n() int {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		panic("no number")
	}
	c.b = c.b[n:]
	return int(v)
}

func (c *cutter) take(n int) []byte {
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *cutter) name() string { return string(c.take(c.n())) }

// anatomyOf takes a module apart; an error says that it is not one of those it knows.
func anatomyOf(module []byte) (a *anatomy, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("take a module apart: %v", p)
		}
	}()
	a = &anatomy{}
	for c := (cutter{module[8:]}); len(c.b) > 0; {
		id := c.take(1)[0]
		a.sections = append(a.sections, part{id, c.take(c.n())})
	}
	for _, s := range a.sections {
		a.read(s)
	}
	return a, nil
}

func (a *anatomy) read(s part) {
	c := cutter{s.body}
	each := func(f func(i int)) {
		for i := range c.n() {
			f(i)
		}
	}
	switch s.id {
	case 1:
		each(func(int) {
			c.take(1)
			a.types = append(a.types, signatureOf{c.take(c.n()), c.take(c.n())})
		})
	case 2:
		each(func(int) {
			c.name()
			c.name()
			if kind := c.take(1)[0]; kind != 0 {
				panic("imports no function")
			}
			a.functions = append(a.functions, c.n())
			a.imported++
		})
	case 3:
		each(func(int) { a.functions = append(a.functions, c.n()) })
	case 4:
		each(func(int) { a.tables++ })
	case 5:
		a.memory = true
	case 6:
		each(func(i int) {
			if kind := c.take(2); kind[0] == 0x7f && kind[1] == 1 {
				a.mutable = append(a.mutable, i)
			}
			for c.take(1)[0] != 0x0b { // constants: a byte 0x0b inside of one only ends it early
			}
		})
	case 7:
		each(func(int) {
			c.name()
			if kind, i := c.take(1)[0], c.n(); kind == 0 {
				a.exported = append(a.exported, i)
			}
		})
	case 10:
		each(func(int) {
			body := cutter{c.take(c.n())}
			whole := body.b
			for range body.n() {
				body.n()
				body.take(1)
			}
			a.bodies = append(a.bodies, codeOf{whole[:len(whole)-len(body.b)], body.b})
		})
	}
}

// assemble makes a module of sections, and of bodies where code is nil.
func (a *anatomy) assemble() []byte {
	m := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range a.sections {
		if s.id == 10 && s.body == nil {
			s.body = uleb(len(a.bodies))
			for _, b := range a.bodies {
				s.body = append(append(append(s.body, uleb(len(b.locals)+len(b.code))...), b.locals...), b.code...)
			}
		}
		m = append(append(append(m, s.id), uleb(len(s.body))...), s.body...)
	}
	return m
}

// with is a copy whose sections and bodies may be changed.
func (a *anatomy) with(change func(*anatomy)) []byte {
	c := *a
	c.sections, c.bodies = slices.Clone(a.sections), slices.Clone(a.bodies)
	change(&c)
	return c.assemble()
}

// section finds one by its id; -1: there is none.
func (a *anatomy) section(id byte) int {
	return slices.IndexFunc(a.sections, func(s part) bool { return s.id == id })
}

// inject puts code in front of a function's own.
func (a *anatomy) inject(function int, code []byte) []byte {
	return a.with(func(a *anatomy) {
		a.sections[a.section(10)].body = nil
		b := &a.bodies[function-a.imported]
		b.code = slices.Concat(code, b.code)
	})
}

// extremes are values that code forgets to think of.
var extremes = []int64{0, 1, -1, 7, 0x7fffffff, -0x80000000, 0xffff, 0x10000, 0xfff8, 1 << 20, 16<<20 - 4, 1<<62 + 1, -1 << 63}

func extreme(r *rand.Rand) int64 { return extremes[r.IntN(len(extremes))] }

// constant is an instruction that pushes an extreme value of a type.
func constant(r *rand.Rand, valueType byte) []byte {
	switch valueType {
	case 0x7f:
		return sleb(0x41, int64(int32(extreme(r))))
	case 0x7e:
		return sleb(0x42, extreme(r))
	case 0x7d:
		return binary.LittleEndian.AppendUint32([]byte{0x43}, uint32(extreme(r)))
	case 0x7c:
		return binary.LittleEndian.AppendUint64([]byte{0x44}, uint64(extreme(r)))
	case 0x7b:
		return append([]byte{0xfd, 12}, bytes.Repeat([]byte{0xff}, 16)...)
	}
	return []byte{0xd0, valueType}
}

// sleb is an instruction with a signed number behind it.
func sleb(opcode byte, v int64) []byte {
	b := []byte{opcode}
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// call is a call of a function with extreme arguments, whose results are dropped.
func (a *anatomy) call(r *rand.Rand, function int) (code []byte) {
	t := a.types[a.functions[function]]
	for _, p := range t.params {
		code = append(code, constant(r, p)...)
	}
	code = append(append(code, 0x10), uleb(function)...)
	return append(code, bytes.Repeat([]byte{0x1a}, len(t.results))...)
}
