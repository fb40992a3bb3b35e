//! A command for WASI 0.3 that sends one request.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use kitbag_policy::http::UrlPattern;
use kitbag_policy::{Grants, HttpGrant, HttpGrants};

use crate::lanes::tests::{answer, call, run};
use crate::{Call, Completion};

/// The position of the error code `HTTP-request-denied` in the interface.
const DENIED: &str = "the command exited with code 15";

/// Returns a command that requests `http://AUTHORITY/a`. It exits with the status of the response,
/// or with the position of the error code.
fn command(authority: &str) -> String {
    format!(
        r#"(component
    (import "wasi:http/types@0.3.0" (instance $types
        (export "fields" (type $fields (sub resource)))
        (export "request" (type $request (sub resource)))
        (export "request-options" (type $options (sub resource)))
        (export "response" (type $response (sub resource)))
        (type $dns-raw (record
            (field "rcode" (option string)) (field "info-code" (option u16))))
        (export "DNS-error-payload" (type $dns (eq $dns-raw)))
        (type $tls-raw (record
            (field "alert-id" (option u8)) (field "alert-message" (option string))))
        (export "TLS-alert-received-payload" (type $tls (eq $tls-raw)))
        (type $size-raw (record
            (field "field-name" (option string)) (field "field-size" (option u32))))
        (export "field-size-payload" (type $size (eq $size-raw)))
        (type $error-raw (variant (case "DNS-timeout") (case "DNS-error" $dns)
            (case "destination-not-found") (case "destination-unavailable")
            (case "destination-IP-prohibited") (case "destination-IP-unroutable")
            (case "connection-refused") (case "connection-terminated")
            (case "connection-timeout") (case "connection-read-timeout")
            (case "connection-write-timeout") (case "connection-limit-reached")
            (case "TLS-protocol-error") (case "TLS-certificate-error")
            (case "TLS-alert-received" $tls) (case "HTTP-request-denied")
            (case "HTTP-request-length-required") (case "HTTP-request-body-size" (option u64))
            (case "HTTP-request-method-invalid") (case "HTTP-request-URI-invalid")
            (case "HTTP-request-URI-too-long")
            (case "HTTP-request-header-section-size" (option u32))
            (case "HTTP-request-header-size" (option $size))
            (case "HTTP-request-trailer-section-size" (option u32))
            (case "HTTP-request-trailer-size" $size) (case "HTTP-response-incomplete")
            (case "HTTP-response-header-section-size" (option u32))
            (case "HTTP-response-header-size" $size) (case "HTTP-response-body-size" (option u64))
            (case "HTTP-response-trailer-section-size" (option u32))
            (case "HTTP-response-trailer-size" $size)
            (case "HTTP-response-transfer-coding" (option string))
            (case "HTTP-response-content-coding" (option string)) (case "HTTP-response-timeout")
            (case "HTTP-upgrade-failed") (case "HTTP-protocol-error") (case "loop-detected")
            (case "configuration-error") (case "internal-error" (option string))))
        (export "error-code" (type $error (eq $error-raw)))
        (type $scheme-raw (variant (case "HTTP") (case "HTTPS") (case "other" string)))
        (export "scheme" (type $scheme (eq $scheme-raw)))
        (export "[constructor]fields" (func (result (own $fields))))
        (export "[static]request.new" (func (param "headers" (own $fields))
            (param "contents" (option (stream u8)))
            (param "trailers" (future (result (option (own $fields)) (error $error))))
            (param "options" (option (own $options)))
            (result (tuple (own $request) (future (result (error $error)))))))
        (export "[method]request.set-scheme" (func (param "self" (borrow $request))
            (param "scheme" (option $scheme)) (result (result))))
        (export "[method]request.set-authority" (func (param "self" (borrow $request))
            (param "authority" (option string)) (result (result))))
        (export "[method]request.set-path-with-query" (func (param "self" (borrow $request))
            (param "path-with-query" (option string)) (result (result))))
        (export "[method]response.get-status-code" (func (param "self" (borrow $response))
            (result u16)))))
    (alias export $types "fields" (type $fields))
    (alias export $types "request" (type $request))
    (alias export $types "response" (type $response))
    (alias export $types "error-code" (type $error))
    (import "wasi:http/client@0.3.0" (instance $client
        (alias outer 1 $request (type $outer-request))
        (export "request" (type $request (eq $outer-request)))
        (alias outer 1 $response (type $outer-response))
        (export "response" (type $response (eq $outer-response)))
        (alias outer 1 $error (type $outer-error))
        (export "error-code" (type $error (eq $outer-error)))
        (export "send" (func async (param "request" (own $request))
            (result (result (own $response) (error $error)))))))
    (import "wasi:cli/exit@0.3.0" (instance $exit
        (export "exit-with-code" (func (param "status-code" u8)))))
    (type $trailers (future (result (option (own $fields)) (error $error))))
    (core module $libc
        (memory (export "memory") 1)
        (data (i32.const 16) "{authority}")
        (data (i32.const 256) "/a")
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 8192)))
    (core instance $libc (instantiate $libc))
    (core func $fields (canon lower (func $types "[constructor]fields")))
    (core func $new (canon lower (func $types "[static]request.new")
        (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
    (core func $set-scheme (canon lower (func $types "[method]request.set-scheme")
        (memory (core memory $libc "memory"))))
    (core func $set-authority (canon lower (func $types "[method]request.set-authority")
        (memory (core memory $libc "memory"))))
    (core func $set-path (canon lower (func $types "[method]request.set-path-with-query")
        (memory (core memory $libc "memory"))))
    (core func $status (canon lower (func $types "[method]response.get-status-code")))
    (core func $send (canon lower (func $client "send")
        (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
    (core func $exit (canon lower (func $exit "exit-with-code")))
    (core func $future-new (canon future.new $trailers))
    (core func $future-write (canon future.write $trailers async
        (memory (core memory $libc "memory"))))
    (core module $main
        (import "" "memory" (memory 1))
        (import "" "fields" (func $fields (result i32)))
        (import "" "new" (func $new (param i32 i32 i32 i32 i32 i32 i32)))
        (import "" "set-scheme" (func $set-scheme (param i32 i32 i32 i32 i32) (result i32)))
        (import "" "set-authority" (func $set-authority (param i32 i32 i32 i32) (result i32)))
        (import "" "set-path" (func $set-path (param i32 i32 i32 i32) (result i32)))
        (import "" "status" (func $status (param i32) (result i32)))
        (import "" "send" (func $send (param i32 i32)))
        (import "" "exit" (func $exit (param i32)))
        (import "" "future-new" (func $future-new (result i64)))
        (import "" "future-write" (func $future-write (param i32 i32) (result i32)))
        (func (export "run") (result i32)
            (local $trailers i64) (local $request i32)
            (local.set $trailers (call $future-new))
            (call $new (call $fields) (i32.const 0) (i32.const 0)
                (i32.wrap_i64 (local.get $trailers)) (i32.const 0) (i32.const 0)
                (i32.const 512))
            (local.set $request (i32.load (i32.const 512)))
            (drop (call $set-scheme (local.get $request) (i32.const 1) (i32.const 0) (i32.const 0)
                (i32.const 0)))
            (drop (call $set-authority (local.get $request) (i32.const 1) (i32.const 16)
                (i32.const {length})))
            (drop (call $set-path (local.get $request) (i32.const 1) (i32.const 256)
                (i32.const 2)))
            ;; No trailers.
            (drop (call $future-write
                (i32.wrap_i64 (i64.shr_u (local.get $trailers) (i64.const 32)))
                (i32.const 4096)))
            (call $send (local.get $request) (i32.const 1024))
            (call $exit (if (result i32) (i32.load8_u (i32.const 1024))
                (then (i32.load8_u (i32.const 1032)))
                (else (call $status (i32.load (i32.const 1032))))))
            unreachable))
    (core instance $main (instantiate $main (with "" (instance
        (export "memory" (memory $libc "memory"))
        (export "fields" (func $fields))
        (export "new" (func $new))
        (export "set-scheme" (func $set-scheme))
        (export "set-authority" (func $set-authority))
        (export "set-path" (func $set-path))
        (export "status" (func $status))
        (export "send" (func $send))
        (export "exit" (func $exit))
        (export "future-new" (func $future-new))
        (export "future-write" (func $future-write))))))
    (func $run async (result (result)) (canon lift (core func $main "run")))
    (instance $run-instance (export "run" (func $run)))
    (export "wasi:cli/run@0.3.0" (instance $run-instance)))"#,
        length = authority.len(),
    )
}

fn granted(pattern: &str) -> Call {
    let grant = HttpGrant::new(UrlPattern::parse(pattern).unwrap());
    let http = HttpGrants::from(vec![grant]);
    Call { grants: Arc::new(Grants { http, ..Grants::default() }), ..call("{}") }
}

/// Starts a server that answers one request, and returns its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        let mut byte = [0];
        while !received.ends_with(b"\r\n\r\n") {
            connection.read_exact(&mut byte).unwrap();
            received.extend(byte);
        }
        assert!(received.starts_with(b"GET /a HTTP/1.1\r\n"));
        let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
        connection.write_all(answer).unwrap();
    });
    address
}

fn check(completion: &Completion, expected: &str, refused: usize) {
    assert_eq!(answer(completion), Err(expected.to_owned()));
    assert_eq!(completion.refused.len(), refused, "{completion:?}");
    assert_eq!(completion.requests.len(), 1, "{completion:?}");
}

#[test]
fn requests_of_wasi_0_3_need_a_grant() {
    let address = server();
    let request = command(&address);
    check(&run(&request, &call("{}")), DENIED, 1);
    check(&run(&request, &granted("https://example.com/**")), DENIED, 1);
    let granted = granted(&format!("http://{address}/**"));
    check(&run(&request, &granted), "the command exited with code 204", 0);
}
