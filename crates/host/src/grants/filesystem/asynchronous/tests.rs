//! A command for WASI 0.3 that opens and writes one file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use kitbag_base::ByteSize;
use kitbag_policy::{Access, DirectoryGrant, Grants};
use tempfile::TempDir;

use crate::lanes::tests::{answer, call, run};
use crate::{Call, Completion};

/// Access of an opened file.
const READ: u32 = 1;
const WRITE: u32 = 2;

/// Flags of an opened file.
const CREATE: u32 = 1;

/// The exit code of the command for the error code `not-permitted`.
const NOT_PERMITTED: u32 = 130;

/// Returns a command that opens a path in its only directory and writes `text`, if any, with a
/// stream. It exits with the position of an error code, from 100, or with the error of the write,
/// from 200.
fn command(path: &str, open: u32, access: u32, text: &str) -> String {
    format!(
        r#"(component
    (import "wasi:filesystem/types@0.3.0" (instance $types
        (export "descriptor" (type $descriptor (sub resource)))
        (type $error-raw (variant (case "access") (case "already") (case "bad-descriptor")
            (case "busy") (case "deadlock") (case "quota") (case "exist") (case "file-too-large")
            (case "illegal-byte-sequence") (case "in-progress") (case "interrupted")
            (case "invalid") (case "io") (case "is-directory") (case "loop")
            (case "too-many-links") (case "message-size") (case "name-too-long")
            (case "no-device") (case "no-entry") (case "no-lock") (case "insufficient-memory")
            (case "insufficient-space") (case "not-directory") (case "not-empty")
            (case "not-recoverable") (case "unsupported") (case "no-tty") (case "no-such-device")
            (case "overflow") (case "not-permitted") (case "pipe") (case "read-only")
            (case "invalid-seek") (case "text-file-busy") (case "cross-device")
            (case "other" (option string))))
        (export "error-code" (type $error (eq $error-raw)))
        (type $path-flags-raw (flags "symlink-follow"))
        (export "path-flags" (type $path-flags (eq $path-flags-raw)))
        (type $open-flags-raw (flags "create" "directory" "exclusive" "truncate"))
        (export "open-flags" (type $open-flags (eq $open-flags-raw)))
        (type $descriptor-flags-raw (flags "read" "write" "file-integrity-sync"
            "data-integrity-sync" "requested-write-sync" "mutate-directory"))
        (export "descriptor-flags" (type $descriptor-flags (eq $descriptor-flags-raw)))
        (export "[method]descriptor.open-at" (func async (param "self" (borrow $descriptor))
            (param "path-flags" $path-flags) (param "path" string)
            (param "open-flags" $open-flags) (param "flags" $descriptor-flags)
            (result (result (own $descriptor) (error $error)))))
        (export "[method]descriptor.write-via-stream" (func (param "self" (borrow $descriptor))
            (param "data" (stream u8)) (param "offset" u64)
            (result (future (result (error $error))))))))
    (alias export $types "descriptor" (type $descriptor))
    (alias export $types "error-code" (type $error))
    (import "wasi:filesystem/preopens@0.3.0" (instance $preopens
        (alias outer 1 $descriptor (type $descriptor))
        (export "descriptor" (type $own (eq $descriptor)))
        (export "get-directories" (func (result (list (tuple (own $own) string)))))))
    (import "wasi:cli/exit@0.3.0" (instance $exit
        (export "exit-with-code" (func (param "status-code" u8)))))
    (type $stream (stream u8))
    (type $ended (future (result (error $error))))
    (core module $libc
        (memory (export "memory") 1)
        (data (i32.const 16) "{path}")
        (data (i32.const 1024) "{text}")
        (global $next (mut i32) (i32.const 8192))
        (func (export "realloc") (param i32 i32 i32 i32) (result i32)
            (global.set $next (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
            (global.get $next)
            (global.set $next (i32.add (global.get $next) (local.get 3)))))
    (core instance $libc (instantiate $libc))
    (core func $directories (canon lower (func $preopens "get-directories")
        (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
    (core func $open (canon lower (func $types "[method]descriptor.open-at")
        (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
    (core func $write-via (canon lower (func $types "[method]descriptor.write-via-stream")
        (memory (core memory $libc "memory"))))
    (core func $exit (canon lower (func $exit "exit-with-code")))
    (core func $return (canon task.return (result (result))))
    (core func $stream-new (canon stream.new $stream))
    (core func $stream-write (canon stream.write $stream async
        (memory (core memory $libc "memory"))))
    (core func $stream-drop (canon stream.drop-writable $stream))
    (core func $future-read (canon future.read $ended async
        (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
    (core func $set-new (canon waitable-set.new))
    (core func $join (canon waitable.join))
    (core module $main
        (import "" "memory" (memory 1))
        (import "" "directories" (func $directories (param i32)))
        (import "" "open" (func $open (param i32 i32 i32 i32 i32 i32 i32)))
        (import "" "write-via" (func $write-via (param i32 i32 i64) (result i32)))
        (import "" "exit" (func $exit (param i32)))
        (import "" "return" (func $return (param i32)))
        (import "" "stream-new" (func $stream-new (result i64)))
        (import "" "stream-write" (func $write (param i32 i32 i32) (result i32)))
        (import "" "stream-drop" (func $drop (param i32)))
        (import "" "future-read" (func $read (param i32 i32) (result i32)))
        (import "" "set-new" (func $set-new (result i32)))
        (import "" "join" (func $join (param i32 i32)))
        (global $writable (mut i32) (i32.const 0))
        (global $ended (mut i32) (i32.const 0))
        (global $set (mut i32) (i32.const 0))
        (func $finish (result i32)
            ;; The result of the write.
            (if (i32.load8_u (i32.const 768))
                (then (call $exit (i32.add (i32.const 200) (i32.load8_u (i32.const 772))))))
            (call $return (i32.const 0))
            (i32.const 0))
        (func $read-end (result i32)
            (call $join (global.get $writable) (i32.const 0))
            (call $drop (global.get $writable))
            (call $join (global.get $ended) (global.get $set))
            (if (result i32)
                (i32.eq (i32.const -1) (call $read (global.get $ended) (i32.const 768)))
                (then (i32.or (i32.const 2) (i32.shl (global.get $set) (i32.const 4))))
                (else (call $finish))))
        (func (export "run") (result i32)
            (local $ends i64)
            (call $directories (i32.const 512))
            (if (i32.eqz (i32.load (i32.const 516))) (then (call $exit (i32.const 99))))
            (call $open (i32.load (i32.load (i32.const 512))) (i32.const 1)
                (i32.const 16) (i32.const {path_length}) (i32.const {open}) (i32.const {access})
                (i32.const 640))
            (if (i32.load8_u (i32.const 640))
                (then (call $exit (i32.add (i32.const 100) (i32.load8_u (i32.const 644))))))
            (if (i32.eqz (i32.const {text_length}))
                (then (call $return (i32.const 0)) (return (i32.const 0))))
            (local.set $ends (call $stream-new))
            (global.set $writable (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
            (global.set $ended (call $write-via (i32.load (i32.const 644))
                (i32.wrap_i64 (local.get $ends)) (i64.const 0)))
            (global.set $set (call $set-new))
            (call $join (global.get $writable) (global.get $set))
            (if (result i32) (i32.eq (i32.const -1)
                (call $write (global.get $writable) (i32.const 1024) (i32.const {text_length})))
                (then (i32.or (i32.const 2) (i32.shl (global.get $set) (i32.const 4))))
                (else (call $read-end))))
        (func (export "callback") (param $event i32) (param i32 i32) (result i32)
            ;; The end of a write to the stream, or of a read from the future.
            (if (result i32) (i32.eq (local.get $event) (i32.const 3))
                (then (call $read-end))
                (else (call $finish)))))
    (core instance $main (instantiate $main (with "" (instance
        (export "memory" (memory $libc "memory"))
        (export "directories" (func $directories))
        (export "open" (func $open))
        (export "write-via" (func $write-via))
        (export "exit" (func $exit))
        (export "return" (func $return))
        (export "stream-new" (func $stream-new))
        (export "stream-write" (func $stream-write))
        (export "stream-drop" (func $stream-drop))
        (export "future-read" (func $future-read))
        (export "set-new" (func $set-new))
        (export "join" (func $join))))))
    (func $run async (result (result)) (canon lift (core func $main "run") async
        (memory (core memory $libc "memory")) (callback (core func $main "callback"))))
    (instance $run-instance (export "run" (func $run)))
    (export "wasi:cli/run@0.3.0" (instance $run-instance)))"#,
        path_length = path.len(),
        text_length = text.len(),
    )
}

fn granted(directory: &Path, access: Access) -> Call {
    let host = directory.canonicalize().unwrap();
    let guest = "/work".parse().unwrap();
    let grant = DirectoryGrant {
        host,
        guest,
        access,
        include: Vec::new(),
        protected: None,
        identity: None,
    };
    let grants = Arc::new(Grants { directories: vec![grant], ..Grants::default() });
    Call { grants, ..call("{}") }
}

/// A directory with a file, a secret, a protected directory and links out of it.
fn fixture() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("file"), "x").unwrap();
    fs::write(path(".env"), "KEY=1").unwrap();
    fs::create_dir_all(path(".git/hooks")).unwrap();
    fs::write(path(".git/hooks/a"), "x").unwrap();
    symlink("/etc/passwd", path("out")).unwrap();
    directory
}

fn exit(completion: &Completion) -> u32 {
    match answer(completion) {
        Ok(_) => 0,
        Err(error) => {
            let code = error.lines().next().unwrap().rsplit(' ').next().unwrap();
            code.parse().unwrap_or_else(|_| panic!("{error}"))
        }
    }
}

#[test]
fn the_guards_hold_for_wasi_0_3() {
    let directory = fixture();
    let check = |access: Access, path: &str, open: u32, mode: u32, expected: u32| {
        let completion = run(command(path, open, mode, ""), &granted(directory.path(), access));
        assert_eq!(exit(&completion), expected, "{path} {access:?} {open} {mode}");
    };
    let (read_only, read_write) = (Access::ReadOnly, Access::ReadWrite);
    check(read_only, "file", 0, READ, 0);
    check(read_only, "none", 0, READ, 119);
    check(read_only, "file", 0, WRITE, NOT_PERMITTED);
    check(read_only, "new", CREATE, WRITE, NOT_PERMITTED);
    check(read_only, ".git/hooks/a", 0, READ, 0);
    check(read_write, "file", 0, WRITE, 0);
    check(read_write, "new", CREATE, WRITE, 0);
    for path in ["../x", "/etc/passwd", "out", ".env"] {
        check(read_write, path, 0, READ, NOT_PERMITTED);
    }
    for path in [".git/config", ".git/hooks/a", ".git/hooks/b", ".env", ".kitbag/config.toml"] {
        let completion =
            run(command(path, CREATE, WRITE, ""), &granted(directory.path(), read_write));
        assert!(exit(&completion) >= 100, "{path}");
    }
}

#[test]
fn refused_files_are_recorded() {
    let directory = fixture();
    let completion =
        run(command(".env", 0, READ, ""), &granted(directory.path(), Access::ReadOnly));
    assert_eq!(completion.refused.len(), 1, "{completion:?}");
    let completion =
        run(command("file", 0, READ, ""), &granted(directory.path(), Access::ReadOnly));
    assert_eq!(completion.touched.read.paths.len(), 1, "{completion:?}");
}

#[test]
fn a_call_without_grants_has_no_directories() {
    assert_eq!(exit(&run(command("file", 0, READ, ""), &call("{}"))), 99);
}

#[test]
fn streams_are_written_within_the_quota() {
    let directory = fixture();
    let mut call = granted(directory.path(), Access::ReadWrite);
    let write = command("file", 0, WRITE, "hello");
    assert_eq!(exit(&run(&write, &call)), 0);
    assert_eq!(fs::read_to_string(directory.path().join("file")).unwrap(), "hello");
    call.limits.written = ByteSize::bytes(4);
    // Insufficient space.
    assert_eq!(exit(&run(&write, &call)), 222);
    // The handle was opened for reading.
    let refused = run(command("file", 0, READ, "hello"), &call);
    assert!((200..=230).contains(&exit(&refused)), "{refused:?}");
}
