//! A server under every attack at once: what it holds at most, and whether an
//! honest client is answered meanwhile.
//!
//! `cargo bench --bench soak -- --seconds=600` takes that long; without it the run
//! is a few seconds, enough to see that it works. Another binary can be named.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::memory::{peak_kib, resident_kib};
use crate::support::workspace::{Workspace, unsaid_tool};
use crate::support::{CommandLine, percentile};

/// What both servers may take: the default.
const MEMORY_MIB: u64 = 2048;

/// How long anybody waits for an answer.
const PATIENCE: Duration = Duration::from_secs(40);

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"soak","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}"#;

/// A server over HTTP.
struct Server {
    child: Child,
    address: SocketAddr,
    token: String,
}

/// Until when the attacks go on, and how often each was made.
struct Attacks {
    end: Instant,
    counts: [(&'static str, AtomicU64); 8],
}

fn main() {
    let command_line = CommandLine::read();
    let seconds = command_line.value("seconds").unwrap_or(5);
    let binary = command_line.binary();
    let workspace = Workspace::new(&unsaid_tool("probe"));
    workspace.compile(&binary, "probe");
    let server = Server::start(&binary, &workspace);
    assert!(server.call(r#"{"do":"echo","text":"x"}"#).contains("200 OK"), "no first answer");
    let attacks = Attacks {
        end: Instant::now() + Duration::from_secs(seconds),
        counts: [
            "connections without a token",
            "bodies that do not arrive",
            "requests that cost much to read",
            "clients that do not read",
            "calls that fill their memory",
            "calls that loop and are given up",
            "sessions begun",
            "pings to standard input, nothing read",
        ]
        .map(|name| (name, AtomicU64::new(0))),
    };
    let (mut stdio_peak, mut times, mut failed) = (0, Vec::new(), Vec::new());
    let costly = format!(r#"{{"do":"echo","text":[{}[0]]}}"#, "[0],".repeat(230_000));
    std::thread::scope(|scope| {
        let (server, attacks, costly) = (&server, &attacks, &costly);
        let spawn = |number: usize, threads: usize, attack: fn(&Server, &str)| {
            for _ in 0..threads {
                scope.spawn(move || attacks.repeat(number, || attack(server, costly)));
            }
        };
        spawn(0, 2, |server, _| {
            let streams: Vec<_> = (0..300).filter_map(|_| server.connect()).collect();
            for mut stream in streams {
                let _ = stream.write_all(b"POST /m");
            }
        });
        spawn(1, 20, |server, _| {
            let Some(mut stream) = server.connect() else { return };
            let _ = write!(stream, "{}{{", server.head(3_000_000));
            let _ = stream.read_to_end(&mut Vec::new());
        });
        spawn(2, 12, |server, costly| drop(server.call(costly)));
        spawn(3, 4, |server, _| {
            let Some(mut stream) = server.connect() else { return };
            let request = server.request(r#"{"do":"output","bytes":1000000}"#);
            while stream.write_all(request.as_bytes()).is_ok() {}
        });
        spawn(4, 12, |server, _| drop(server.call(r#"{"do":"allocate","bytes":60000000}"#)));
        spawn(5, 4, |server, _| {
            let Some(mut stream) = server.connect() else { return };
            let _ = stream.write_all(server.request(r#"{"do":"spin"}"#).as_bytes());
            std::thread::sleep(Duration::from_millis(50));
        });
        spawn(6, 1, |server, _| {
            let Some(mut stream) = server.connect() else { return };
            let (address, token) = (server.address, &server.token);
            let _ = write!(
                stream,
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
                 Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
                 Connection: close\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
                INITIALIZE.len()
            );
            let _ = stream.read_to_end(&mut Vec::new());
            std::thread::sleep(Duration::from_millis(100));
        });
        let (binary, workspace) = (&binary, &workspace);
        let stdio = scope.spawn(move || {
            let mut peak = 0;
            attacks.repeat(7, || peak = peak.max(flood(binary, workspace, attacks.end)));
            peak
        });
        // The honest client.
        while Instant::now() < attacks.end {
            let start = Instant::now();
            let answer = server.call(r#"{"do":"echo","text":"honest"}"#);
            match answer.contains("echo") || answer.contains("honest") {
                true => times.push(start.elapsed()),
                false => failed.push(answer.lines().next().unwrap_or("closed").to_owned()),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        stdio_peak = stdio.join().unwrap();
    });
    println!("{seconds} s");
    for (name, count) in &attacks.counts {
        println!("{name:<40} {:>10}", count.load(Ordering::Relaxed));
    }
    let mib = |kib: u64| kib >> 10;
    let process = server.child.id();
    println!(
        "HTTP: peak, at the end (of {MEMORY_MIB} MiB)  {:>6} {:>6} MiB",
        mib(peak_kib(process)),
        mib(resident_kib(process))
    );
    println!("stdio: peak                             {:>6} MiB", mib(stdio_peak));
    println!("honest calls answered, refused as busy  {:>6} {:>6}", times.len(), failed.len());
    if let Some(first) = failed.first() {
        println!("the first of those: {first}");
    }
    if !times.is_empty() {
        let (median, most) = (percentile(&mut times, 50), percentile(&mut times, 100));
        println!("honest call, median and longest         {median:>10.1?} {most:>10.1?}");
    }
    assert!(mib(peak_kib(process)).max(mib(stdio_peak)) < MEMORY_MIB, "more than the budget");
    assert!(!times.is_empty(), "no honest client was answered");
}

impl Attacks {
    fn repeat(&self, number: usize, mut attack: impl FnMut()) {
        while Instant::now() < self.end {
            attack();
            self.counts[number].1.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Server {
    fn start(binary: &Path, workspace: &Workspace) -> Self {
        let mut command = workspace.command(binary);
        command.args(["serve", "--http", "127.0.0.1:0", "--log", "error"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut line = |prefix: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix(prefix).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let token = line("token: ");
        let address = line("listening at http://").trim_end_matches("/mcp").parse().unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, token }
    }

    fn connect(&self) -> Option<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Some(stream)
    }

    fn head(&self, length: usize) -> String {
        let (address, token) = (self.address, &self.token);
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: probe\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    }

    fn request(&self, arguments: &str) -> String {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"probe","arguments":{arguments},{META}}}}}"#
        );
        self.head(body.len()) + &body
    }

    /// Makes a call and returns the answer as it came.
    fn call(&self, arguments: &str) -> String {
        let Some(mut stream) = self.connect() else { return "no connection".to_owned() };
        let request = self.request(arguments).replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks a server on standard input without reading what it answers, until that
/// ends the session or the time is over; returns the peak in KiB.
fn flood(binary: &Path, workspace: &Workspace, end: Instant) -> u64 {
    let mut command = workspace.command(binary);
    command.args(["serve", "--log", "off"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let _ = writeln!(input, "{INITIALIZE}");
    let mut peak = 0;
    for round in 0u64.. {
        let pings: String = (0..500)
            .map(|n| {
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}}\n", round * 500 + n)
            })
            .collect();
        peak = peak.max(peak_kib(child.id()));
        if input.write_all(pings.as_bytes()).is_err() || Instant::now() >= end {
            break;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    peak
}
