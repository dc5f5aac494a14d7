;; two functions that call each other through a table, for ever
(module (type $f (func (param i64) (result i64))) (memory (export "memory") 1)
  (table 2 funcref) (elem (i32.const 0) $a $b)
  (func $a (param i64) (result i64) (call_indirect (type $f) (i64.add (local.get 0) (i64.const 1)) (i32.const 1)))
  (func $b (param i64) (result i64) (call_indirect (type $f) (i64.add (local.get 0) (i64.const 1)) (i32.const 0)))
  (func (export "weir_process") (result i32) (drop (call $a (i64.const 0))) (i32.const 0)))
