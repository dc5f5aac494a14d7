;; Fills 8 MiB again and again: two units by its instructions, 128 Ki by its length.
(module
  (memory 128)
  (func (export "f")
    (loop (memory.fill (i32.const 0) (i32.const 7) (i32.const 0x7fffff)) (br 0))))
