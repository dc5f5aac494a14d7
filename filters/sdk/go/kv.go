//go:build wasip1

package weir

import (
	"time"
	"unsafe"
)

// KVGet returns a value of the filter's own store, which all its instances share and which lasts until weir ends: 10 000
// keys and 16 MiB at most, and nothing of it is undone when a call fails. A number that KVAdd made is decimal text.
func KVGet(key string) (value string, ok bool) {
	b, n := full(func(buf unsafe.Pointer, size uint32) int32 { return kvGet(key, buf, size) })
	return string(b), n >= 0
}

// KVSet keeps a value for ttl; 0: without an end. Setting it again renews it. A ttl counts in ms, and is at least one.
// ErrTooMany when there is no room for it.
func KVSet(key, value string, ttl time.Duration) error {
	ms := ttl.Milliseconds()
	if ttl > 0 && ms == 0 {
		ms = 1
	}
	return errorOf(kvSet(key, value, ms))
}

// KVDelete removes a key. ErrAbsent when there is none.
func KVDelete(key string) error { return errorOf(kvDel(key)) }

// KVAdd adds to a number, at once for all instances, and returns the sum. What is absent starts at 0; the time that the key
// has left stays as it is; beyond 64 bits it wraps. ErrType when the value is no number.
func KVAdd(key string, delta int64) (sum int64, err error) {
	if n := kvAdd(key, delta, unsafe.Pointer(&gotInt)); n < 0 {
		return 0, errorOf(n)
	}
	return gotInt, nil
}
