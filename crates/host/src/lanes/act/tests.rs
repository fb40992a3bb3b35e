//! Calls of small tools for ACT, some of them hostile.

use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_contract::{LimitKind, Limits, Outcome};
use kitbag_engine::{DescribeResult, Lane};

use crate::lanes::tests::{answer, call, run};
use crate::{
    Call, CallError, Completion, Component, ComponentBytes, ComponentSource, Host, HostOptions,
    RunContext,
};

/// A component for ACT.
struct Tool {
    /// The body of `list-tools`, which has the type `(param i32 i32) (result i32)`.
    list: &'static str,
    /// The body of `call-tool`, with the parameters `$name`, `$name-length`, `$arguments`,
    /// `$arguments-length`, `$metadata` and `$metadata-length`.
    call: &'static str,
    /// The body of the callback, with the parameters `$event`, `$first` and `$second`.
    callback: &'static str,
    /// The number of events that are written to a stream.
    writes: u32,
    /// True if the component has sessions. Opening one needs an argument.
    sessions: bool,
}

/// Ends a task.
const EXIT: &str = "(i32.const 0)";

/// Describes one tool, `echo`.
const LIST: &str = r#"
    (i32.store (i32.const 256) (i32.const 16)) (i32.store (i32.const 260) (i32.const 4))
    (i32.store (i32.const 268) (i32.const 32)) (i32.store (i32.const 272) (i32.const 8))
    (i32.store (i32.const 276) (i32.const 48)) (i32.store (i32.const 280) (i32.const 17))
    (i32.store (i32.const 284) (i32.const 304)) (i32.store (i32.const 288) (i32.const 1))
    (i32.store (i32.const 304) (i32.const 80)) (i32.store (i32.const 308) (i32.const 13))
    (i32.store (i32.const 312) (i32.const 96)) (i32.store (i32.const 316) (i32.const 1))
    (i32.store (i32.const 348) (i32.const 256)) (i32.store (i32.const 352) (i32.const 1))
    (i32.const 336)"#;

/// Returns the arguments, as CBOR, and the name of the tool.
const ECHO: &str = "
    (call $part (i32.const 512) (local.get $arguments) (local.get $arguments-length)
        (i32.const 128) (i32.const 16))
    (call $part (i32.const 544) (local.get $name) (local.get $name-length)
        (i32.const 112) (i32.const 10))
    (call $return (i32.const 0) (i32.const 512) (i32.const 2))
    (i32.const 0)";

