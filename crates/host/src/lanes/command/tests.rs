//! Commands for WASI 0.3.

use std::time::Duration;

use kitbag_contract::LimitKind;

use crate::CallError;
use crate::lanes::tests::{answer, call, run};

/// Returns a command with this body of `run`, which has the type `(result i32)`. It also exports
/// `run` of WASI 0.2, which fails.
fn command(body: &str) -> String {
    format!(
        r#"(component
    (import "wasi:cli/types@0.3.0" (instance $types
        (type $error-raw (enum "io" "illegal-byte-sequence" "pipe"))
        (export "error-code" (type $error (eq $error-raw)))))
    (alias export $types "error-code" (type $error))
    (import "wasi:cli/stdin@0.3.0" (instance $stdin
        (alias outer 1 $error (type $outer-error))
        (export "error-code" (type $error (eq $outer-error)))
        (export "read-via-stream" (func
            (result (tuple (stream u8) (future (result (error $error)))))))))
    (import "wasi:clocks/monotonic-clock@0.3.0" (instance $clock
        (export "wait-for" (func async (param "how-long" u64)))))
    (import "wasi:random/random@0.3.0" (instance $random
        (export "get-random-bytes" (func (param "max-len" u64) (result (list u8))))))
    (import "wasi:cli/exit@0.3.0" (instance $exit
        (export "exit-with-code" (func (param "status-code" u8)))))
    (type $stream (stream u8))
    (type $future (future (result (error $error))))
    (core module $libc
        (memory (export "memory") 32)
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536)))
    (core instance $libc (instantiate $libc))
    (core func $input (canon lower (func $stdin "read-via-stream")
        (memory (core memory $libc "memory"))))
    (core func $wait (canon lower (func $clock "wait-for")))
    (core func $random (canon lower (func $random "get-random-bytes")
        (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
    (core func $exit (canon lower (func $exit "exit-with-code")))
    (core func $drop-stream (canon stream.drop-readable $stream))
    (core func $drop-future (canon future.drop-readable $future))
    (core module $main
        (import "" "memory" (memory 1))
        (import "" "input" (func $input (param i32)))
        (import "" "wait" (func $wait (param i64)))
        (import "" "random" (func $random (param i64 i32)))
        (import "" "exit" (func $exit (param i32)))
        (import "" "drop-stream" (func $drop-stream (param i32)))
        (import "" "drop-future" (func $drop-future (param i32)))
        (func (export "run") (result i32) (local $count i32) {body})
        (func (export "old-run") (result i32) unreachable))
    (core instance $main (instantiate $main (with "" (instance
        (export "memory" (memory $libc "memory"))
        (export "input" (func $input))
        (export "wait" (func $wait))
        (export "random" (func $random))
        (export "exit" (func $exit))
        (export "drop-stream" (func $drop-stream))
        (export "drop-future" (func $drop-future))))))
    (func $old-run (result (result)) (canon lift (core func $main "old-run")))
    (instance $old-instance (export "run" (func $old-run)))
    (export "wasi:cli/run@0.2.0" (instance $old-instance))
    (func $run async (result (result)) (canon lift (core func $main "run")))
    (instance $instance (export "run" (func $run)))
    (export "wasi:cli/run@0.3.0" (instance $instance)))"#
    )
}

#[test]
fn the_newer_entry_point_is_called() {
    let check = |body: &str, expected: Result<&str, &str>| {
        let completion = run(command(body), &call("{}"));
        assert_eq!(answer(&completion), expected.map_err(str::to_owned), "{body}");
    };
    check("(i32.const 0)", Ok(""));
    check("(i32.const 1)", Err("the command exited with code 1"));
    check("(call $exit (i32.const 7)) unreachable", Err("the command exited with code 7"));
    check("(call $exit (i32.const 0)) unreachable", Ok(""));
    check("(call $wait (i64.const 1000)) (i32.const 0)", Ok(""));
}

#[test]
fn waits_end_with_the_time() {
    for wait in ["1000000000000000000", "0xffffffffffffffff"] {
        let mut call = call("{}");
        call.limits.time = Duration::from_millis(300);
        let body = format!("(call $wait (i64.const {wait})) (i32.const 0)");
        let completion = run(command(&body), &call);
        let is_time =
            |error: &CallError| matches!(error, CallError::Limit { kind: LimitKind::Time, .. });
        assert!(completion.result.as_ref().is_err_and(is_time), "{completion:?}");
    }
}

#[test]
fn streams_and_futures_may_be_dropped_unread() {
    // More often than a call may have handles.
    let body = "
        (loop $more
            (call $input (i32.const 0))
            (call $drop-stream (i32.load (i32.const 0)))
            (call $drop-future (i32.load (i32.const 4)))
            (local.set $count (i32.add (local.get $count) (i32.const 1)))
            (br_if $more (i32.lt_u (local.get $count) (i32.const 2000))))
        (i32.const 0)";
    assert_eq!(answer(&run(command(body), &call("{}"))), Ok(""));
    let kept = body.replace("(call $drop-future (i32.load (i32.const 4)))", "");
    let completion = run(command(&kept), &call("{}"));
    let is_handles =
        |error: &CallError| matches!(error, CallError::Limit { kind: LimitKind::Handles, .. });
    assert!(completion.result.as_ref().is_err_and(is_handles), "{completion:?}");
}

#[test]
fn random_bytes_are_bounded() {
    // The exit code is the number of MiB.
    let body = "
        (call $random (i64.const 0x10000000000) (i32.const 0))
        (call $exit (i32.shr_u (i32.load (i32.const 4)) (i32.const 20)))
        (i32.const 0)";
    let expected = Err("the command exited with code 1".to_owned());
    assert_eq!(answer(&run(command(body), &call("{}"))), expected);
}

