;; sets the same field for ever, longer each time
(module (import "weir_v1" "field_set" (func $set (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 17) (data (i32.const 0) "big")
  (func (export "weir_process") (result i32) (local i32)
    (loop $again
      (local.set 0 (i32.add (local.get 0) (i32.const 1000)))
      (if (i32.lt_s (call $set (i32.const 0) (i32.const 3) (i32.const 64) (local.get 0)) (i32.const 0)) (then (return (i32.const 0))))
      (br $again))
    unreachable))
