(module
    (memory (export "memory") 1)
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "dealloc") (param i32 i32))
    (func (export "execute") (param i32 i32) (result i64)
        (i64.or
            (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32))
            (i64.extend_i32_u (local.get 1)))))
