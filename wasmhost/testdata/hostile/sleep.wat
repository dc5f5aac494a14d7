;; sleeps for three seconds
(module (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "weir_process") (result i32)
    (i64.store (i32.const 24) (i64.const 3000000000))
    (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128))))
