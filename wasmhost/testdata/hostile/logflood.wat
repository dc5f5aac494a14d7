;; writes a hundred thousand log lines for one message
(module (import "weir_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1) (data (i32.const 0) "spam spam spam")
  (func (export "weir_process") (result i32) (local i32)
    (loop $again (call $log (i32.const 4) (i32.const 0) (i32.const 14))
      (br_if $again (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 100000))))
    (i32.const 0)))
