;; asks WASI to look through all of its memory, and with a number that wraps
(module (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 16)
  (func (export "weir_process") (result i32)
    (loop $again (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 0x80000001) (i32.const 128))) (br $again)) (unreachable)))
