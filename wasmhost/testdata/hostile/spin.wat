;; never returns
(module (memory (export "memory") 1)
  (func (export "weir_process") (result i32) (loop $again (br $again)) (unreachable)))
