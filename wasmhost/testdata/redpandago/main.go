//go:build wasip1

// A data transform in Go that writes each record back with the field "seen".
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"unsafe"
)

//go:wasmimport redpanda_transform check_abi_version_1
func checkVersion()

//go:wasmimport redpanda_transform read_batch_header
func readBatchHeader(base, count, epoch, attributes, last, first, lastTime, producer, producerEpoch, sequence unsafe.Pointer) int32

//go:wasmimport redpanda_transform read_next_record
func readNextRecord(attributes, time, offset, buf unsafe.Pointer, n int32) int32

//go:wasmimport redpanda_transform write_record
func writeRecord(buf unsafe.Pointer, n int32) int32

var (
	seen       int
	first      int64
	count, num int32
	small      int16
	attributes byte
)

func main() {
	checkVersion()
	for {
		n := readBatchHeader(unsafe.Pointer(&first), unsafe.Pointer(&count), unsafe.Pointer(&num), unsafe.Pointer(&small), unsafe.Pointer(&num),
			unsafe.Pointer(&first), unsafe.Pointer(&first), unsafe.Pointer(&first), unsafe.Pointer(&small), unsafe.Pointer(&num))
		if n < 0 {
			panic("no more batches")
		}
		buf := make([]byte, n)
		for range count {
			if got := readNextRecord(unsafe.Pointer(&attributes), unsafe.Pointer(&first), unsafe.Pointer(&first), unsafe.Pointer(&buf[0]), n); got < 0 {
				panic(got)
			}
			transform(buf)
		}
	}
}

func transform(body []byte) {
	_, n := binary.Varint(body) // the key is null
	size, m := binary.Varint(body[n:])
	var record map[string]any
	if err := json.Unmarshal(body[n+m:n+m+int(size)], &record); err != nil {
		panic(err)
	}
	if record["message"] == "panic" {
		fmt.Fprintln(os.Stderr, "on purpose")
		panic("on purpose")
	}
	seen++
	record["seen"] = seen
	value, _ := json.Marshal(record)
	out := binary.AppendVarint(nil, -1)
	out = binary.AppendVarint(out, int64(len(value)))
	out = append(append(out, value...), 0)
	writeRecord(unsafe.Pointer(&out[0]), int32(len(out)))
}
