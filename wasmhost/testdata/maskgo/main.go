// The same as mask.c, in Go and without an SDK.
package main

import "unsafe"

//go:wasmimport weir_v1 field_get
func fieldGet(key *byte, kn uint32, buf *byte, size uint32) int32

//go:wasmimport weir_v1 field_set
func fieldSet(key *byte, kn uint32, val *byte, vn uint32) int32

const severity, message = "severity", "message"

var buf [64 << 10]byte

//go:wasmexport weir_process
func process() int32 {
	n := fieldGet(unsafe.StringData(severity), uint32(len(severity)), &buf[0], 1)
	if n == 1 && buf[0] == '7' {
		return 1
	}
	n = fieldGet(unsafe.StringData(message), uint32(len(message)), &buf[0], uint32(len(buf)))
	if n < 0 || int(n) > len(buf) {
		return -1
	}
	for i, c := range buf[:n] {
		if c >= '0' && c <= '9' {
			buf[i] = '#'
		}
	}
	return fieldSet(unsafe.StringData(message), uint32(len(message)), &buf[0], uint32(n))
}

func main() {}
