//! A minimal client of `kitbag serve`: lines of JSON.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::Workspace;

/// How long an operation may take before the test fails. It is not a measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that has started its server.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Messages that arrived before the awaited one.
    earlier: VecDeque<Value>,
    /// Standard error, line by line, and the part that was read.
    stderr: Receiver<String>,
    logged: String,
    /// The `_meta` of every request, in the stateless revisions.
    meta: Option<Value>,
    last_id: u64,
}

/// The `_meta` of a client in the stateless revisions.
pub(crate) fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The `_meta` of a client with a different name than [`meta`], without capabilities.
pub(crate) fn meta_of(client: &str) -> Value {
    let mut meta = meta(json!({}));
    meta["io.modelcontextprotocol/clientInfo"]["name"] = client.into();
    meta
}

impl Client {
    /// Number of directories and files that the server watches.
    pub(crate) fn watches(&self) -> usize {
        let descriptors = fs::read_dir(format!("/proc/{}/fdinfo", self.child.id())).unwrap();
        let watches = descriptors.map(|descriptor| {
            let text = fs::read_to_string(descriptor.unwrap().path()).unwrap_or_default();
            text.lines().filter(|line| line.starts_with("inotify ")).count()
        });
        watches.sum()
    }

    /// Starts the server without sending a message.
    pub(crate) fn start(workspace: &Workspace, arguments: &[&str]) -> Self {
        Self::start_with(workspace, arguments, Stdio::piped())
    }

    /// Like [`start`](Self::start), with these variables.
    pub(crate) fn start_in(workspace: &Workspace, variables: &[(&str, &str)]) -> Self {
        let mut command = workspace.command();
        command.envs(variables.iter().copied());
        Self::of_command(command, &[], Stdio::piped())
    }

    /// Like [`start`](Self::start), with this as standard error, which the client only reads if it
    /// is a pipe to the client.
    pub(crate) fn start_with(workspace: &Workspace, arguments: &[&str], stderr: Stdio) -> Self {
        Self::of_command(workspace.command(), arguments, stderr)
    }

    /// Like [`start`](Self::start), in another directory than the workspace.
    pub(crate) fn start_at(workspace: &Workspace, directory: &Path) -> Self {
        let mut command = workspace.command();
        command.current_dir(directory);
        Self::of_command(command, &[], Stdio::piped())
    }

    fn of_command(mut command: Command, arguments: &[&str], stderr: Stdio) -> Self {
        let mut child = command
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let (sender, messages) = channel();
        let output = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.unwrap();
                let message: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("this is not a message: {error}: {line}"));
                assert_eq!(message["jsonrpc"], "2.0", "{line}");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let (sender, stderr) = channel();
        if let Some(errors) = child.stderr.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(errors).lines() {
                    // Keep reading to the end, even if no test reads the line.
                    let _ = sender.send(line.unwrap());
                }
            });
        }
        let input = child.stdin.take();
        Self {
            child,
            input,
            messages,
            earlier: VecDeque::new(),
            stderr,
            logged: String::new(),
            meta: None,
            last_id: 0,
        }
    }

    /// A session with a handshake, of a client with these capabilities.
    pub(crate) fn with_handshake(workspace: &Workspace, capabilities: Value) -> Self {
        Self::start(workspace, &[]).after_handshake(capabilities)
    }

    /// Starts a session with a handshake.
    #[track_caller]
    pub(crate) fn after_handshake(mut self, capabilities: Value) -> Self {
        let answer = self.request(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "clientInfo": { "name": "test", "version": "1" },
                "capabilities": capabilities,
            }),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        self.notify("notifications/initialized", json!({}));
        self
    }

    /// A client of the stateless revision with these capabilities.
    pub(crate) fn stateless(workspace: &Workspace, capabilities: Value) -> Self {
        let mut client = Self::start(workspace, &[]);
        client.meta = Some(meta(capabilities));
        client
    }

    /// The ID of the server's process.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Writes a line unchanged.
    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request and returns its ID.
    pub(crate) fn send(&mut self, method: &str, mut params: Value) -> u64 {
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

    /// Waits for the first matching message, and keeps the others.
    #[track_caller]
    pub(crate) fn wait(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
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

    /// Waits for the answer to a request.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.wait(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool and returns the result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", params);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Waits for a request of the server and answers it.
    #[track_caller]
    pub(crate) fn reply(&mut self, method: &str, result: Value) -> Value {
        let request =
            self.wait(|message| message["method"] == method && message.get("id").is_some());
        let reply = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.write(&reply.to_string());
        request["params"].clone()
    }

    /// Waits for a notification.
    #[track_caller]
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        let is_it = |message: &Value| message["method"] == method && message.get("id").is_none();
        self.wait(is_it)["params"].clone()
    }

    /// Returns the messages that no test has waited for.
    pub(crate) fn others(&mut self) -> Vec<Value> {
        self.earlier.extend(self.messages.try_iter());
        self.earlier.drain(..).collect()
    }

    /// A line of `/proc/PID/status` of the server's process, in KiB.
    pub(crate) fn memory_kib(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Waits until this is on standard error, and returns everything read until then.
    #[track_caller]
    pub(crate) fn logged(&mut self, text: &str) -> &str {
        while !self.logged.contains(text) {
            let line = self.stderr.recv_timeout(PATIENCE).unwrap_or_else(|error| {
                panic!("no `{text}` on standard error: {error}; there was {:?}", self.logged)
            });
            self.logged.push_str(&line);
            self.logged.push('\n');
        }
        &self.logged
    }

    /// Closes the server's input and waits for its end: returns its exit status and its standard
    /// error.
    pub(crate) fn close(mut self) -> (ExitStatus, String) {
        drop(self.input.take());
        // Its standard output closes at its end.
        while self.messages.recv_timeout(PATIENCE).is_ok() {}
        assert!(
            matches!(self.messages.try_recv(), Err(TryRecvError::Disconnected)),
            "the server does not end"
        );
        let status = self.child.wait().unwrap();
        for line in self.stderr.iter() {
            self.logged.push_str(&line);
            self.logged.push('\n');
        }
        (status, std::mem::take(&mut self.logged))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text blocks of a result, in order.
pub(crate) fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