/// Returns a stream and writes `hello` to it, as often as `Tool::writes`.
const STREAM: &str = "
    (local $ends i64)
    (local.set $ends (call $stream-new))
    (call $part (i32.const 512) (i32.const 160) (i32.const 5) (i32.const 112) (i32.const 10))
    (call $return (i32.const 1) (i32.wrap_i64 (local.get $ends)) (i32.const 0))
    (global.set $writable (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
    (global.set $set (call $set-new))
    (call $join (global.get $writable) (global.get $set))
    (call $continue (call $write-hello))";

/// Continues to write.
const CONTINUE: &str = "(call $continue (local.get $second))";

/// Returns the value of the first entry of the metadata, the id of the session.
const SESSION_ID: &str = "
    (call $part (i32.const 512) (i32.load offset=8 (local.get $metadata))
        (i32.load offset=12 (local.get $metadata)) (i32.const 128) (i32.const 16))
    (call $return (i32.const 0) (i32.const 512) (i32.const 1))
    (i32.const 0)";

/// The interface of sessions, whose id is `echo`.
const SESSIONS: &str = r#"
    (type $session-raw (record (field "id" string) (field "metadata" $metadata)))
    (export $session "session" (type $session-raw))
    (func $schema async (param "metadata" $metadata) (result (result string (error $error)))
        (canon lift (core func $main "schema") (memory (core memory $libc "memory"))
            (realloc (core func $libc "realloc"))))
    (func $open async (param "args" $metadata) (param "metadata" $metadata)
        (result (result $session (error $error)))
        (canon lift (core func $main "open") (memory (core memory $libc "memory"))
            (realloc (core func $libc "realloc"))))
    (func $close (param "session-id" string)
        (canon lift (core func $main "close") (memory (core memory $libc "memory"))
            (realloc (core func $libc "realloc"))))
    (instance $session-provider (export "get-open-session-args-schema" (func $schema))
        (export "open-session" (func $open)) (export "close-session" (func $close)))
    (export "act:sessions/session-provider@0.1.0" (instance $session-provider))"#;

impl Default for Tool {
    fn default() -> Self {
        Self { list: LIST, call: ECHO, callback: EXIT, writes: u32::MAX, sessions: false }
    }
}

impl Tool {
    fn text(&self, version: &str) -> String {
        let Self { list, call, callback, writes, sessions } = self;
        let sessions = if *sessions { SESSIONS } else { "" };
        format!(
            r#"(component
    (type $metadata (list (tuple string (list u8))))
    (type $localized-raw (variant
        (case "plain" string) (case "localized" (list (tuple string string)))))
    (export $localized "localized-string" (type $localized-raw))
    (type $error-raw (record
        (field "kind" string) (field "message" $localized) (field "metadata" $metadata)))
    (export $error "act-error" (type $error-raw))
    (type $definition-raw (record (field "name" string) (field "description" $localized)
        (field "parameters-schema" string) (field "metadata" $metadata)))
    (export $definition "tool-definition" (type $definition-raw))
    (type $listed-raw (record (field "metadata" $metadata) (field "tools" (list $definition))))
    (export $listed "list-tools-response" (type $listed-raw))
    (type $part-raw (record (field "data" (list u8)) (field "mime-type" (option string))
        (field "metadata" $metadata)))
    (export $part "content-part" (type $part-raw))
    (type $event-raw (variant (case "content" $part) (case "error" $error)))
    (export $event "tool-event" (type $event-raw))
    (type $events (stream $event))
    (type $result-raw (variant (case "immediate" (list $event)) (case "streaming" $events)))
    (export $result "tool-result" (type $result-raw))

    (core module $libc
        (memory (export "memory") 2)
        (global $next (mut i32) (i32.const 8192))
        (data (i32.const 16) "echo")
        (data (i32.const 32) "Repeats.")
        (data (i32.const 48) "{{\"type\":\"object\"}}")
        (data (i32.const 80) "std:read-only")
        (data (i32.const 96) "\f5")
        (data (i32.const 112) "text/plain")
        (data (i32.const 128) "application/cbor")
        (data (i32.const 160) "hello")
        (func (export "realloc") (param i32 i32 i32 i32) (result i32)
            (global.set $next (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
            (global.get $next)
            (global.set $next (i32.add (global.get $next) (local.get 3)))))
    (core instance $libc (instantiate $libc))
    (core func $return (canon task.return (result $result)
        (memory (core memory $libc "memory"))))
    (core func $stream-new (canon stream.new $events))
    (core func $stream-write (canon stream.write $events async
        (memory (core memory $libc "memory"))))
    (core func $stream-drop (canon stream.drop-writable $events))
    (core func $set-new (canon waitable-set.new))
    (core func $join (canon waitable.join))

    (core module $main
        (import "libc" "memory" (memory 1))
        (import "act" "return" (func $return (param i32 i32 i32)))
        (import "act" "stream-new" (func $stream-new (result i64)))
        (import "act" "stream-write" (func $write (param i32 i32 i32) (result i32)))
        (import "act" "stream-drop" (func $drop (param i32)))
        (import "act" "set-new" (func $set-new (result i32)))
        (import "act" "join" (func $join (param i32 i32)))
        (global $writable (mut i32) (i32.const 0))
        (global $set (mut i32) (i32.const 0))
        (global $count (mut i32) (i32.const 0))
        (func $part (param $at i32) (param i32 i32 i32 i32)
            (i32.store (local.get $at) (i32.const 0))
            (i32.store offset=4 (local.get $at) (local.get 1))
            (i32.store offset=8 (local.get $at) (local.get 2))
            (i32.store offset=12 (local.get $at) (i32.const 1))
            (i32.store offset=16 (local.get $at) (local.get 3))
            (i32.store offset=20 (local.get $at) (local.get 4)))
        (func $error (param $at i32)
            (i32.store (local.get $at) (i32.const 1))
            (i32.store offset=4 (local.get $at) (i32.const 16))
            (i32.store offset=8 (local.get $at) (i32.const 4))
            (i32.store offset=16 (local.get $at) (i32.const 160))
            (i32.store offset=20 (local.get $at) (i32.const 5)))
        (func $wait (result i32)
            (i32.or (i32.const 2) (i32.shl (global.get $set) (i32.const 4))))
        (func $write-hello (result i32)
            (call $write (global.get $writable) (i32.const 512) (i32.const 1)))
        (func $continue (param $code i32) (result i32)
            (loop $again
                (if (i32.eq (local.get $code) (i32.const -1)) (then (return (call $wait))))
                ;; The other end was dropped.
                (if (i32.and (local.get $code) (i32.const 15)) (then (return (i32.const 0))))
                (global.set $count (i32.add (global.get $count) (i32.const 1)))
                (if (i32.ge_u (global.get $count) (i32.const {writes}))
                    (then
                        (call $join (global.get $writable) (i32.const 0))
                        (call $drop (global.get $writable))
                        (return (i32.const 0))))
                (local.set $code (call $write-hello))
                (br $again))
            unreachable)
        (func (export "list") (param i32 i32) (result i32) {list})
        (func (export "schema") (param i32 i32) (result i32)
            (i32.store (i32.const 400) (i32.const 0))
            (i32.store (i32.const 404) (i32.const 48)) (i32.store (i32.const 408) (i32.const 17))
            (i32.const 400))
        (func (export "open") (param $arguments i32) (param $length i32) (param i32 i32)
            (result i32)
            (if (local.get $length)
                (then
                    (i32.store (i32.const 400) (i32.const 0))
                    (i32.store (i32.const 404) (i32.const 16))
                    (i32.store (i32.const 408) (i32.const 4)))
                (else (call $error (i32.const 400))))
            (i32.const 400))
        (func (export "close") (param i32 i32) unreachable)
        (func (export "call")
            (param $name i32) (param $name-length i32)
            (param $arguments i32) (param $arguments-length i32)
            (param $metadata i32) (param $metadata-length i32) (result i32) {call})
        (func (export "callback")
            (param $event i32) (param $first i32) (param $second i32) (result i32) {callback}))
    (core instance $main (instantiate $main
        (with "libc" (instance $libc))
        (with "act" (instance
            (export "return" (func $return))
            (export "stream-new" (func $stream-new))
            (export "stream-write" (func $stream-write))
            (export "stream-drop" (func $stream-drop))
            (export "set-new" (func $set-new))
            (export "join" (func $join))))))
    (func $list async (param "metadata" $metadata) (result (result $listed (error $error)))
        (canon lift (core func $main "list") (memory (core memory $libc "memory"))
            (realloc (core func $libc "realloc"))))
    (func $call async (param "name" string) (param "arguments" (list u8))
        (param "metadata" $metadata) (result $result)
        (canon lift (core func $main "call") async (memory (core memory $libc "memory"))
            (realloc (core func $libc "realloc")) (callback (core func $main "callback"))))
    {sessions}
    (instance $provider (export "list-tools" (func $list)) (export "call-tool" (func $call)))
    (export "act:tools/tool-provider@{version}" (instance $provider)))"#
        )
    }

    fn load(&self) -> Component {
        let bytes = wat::parse_str(self.text("0.1.0")).unwrap();
        let source = ComponentSource::Bytes(ComponentBytes::new("tool.wasm", bytes));
        let host = Host::new(HostOptions::default());
        host.component(&source, &Limits::default(), &RunContext::default()).unwrap()
    }

    fn run(&self, call: &Call) -> Completion {
        run(self.text("0.2.0"), call)
    }
}

/// Returns a call with a time that endless tools use up.
fn short_call() -> Call {
    let mut call = call("{}");
    call.limits.time = Duration::from_millis(300);
    call
}

fn limit(completion: &Completion) -> Option<LimitKind> {
    match &completion.result {
        Err(CallError::Limit { kind, .. }) => Some(*kind),
        _ => None,
    }
}

#[test]
fn tools_are_listed_with_their_schemas() {
    let component = Tool::default().load();
    assert_eq!(component.lane(), Lane::Act);
    let tools = &component.description().unwrap().tools;
    let expected = serde_json::json!([{
        "name": "echo",
        "description": "Repeats.",
        "inputSchema": { "type": "object" },
        "annotations": { "readOnlyHint": true },
    }]);
    assert_eq!(serde_json::to_value(tools).unwrap(), expected);
}

#[test]
fn arguments_arrive_as_deterministic_cbor() {
    let completion = Tool::default().run(&call(r#"{"bb":1,"a":[true,-2.5,"ä"]}"#));
    // The configured name is `tool`.
    assert_eq!(answer(&completion), Ok("{\"a\":[true,-2.5,\"ä\"],\"bb\":1}\necho"));
}

#[test]
fn streams_are_read_to_their_end() {
    let tool = Tool { call: STREAM, callback: CONTINUE, writes: 3, ..Tool::default() };
    assert_eq!(answer(&tool.run(&call("{}"))), Ok("hello\nhello\nhello"));
}

#[test]
fn endless_streams_end_with_the_output() {
    // The second tool expects that its stream is read.
    for callback in [CONTINUE, "(drop (call $continue (i32.const 0))) unreachable"] {
        let tool = Tool { call: STREAM, callback, ..Tool::default() };
        let mut call = call("{}");
        call.limits.output = ByteSize::bytes(1 << 10);
        let completion = tool.run(&call);
        let text = answer(&completion).unwrap();
        assert!(text.ends_with("[cut by kitbag: this answer had 2048 bytes]"), "{text}");
        assert_eq!(text.len(), 1 << 10);
    }
}

#[test]
fn streams_without_events_end_with_the_time() {
    // The writable end is neither written nor dropped.
    let silent = "
        (local $ends i64)
        (local.set $ends (call $stream-new))
        (call $return (i32.const 1) (i32.wrap_i64 (local.get $ends)) (i32.const 0))
        (i32.const 1)";
    let tool = Tool { call: silent, callback: "(i32.const 1)", ..Tool::default() };
    assert_eq!(limit(&tool.run(&short_call())), Some(LimitKind::Time));
}

#[test]
fn abandoned_streams_are_an_error() {
    // No task is left that could write to the stream.
    let silent = "
        (local $ends i64)
        (local.set $ends (call $stream-new))
        (call $return (i32.const 1) (i32.wrap_i64 (local.get $ends)) (i32.const 0))
        (i32.const 0)";
    let completion = Tool { call: silent, ..Tool::default() }.run(&short_call());
    assert!(matches!(completion.result, Err(CallError::Trap { .. } | CallError::Limit { .. })));
}

#[test]
fn errors_are_outcomes() {
    let error = "
        (call $error (i32.const 512))
        (call $return (i32.const 0) (i32.const 512) (i32.const 1))
        (i32.const 0)";
    let completion = Tool { call: error, ..Tool::default() }.run(&call("{}"));
    let Ok(Outcome::Error(error)) = &completion.result else { panic!("{completion:?}") };
    assert_eq!((&*error.message, &*error.trace), ("hello", &["echo".to_owned()][..]));
}

#[test]
fn work_after_the_result_ends_with_the_call() {
    // The task yields forever.
    let returned = "
        (call $part (i32.const 512) (i32.const 160) (i32.const 5) (i32.const 112) (i32.const 10))
        (call $return (i32.const 0) (i32.const 512) (i32.const 1))
        (i32.const 1)";
    let tool = Tool { call: returned, callback: "(i32.const 1)", ..Tool::default() };
    assert_eq!(answer(&tool.run(&call("{}"))), Ok("hello"));
}

#[test]
fn loops_end_with_the_time() {
    for call in ["(loop (br 0)) unreachable", "(i32.const 1)"] {
        let tool = Tool { call, callback: "(i32.const 1)", ..Tool::default() };
        assert_eq!(limit(&tool.run(&short_call())), Some(LimitKind::Time), "{call}");
    }
    let tool = Tool { call: STREAM, callback: "(loop (br 0)) unreachable", ..Tool::default() };
    assert_eq!(limit(&tool.run(&short_call())), Some(LimitKind::Time));
}

#[test]
fn a_task_without_a_result_is_an_error() {
    for call in ["(i32.const 0)", "unreachable", "(i32.const 99)"] {
        let completion = Tool { call, ..Tool::default() }.run(&short_call());
        assert!(matches!(completion.result, Err(CallError::Trap { .. })), "{completion:?}");
    }
}

#[test]
fn streams_and_sets_count_as_handles() {
    for endless in ["(drop (call $stream-new))", "(drop (call $set-new))"] {
        let call: &'static str = format!("(loop {endless} (br 0)) unreachable").leak();
        let completion = Tool { call, ..Tool::default() }.run(&short_call());
        assert_eq!(limit(&completion), Some(LimitKind::Handles), "{completion:?}");
    }
}

#[test]
fn lies_about_lengths_are_errors() {
    // A list of two thousand million events, and an event with as many bytes.
    let list = "
        (call $return (i32.const 0) (i32.const 512) (i32.const 0x7fffffff))
        (i32.const 0)";
    let part = "
        (call $part (i32.const 512) (i32.const 0) (i32.const 0x7fffffff) (i32.const 112)
            (i32.const 10))
        (call $return (i32.const 0) (i32.const 512) (i32.const 1))
        (i32.const 0)";
    for call in [list, part] {
        let completion = Tool { call, ..Tool::default() }.run(&short_call());
        assert!(completion.result.is_err(), "{completion:?}");
    }
}

#[test]
fn huge_events_exceed_the_limit_of_host_data() {
    // Thousands of references to the same memory.
    let call = "
        (local $at i32)
        (local.set $at (i32.const 8192))
        (loop $more
            (call $part (local.get $at) (i32.const 0) (i32.const 131072) (i32.const 112)
                (i32.const 10))
            (local.set $at (i32.add (local.get $at) (i32.const 32)))
            (br_if $more (i32.lt_u (local.get $at) (i32.const 130000))))
        (call $return (i32.const 0) (i32.const 8192) (i32.const 3800))
        (i32.const 0)";
    let completion = Tool { call, ..Tool::default() }.run(&short_call());
    assert_eq!(limit(&completion), Some(LimitKind::HostData), "{completion:?}");
}

#[test]
fn unusable_lists_describe_nothing() {
    let unusable = |list: &'static str| {
        let component = Tool { list, ..Tool::default() }.load();
        match component.described() {
            DescribeResult::Unusable(reason) => reason.clone(),
            other => panic!("{other:?}"),
        }
    };
    let reason = unusable("unreachable");
    assert!(reason.contains("unreachable"), "{reason}");
    // The same tool, thousands of times.
    let many = "
        (i32.store (i32.const 348) (i32.const 8192)) (i32.store (i32.const 352) (i32.const 3000))
        (i32.const 336)";
    let reason = unusable(many);
    assert!(reason.contains("not usable"), "{reason}");
    // Twenty schemas of 100,000 bytes.
    let long = "
        (local $at i32)
        (local.set $at (i32.const 8192))
        (loop $more
            (i32.store offset=20 (local.get $at) (i32.const 16384))
            (i32.store offset=24 (local.get $at) (i32.const 100000))
            (local.set $at (i32.add (local.get $at) (i32.const 36)))
            (br_if $more (i32.lt_u (local.get $at) (i32.const 8912))))
        (i32.store (i32.const 348) (i32.const 8192)) (i32.store (i32.const 352) (i32.const 20))
        (i32.const 336)";
    assert_eq!(unusable(long), "it has more than the limit of 256 KiB");
}

#[test]
fn sessions_are_opened_on_request() {
    let tool = Tool { call: SESSION_ID, sessions: true, ..Tool::default() };
    let run = |arguments: &str| answer(&tool.run(&call(arguments))).map(str::to_owned);
    // The session fails to close, which does not matter.
    assert_eq!(run(r#"{"session_args":{"path":"a"}}"#), Ok("\"echo\"".to_owned()));
    assert_eq!(run(r#"{"session_args":{}}"#), Err("hello".to_owned()));
    let error = "`session_args` must be an object".to_owned();
    assert_eq!(run(r#"{"session_args":1}"#), Err(error));
    let component = tool.load();
    let schema = component.description().unwrap().tools[0].input_schema.clone().unwrap();
    let expected = serde_json::json!({
        "type": "object",
        "properties": { "session_args": {
            "type": "object",
            "description": "Opens a session for this call, with these arguments",
        } },
    });
    assert_eq!(schema, expected);
    // Without arguments, the call has no session and no metadata.
    let tool = Tool { sessions: true, ..Tool::default() };
    assert_eq!(answer(&tool.run(&call("{}"))), Ok("{}\necho"));
}
