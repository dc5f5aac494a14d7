;; writes its whole memory to standard output, thousands of times in one call
(module (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 16)
  (func (export "weir_process") (result i32) (local i32)
    (loop $fill
      (i32.store offset=4 (local.get 0) (i32.const 1048576))
      (br_if $fill (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 8))) (i32.const 64000))))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 8000) (i32.const 65000)))
    (i32.const 0)))
