;; drop_apps drops the messages of named programs:  config: {drop: [cron, healthd]}
;; Written by hand: no compiler, no library. README.md beside this file has the settings.
(module
  (import "weir_v1" "config_get" (func $config_get (param i32 i32) (result i32)))
  (import "weir_v1" "field_get" (func $field_get (param i32 i32 i32 i32) (result i32)))
  (import "weir_v1" "fail" (func $fail (param i32 i32)))

  (memory (export "memory") 1)
  (data (i32.const 0) "app_name")
  (data (i32.const 16) "drop_apps: config must be like {drop: [cron, healthd]}, at most 16 KiB")

  ;; 256…         app_name, in quotes, as it stands in the list
  ;; 4096…20479   the configuration
  (global $list (mut i32) (i32.const 0))      ;; where the list starts
  (global $end (mut i32) (i32.const 0))       ;; where the configuration ends

  ;; Keeps the configuration's text and finds the bracket that opens the list.
  (func (export "weir_init") (result i32)
    (local $n i32)
    (local.set $n (call $config_get (i32.const 4096) (i32.const 16384)))
    (if (i32.le_u (local.get $n) (i32.const 16384))
      (then
        (global.set $end (i32.add (i32.const 4096) (local.get $n)))
        (global.set $list (i32.const 4096))
        (loop $next
          (if (i32.lt_u (global.get $list) (global.get $end))
            (then
              (if (i32.eq (i32.load8_u (global.get $list)) (i32.const 91))    ;; [
                (then (return (i32.const 0))))
              (global.set $list (i32.add (global.get $list) (i32.const 1)))
              (br $next))))))
    (call $fail (i32.const 16) (i32.const 70))
    (i32.const 1))

  ;; Tells whether the $n bytes at 256 stand at $at.
  (func $same (param $at i32) (param $n i32) (result i32)
    (local $i i32)
    (loop $next
      (if (i32.eq (local.get $i) (local.get $n)) (then (return (i32.const 1))))
      (if (i32.eq (i32.load8_u offset=256 (local.get $i))
                  (i32.load8_u (i32.add (local.get $at) (local.get $i))))
        (then (local.set $i (i32.add (local.get $i) (i32.const 1))) (br $next))))
    (i32.const 0))

  (func (export "weir_process") (result i32)
    (local $n i32) (local $at i32)
    (local.set $n (call $field_get (i32.const 0) (i32.const 8) (i32.const 257) (i32.const 1024)))
    ;; absent (-1), or longer than any name in the list: kept
    (if (i32.gt_u (local.get $n) (i32.const 1024)) (then (return (i32.const 0))))
    (i32.store8 (i32.const 256) (i32.const 34))
    (i32.store8 offset=257 (local.get $n) (i32.const 34))
    (local.set $n (i32.add (local.get $n) (i32.const 2)))
    (local.set $at (global.get $list))
    (loop $next
      (if (i32.gt_u (i32.add (local.get $at) (local.get $n)) (global.get $end)) (then (return (i32.const 0))))
      (if (call $same (local.get $at) (local.get $n)) (then (return (i32.const 1))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $next))
    (i32.const 0)))
