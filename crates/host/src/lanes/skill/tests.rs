//! Calls of skills in text form.

use kitbag_policy::{Access, DirectoryGrant};
use serde_json::{Value, json};

use super::{LOG_BYTES, NO_OUTPUT};
use crate::lanes::test_host::{TestTool, quoted, serve};

/// Returns a skill with all functions of Blufio. A text `data` is at 1,024; `body` has a local `$n`.
fn skill(data: &str, body: &str) -> TestTool {
    TestTool::new(&format!(
        r#"(module
            (import "blufio" "log" (func $log (param i32 i32 i32)))
            (import "blufio" "get_input_len" (func $get_input_len (result i32)))
            (import "blufio" "get_input" (func $get_input (param i32)))
            (import "blufio" "set_output" (func $set_output (param i32 i32)))
            (import "blufio" "http_request"
                (func $http_request (param i32 i32 i32 i32 i32) (result i32)))
            (import "blufio" "read_file" (func $read_file (param i32 i32 i32 i32) (result i32)))
            (import "blufio" "write_file" (func $write_file (param i32 i32 i32 i32) (result i32)))
            (import "blufio" "get_env" (func $get_env (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 1024) "{}")
            ;; Returns one digit as the result.
            (func $digit (param i32)
                (i32.store8 (i32.const 16) (i32.add (local.get 0) (i32.const 53)))
                (call $set_output (i32.const 16) (i32.const 1)))
            (func (export "run") (local $n i32) {body}))"#,
        quoted(data.as_bytes())
    ))
}

/// Grants a new directory with the file `in.txt`.
fn with_directory(
    mut tool: TestTool,
    access: Access,
    guest: &str,
) -> (TestTool, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("in.txt"), "content").unwrap();
    let host = directory.path().canonicalize().unwrap();
    let grant = DirectoryGrant {
        host,
        guest: guest.parse().unwrap(),
        access,
        include: Vec::new(),
        protected: None,
        identity: None,
    };
    tool.grants.directories = vec![grant];
    (tool, directory)
}

const ECHO: &str = "
    (call $get_input (i32.const 2048))
    (call $set_output (i32.const 2048) (call $get_input_len))";

#[test]
fn arguments_are_the_input() {
    let tool = skill("", ECHO);
    for text in ["", "1234567", "12345678", "123456789", "äöü"] {
        let arguments = json!({ "text": text }).to_string();
        assert_eq!(tool.success(&arguments), arguments);
    }
}

#[test]
fn only_the_input_is_written() {
    // The byte after the input keeps its value.
    let tool = skill(
        "",
        "(i32.store8 (i32.add (i32.const 2048) (call $get_input_len)) (i32.const 33))
        (call $get_input (i32.const 2048))
        (call $set_output (i32.const 2048) (i32.add (call $get_input_len) (i32.const 1)))",
    );
    for arguments in [r#"{"a":1}"#, r#"{"ab":1}"#, "{}"] {
        assert_eq!(tool.success(arguments), format!("{arguments}!"));
    }
}

#[test]
fn a_skill_without_a_result_returns_its_log() {
    assert_eq!(skill("", "").success("{}"), NO_OUTPUT);
    let log =
        |level: i32| format!("(call $log (i32.const {level}) (i32.const 1024) (i32.const 2))");
    let body = [0, 1, 2, 3, 4, 9].map(log).concat();
    let expected = "[TRACE] hi\n[DEBUG] hi\n[INFO] hi\n[WARN] hi\n[ERROR] hi\n[INFO] hi";
    assert_eq!(skill("hi", &body).success("{}"), expected);
    assert_eq!(skill("hi", &format!("{body} {ECHO}")).success("{}"), "{}");
}

#[test]
fn the_log_is_bounded() {
    let body = "(loop $more
        (call $log (i32.const 2) (i32.const 0) (i32.const 65536))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $more (i32.lt_u (local.get $n) (i32.const 100))))";
    let mut tool = skill("", body);
    tool.limits.output = kitbag_base::ByteSize::mib(8);
    assert!(tool.success("{}").len() < LOG_BYTES + 1_000);
}

#[test]
fn files_are_read_and_written_by_grant() {
    let read = |length: usize| {
        format!(
            "(drop (call $read_file (i32.const 1024) (i32.const {length}) (i32.const -1) (i32.const -1)))"
        )
    };
    for path in ["/data/in.txt", "in.txt", "./in.txt"] {
        let guest = if path.starts_with('/') { "/data" } else { "/workspace" };
        let tool = skill(path, &read(path.len()));
        assert_eq!(
            tool.error("{}"),
            format!("`{path}` cannot be read: it is not in a granted directory")
        );
        let (tool, _directory) = with_directory(tool, Access::ReadOnly, guest);
        assert_eq!(tool.success("{}"), "content", "{path}");
    }
    let write = "(call $digit
        (call $write_file (i32.const 1024) (i32.const 12) (i32.const 1024) (i32.const 5)))";
    let (tool, _directory) =
        with_directory(skill("/data/in.txt", write), Access::ReadOnly, "/data");
    assert_eq!(tool.error("{}"), "`/data/in.txt` cannot be written: it is not allowed");
    let (tool, directory) =
        with_directory(skill("/data/in.txt", write), Access::ReadWrite, "/data");
    assert_eq!(tool.success("{}"), "5");
    assert_eq!(std::fs::read_to_string(directory.path().join("in.txt")).unwrap(), "/data");
}

