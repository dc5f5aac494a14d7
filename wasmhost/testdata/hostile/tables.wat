;; a table that is to grow to a hundred million entries, then in steps as far as it goes
(module (memory (export "memory") 1) (table $t 1 funcref)
  (func (export "weir_process") (result i32)
    (drop (table.grow $t (ref.null func) (i32.const 100000000)))
    (loop $l (br_if $l (i32.ge_s (table.grow $t (ref.null func) (i32.const 1000)) (i32.const 0))))
    (table.fill $t (i32.const 0) (ref.null func) (table.size $t))
    (i32.const 0)))
