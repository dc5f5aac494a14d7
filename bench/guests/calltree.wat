;; 2^60 calls, without a loop and never deeper than 60.
(module
  (memory (export "memory") 1)
  (func $tree (param i32)
    (if (local.get 0)
      (then
        (call $tree (i32.sub (local.get 0) (i32.const 1)))
        (call $tree (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "weir_process") (result i32)
    (call $tree (i32.const 60))
    (i32.const 0)))
