;; Asks WASI to sleep for an hour, over and over.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "weir_process") (result i32)
    ;; a subscription: userdata, tag 0 (clock), clock 1 (monotonic), timeout in ns
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 3600000000000))
    (loop $again
      (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))
      (br $again))
    (i32.const 0)))
