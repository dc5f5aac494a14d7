;; few instructions, much work: fills 8 MiB over and over
(module (memory (export "memory") 128)
  (func (export "weir_process") (result i32)
    (loop $again (memory.fill (i32.const 0) (i32.const 1) (i32.const 8388608)) (br $again)) (unreachable)))
