//! The server: how long a client waits for its first answer, for a warm call, and
//! how many calls it gets in a second, over standard input and output and over
//! HTTP.
//!
//! `cargo bench --bench serve` prints the figures; another binary can be named,
//! `cargo bench --bench serve -- target/release/kitbag`. Absolute times depend on
//! the machine: compare what stands in one run.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const CALLS: usize = 3_000;

fn main() {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let binary = given.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_kitbag")), PathBuf::from);
    let binary = binary.canonicalize().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path();
    std::fs::create_dir(workspace.join(".kitbag")).unwrap();
    std::fs::create_dir(workspace.join("notes")).unwrap();
    std::fs::write(workspace.join("notes/one.md"), "A line of text.\n".repeat(256)).unwrap();
    let probe = Path::new(env!("TEST_GUESTS")).join("kitbag_probe.wasm");
    let config = format!(
        "[tools.echo]\nsource = \"local\"\nwasm = {probe:?}\ndescription = \"echoes\"\n\
         [tools.echo.parameters.do]\ntype = \"string\"\n\
         [tools.echo.parameters.text]\ntype = \"string\"\n"
    );
    std::fs::write(workspace.join(".kitbag/config.toml"), config).unwrap();
    // Compiled once, by whoever comes first.
    Session::start(&binary, workspace).call(&echo(100));

    start(&binary, workspace);
    stdio(&binary, workspace);
    end(&binary, workspace);
    http(&binary, workspace);
}

/// From the start of the process to its first answers.
fn start(binary: &Path, workspace: &Path) {
    let (mut initialized, mut called) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let start = Instant::now();
        let mut session = Session::spawn(binary, workspace);
        session.initialize();
        initialized.push(start.elapsed());
        session.call(&echo(100));
        called.push(start.elapsed());
    }
    println!("start to `initialize` answered   {:>10.1?}", percentile(&mut initialized, 50));
    println!("start to the first result        {:>10.1?}", percentile(&mut called, 50));
}

/// From the end of the input to the end of the process, while loops run on every
/// processor; and how long a `ping` takes meanwhile.
fn end(binary: &Path, workspace: &Path) {
    let (mut ended, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let mut session = Session::start(binary, workspace);
        for _ in 0..16 {
            session.send("tools/call", r#"{"name":"echo","arguments":{"do":"spin"}}"#);
        }
        for _ in 0..20 {
            answered.push(time(|| {
                session.send("ping", "{}");
                session.receive();
            }));
        }
        ended.push(session.end());
    }
    let (p50, most) = (percentile(&mut answered, 50), percentile(&mut answered, 100));
    println!("`ping` while 16 loops run        {p50:>10.1?} p50 {most:>10.1?} most");
    let (p50, most) = (percentile(&mut ended, 50), percentile(&mut ended, 100));
    println!("closed input to the end          {p50:>10.1?} p50 {most:>10.1?} most");
}

fn stdio(binary: &Path, workspace: &Path) {
    let mut session = Session::start(binary, workspace);
    println!("resident after `initialize`      {:>10} KiB", session.resident_kib());
    let figures = |session: &mut Session, title: &str, call: &str, calls: usize| {
        for _ in 0..calls / 10 {
            session.call(call);
        }
        let mut times: Vec<_> = (0..calls).map(|_| time(|| session.call(call))).collect();
        let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
        println!("stdio, {title:25} {p50:>10.1?} p50 {p99:>10.1?} p99");
    };
    figures(&mut session, "echo of 100 B", &echo(100), CALLS);
    let learn = r#"{"name":"learn","arguments":{"topic":"notes","subjects":"one"}}"#;
    let knowledge = workspace.join("knowledge");
    std::fs::create_dir_all(knowledge.join(".kitbag")).unwrap();
    std::fs::rename(workspace.join("notes"), knowledge.join("notes")).unwrap();
    let config = "[knowledge.notes]\nsubjects = \"notes\"\n";
    std::fs::write(knowledge.join(".kitbag/config.toml"), config).unwrap();
    figures(&mut Session::start(binary, &knowledge), "`learn` of 4 KB", learn, CALLS);
    figures(&mut session, "echo of 1 MB", &echo(1_000_000), 100);
    for in_flight in [1, 8, 64] {
        let rate = session.rate(&echo(100), in_flight, CALLS * 3);
        println!("stdio, {in_flight:>2} in flight               {rate:>10.0} calls/s");
    }
    session.rate(&echo(100), 64, 10_000);
    println!("resident after {:>6} calls      {:>10} KiB", session.last_id, session.resident_kib());
}

fn http(binary: &Path, workspace: &Path) {
    let mut server = Command::new(binary)
        .args(["serve", "--http", "127.0.0.1:0", "--no-token"])
        .current_dir(workspace)
        .env("KITBAG_CACHE_DIR", workspace.join("cache"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening at http://").unwrap();
    let address = url.strip_suffix("/mcp").unwrap().to_owned();
    let mut connection = Connection::new(&address);
    for _ in 0..CALLS / 10 {
        connection.call(100);
    }
    let mut times: Vec<_> = (0..CALLS).map(|_| time(|| connection.call(100))).collect();
    let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
    println!("HTTP, echo of 100 B              {p50:>10.1?} p50 {p99:>10.1?} p99");
    for clients in [1, 8, 64] {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    let mut connection = Connection::new(&address);
                    (0..CALLS / clients).for_each(|_| connection.call(100));
                });
            }
        });
        let calls = CALLS / clients * clients;
        let rate = calls as f64 / start.elapsed().as_secs_f64();
        println!("HTTP, {clients:>2} clients                 {rate:>10.0} calls/s");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

