// Package weir is for writing filters for weir in Go.
//
//	package main
//
//	import (
//		"strings"
//
//		weir "github.com/weirlog/weir/filters/sdk/go"
//	)
//
//	func init() {
//		weir.Handle(func(m weir.Message) weir.Verdict {
//			if app, _ := m.Get("app_name"); app == "healthd" {
//				return weir.Drop
//			}
//			if text, ok := m.Get("message"); ok && strings.HasPrefix(text, "audit:") {
//				if err := m.Set("kind", "audit"); err != nil {
//					return weir.Fail(err.Error())
//				}
//			}
//			return weir.Keep
//		})
//	}
//
//	func main() {}
//
// Built with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o filter.wasm .
//
// A filter is a library that weir calls: main is never run, so handlers are registered in init. The package is empty
// on other platforms; keep what you want to test there apart from the file that imports it.
//
// An instance serves one message at a time, in one goroutine: package variables are safe without locks. weir runs an
// instance a core unless the configuration says instances: one, and replaces an instance that panicked, so variables
// are caches and no truth.
//
// A module is about 1.8 MB and needs 8 MiB of memory; encoding/json adds 1.5 MB. That costs compile time at the first
// start and memory, nothing per message.
//
// The contract behind this package is filters/ABI.md.
package weir
