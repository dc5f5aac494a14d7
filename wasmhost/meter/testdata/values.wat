;; A loop with a parameter, which cannot be entered again without it.
(module
  (func (export "f") (result i32)
    (i32.const 0)
    (loop (param i32) (result i32)
      (i32.add (i32.const 1))
      (br 0))))
