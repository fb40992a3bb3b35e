//! The server: how long a client waits for its first answer and for a warm call, how many calls per
//! second it gets over standard input and output and over HTTP, and the memory of the process.
//!
//! `cargo bench --bench serve` prints the figures; another binary can be named,
//! `cargo bench --bench serve -- target/release/kitbag`. `--calls=100000` watches for growing
//! memory over that many calls instead of 10,000. Absolute times depend on the machine: compare
//! only figures of one run.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::support::memory::{open_files, resident_kib};
use crate::support::session::{Session, echo};
use crate::support::workspace::{Workspace, local_tool};
use crate::support::{CommandLine, median, percentile, time};

const CALLS: usize = 3_000;
/// Number of calls until the memory of a server has settled.
const FIRST_CALLS: usize = 100;

fn main() {
    let command_line = CommandLine::read();
    let binary = command_line.binary();
    let workspace = Workspace::new(&(local_tool("echo") + &local_tool("probe")));
    // Compiled once, by the first process that needs it.
    Session::start(&binary, &workspace, &[]).call(&echo(100));

    start(&binary, &workspace);
    resident(&binary);
    growth(&binary, &workspace, command_line.value("calls").unwrap_or(10_000));
    stdio(&binary, &workspace);
    end(&binary, &workspace);
    http(&binary, &workspace);
}

/// Measures from the start of the process to its first answers.
fn start(binary: &Path, workspace: &Workspace) {
    let (mut initialized, mut called) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let start = Instant::now();
        let mut session = Session::spawn(binary, workspace, &[]);
        session.initialize();
        initialized.push(start.elapsed());
        session.call(&echo(100));
        called.push(start.elapsed());
    }
    println!("start to `initialize` answered   {:>10.1?}", percentile(&mut initialized, 50));
    println!("start to the first result        {:>10.1?}", percentile(&mut called, 50));
}

/// Prints the memory of the process with one tool and with a thousand, after `initialize`.
fn resident(binary: &Path) {
    for count in [1, 1_000] {
        let workspace = Workspace::with_idle_tools(count);
        let held = || resident_kib(Session::start(binary, &workspace, &[]).process());
        let mut held: Vec<_> = (0..11).map(|_| held()).collect();
        println!("resident, {count:>4} tools configured  {:>10} KiB", median(&mut held));
    }
}

/// Prints the memory that this many calls leave behind.
fn growth(binary: &Path, workspace: &Workspace, calls: usize) {
    let mut session = Session::start(binary, workspace, &[]);
    session.rate(&echo(100), 8, FIRST_CALLS);
    let held = |session: &Session| (resident_kib(session.process()), open_files(session.process()));
    let (before, files) = held(&session);
    session.rate(&echo(100), 8, calls);
    let (after, files_after) = held(&session);
    println!("resident after {FIRST_CALLS:>6} calls      {before:>10} KiB {files:>6} files open");
    println!("resident after {calls:>6} more       {after:>10} KiB {files_after:>6} files open");
}

/// Measures from the end of the input to the end of the process while loops run on every processor,
/// and the time of a `ping` meanwhile.
fn end(binary: &Path, workspace: &Workspace) {
    let (mut ended, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let mut session = Session::start(binary, workspace, &[]);
        for _ in 0..16 {
            session.send("tools/call", r#"{"name":"probe","arguments":{"do":"spin"}}"#);
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

fn stdio(binary: &Path, workspace: &Workspace) {
    let figures = |session: &mut Session, title: &str, call: &str, calls: usize| {
        for _ in 0..calls / 10 {
            session.call(call);
        }
        let mut times: Vec<_> = (0..calls).map(|_| time(|| session.call(call))).collect();
        let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
        println!("stdio, {title:25} {p50:>10.1?} p50 {p99:>10.1?} p99");
    };
    let mut session = Session::start(binary, workspace, &[]);
    figures(&mut session, "echo of 100 B", &echo(100), CALLS);
    let knowledge = Workspace::new("[knowledge.notes]\nsubjects = \"notes\"\n");
    knowledge.subjects("notes", 1, 4 << 10);
    let learn = r#"{"name":"learn","arguments":{"topic":"notes","subjects":"subject-0"}}"#;
    figures(&mut Session::start(binary, &knowledge, &[]), "`learn` of 4 KB", learn, CALLS);
    figures(&mut session, "echo of 1 MB", &echo(1_000_000), 100);
    for in_flight in [1, 8, 64] {
        let rate = session.rate(&echo(100), in_flight, CALLS * 3);
        println!("stdio, {in_flight:>2} in flight               {rate:>10.0} calls/s");
    }
    println!("resident after all of these      {:>10} KiB", resident_kib(session.process()));
}

fn http(binary: &Path, workspace: &Workspace) {
    let mut server = workspace
        .command(binary)
        .args(["serve", "--http", "127.0.0.1:0", "--no-token"])
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
