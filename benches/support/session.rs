//! A minimal, fast MCP client over standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::workspace::Workspace;

/// `kitbag serve`, and the client that started it.
pub(crate) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    last_id: u64,
}

impl Session {
    /// Starts the process.
    pub(crate) fn spawn(binary: &Path, workspace: &Workspace, flags: &[&str]) -> Self {
        let mut command = workspace.command(binary);
        command.arg("serve").args(flags);
        Self::of(command)
    }

    /// Starts an MCP server.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::with_capacity(1 << 20, child.stdout.take().unwrap());
        Self { child, input, output, line: Vec::new(), last_id: 0 }
    }

    /// Starts the process and begins a session.
    pub(crate) fn start(binary: &Path, workspace: &Workspace, flags: &[&str]) -> Self {
        let mut session = Self::spawn(binary, workspace, flags);
        session.initialize();
        session
    }

    pub(crate) fn initialize(&mut self) {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}"#;
        self.ask("initialize", params);
    }

    /// Calls a tool and waits for its answer. `params` is JSON.
    pub(crate) fn call(&mut self, params: &str) {
        self.ask("tools/call", params);
    }

    /// Requests all pages of the tool list, and counts the tools.
    pub(crate) fn tools(&mut self) -> usize {
        let (mut params, mut count) = ("{}".to_owned(), 0);
        loop {
            self.ask("tools/list", &params);
            let answer: Value = serde_json::from_slice(&self.line).unwrap();
            let page = &answer["result"];
            count += page["tools"].as_array().unwrap().len();
            match &page["nextCursor"] {
                Value::Null => return count,
                cursor => params = format!(r#"{{"cursor":{cursor}}}"#),
            }
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: &str) {
        self.send(method, params);
        self.receive();
    }

    pub(crate) fn send(&mut self, method: &str, params: &str) {
        self.last_id += 1;
        let id = self.last_id;
        let mut line = Vec::with_capacity(params.len() + 100);
        let _ = writeln!(
            line,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        );
        self.input.as_mut().unwrap().write_all(&line).unwrap();
    }

    /// Reads an answer, which must be a success.
    pub(crate) fn receive(&mut self) {
        self.line.clear();
        self.output.read_until(b'\n', &mut self.line).unwrap();
        // The ends of a long answer are sufficient; searching all of it would cost time.
        let (first, last) = self.line.split_at(self.line.len().min(200));
        let last = &last[last.len().saturating_sub(200)..];
        let said = [first, last].map(String::from_utf8_lossy).concat();
        let is_bad = said.contains(r#""isError":true"#) || said.contains(r#""error":{"#);
        assert!(!said.is_empty() && !is_bad, "{said}");
    }

    /// Returns the calls per second with this many in flight.
    pub(crate) fn rate(&mut self, params: &str, in_flight: usize, calls: usize) -> f64 {
        let start = Instant::now();
        (0..in_flight).for_each(|_| self.send("tools/call", params));
        for sent in in_flight..calls + in_flight {
            self.receive();
            if sent < calls {
                self.send("tools/call", params);
            }
        }
        calls as f64 / start.elapsed().as_secs_f64()
    }

    /// Closes the input and returns how long the process takes to end.
    pub(crate) fn end(mut self) -> Duration {
        let start = Instant::now();
        drop(self.input.take());
        self.child.wait().unwrap();
        start.elapsed()
    }

    /// The process ID, as in `/proc`.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The parameters of a call of the tool `echo` with this many bytes.
pub(crate) fn echo(bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(r#"{{"name":"echo","arguments":{{"do":"echo","text":"{text}"}}}}"#)
}
