;; emits in weir_tick, then traps
(module (import "weir_v1" "emit" (func $emit (param i32 i32) (result i32)))
  (memory (export "memory") 1) (data (i32.const 0) "{\"message\":\"x\"}")
  (func (export "weir_process") (result i32) (i32.const 0))
  (func (export "weir_tick") (drop (call $emit (i32.const 0) (i32.const 15))) unreachable))
