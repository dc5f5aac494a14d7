// A reactor for the tests: text goes into a buffer, an export works on it there and tells the new length.
package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"unsafe"
)

var (
	buffer [64 << 10]byte
	digits = regexp.MustCompile(`[0-9]{4}-[0-9]{4}`)
)

//go:wasmexport text
func text() uint32 { return uint32(uintptr(unsafe.Pointer(&buffer))) }

//go:wasmexport mask
func mask(n uint32) uint32 {
	for i, c := range buffer[:n] {
		if c >= '0' && c <= '9' {
			buffer[i] = '#'
		}
	}
	return n
}

//go:wasmexport edit
func edit(n uint32) uint32 {
	var m map[string]any
	if err := json.Unmarshal(buffer[:n], &m); err != nil {
		return uint32(copy(buffer[:], err.Error()))
	}
	s, _ := m["message"].(string)
	m["message"] = digits.ReplaceAllString(s, "****-****")
	m["words"] = len(strings.Fields(s))
	b, err := json.Marshal(m)
	if err != nil {
		return uint32(copy(buffer[:], err.Error()))
	}
	return uint32(copy(buffer[:], b))
}

// deep recurses n deep, in a goroutine of its own, half of the way through an interface.
//
//go:wasmexport deep
func deep(n uint32) uint32 {
	sum := make(chan uint32)
	go func() { sum <- self.add(plain{}, n) }()
	return <-sum
}

type adder interface {
	add(next adder, n uint32) uint32
}

type plain struct{}

var self adder = plain{}

//go:noinline
func (plain) add(next adder, n uint32) uint32 {
	if n == 0 {
		return 0
	}
	return n + next.add(next, n-1)
}

func main() {}
