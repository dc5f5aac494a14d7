;; emits large records until it is told that there are too many, and goes on asking
(module
  (import "weir_v1" "emit" (func $emit (param i32 i32) (result i32)))
  (memory (export "memory") 4)
  (data (i32.const 0) "{\"message\":\"")
  (data (i32.const 120012) "\"}")
  (func (export "weir_process") (result i32) (local $i i32)
    (memory.fill (i32.const 12) (i32.const 0x78) (i32.const 120000))
    (loop $l
      (drop (call $emit (i32.const 0) (i32.const 120014)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (i32.const 1200))))
    (i32.const 0)))
