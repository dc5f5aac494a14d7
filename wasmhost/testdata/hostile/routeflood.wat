;; names destinations that there are none
(module
  (import "weir_v1" "route" (func $route (param i32 i32) (result i32)))
  (import "weir_v1" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 2)
  (func (export "weir_process") (result i32) (local $i i32)
    (loop $l
      (i32.store (i32.const 0) (local.get $i))
      (drop (call $route (i32.const 0) (i32.const 4)))
      (drop (call $route (i32.const 0) (i32.const 100000)))
      (call $fail (i32.const 0) (i32.const 100000))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (i32.const 300))))
    (i32.const 3)))
