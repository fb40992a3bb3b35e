//! Calls of small components and modules in each lane.

mod allocators;

use std::sync::Arc;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_contract::{Action, Limits, Outcome};

use crate::{
    Call, CallError, Completion, ComponentBytes, ComponentSource, Host, HostOptions, RunContext,
};

/// Returns a call without grants.
pub(crate) fn call(arguments: &str) -> Call {
    Call {
        name: "tool".into(),
        function: None,
        action: Action::Run,
        arguments: arguments.into(),
        answers: "{}".into(),
        grants: Arc::default(),
        guard: Arc::default(),
        secrets: Arc::default(),
        storage: None,
        limits: Limits::default(),
        tools: None,
    }
}

/// Loads a component or a module, in the text format or the binary format, and calls it.
pub(crate) fn run(component: impl AsRef<[u8]>, call: &Call) -> Completion {
    let host = Host::new(HostOptions::default());
    let bytes = wat::parse_bytes(component.as_ref()).unwrap().into_owned();
    let source = ComponentSource::Bytes(ComponentBytes::new("tool.wasm", bytes));
    let context = RunContext::default();
    let component = host.component(&source, &call.limits, &context).unwrap();
    host.call_blocking(&component, call, &context)
}

/// Returns the text of a successful call, or the message of an error.
pub(crate) fn answer(completion: &Completion) -> Result<&str, String> {
    match &completion.result {
        Ok(Outcome::Success(text)) => Ok(text),
        Ok(Outcome::Error(error)) => Err(error.message.clone()),
        Ok(Outcome::NeedsInput(question)) => panic!("{question:?}"),
        Err(error) => Err(error.to_string()),
    }
}

/// A module for preview 1 that prints its arguments, each with the character NUL after it, and its
/// standard input.
const ECHO: &str = r#"(module
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 64)
    (func (export "_start")
        (drop (call $sizes (i32.const 0) (i32.const 20)))
        (drop (call $args (i32.const 65536) (i32.const 1048576)))
        (i32.store (i32.const 16) (i32.const 1048576))
        (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 8)))
        (loop $more
            (i32.store (i32.const 16) (i32.const 32768))
            (i32.store (i32.const 20) (i32.const 4096))
            (drop (call $read (i32.const 0) (i32.const 16) (i32.const 1) (i32.const 20)))
            (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 8)))
            (br_if $more (i32.load (i32.const 20))))))"#;

