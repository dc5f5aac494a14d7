//go:build wasip1

// work is ../c/work.c in Go.
package main

import weir "github.com/weirlog/weir/filters/sdk/go"

func init() { weir.Handle(work) }

func main() {}

var text, kind []byte // keep their memory from message to message

func work(m weir.Message) weir.Verdict {
	var ok, named bool
	text, ok = m.Append(text[:0], "message")
	kind, named = m.Append(kind[:0], "app_name")
	if !ok || !named {
		return weir.Fail("no message or app_name")
	}
	kind = append(kind, '/')
	for i := 0; i < len(text) && i < 8 && text[i] != ' '; i++ {
		kind = append(kind, text[i])
	}
	if len(text) >= 1000 {
		h := uint32(2166136261)
		for range 16 {
			for _, c := range text {
				h = (h ^ uint32(c)) * 16777619
			}
		}
		kind = append(kind, byte('a'+h%26))
	}
	if err := m.SetBytes("kind", kind); err != nil {
		return weir.Fail(err.Error())
	}
	return weir.Keep
}
