;; grows until refused, then fails
(module (memory (export "memory") 1)
  (func (export "weir_process") (result i32)
    (block $full (loop $more (br_if $full (i32.eq (memory.grow (i32.const 16)) (i32.const -1))) (br $more)))
    unreachable))