/// Returns a command that does this with both ends of a stream, `$readable` and `$writable`.
fn stream_command(body: &str) -> String {
    format!(
        r#"(component
    (type $stream (stream u8))
    (core module $libc (memory (export "memory") 1))
    (core instance $libc (instantiate $libc))
    (core func $new (canon stream.new $stream))
    (core func $read (canon stream.read $stream async (memory (core memory $libc "memory"))))
    (core func $write (canon stream.write $stream async (memory (core memory $libc "memory"))))
    (core func $cancel-read (canon stream.cancel-read $stream))
    (core func $cancel-write (canon stream.cancel-write $stream))
    (core func $drop-readable (canon stream.drop-readable $stream))
    (core func $drop-writable (canon stream.drop-writable $stream))
    (core module $main
        (import "" "new" (func $new (result i64)))
        (import "" "read" (func $read' (param i32 i32 i32) (result i32)))
        (import "" "write" (func $write' (param i32 i32 i32) (result i32)))
        (import "" "cancel-read" (func $cancel-read' (param i32) (result i32)))
        (import "" "cancel-write" (func $cancel-write' (param i32) (result i32)))
        (import "" "drop-readable" (func $drop-readable (param i32)))
        (import "" "drop-writable" (func $drop-writable (param i32)))
        (func $read (param i32) (drop (call $read' (local.get 0) (i32.const 0) (i32.const 9))))
        (func $write (param i32) (drop (call $write' (local.get 0) (i32.const 0) (i32.const 9))))
        (func $cancel-read (param i32) (drop (call $cancel-read' (local.get 0))))
        (func $cancel-write (param i32) (drop (call $cancel-write' (local.get 0))))
        (func (export "run") (result i32)
            (local $ends i64) (local $readable i32) (local $writable i32)
            (local.set $ends (call $new))
            (local.set $readable (i32.wrap_i64 (local.get $ends)))
            (local.set $writable (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
            {body}
            (i32.const 0)))
    (core instance $main (instantiate $main (with "" (instance
        (export "new" (func $new))
        (export "read" (func $read))
        (export "write" (func $write))
        (export "cancel-read" (func $cancel-read))
        (export "cancel-write" (func $cancel-write))
        (export "drop-readable" (func $drop-readable))
        (export "drop-writable" (func $drop-writable))))))
    (func $run async (result (result)) (canon lift (core func $main "run")))
    (instance $instance (export "run" (func $run)))
    (export "wasi:cli/run@0.3.0" (instance $instance)))"#
    )
}

#[test]
fn operations_on_wrong_ends_end_the_call() {
    let operations = ["read", "write", "cancel-read", "cancel-write"];
    let ends = ["readable", "writable"];
    let mut steps = Vec::new();
    for operation in operations {
        for end in ends {
            steps.push(format!("(call ${operation} (local.get ${end}))"));
        }
    }
    steps.push("(call $drop-readable (local.get $readable))".to_owned());
    steps.push("(call $drop-writable (local.get $writable))".to_owned());
    // Each pair of steps while a read or a write waits.
    for waiting in ["(call $read (local.get $readable))", "(call $write (local.get $writable))"] {
        for first in &steps {
            for second in &steps {
                let body = format!("{waiting} {first} {second}");
                let completion = run(stream_command(&body), &call("{}"));
                let is_known = matches!(completion.result, Ok(_) | Err(CallError::Trap { .. }));
                assert!(is_known, "{body}: {completion:?}");
            }
        }
    }
}

#[test]
fn sockets_are_refused_and_noted() {
    let text = r#"(component
    (import "wasi:sockets/types@0.3.0" (instance $sockets
        (export "tcp-socket" (type $socket (sub resource)))
        (type $code-raw (variant
            (case "access-denied") (case "not-supported") (case "invalid-argument")
            (case "out-of-memory") (case "timeout") (case "invalid-state")
            (case "address-not-bindable") (case "address-in-use") (case "remote-unreachable")
            (case "connection-refused") (case "connection-broken") (case "connection-reset")
            (case "connection-aborted") (case "datagram-too-large")
            (case "other" (option string))))
        (export "error-code" (type $code (eq $code-raw)))
        (type $family-raw (enum "ipv4" "ipv6"))
        (export "ip-address-family" (type $family (eq $family-raw)))
        (export "[static]tcp-socket.create" (func (param "address-family" $family)
            (result (result (own $socket) (error $code)))))))
    (core module $libc
        (memory (export "memory") 1)
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096)))
    (core instance $libc (instantiate $libc))
    (core func $create (canon lower (func $sockets "[static]tcp-socket.create")
        (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
    (core module $main
        (import "" "memory" (memory 1))
        (import "" "create" (func $create (param i32 i32)))
        (func (export "run") (result i32)
            (call $create (i32.const 0) (i32.const 0))
            ;; The error is the first one, `access-denied`.
            (i32.or
                (i32.eqz (i32.load8_u (i32.const 0)))
                (i32.ne (i32.load8_u (i32.const 4)) (i32.const 0)))))
    (core instance $main (instantiate $main (with "" (instance
        (export "memory" (memory $libc "memory"))
        (export "create" (func $create))))))
    (func $run async (result (result)) (canon lift (core func $main "run")))
    (instance $instance (export "run" (func $run)))
    (export "wasi:cli/run@0.3.0" (instance $instance)))"#;
    let completion = run(text, &call("{}"));
    assert_eq!(answer(&completion), Ok(""));
    assert!(completion.tried_sockets, "{completion:?}");
}
