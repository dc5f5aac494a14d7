;; Fills and copies a table again and again.
(module
  (table $t 65536 funcref)
  (func $f)
  (elem declare func $f)
  (func (export "f")
    (loop
      (table.fill $t (i32.const 0) (ref.func $f) (i32.const 65536))
      (table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 65535))
      (br 0))))
