;; Jumps over a short inner loop into a long tail: the outer loop must pay for the tail.
(module
  (func (export "f") (local i32)
    (loop $outer
      (block $skip
        (br_if $skip (i32.eqz (i32.const 0)))
        (loop $inner (br_if $inner (i32.const 1))))
      (local.set 0 (i32.add (local.get 0) (i32.const 1)))
      (local.set 0 (i32.add (local.get 0) (i32.const 1)))
      (local.set 0 (i32.add (local.get 0) (i32.const 1)))
      (local.set 0 (i32.add (local.get 0) (i32.const 1)))
      (br $outer))))
