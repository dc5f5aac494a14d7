;; a key outside of memory
(module (import "weir_v1" "field_get" (func $get (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "weir_process") (result i32) (call $get (i32.const 0xfffffff0) (i32.const 7) (i32.const 64) (i32.const 64)) (drop) (i32.const 0)))
