;; emits a thousand small records, and drops what it was given
(module
  (import "weir_v1" "emit" (func $emit (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"message\":\"x\"}")
  (func (export "weir_process") (result i32) (local $i i32)
    (loop $l
      (drop (call $emit (i32.const 0) (i32.const 15)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (i32.const 1000))))
    (i32.const 1)))
