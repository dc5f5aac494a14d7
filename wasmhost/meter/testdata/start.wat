;; Never gets through its start function.
(module
  (func $s (loop br 0))
  (start $s)
  (func (export "f")))
