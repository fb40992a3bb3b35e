;; A core module whose result is any pointer and length: the first sixteen letters of its input, of
;; which the lower four bits count, or the rest of the input if the first letter is `z`.
(module
  (memory (export "memory") 1)
  (func (export "alloc") (param $size i32) (result i32)
    (drop (memory.grow (i32.div_u (local.get $size) (i32.const 65536))))
    (i32.const 1024))
  (func (export "dealloc") (param i32 i32))
  (func (export "execute") (param $pointer i32) (param $length i32) (result i64)
    (local $value i64) (local $at i32)
    (if (i32.eq (i32.load8_u (local.get $pointer)) (i32.const 122))
      (then (return
        (i64.or
          (i64.shl
            (i64.extend_i32_u (i32.add (local.get $pointer) (i32.const 1)))
            (i64.const 32))
          (i64.extend_i32_u (i32.sub (local.get $length) (i32.const 1)))))))
    (loop
      (local.set $value
        (i64.or
          (i64.shl (local.get $value) (i64.const 4))
          (i64.extend_i32_u
            (i32.and
              (i32.load8_u (i32.add (local.get $pointer) (local.get $at)))
              (i32.const 15)))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if 0 (i32.lt_u (local.get $at) (i32.const 16))))
    (local.get $value)))
