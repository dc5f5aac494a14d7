;; sets a field of 60 MiB and keeps the message: the set is refused
(module (import "weir_v1" "field_set" (func $set (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1000) (data (i32.const 0) "big")
  (func (export "weir_process") (result i32)
    (i32.add (call $set (i32.const 0) (i32.const 3) (i32.const 64) (i32.const 62914560)) (i32.const 3)))) ;; -3 + 3: keep
