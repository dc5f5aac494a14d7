;; A loop without end and without a call.
(module
  (func (export "f") (loop br 0)))
