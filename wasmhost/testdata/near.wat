;; reads and sets "level", which is a field
(module
  (import "weir_v1" "field_get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "weir_v1" "field_set" (func $set (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1) (data (i32.const 0) "level")
  (func (export "weir_process") (result i32)
    (drop (call $get (i32.const 0) (i32.const 5) (i32.const 64) (i32.const 64)))
    (drop (call $set (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 1)))
    (i32.const 0)))
