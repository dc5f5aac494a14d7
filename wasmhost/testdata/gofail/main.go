// Masks digits with the standard library, writes to both outputs, and panics when the message asks for it.
package main

import (
	"fmt"
	"os"
	"strings"
	"unsafe"
)

//go:wasmimport weir_v1 field_get
func fieldGet(key *byte, kn uint32, buf *byte, size uint32) int32

//go:wasmimport weir_v1 field_set
func fieldSet(key *byte, kn uint32, val *byte, vn uint32) int32

const message = "message"

//go:wasmexport weir_process
func process() int32 {
	buf := make([]byte, fieldGet(unsafe.StringData(message), uint32(len(message)), nil, 0))
	fieldGet(unsafe.StringData(message), uint32(len(message)), unsafe.SliceData(buf), uint32(len(buf)))
	text := string(buf)
	if text == "panic" {
		panic("on purpose")
	}
	fmt.Print("hello from the guest\nand ", text)
	fmt.Fprintln(os.Stderr, "careful")
	text = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, text)
	return fieldSet(unsafe.StringData(message), uint32(len(message)), unsafe.StringData(text), uint32(len(text)))
}

func main() {}
