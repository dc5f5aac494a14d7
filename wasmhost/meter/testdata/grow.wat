;; Asks for memory and table elements for ever, long after they are refused.
(module
  (memory 1)
  (table $t 1 externref)
  (func (export "f")
    (loop
      (drop (memory.grow (i32.const 1)))
      (drop (table.grow $t (ref.null extern) (i32.const 1000)))
      (br 0))))