/// A module for preview 1 with this body of `_start`, which can print and exit.
fn program(body: &str) -> String {
    format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write"
                (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (data (i32.const 0) "\10\00\00\00\05\00\00\00")
            (data (i32.const 16) "hello")
            (func $print (param $fd i32)
                (drop (call $write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
            (func (export "_start") {body}))"#
    )
}

#[test]
fn a_command_receives_arguments_and_input() {
    let check = |arguments: &str, expected: &str| {
        assert_eq!(answer(&run(ECHO, &call(arguments))), Ok(expected), "{arguments}");
    };
    check("{}", "tool\0");
    check(r#"{"args":["-n","a b","ä",""]}"#, "tool\0-n\0a b\0ä\0\0");
    check(r#"{"args":"a b","stdin":"x\ny"}"#, "tool\0a b\0x\ny");
}

#[test]
fn wrong_arguments_of_a_command_are_refused() {
    for arguments in [r#"{"args":[1]}"#, r#"{"args":{}}"#, r#"{"stdin":1}"#] {
        let error = answer(&run(ECHO, &call(arguments))).unwrap_err();
        assert_eq!(error, "a command takes `args`, a list of strings, and `stdin`, a string");
    }
    let error = answer(&run(ECHO, &call(r#"{"args":["a\u0000b"]}"#))).unwrap_err();
    assert_eq!(error, "an argument of a command may not contain the character NUL");
}

#[test]
fn command_lines_arrive_up_to_their_limit() {
    let run = |args: &[String]| {
        let completion = run(ECHO, &call(&serde_json::json!({ "args": args }).to_string()));
        answer(&completion).map(str::len)
    };
    let refused = || {
        let limit = "the arguments of a command may have at most 32 KiB, with 16 bytes for each; \
                     pass data as `stdin`";
        Err(limit.to_owned())
    };
    let most = 32 << 10;
    let own = "tool".len() + 1;
    let long = |bytes: usize| ["x".repeat(bytes - 16)];
    assert_eq!(run(&long(most)), Ok(own + most - 15));
    assert_eq!(run(&long(most + 1)), refused());
    let many = |bytes: usize| vec![String::new(); bytes / 16];
    assert_eq!(run(&many(most)), Ok(own + most / 16));
    assert_eq!(run(&many(most + 16)), refused());
}

#[test]
fn exit_codes_are_errors_with_the_last_output() {
    let check = |body: &str, expected: Result<&str, &str>| {
        let completion = run(program(body), &call("{}"));
        assert_eq!(answer(&completion), expected.map_err(str::to_owned), "{body}");
    };
    check("(call $print (i32.const 1))", Ok("hello"));
    check("(call $print (i32.const 1)) (call $exit (i32.const 0))", Ok("hello"));
    check(
        "(call $print (i32.const 2)) (call $exit (i32.const 1))",
        Err("the command exited with code 1\nits last output:\n  hello"),
    );
    check("(call $exit (i32.const 33))", Err("the command exited with code 33"));
    check("unreachable", Err("trap: the tool ran into `unreachable`"));
}

#[test]
fn endless_output_ends_with_the_time_and_is_truncated() {
    let print = "(call $print (i32.const 1))";
    let mut endless = call("{}");
    endless.limits.time = Duration::from_millis(300);
    let completion = run(program(&format!("(loop {print} (br 0))")), &endless);
    assert!(matches!(completion.result, Err(CallError::Limit { .. })), "{completion:?}");
    let mut long = call("{}");
    long.limits.output = ByteSize::bytes(1 << 10);
    let body = "(local $n i32) (loop $more (call $print (i32.const 1))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $more (i32.lt_u (local.get $n) (i32.const 300))))";
    let completion = run(program(body), &long);
    let text = answer(&completion).unwrap();
    assert!(text.ends_with("[cut by kitbag: this answer had 1500 bytes]"), "{text}");
    assert_eq!((text.len(), completion.usage.output_bytes), (1 << 10, 1_500));
}

#[test]
fn a_command_without_grants_has_no_files_and_variables() {
    let component = r#"(component
        (import "wasi:cli/environment@0.2.0" (instance $environment
            (export "get-environment" (func (result (list (tuple string string)))))
            (export "get-arguments" (func (result (list string))))))
        (core module $memory (memory (export "memory") 1)
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
        (core instance $m (instantiate $memory))
        (core func $get (canon lower (func $environment "get-environment")
            (memory (core memory $m "memory")) (realloc (core func $m "realloc"))))
        (core module $main
            (import "" "memory" (memory 1))
            (import "" "get" (func $get (param i32)))
            (func (export "run") (result i32)
                (call $get (i32.const 0))
                (i32.load (i32.const 4))))
        (core instance $i (instantiate $main (with "" (instance
            (export "memory" (memory $m "memory")) (export "get" (func $get))))))
        (func $run (result (result)) (canon lift (core func $i "run")))
        (instance $run-instance (export "run" (func $run)))
        (export "wasi:cli/run@0.2.0" (instance $run-instance)))"#;
    // The exit code is the number of variables.
    assert_eq!(answer(&run(component, &call("{}"))), Ok(""));
}

#[test]
fn faulty_programs_are_refused_by_the_translation() {
    let host = Host::new(HostOptions::default());
    let load = |text: &str| {
        let bytes = wat::parse_str(text).unwrap();
        let source = ComponentSource::Bytes(ComponentBytes::new("tool.wasm", bytes));
        let loaded = host.component(&source, &Limits::default(), &RunContext::default());
        loaded.map(drop).map_err(|error| error.to_string())
    };
    let error = load(
        r#"(module (import "wasi_snapshot_preview1" "fd_write"
            (func (param i32 i32 i32 i32) (result i32))) (func (export "_start")))"#,
    )
    .unwrap_err();
    assert!(error.contains("memory"), "{error}");
    let error = load(
        r#"(module (import "wasi_snapshot_preview1" "no_such" (func))
            (memory (export "memory") 1) (func (export "_start")))"#,
    )
    .unwrap_err();
    assert!(error.contains("no_such"), "{error}");
    let error =
        load(r#"(module (memory (export "memory") 1) (func (export "_start") (param i32)))"#)
            .unwrap_err();
    assert!(error.contains("_start"), "{error}");
    let error = load(r#"(module (import "env" "f" (func)) (func (export "_start")))"#).unwrap_err();
    assert!(
        error.contains("core WebAssembly module that kitbag cannot call: it has `env`"),
        "{error}"
    );
}

#[test]
fn garbage_after_a_module_is_refused() {
    let mut bytes = wat::parse_str(program("")).unwrap();
    bytes.extend(b"garbage after the last section");
    let source = ComponentSource::Bytes(ComponentBytes::new("tool.wasm", bytes));
    let host = Host::new(HostOptions::default());
    let loaded = host.component(&source, &Limits::default(), &RunContext::default());
    let error = loaded.map(drop).unwrap_err().to_string();
    assert!(error.contains("not a valid component"), "{error}");
}

#[test]
fn sections_that_instruct_the_encoder_are_dropped() {
    let text = program("(call $print (i32.const 1))");
    let with = text.replacen("(module", "(module (@custom \"component-type:x\" \"garbage\")", 1);
    assert_eq!(answer(&run(with, &call("{}"))), Ok("hello"));
}
