//! Tests with tools in text form.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use kitbag_contract::{Action, Context, Limits};
use kitbag_fs_guard::Guard;
use kitbag_http::{Account, Client};
use kitbag_policy::http::HttpGrants;
use kitbag_policy::{
    Access, DirectoryGrant, Grants, HttpGrant, Placement, SecretGrant, SecretName, SecretPlace,
};
use kitbag_secrets::{CallEnd, ReadError, ReadSecret, SecretValue, Secrets};
use wasmtime::Engine;

use super::*;
use crate::call::report::Reports;
use crate::call::state::Stdio;
use crate::grants::GrantContext;
use crate::lanes::test_host::ALLOCATOR;
use crate::limits::host_data;

/// The types of a version of the interfaces.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Up to version 0.3.
    Texts,
    /// Since version 0.4.1.
    Failures,
}

/// A tool of a version. `core` has a function `execute` and may use the host's functions, `$ok` and
/// `$fail`, which return a text, and memory from 4096.
fn tool(version: &str, form: Form, core: &str) -> String {
    let kinds = r#"(enum "auth-required" "input" "output-too-large" "executor" "network-denied"
        "client" "operation-failed")"#;
    let (failure, response) = match form {
        Form::Texts => (
            "(type $http-failure string)".to_owned(),
            r#"(type $response' (record (field "output" (option string))
                (field "error" (option string))))"#
                .to_owned(),
        ),
        Form::Failures => (
            format!(
                r#"(type $kind' {kinds}) (export "http-error-kind" (type $kind (eq $kind')))
                (type $failure' (record (field "kind" $kind) (field "code" (option string))
                    (field "message" (option string)) (field "request-sent" bool)))
                (export "http-failure" (type $http-failure (eq $failure')))"#
            ),
            format!(
                r#"(type $kind' {kinds}) (export $kind "kind" (type $kind'))
                (type $failure' (record (field "kind" $kind) (field "code" (option string))
                    (field "message" (option string))))
                (export $failure "failure" (type $failure'))
                (type $response' (variant (case "success" string) (case "failure" $failure)))"#
            ),
        ),
    };
    // The results are at 256.
    let results = match form {
        Form::Texts => {
            r#"(func $ok (param i32 i32) (result i32)
                (i32.store8 (i32.const 256) (i32.const 1))
                (i32.store (i32.const 260) (local.get 0)) (i32.store (i32.const 264) (local.get 1))
                (i32.const 256))
            (func $fail (param i32 i32) (result i32)
                (i32.store8 (i32.const 268) (i32.const 1))
                (i32.store (i32.const 272) (local.get 0)) (i32.store (i32.const 276) (local.get 1))
                (i32.const 256))"#
        }
        Form::Failures => {
            r#"(func $ok (param i32 i32) (result i32)
                (i32.store (i32.const 260) (local.get 0)) (i32.store (i32.const 264) (local.get 1))
                (i32.const 256))
            (func $fail (param i32 i32) (result i32)
                (i32.store8 (i32.const 256) (i32.const 1)) (i32.store8 (i32.const 260) (i32.const 4))
                (i32.store8 (i32.const 276) (i32.const 1))
                (i32.store (i32.const 280) (local.get 0)) (i32.store (i32.const 284) (local.get 1))
                (i32.const 256))"#
        }
    };
    format!(
        r#"(component
        (import "near:agent/host{version}" (instance $host
            (type $level' (enum "trace" "debug" "info" "warn" "error"))
            (export "log-level" (type $level (eq $level')))
            (export "log" (func (param "level" $level) (param "message" string)))
            (export "now-millis" (func (result u64)))
            (export "workspace-read" (func (param "path" string) (result (option string))))
            (type $http-response' (record (field "status" u16) (field "headers-json" string)
                (field "body" (list u8))))
            (export "http-response" (type $http-response (eq $http-response')))
            {failure}
            (export "http-request" (func (param "method" string) (param "url" string)
                (param "headers-json" string) (param "body" (option (list u8)))
                (param "timeout-ms" (option u32))
                (result (result $http-response (error $http-failure)))))
            (export "tool-invoke" (func (param "alias" string) (param "params-json" string)
                (result (result string (error string)))))
            (export "secret-exists" (func (param "name" string) (result bool)))
            (export "nostr-sign-event" (func (param "event" string)
                (result (result string (error string)))))))
        (core module $libc
            (memory (export "memory") 2)
            {ALLOCATOR})
        (core instance $libc (instantiate $libc))
        (alias core export $libc "memory" (core memory $memory))
        (alias core export $libc "realloc" (core func $realloc))
        (core func $log (canon lower (func $host "log") (memory $memory)))
        (core func $now (canon lower (func $host "now-millis")))
        (core func $read (canon lower (func $host "workspace-read")
            (memory $memory) (realloc (core func $realloc))))
        (core func $request (canon lower (func $host "http-request")
            (memory $memory) (realloc (core func $realloc))))
        (core func $invoke (canon lower (func $host "tool-invoke")
            (memory $memory) (realloc (core func $realloc))))
        (core func $exists (canon lower (func $host "secret-exists") (memory $memory)))
        (core func $sign (canon lower (func $host "nostr-sign-event")
            (memory $memory) (realloc (core func $realloc))))
        (core module $main
            (import "libc" "memory" (memory 1))
            (import "host" "log" (func $log (param i32 i32 i32)))
            (import "host" "now" (func $now (result i64)))
            (import "host" "read" (func $read (param i32 i32 i32)))
            (import "host" "request" (func $request
                (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
            (import "host" "invoke" (func $invoke (param i32 i32 i32 i32 i32)))
            (import "host" "exists" (func $exists (param i32 i32) (result i32)))
            (import "host" "sign" (func $sign (param i32 i32 i32)))
            {results}
            (data (i32.const 512) "\08\02\00\00\11\00\00\00{{\"type\":\"object\"}}")
            (data (i32.const 560) "\38\02\00\00\08\00\00\00Answers.")
            (func (export "schema") (result i32) (i32.const 512))
            (func (export "description") (result i32) (i32.const 560))
            {core})
        (core instance $main (instantiate $main
            (with "libc" (instance $libc))
            (with "host" (instance
                (export "log" (func $log)) (export "now" (func $now))
                (export "read" (func $read)) (export "request" (func $request))
                (export "invoke" (func $invoke)) (export "exists" (func $exists))
                (export "sign" (func $sign))))))
        (type $request' (record (field "params" string) (field "context" (option string))))
        (export $request "request" (type $request'))
        {response}
        (export $response "response" (type $response'))
        (func $execute (param "req" $request) (result $response)
            (canon lift (core func $main "execute") (memory $memory) (realloc (core func $realloc))))
        (func $schema (result string) (canon lift (core func $main "schema") (memory $memory)))
        (func $description (result string)
            (canon lift (core func $main "description") (memory $memory)))
        (instance $tool
            (export "execute" (func $execute))
            (export "schema" (func $schema))
            (export "description" (func $description)))
        (export "near:agent/tool{version}" (instance $tool)))"#
    )
}

/// A component and the grants of its calls.
struct Guest {
    agent: Agent,
    pre: InstancePre<State>,
    grants: Grants,
    secrets: Arc<Secrets>,
}

impl Guest {
    fn load(text: &str) -> Result<Self, InvalidComponent> {
        let mut config = kitbag_engine::config(kitbag_engine::Metering::Off);
        config.enable_compiler(true);
        let engine = Engine::new(&config).unwrap();
        let component = Component::new(&engine, wat::parse_str(text).unwrap()).unwrap();
        let loaded = |agent: Agent| {
            let mut linker = Linker::new(&engine);
            agent.link(&mut linker).unwrap();
            let pre = linker.instantiate_pre(&component).unwrap();
            Self { agent, pre, grants: Grants::default(), secrets: Arc::default() }
        };
        Agent::of(&component).map(loaded)
    }

    fn new(version: &str, form: Form, core: &str) -> Self {
        match Self::load(&tool(version, form, core)) {
            Ok(guest) => guest,
            Err(error) => panic!("{error}"),
        }
    }

    fn with<T>(&self, run: impl AsyncFnOnce(&mut Store<State>) -> T) -> T {
        let limits = Limits::default();
        let (grants, guard) = (&Arc::new(self.grants.clone()), &Arc::<Guard>::default());
        let (account, client) = (&Account::of_tool("test"), &Client::default());
        let secrets = &self.secrets;
        let (storage, tools) = (None, None);
        let granting =
            GrantContext { tool: "test", account, grants, guard, client, secrets, storage, tools };
        let state = State::new(granting, &limits, &Stdio::new(None), Reports::default()).unwrap();
        let mut store = Store::new(self.pre.engine(), state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(host_data(&limits).as_usize());
        store.set_epoch_deadline(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(&mut store))
    }

    fn run(&self, arguments: &str) -> wasmtime::Result<Outcome> {
        let context = Context { root: String::new(), action: Action::Run };
        let parameters = Parameters {
            context,
            name: "acme.add",
            arguments,
            answers: "{}",
            output: Limits::default().output,
        };
        self.with(async |store| self.agent.run(store, &self.pre, &parameters).await)
    }

    fn text(&self, arguments: &str) -> String {
        match self.run(arguments) {
            Ok(Outcome::Success(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    fn message(&self, arguments: &str) -> String {
        match self.run(arguments) {
            Ok(Outcome::Error(error)) => error.message,
            other => panic!("{other:?}"),
        }
    }
}

/// The versions with tools.
const VERSIONS: [(&str, Form); 5] = [
    ("", Form::Texts),
    ("@0.2.0", Form::Texts),
    ("@0.3.0", Form::Texts),
    ("@0.4.0", Form::Texts),
    ("@0.4.1", Form::Failures),
];

/// Executes by returning the parameters.
const ECHO: &str = r#"(func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
    (call $ok (local.get 0) (local.get 1)))"#;

#[test]
fn each_version_executes_and_describes() {
    for (version, form) in VERSIONS {
        let guest = Guest::new(version, form, ECHO);
        assert_eq!(guest.text(r#"{"a":1}"#), r#"{"a":1}"#, "{version}");
        let described = guest.with(async |store| guest.agent.describe(store, &guest.pre).await);
        let described = described.unwrap();
        let [tool] = &described.description().unwrap().tools[..] else { panic!("{described:?}") };
        assert_eq!(tool.description.as_deref(), Some("Answers."));
        assert_eq!(tool.input_schema, Some(json!({ "type": "object" })));
        let fail = r#"(data (i32.const 4096) "bad")
            (func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
            (call $fail (i32.const 4096) (i32.const 3)))"#;
        assert_eq!(Guest::new(version, form, fail).message("{}"), "bad", "{version}");
    }
}

#[test]
fn the_context_names_the_called_tool() {
    let context = r#"(func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
        (call $ok (local.get 3) (local.get 4)))"#;
    let guest = Guest::new("@0.4.1", Form::Failures, context);
    assert_eq!(guest.text("{}"), r#"{"capability_id":"acme.add"}"#);
}

#[test]
fn other_outputs_than_json_are_errors_since_0_4_1() {
    let text = "[1";
    assert_eq!(Guest::new("@0.3.0", Form::Texts, ECHO).text(text), text);
    let message = Guest::new("@0.4.1", Form::Failures, ECHO).message(text);
    assert!(message.starts_with("the tool returned text that is not JSON: EOF"), "{message}");
}

/// Executes by reading the file that the parameters name.
const READ: &str = r#"(func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
    (call $read (local.get 0) (local.get 1) (i32.const 320))
    (if (result i32) (i32.load8_u (i32.const 320))
        (then (call $ok (i32.load (i32.const 324)) (i32.load (i32.const 328))))
        (else (call $fail (i32.const 0) (i32.const 0)))))"#;

#[test]
fn files_of_granted_directories_are_read() {
    let mut guest = Guest::new("@0.3.0", Form::Texts, READ);
    assert_eq!(guest.message("a.txt"), "");
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("inner")).unwrap();
    std::fs::write(root.join("a.txt"), "text").unwrap();
    std::fs::write(root.join("inner/b.txt"), "deep").unwrap();
    std::fs::write(root.join("bytes"), b"\xff").unwrap();
    std::fs::write(root.join("empty"), "").unwrap();
    std::fs::write(root.join(".env"), "KEY=1").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", root.join("link")).unwrap();
    let grant = |host: std::path::PathBuf, guest: &str| DirectoryGrant {
        host,
        guest: guest.parse().unwrap(),
        access: Access::ReadOnly,
        include: Vec::new(),
        protected: None,
        identity: None,
    };
    guest.grants.directories = vec![grant(root.clone(), "/workspace")];
    assert_eq!(guest.text("a.txt"), "text");
    assert_eq!(guest.text("inner/b.txt"), "deep");
    assert_eq!(guest.text("empty"), "");
    for path in ["missing", "bytes", "inner", "link", "../a.txt", "/workspace/a.txt", ""] {
        assert_eq!(guest.message(path), "", "{path}");
    }
    guest.grants.directories = vec![grant(root.join("inner"), "/workspace/x")];
    assert_eq!(guest.text("x/b.txt"), "deep");
    assert_eq!(guest.message("a.txt"), "");
}

#[test]
fn refused_requests_are_failures() {
    let request = r#"
        (data (i32.const 4096) "GEThttps://example.com/{}")
        (func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
            (call $request (i32.const 4096) (i32.const 3) (i32.const 4099) (i32.const 20)
                (i32.const 4119) (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 0)
                (i32.const 0) (i32.const 0) (i32.const 320))
            MESSAGE)"#;
    let text = request
        .replace("MESSAGE", "(call $fail (i32.load (i32.const 324)) (i32.load (i32.const 328)))");
    let refused = Guest::new("@0.3.0", Form::Texts, &text).message("{}");
    assert_eq!(
        refused,
        "no `http` grant allows `GET https://example.com/`: its host is not granted"
    );
    // The kind is the fifth, and the message is the second text.
    let text = request.replace(
        "MESSAGE",
        r#"(if (i32.ne (i32.load8_u (i32.const 324)) (i32.const 4)) (then unreachable))
        (if (i32.load8_u (i32.const 352)) (then unreachable))
        (call $fail (i32.load (i32.const 344)) (i32.load (i32.const 348)))"#,
    );
    let refused = Guest::new("@0.4.1", Form::Failures, &text).message("{}");
    assert_eq!(
        refused,
        "no `http` grant allows `GET https://example.com/`: its host is not granted"
    );
}

/// Provides the same value for every secret.
struct OneValue;

impl ReadSecret for OneValue {
    fn read(&self, _: &SecretName, _: &CallEnd) -> Result<SecretValue, ReadError> {
        Ok(SecretValue::new(b"the-value-of-it".to_vec()).unwrap())
    }
}

/// Answers one request and returns it.
fn serve(listener: TcpListener, response: &str) -> JoinHandle<String> {
    let response = response.to_owned();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
        while !request.ends_with(b"\r\n\r\n") {
            let read = stream.read(&mut buffer).unwrap();
            request.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(response.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    })
}

#[test]
fn the_client_adds_granted_secrets_to_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let headers = r#"{"Accept":"a/b"}"#;
    let core = format!(
        r#"(data (i32.const 4096) "GET{url}{}")
        (func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
            (call $request (i32.const 4096) (i32.const 3) (i32.const 4099) (i32.const {})
                (i32.const {}) (i32.const {}) (i32.const 0) (i32.const 0) (i32.const 0)
                (i32.const 0) (i32.const 0) (i32.const 320))
            (if (i32.load8_u (i32.const 320)) (then unreachable))
            (if (i32.ne (i32.load16_u (i32.const 324)) (i32.const 201)) (then unreachable))
            (call $ok (i32.load (i32.const 336)) (i32.load (i32.const 340))))"#,
        headers.replace('"', "\\\""),
        url.len(),
        4099 + url.len(),
        headers.len(),
    );
    let mut guest = Guest::new("@0.4.1", Form::Failures, &core);
    let name = SecretName::new("token").unwrap();
    guest.grants.secrets = vec![SecretGrant {
        name: name.clone(),
        to: vec![SecretPlace::new(&url, false).unwrap()],
        within: None,
        added: Some(Placement::Bearer),
        variables: Vec::new(),
        in_query: false,
        in_body: false,
    }];
    let grant = Arc::new(HttpGrant::new(url.parse().unwrap()));
    guest.grants.http =
        HttpGrants { grants: [grant].into_iter().collect(), ..HttpGrants::default() };
    guest.secrets = Arc::new(Secrets::new(OneValue, Vec::new()));
    // The response contains the value, which the tool must not learn.
    let body = r#"["the-value-of-it"]"#;
    let length = body.len();
    let response = format!("HTTP/1.1 201 Created\r\nContent-Length: {length}\r\n\r\n{body}");
    let served = serve(listener, &response);
    let text = guest.text("{}");
    assert!(text.starts_with("[\"") && !text.contains("value"), "{text}");
    let request = served.join().unwrap().to_lowercase();
    assert!(request.starts_with("get /x http/1.1\r\n"), "{request}");
    assert!(request.contains("\r\naccept: a/b\r\n"), "{request}");
    assert!(request.contains("\r\nauthorization: bearer the-value-of-it\r\n"), "{request}");
    // The tool knows the secret by name.
    let exists = r#"(data (i32.const 4096) "10")
        (func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
        (call $ok
            (i32.sub (i32.const 4097) (call $exists (local.get 0) (local.get 1)))
            (i32.const 1)))"#;
    let grants = guest.grants;
    let guest = Guest { grants, ..Guest::new("@0.3.0", Form::Texts, exists) };
    assert_eq!(guest.text("token"), "1");
    assert_eq!(guest.text("other"), "0");
}

#[test]
fn tools_and_secrets_need_a_grant() {
    let invoke = r#"(func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
        (call $invoke (local.get 0) (local.get 1) (local.get 0) (local.get 1) (i32.const 320))
        (call $fail (i32.load (i32.const 324)) (i32.load (i32.const 328))))"#;
    let guest = Guest::new("@0.4.1", Form::Failures, invoke);
    assert_eq!(guest.message("other"), "the tool has no grant to call other tools");
    let exists = r#"(data (i32.const 4096) "10")
        (func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
        (call $ok
            (i32.sub (i32.const 4097) (call $exists (local.get 0) (local.get 1)))
            (i32.const 1)))"#;
    let guest = Guest::new("@0.3.0", Form::Texts, exists);
    assert_eq!(guest.text("token"), "0");
    assert_eq!(guest.text("not a name"), "0");
}

#[test]
fn functions_that_kitbag_does_not_provide_return_errors() {
    let sign = r#"(func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
        (call $sign (local.get 0) (local.get 1) (i32.const 320))
        (call $fail (i32.load (i32.const 324)) (i32.load (i32.const 328))))"#;
    let guest = Guest::new("@0.4.0", Form::Texts, sign);
    assert_eq!(guest.message("{}"), "kitbag does not provide `nostr-sign-event`");
}

#[test]
fn clock_and_log_need_no_grant() {
    let now = r#"(data (i32.const 4096) "ok")
        (func (export "execute") (param i32 i32 i32 i32 i32) (result i32)
        (call $log (i32.const 4) (local.get 0) (local.get 1))
        (if (i64.lt_u (call $now) (i64.const 1700000000000)) (then unreachable))
        (call $ok (i32.const 4096) (i32.const 2)))"#;
    assert_eq!(Guest::new("@0.2.0", Form::Texts, now).text("{}"), "ok");
}

#[test]
fn lies_about_memory_end_the_call() {
    let check = |body: &str, expected: &str| {
        let core =
            format!(r#"(func (export "execute") (param i32 i32 i32 i32 i32) (result i32) {body})"#);
        let error = Guest::new("@0.3.0", Form::Texts, &core).run("{}").unwrap_err();
        assert!(format!("{error:#}").contains(expected), "{error:#}");
    };
    check("(call $ok (i32.const 0) (i32.const -1))", "out of bounds");
    check("(i32.const -4)", "out of bounds");
    check("(i32.store8 (i32.const 256) (i32.const 2)) (i32.const 256)", "out of range");
    check("(call $log (i32.const 9) (i32.const 0) (i32.const 0)) unreachable", "discriminant");
    let long = "(call $read (i32.const 0) (i32.const -1) (i32.const 320)) unreachable";
    check(long, "out of bounds");
    check(
        "(loop (call $log (i32.const 0) (i32.const 0) (i32.const 131072))) unreachable",
        "unreachable",
    );
}

#[test]
fn descriptions_that_are_not_usable_are_named() {
    let check = |description: String, schema: &str, expected: &str| {
        assert_eq!(described(description, schema).problem(), Some(expected));
    };
    check("a".into(), "[]", "its `schema` is not a JSON object");
    check("a".into(), "{", "its `schema`: EOF while parsing an object at line 1 column 1");
    let limit = "it has more than the limit of 256 KiB";
    check("a".repeat(256 << 10), "{}", limit);
    let large = format!("{{\"a\":\"{}\"}}", "b".repeat(256 << 10));
    assert!(described("a".into(), &large).problem().is_some());
}

#[test]
fn types_of_no_version_are_refused() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Guest::load(text).err().unwrap().to_string(), expected);
    };
    let of = |function: &str| {
        format!(
            r#"(component
            (core module $m (func (export "f") (result i32) (i32.const 0)))
            (core instance $i (instantiate $m))
            (func $f (result u32) (canon lift (core func $i "f")))
            (instance $tool (export "{function}" (func $f)))
            (export "near:agent/tool@0.5.0" (instance $tool)))"#
        )
    };
    let refused = |function: &str| {
        format!(
            "the component is made for IronClaw, but the type of `{function}` in \
             `near:agent/tool@0.5.0` is not that of the versions 0.2 to 0.4.1, which this kitbag \
             supports"
        )
    };
    check(&of("execute"), &refused("execute"));
    check(&of("other"), &refused("execute"));
}
