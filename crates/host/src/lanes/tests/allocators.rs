//! Components whose allocator is hostile: the host writes the arguments where it says.

use std::time::Duration;

use crate::lanes::test_host::TestTool;

/// A component for Wassette with this allocator.
fn functions(realloc: &str) -> String {
    format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) {realloc})
                (func (export "call") (param i32 i32)))
            (core instance $i (instantiate $m))
            (func (export "call") (param "it" string)
                (canon lift (core func $i "call") (memory (core memory $i "memory"))
                    (realloc (core func $i "realloc")))))"#
    )
}

/// A component for IronClaw with this allocator, which may call `$now` of the host.
fn agent(realloc: &str) -> String {
    format!(
        r#"(component
            (import "near:agent/host@0.3.0" (instance $host
                (export "now-millis" (func (result u64)))))
            (core func $now (canon lower (func $host "now-millis")))
            (core module $m
                (import "host" "now" (func $now (result i64)))
                (memory (export "memory") 1)
                (data (i32.const 512) "\08\02\00\00\11\00\00\00{{\"type\":\"object\"}}")
                (data (i32.const 560) "\38\02\00\00\08\00\00\00Answers.")
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) {realloc})
                (func (export "schema") (result i32) (i32.const 512))
                (func (export "description") (result i32) (i32.const 560))
                (func (export "execute") (param i32 i32 i32 i32 i32) (result i32) (i32.const 256)))
            (core instance $i (instantiate $m
                (with "host" (instance (export "now" (func $now))))))
            (alias core export $i "memory" (core memory $memory))
            (alias core export $i "realloc" (core func $realloc))
            (type $request' (record (field "params" string) (field "context" (option string))))
            (export $request "request" (type $request'))
            (type $response'
                (record (field "output" (option string)) (field "error" (option string))))
            (export $response "response" (type $response'))
            (func $execute (param "req" $request) (result $response)
                (canon lift (core func $i "execute") (memory $memory)
                    (realloc (core func $realloc))))
            (func $schema (result string) (canon lift (core func $i "schema") (memory $memory)))
            (func $description (result string)
                (canon lift (core func $i "description") (memory $memory)))
            (instance $tool
                (export "execute" (func $execute))
                (export "schema" (func $schema))
                (export "description" (func $description)))
            (export "near:agent/tool@0.3.0" (instance $tool)))"#
    )
}

#[test]
fn hostile_allocators_end_the_call() {
    let check = |realloc: &str, expected: &str| {
        for component in [functions(realloc), agent(realloc)] {
            let mut tool = TestTool::new(&component);
            tool.limits.time = Duration::from_millis(300);
            let message = tool.failure(r#"{"it":"text"}"#);
            assert!(message.contains(expected), "{realloc}: {message}");
        }
    };
    check("i32.const -1", "beyond end of memory");
    check("i32.const 65535", "beyond end of memory");
    check("unreachable", "unreachable");
    check("(loop (br 0)) i32.const 0", "300ms");
    check(
        "(loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) i32.const -1",
        "memory",
    );
}

#[test]
fn an_allocator_cannot_call_the_host() {
    let component = agent("(drop (call $now)) i32.const 1024");
    let message = TestTool::new(&component).failure("{}");
    assert!(message.contains("cannot leave component instance"), "{message}");
}
