//! HTTP requests outside the grants, in every spelling, never reach a server.

use std::fmt::Write;

use kitbag_test_servers::{Behaviour, Server};
use serde_json::{Value, json};

use super::Probe;
use crate::support::{CallInTest, Workspace, guest, snapshot};

/// The paths that requests of the command `probe-async` for WASI 0.3 reach.
fn reached_by_wasi_0_3(grants: &str, requests: &[(&str, Value)]) -> Vec<String> {
    let server = Server::start(Behaviour::Echo);
    let port = server.port().to_string();
    let workspace = Workspace::new();
    let grants = format!("[tools.probe.grants]\nhttp = [{}]\n", grants.replace("PORT", &port));
    workspace.own_config(&Probe::Asynchronous.table(&grants));
    let kitbag = workspace.kitbag();
    for (about, arguments) in requests {
        // Through WASI 0.3, a request without a body has the length 0, regardless of its headers.
        if *about == "a length of its own" {
            continue;
        }
        let mut attempt = arguments.clone();
        attempt["do"] = "request".into();
        let attempt = attempt.to_string().replace("PORT", &port).parse().unwrap();
        let got = kitbag.call_in_test("probe", Probe::Asynchronous.arguments(&attempt));
        assert!(got.starts_with("status ") || got.starts_with("refused"), "{attempt}: {got}");
    }
    server.seen().requests.iter().map(|it| it.path().replace(&port, "PORT")).collect()
}

/// The results of the tool `request` for these requests, without the server's port.
fn report(grants: &str, server: &Server, requests: &[(&str, Value)]) -> String {
    let workspace = Workspace::new();
    let (port, wasm) = (server.port().to_string(), guest("request"));
    workspace.own_config(&format!(
        "[tools.request]\nsource = \"local\"\nwasm = {wasm:?}\n\
         [tools.request.grants]\nhttp = [{}]\n",
        grants.replace("PORT", &port)
    ));
    let mut report = format!("# granted: {grants}\n");
    for (about, arguments) in requests {
        let arguments = arguments.to_string().replace("PORT", &port);
        let run = workspace.run(&["run", "request", "--args", &arguments]);
        let got: Value =
            serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.shown()));
        let came = match (&got["error"], &got["status"]) {
            (Value::String(error), _) => error.clone(),
            (_, status) => format!("status {status}"),
        };
        let asked = match arguments.replace(&port, "PORT") {
            asked if asked.len() > 200 => format!("{}…", &asked[..60]),
            asked => asked,
        };
        writeln!(report, "{about}\n  {asked}\n  {came}").expect("a string takes it");
    }
    let reached: Vec<_> = server.seen().requests.iter().map(|it| it.path().to_owned()).collect();
    writeln!(report, "reached the server: {reached:?}").expect("a string takes it");
    report.replace(&port, "PORT")
}

fn get(url: &str) -> Value {
    json!({ "url": url })
}

#[test]
fn a_request_outside_its_grant_reaches_no_server() {
    let server = Server::start(Behaviour::Echo);
    let base = "http://127.0.0.1:PORT";
    let header = |field: &str| json!({ "url": format!("{base}/docs/a"), "headers": [field] });
    let method = |method: &str| json!({ "url": format!("{base}/docs/a"), "method": method });
    let at = |path: &str| get(&format!("{base}{path}"));
    let requests = [
        ("what is granted", at("/docs/a?b=c")),
        ("another path", at("/private")),
        ("a longer segment", at("/docsother")),
        ("dot segments", at("/docs/../private")),
        ("dot segments, encoded", at("/docs/%2e%2e/private")),
        ("dot segments, half encoded", at("/docs/.%2E/private")),
        ("dot segments, in overlong UTF-8", at("/docs/%c0%ae%c0%ae/private")),
        ("dot segments with parameters", at("/docs/..;x=1/private")),
        ("an encoded slash", at("/docs/..%2fprivate")),
        ("an encoded backslash", at("/docs/..%5cprivate")),
        ("an encoded NUL", at("/docs/a%00")),
        ("an encoded line end", at("/docs/a%0d%0aX-Forged:%201")),
        ("two slashes", at("//docs/a")),
        ("a path of 9 KiB", at(&format!("/docs/{}", "a/".repeat(4_600)))),
        ("another scheme", get("https://127.0.0.1:PORT/docs/a")),
        ("another port", get("http://127.0.0.1:1/docs/a")),
        ("no port", get("http://127.0.0.1/docs/a")),
        ("userinfo", get("http://user@127.0.0.1:PORT/docs/a")),
        ("a name for that address", get("http://localhost:PORT/docs/a")),
        ("a name below it", get("http://127.0.0.1.example.com:PORT/docs/a")),
        ("a trailing dot", get("http://127.0.0.1.:PORT/docs/a")),
        ("a decimal address", get("http://2130706433:PORT/docs/a")),
        ("an octal address", get("http://0177.0.0.1:PORT/docs/a")),
        ("a hexadecimal address", get("http://0x7f.0.0.1:PORT/docs/a")),
        ("a short address", get("http://127.1:PORT/docs/a")),
        ("IPv4 in IPv6", get("http://[::ffff:127.0.0.1]:PORT/docs/a")),
        ("the loopback of IPv6", get("http://[::1]:PORT/docs/a")),
        ("no address at all", get("http://0.0.0.0:PORT/docs/a")),
        ("metadata of a cloud", get("http://169.254.169.254/latest/meta-data")),
        ("another method", method("POST")),
        ("another method, in small letters", method("get")),
        ("a tunnel", method("CONNECT")),
        ("a trace", method("TRACE")),
        ("another host in a field", header("host: internal.example")),
        ("another method in a field", header("x-http-method-override: DELETE")),
        ("another path in a field", header("x-original-url: /private")),
        ("another sender in a field", header("x-forwarded-for: 127.0.0.1")),
        ("a field of the connection", header("connection: keep-alive, x-forged")),
        ("a length of its own", header("content-length: 5")),
        ("an encoding of the message", header("transfer-encoding: chunked")),
        ("another protocol", header("upgrade: websocket")),
        ("a credential of a proxy", header("proxy-authorization: Basic YTpi")),
        ("a line end in a field", header("x-one: a\r\nx-two: b")),
    ];
    let grants = "\"http://127.0.0.1:PORT/docs/**\"";
    snapshot!("beside-the-grant", &report(grants, &server, &requests));
    let paths: Vec<_> = server.seen().requests.iter().map(|it| it.path().to_owned()).collect();
    assert_eq!(reached_by_wasi_0_3(grants, &requests), paths);
}

#[test]
fn a_wildcard_excludes_the_machine_and_its_network() {
    let server = Server::start(Behaviour::Echo);
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "[::]",
        "2130706433",
        "0x7f000001",
        "0177.1",
        "127.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fc00::1]",
        "224.0.0.1",
        "255.255.255.255",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "198.18.0.1",
        "192.0.2.1",
    ];
    let requests: Vec<_> =
        hosts.iter().map(|host| (*host, get(&format!("http://{host}:PORT/docs/a")))).collect();
    let grants = "\"http://*:PORT/**\"";
    snapshot!("a-wildcard", &report(grants, &server, &requests));
    assert_eq!(reached_by_wasi_0_3(grants, &requests), [""; 0]);
}
