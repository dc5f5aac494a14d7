;; starts only where the clock is even, so that some instances can be made and some cannot
(module (import "weir_v1" "time_now" (func $now (result i64))) (memory (export "memory") 1)
  (func (export "weir_process") (result i32) unreachable)
  (func $s (if (i64.eqz (i64.and (i64.shr_u (call $now) (i64.const 12)) (i64.const 3))) (then unreachable))) (start $s))
