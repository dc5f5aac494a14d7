;; keeps under ever new keys as much as it gets
(module
  (import "weir_v1" "kv_set" (func $set (param i32 i32 i32 i32 i64) (result i32)))
  (import "weir_v1" "time_now" (func $now (result i64)))
  (memory (export "memory") 1)
  (func (export "weir_process") (result i32) (local $i i32)
    (i64.store (i32.const 8) (i64.or (call $now) (i64.const 0x0101010101010101)))
    (loop $l
      (i32.store8 (i32.const 16) (i32.add (i32.const 0x20) (local.get $i)))
      (drop (call $set (i32.const 8) (i32.const 9) (i32.const 64) (i32.const 60000) (i64.const 0)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (i32.const 90))))
    (i32.const 0)))
