;; drop_below drops messages below a level:  config: {min: warning}
;; Written by hand: no compiler, no library. README.md beside this file has the settings.
(module
  (import "weir_v1" "config_get" (func $config_get (param i32 i32) (result i32)))
  (import "weir_v1" "field_get_i64" (func $field_get_i64 (param i32 i32 i32) (result i32)))
  (import "weir_v1" "fail" (func $fail (param i32 i32)))

  (memory (export "memory") 1)
  (data (i32.const 0) "severity")
  (data (i32.const 16) "{\"min\":")
  ;; The levels as they stand in the configuration, each followed by the digit that it means; a space ends the list.
  (data (i32.const 32) "\"emerg\"0\"panic\"0\"alert\"1\"crit\"2\"err\"3\"error\"3\"warning\"4\"warn\"4\"notice\"5\"info\"6\"debug\"7 ")
  (data (i32.const 256) "drop_below: config must be {min: LEVEL}, with 0 to 7 or one of emerg, alert, crit, err, warning, notice, info, debug")

  ;; 128…135      where the host writes the severity
  ;; 512…         the configuration, at most 256 bytes: without white space, letters in lower case
  (global $min (mut i64) (i64.const 6))      ;; the largest number that is kept: info

  ;; Reads the configuration to 512, closes the gaps that white space leaves, and returns its length; 0 when there is none.
  ;; White space inside quotes becomes a slash, which no word has.
  (func $config (result i32)
    (local $n i32) (local $from i32) (local $to i32) (local $c i32) (local $quoted i32)
    (local.set $n (call $config_get (i32.const 512) (i32.const 256)))
    (if (i32.gt_u (local.get $n) (i32.const 256)) (then (return (i32.const 0))))
    (loop $next
      (if (i32.lt_u (local.get $from) (local.get $n))
        (then
          (local.set $c (i32.load8_u offset=512 (local.get $from)))
          (if (i32.eq (local.get $c) (i32.const 34)) (then (local.set $quoted (i32.eqz (local.get $quoted)))))
          (if (i32.le_u (i32.sub (local.get $c) (i32.const 65)) (i32.const 25))      ;; A…Z
            (then (local.set $c (i32.or (local.get $c) (i32.const 32)))))
          (if (i32.and (i32.le_u (local.get $c) (i32.const 32)) (local.get $quoted))
            (then (local.set $c (i32.const 47))))
          (if (i32.gt_u (local.get $c) (i32.const 32))
            (then
              (i32.store8 offset=512 (local.get $to) (local.get $c))
              (local.set $to (i32.add (local.get $to) (i32.const 1)))))
          (local.set $from (i32.add (local.get $from) (i32.const 1)))
          (br $next))))
    (local.get $to))

  ;; Tells whether the $n bytes at $a and at $b are the same.
  (func $same (param $a i32) (param $b i32) (param $n i32) (result i32)
    (loop $next
      (if (i32.eqz (local.get $n)) (then (return (i32.const 1))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $next (i32.eq (i32.load8_u (i32.add (local.get $a) (local.get $n)))
                           (i32.load8_u (i32.add (local.get $b) (local.get $n))))))
    (i32.const 0))

  ;; The digit that stands behind the word of $n bytes at $at in the list, or 0 when there is no such word.
  (func $digit_of (param $at i32) (param $n i32) (result i32)
    (local $word i32)
    (local.set $word (i32.const 32))
    (loop $next
      (if (i32.ne (i32.load8_u (local.get $word)) (i32.const 32))
        (then
          (if (call $same (local.get $word) (local.get $at) (local.get $n))
            (then (return (i32.load8_u (i32.add (local.get $word) (local.get $n))))))
          (local.set $word (i32.add (local.get $word) (i32.const 1)))
          (br $next))))
    (i32.const 0))

  (func (export "weir_init") (result i32)
    (local $n i32) (local $digit i32)
    (local.set $n (call $config))
    (if (i32.eq (local.get $n) (i32.const 2)) (then (return (i32.const 0))))          ;; {}
    (if (i32.gt_u (local.get $n) (i32.const 8))
      (then
        (if (call $same (i32.const 16) (i32.const 512) (i32.const 7))
          (then
            ;; what is left of {"min":…}, in quotes a word or a digit, without quotes a digit
            (local.set $n (i32.sub (local.get $n) (i32.const 8)))
            (if (i32.and (i32.gt_u (local.get $n) (i32.const 4))
                         (i32.eq (i32.load8_u (i32.const 519)) (i32.const 34)))
              (then (local.set $digit (call $digit_of (i32.const 519) (local.get $n)))))
            (if (i32.eq (local.get $n) (i32.const 3))
              (then
                (if (i32.and (i32.eq (i32.load8_u (i32.const 519)) (i32.const 34))
                             (i32.eq (i32.load8_u (i32.const 521)) (i32.const 34)))
                  (then (local.set $digit (i32.load8_u (i32.const 520)))))))
            (if (i32.eq (local.get $n) (i32.const 1))
              (then (local.set $digit (i32.load8_u (i32.const 519)))))))))
    (local.set $digit (i32.sub (local.get $digit) (i32.const 48)))
    (if (i32.gt_u (local.get $digit) (i32.const 7))
      (then
        (call $fail (i32.const 256) (i32.const 116))
        (return (i32.const 1))))
    (global.set $min (i64.extend_i32_u (local.get $digit)))
    (i32.const 0))

  (func (export "weir_process") (result i32)
    ;; every message has a severity; an error of the host is a failure, never a message kept unseen
    (if (call $field_get_i64 (i32.const 0) (i32.const 8) (i32.const 128)) (then (return (i32.const -1))))
    (i64.gt_s (i64.load (i32.const 128)) (global.get $min))))
