;; makes the host encode the message over and over
(module (import "weir_v1" "record_get" (func $get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "weir_process") (result i32)
    (loop $again (drop (call $get (i32.const 0) (i32.const 0))) (br $again)) (unreachable)))
