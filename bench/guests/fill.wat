;; Fills 8 MiB for ever: few instructions, much work each.
(module
  (memory (export "memory") 128)
  (func (export "weir_process") (result i32)
    (loop $again
      (memory.fill (i32.const 0) (i32.const 7) (i32.const 0x800000))
      (br $again))
    (i32.const 0)))
