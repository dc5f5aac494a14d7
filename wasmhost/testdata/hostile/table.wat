;; a table of a hundred million entries to begin with
(module (memory (export "memory") 1) (table 100000000 funcref)
  (func (export "weir_process") (result i32) (i32.const 0)))