#[test]
fn paths_do_not_leave_a_granted_directory() {
    for path in ["/data/../etc/passwd", "/data//in.txt", "../in.txt", "/data", "", "/data/link"] {
        let read = format!(
            "(drop (call $read_file (i32.const 1024) (i32.const {}) (i32.const 0) (i32.const 0)))",
            path.len()
        );
        let (tool, directory) = with_directory(skill(path, &read), Access::ReadWrite, "/data");
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("link")).unwrap();
        let message = tool.error("{}");
        assert!(message.starts_with(&format!("`{path}` cannot be read: ")), "{message}");
    }
}

#[test]
fn variables_are_granted() {
    let get = |room: i32| {
        format!(
            "(local.set $n (call $get_env
                (i32.const 1024) (i32.const 4) (i32.const 2048) (i32.const {room})))
            (if (i32.lt_s (local.get $n) (i32.const 0))
                (then (call $digit (local.get $n)))
                (else (call $set_output (i32.const 2048) (local.get $n))))"
        )
    };
    // A digit is 5 and the number.
    assert_eq!(skill("NAME", &get(8)).success("{}"), "4");
    let mut tool = skill("NAME", &get(5));
    tool.grants.config.set("NAME", "value").unwrap();
    assert_eq!(tool.success("{}"), "value");
    let mut tool = skill("NAME", &get(4));
    tool.grants.config.set("NAME", "value").unwrap();
    assert_eq!(tool.success("{}"), "3");
}

#[test]
fn requests_are_made_by_grant() {
    let (address, server) = serve("HTTP/1.1 201 x\r\ncontent-length: 2\r\n\r\nok");
    let url = format!("http://{address}/a");
    let request = format!(
        "(local.set $n (call $http_request
            (i32.const 1024) (i32.const {}) (i32.const 1) (i32.const -1) (i32.const -1)))
        (if (i32.ne (local.get $n) (i32.const 201)) (then unreachable))",
        url.len()
    );
    let mut tool = skill(&url, &request);
    let message = tool.error("{}");
    assert!(message.starts_with("no `http` grant allows"), "{message}");
    tool.grant_http(address);
    assert_eq!(tool.success("{}"), "ok");
    let sent = server.join().unwrap();
    assert!(sent.starts_with("GET /a HTTP/1.1\r\n"), "{sent}");
}

#[test]
fn lies_about_memory_end_the_call() {
    for body in [
        "(call $log (i32.const 0) (i32.const 65535) (i32.const 2))",
        "(call $set_output (i32.const -1) (i32.const 1))",
        "(call $set_output (i32.const 0) (i32.const -1))",
        "(call $get_input (i32.const 65535))",
        "(call $get_input (i32.const -1))",
        "(drop (call $read_file (i32.const 65535) (i32.const 2) (i32.const 0) (i32.const 0)))",
        "(drop (call $write_file (i32.const 0) (i32.const 1) (i32.const -8) (i32.const 9)))",
        "(drop (call $get_env (i32.const -1) (i32.const -1) (i32.const 0) (i32.const 9)))",
    ] {
        let message = skill("", body).failure("{}");
        assert!(message.contains("out of bounds"), "{body}: {message}");
    }
}

#[test]
fn skills_are_held_to_memory_and_time() {
    let grow = "(loop $more
        (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
        (call $digit (i32.gt_u (memory.size) (i32.const 64)))";
    // The limit is 4 MiB, and a digit is 5 and the number.
    assert_eq!(skill("", grow).success("{}"), "5");
    let mut tool = skill("", "(loop $more (br $more))");
    tool.limits.time = std::time::Duration::from_millis(200);
    let message = tool.failure("{}");
    assert!(message.contains("200ms"), "{message}");
}

#[test]
fn a_variable_is_not_written_outside_the_memory() {
    let mut tool = skill(
        "NAME",
        "(drop (call $get_env
            (i32.const 1024) (i32.const 4) (i32.const 65534) (i32.const 99)))",
    );
    tool.grants.config.set("NAME", "value").unwrap();
    let message = tool.failure("{}");
    assert!(message.contains("out of bounds"), "{message}");
}

#[test]
fn results_that_are_not_text_are_ignored() {
    let set = "(i32.store8 (i32.const 0) (i32.const 255))
        (call $set_output (i32.const 0) (i32.const 1))";
    assert_eq!(skill("", set).success("{}"), NO_OUTPUT);
}

#[test]
fn a_skill_describes_nothing() {
    assert!(skill("", "").described().description().is_none());
    let tool = skill("", ECHO);
    let arguments: Value = serde_json::from_str(&tool.success(r#"{"a":[1,"x"]}"#)).unwrap();
    assert_eq!(arguments, json!({ "a": [1, "x"] }));
}
