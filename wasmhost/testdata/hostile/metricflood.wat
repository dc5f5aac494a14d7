;; measures under ever new names, good ones and bad ones
(module
  (import "weir_v1" "metric_add" (func $add (param i32 i32 f64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "m0000")
  (func (export "weir_process") (result i32) (local $i i32)
    (loop $l
      (i32.store (i32.const 1) (i32.add (i32.const 0x30303030) (local.get $i)))
      (call $add (i32.const 0) (i32.const 5) (f64.const nan))
      (call $add (i32.const 0) (i32.const 5) (f64.const 1))
      (call $add (i32.const 0) (i32.const 4000) (f64.const 1))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (i32.const 3000))))
    (i32.const 0)))
