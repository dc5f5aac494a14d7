;; A tree of calls without a loop: 2^62 leaves.
(module
  (func $half (param i32)
    (if (local.get 0) (then
      (call $half (i32.sub (local.get 0) (i32.const 1)))
      (call $half (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "f") (call $half (i32.const 62))))
