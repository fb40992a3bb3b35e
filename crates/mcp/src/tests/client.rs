//! A client of a server on a thread of the test process.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Server, StdioError};

/// Timeout of the tests, which do not measure time.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Client {
    input: Option<PipeWriter>,
    messages: Receiver<Value>,
    /// Messages that arrived while the test waited for another.
    earlier: VecDeque<Value>,
    serving: Option<JoinHandle<Result<(), StdioError>>>,
    /// The `_meta` of each request, in the stateless revisions.
    meta: Option<Value>,
    last_id: u64,
}

impl Client {
    pub(super) fn start(server: Server) -> Self {
        let (requests, input) = std::io::pipe().unwrap();
        let (output, answers) = std::io::pipe().unwrap();
        let serving = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(server.serve_stdio(requests.into(), answers.into()))
        });
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let message = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            input: Some(input),
            messages,
            earlier: VecDeque::new(),
            serving: Some(serving),
            meta: None,
            last_id: 0,
        }
    }

    /// Starts a session with a handshake.
    #[track_caller]
    pub(super) fn after_handshake(self, capabilities: Value) -> Self {
        self.with_revision("2025-11-25", capabilities)
    }

    /// Starts a session with a handshake of this revision.
    #[track_caller]
    pub(super) fn with_revision(mut self, revision: &str, capabilities: Value) -> Self {
        let answer = self.request("initialize", initialize_params(revision, capabilities));
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        self.notify("notifications/initialized", json!({}));
        self
    }

    /// Uses the stateless revision.
    pub(super) fn stateless(mut self, capabilities: Value) -> Self {
        self.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        self
    }

    /// Writes a raw line.
    pub(super) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request and returns its id.
    pub(super) fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if let Some(meta) = &self.meta {
            let own = std::mem::replace(&mut params["_meta"], meta.clone());
            if let Value::Object(own) = own {
                params["_meta"].as_object_mut().unwrap().extend(own);
            }
        }
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&request.to_string());
        id
    }

    /// Sends a call of the tool `probe` and returns its id.
    pub(super) fn send_call(&mut self, arguments: Value) -> u64 {
        self.send("tools/call", json!({ "name": "probe", "arguments": arguments }))
    }

    /// Waits for the first matching message; other messages are kept.
    #[track_caller]
    pub(super) fn wait(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.earlier.iter().position(&is_wanted) {
            return self.earlier.remove(at).unwrap();
        }
        loop {
            let message = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|error| {
                panic!("no such message: {error}; there were {:?}", self.earlier)
            });
            if is_wanted(&message) {
                return message;
            }
            self.earlier.push_back(message);
        }
    }

    /// Waits for a protocol error.
    #[track_caller]
    pub(super) fn error(&mut self) -> Value {
        self.wait(|message| message.get("error").is_some())
    }

    #[track_caller]
    pub(super) fn answer(&mut self, id: u64) -> Value {
        self.wait(|message| message["id"] == id && message.get("method").is_none())
    }

    #[track_caller]
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls the tool `probe` and returns the result.
    #[track_caller]
    pub(super) fn call(&mut self, arguments: Value) -> Value {
        let id = self.send_call(arguments);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Waits for a question, answers it, and returns its form.
    #[track_caller]
    pub(super) fn reply(&mut self, result: Value) -> Value {
        let request = self.wait(|message| message["method"] == "elicitation/create");
        let reply = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.write(&reply.to_string());
        request["params"].clone()
    }

    /// Returns the messages that the test has not waited for.
    pub(super) fn others(&mut self) -> Vec<Value> {
        self.earlier.extend(self.messages.try_iter());
        self.earlier.drain(..).collect()
    }

    /// Closes the input and waits until the server has ended. Returns the remaining messages.
    pub(super) fn close(mut self) -> (Result<(), StdioError>, Vec<Value>) {
        drop(self.input.take());
        let ended = self.serving.take().unwrap().join().unwrap();
        (ended, self.earlier.drain(..).chain(self.messages.iter()).collect())
    }
}

pub(super) fn initialize_params(version: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": version,
        "clientInfo": { "name": "test", "version": "1" },
        "capabilities": capabilities,
    })
}

/// Returns the text blocks of a result.
pub(super) fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
