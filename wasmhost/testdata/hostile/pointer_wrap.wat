;; a length that wraps around
(module (import "weir_v1" "field_set" (func $set (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1) (data (i32.const 0) "message")
  (func (export "weir_process") (result i32) (drop (call $set (i32.const 0) (i32.const 7) (i32.const 8) (i32.const -1))) (i32.const 0)))
