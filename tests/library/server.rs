//! A server, embedded in a program.

use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::thread::JoinHandle;

use kitbag::mcp::Server;
use serde_json::{Value, json};

use crate::support::{Workspace, until};

/// A client of a server on a thread of this process.
struct Client {
    input: PipeWriter,
    messages: Box<dyn Iterator<Item = String>>,
    serving: JoinHandle<()>,
}

impl Client {
    fn start(server: Server) -> Self {
        let (requests, input) = std::io::pipe().unwrap();
        let (messages, output) = std::io::pipe().unwrap();
        let messages = Box::new(BufReader::new(messages).lines().map(Result::unwrap));
        let serving = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(server.serve_stdio(requests.into(), output.into())).unwrap();
        });
        Self { input, messages, serving }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.input, "{request}").unwrap();
        serde_json::from_str(&self.messages.next().unwrap()).unwrap()
    }

    fn close(self) {
        drop(self.input);
        self.serving.join().unwrap();
    }
}

#[test]
fn built_ins_are_loaded_after_initialize() {
    let workspace = Workspace::with_toolsets(&["calc", "files", "time"]);
    workspace.file("a.txt", "A\n");
    let toolbox = workspace.kitbag().toolbox().clone();
    let unloaded = || toolbox.unloaded_builtins();
    let (reload, names) = (toolbox.clone(), unloaded());
    assert!(names.iter().any(|name| name.as_str() == "read_file"), "{names:?}");
    let server = Server::new(toolbox.clone(), Box::new(move || Ok(reload.clone())), None).unwrap();
    let mut client = Client::start(server.clone());
    assert_eq!(unloaded(), names, "loaded before a client needs it");
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    client.ask("initialize", params);
    writeln!(client.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    until(|| unloaded().is_empty());
    let call = json!({ "name": "read_file", "arguments": { "path": "a.txt" } });
    let answer = client.ask("tools/call", call);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    client.close();
    server.finish();
}