fn echo(bytes: usize) -> String {
    let text = "x".repeat(bytes);
    format!(r#"{{"name":"echo","arguments":{{"do":"echo","text":"{text}"}}}}"#)
}

/// A client on standard input and output.
struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    line: String,
    last_id: u64,
}

impl Session {
    fn spawn(binary: &Path, workspace: &Path) -> Self {
        let mut child = Command::new(binary)
            .arg("serve")
            .current_dir(workspace)
            .env_clear()
            .env("KITBAG_CACHE_DIR", workspace.join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::with_capacity(1 << 20, child.stdout.take().unwrap());
        Self { child, input, output, line: String::new(), last_id: 0 }
    }

    fn start(binary: &Path, workspace: &Path) -> Self {
        let mut session = Self::spawn(binary, workspace);
        session.initialize();
        session
    }

    fn initialize(&mut self) {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}"#;
        self.send("initialize", params);
        self.receive();
    }

    fn call(&mut self, params: &str) {
        self.send("tools/call", params);
        self.receive();
    }

    fn send(&mut self, method: &str, params: &str) {
        self.last_id += 1;
        let id = self.last_id;
        let mut line = String::with_capacity(params.len() + 100);
        let _ = writeln!(
            line,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        );
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn receive(&mut self) {
        self.line.clear();
        self.output.read_line(&mut self.line).unwrap();
        let tail = &self.line[self.line.len().saturating_sub(100)..];
        assert!(!self.line.is_empty() && !self.line.contains(r#""isError":true"#), "{tail}");
    }

    /// Calls a second with so many in flight.
    fn rate(&mut self, params: &str, in_flight: usize, calls: usize) -> f64 {
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
    fn end(mut self) -> Duration {
        let start = Instant::now();
        drop(self.input.take());
        self.child.wait().unwrap();
        start.elapsed()
    }

    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the stateless revision over one connection.
struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Connection {
    fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), address: address.to_owned() }
    }

    fn call(&mut self, bytes: usize) {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"b","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
        let call = echo(bytes);
        let params = format!("{},{meta}}}", call.strip_suffix('}').unwrap());
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut length, mut is_chunked, mut line) = (0, false, String::new());
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let lower = line.trim().to_lowercase();
            if let Some(value) = lower.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            is_chunked |= lower == "transfer-encoding: chunked";
            if lower.is_empty() {
                break;
            }
        }
        if !is_chunked {
            self.stream.read_exact(&mut vec![0; length]).unwrap();
            return;
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            self.stream.read_exact(&mut vec![0; size + 2]).unwrap();
            if size == 0 {
                return;
            }
        }
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}
