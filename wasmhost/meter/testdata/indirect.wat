;; The same through a table, from function to function.
(module
  (type $t (func (param i32)))
  (table 2 funcref)
  (elem (i32.const 0) $a $b)
  (func $a (param i32)
    (if (local.get 0) (then
      (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 1))
      (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 1)))))
  (func $b (param i32)
    (if (local.get 0) (then
      (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0))
      (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0)))))
  (func (export "f") (call $a (i32.const 62))))
