//! A server under every attack at once: its peak memory, and whether an honest client is still
//! answered.
//!
//! `cargo bench --bench soak -- --seconds=600` runs that long; the default is a few seconds, enough
//! to see that it works. Another binary can be named. `--only=NAME` makes only the attacks whose
//! names contain it.
//!
//! All attackers are one client, and the honest client is another. It must be answered within 250
//! ms at the median and 2 s at most, which is checked in runs of a minute and longer.
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

/// Memory limit of both servers: the default.
const MEMORY_MIB: u64 = 2048;

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(40);

/// Limit for the median time in which the honest client is answered.
const MEDIAN: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(2);

/// Shortest run in which the limits are checked.
const CHECKED_SECONDS: u64 = 60;

/// The names of the attacker and of the honest client.
const ATTACKER: &str = "attacker";
const HONEST: &str = "honest";

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}"#;

/// A server over HTTP.
struct Server {
    child: Child,
    address: SocketAddr,
    token: String,
}

/// An attack on the server over HTTP, by this many threads.
struct Attack {
    name: &'static str,
    threads: usize,
    attack: fn(&Server),
}

/// When the attacks end, which attacks are made, and how often each was made.
struct Attacks {
    end: Instant,
    only: String,
    counts: Vec<AtomicU64>,
}

/// The attack on a server on standard input and output.
const FLOOD: &str = "pings to standard input, nothing read";

fn main() {
    let command_line = CommandLine::read();
    let seconds = command_line.value("seconds").unwrap_or(5);
    let binary = command_line.binary();
    let workspace = workspace(&binary);
    let server = Server::start(&binary, &workspace);
    for (tool, arguments) in CALLS {
        assert!(server.call(HONEST, tool, arguments).contains("200 OK"), "no first answer");
    }
    let attacks = Attacks {
        end: Instant::now() + Duration::from_secs(seconds),
        only: command_line.value("only").unwrap_or_default(),
        counts: (0..=ATTACKS.len()).map(|_| AtomicU64::new(0)).collect(),
    };
    let (mut stdio_peak, mut times, mut failed) = (0, Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let (server, attacks) = (&server, &attacks);
        for (number, attack) in ATTACKS.iter().enumerate() {
            for _ in 0..attack.threads {
                scope.spawn(move || {
                    attacks.repeat(number, attack.name, || (attack.attack)(server));
                });
            }
        }
        let (binary, workspace) = (&binary, &workspace);
        let stdio = scope.spawn(move || {
            let mut peak = 0;
            let attack = || peak = peak.max(flood(binary, workspace, attacks.end));
            attacks.repeat(ATTACKS.len(), FLOOD, attack);
            peak
        });
        // The honest client.
        while Instant::now() < attacks.end {
            for (tool, arguments) in CALLS {
                let start = Instant::now();
                let answer = server.call(HONEST, tool, arguments);
                match answer.contains("\"isError\":false") {
                    true => times.push(start.elapsed()),
                    false => failed.push(answer),
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        stdio_peak = stdio.join().unwrap();
    });
    println!("{seconds} s");
    let names = ATTACKS.iter().map(|attack| attack.name).chain([FLOOD]);
    for (name, count) in names.zip(&attacks.counts) {
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
    println!("honest calls answered, refused          {:>6} {:>6}", times.len(), failed.len());
    if let Some(first) = failed.first() {
        println!("the first of those: {}", first.replace('\n', " "));
    }
    assert!(!times.is_empty(), "no honest client was answered");
    let (median, most) = (percentile(&mut times, 50), percentile(&mut times, 100));
    println!(
        "honest call, median, p99 and longest    {median:>10.1?} {:>10.1?} {most:>10.1?}",
        percentile(&mut times, 99)
    );
    assert!(mib(peak_kib(process)).max(mib(stdio_peak)) < MEMORY_MIB, "more than the budget");
    if seconds >= CHECKED_SECONDS {
        assert!(failed.is_empty(), "an honest call was refused");
        assert!(median <= MEDIAN && most <= LONGEST, "an honest client waited too long");
    }
}

/// The calls of the honest client.
const CALLS: [(&str, &str); 2] = [("probe", r#"{"do":"echo","text":"honest"}"#), ("now", "{}")];

/// Calls four slow tools and starts 190 calls with junk arguments behind them.
const JUNK_CALLS: &str = "import asyncio\n\
    slow = [probe(do='sleep', ms=2000) for _ in range(4)]\n\
    junk = [[0]] * 40000\n\
    async def main():\n    \
    await asyncio.gather(*[probe(do='echo', more=junk) for _ in range(190)])\n\
    asyncio.run(main())";

/// Loops with calls of `query_data` inside.
const LOOP: &str = "while True:\n    \
    query_data(text='[' + '1,' * 20000 + '1]', query='map(. + 1) | add')\n    \
    sum(range(100000))";

/// Makes nearly as many calls as one call may, each with a line in the audit log.
const LOGGED_CALLS: &str = "for n in range(190):\n    probe(do='echo', text='x' * 1000)";

/// Keeps 7 MB of answers and ends at a question.
const OPEN_QUESTION: &str = "kept = [probe(do='output', bytes=900000) for _ in range(8)]\n\
    probe(do='ask', text='Go on?')";

/// The attacks, which are made at once.
const ATTACKS: &[Attack] = &[
    Attack {
        name: "connections without a token",
        threads: 2,
        attack: |server| {
            let streams: Vec<_> = (0..300).filter_map(|_| server.connect()).collect();
            for mut stream in streams {
                let _ = stream.write_all(b"POST /m");
            }
        },
    },
    Attack {
        name: "bodies that do not arrive",
        threads: 20,
        attack: |server| {
            let Some(mut stream) = server.connect() else { return };
            let _ = write!(stream, "{}{{", server.head("probe", 3_000_000));
            let _ = stream.read_to_end(&mut Vec::new());
        },
    },
    Attack {
        name: "large bodies of which the end is missing",
        threads: 40,
        attack: |server| {
            let Some(mut stream) = server.connect() else { return };
            let _ = stream.write_all(server.head("probe", 4_000_000).as_bytes());
            let _ = stream.write_all(&vec![b' '; 3_900_000]);
            let _ = stream.read_to_end(&mut Vec::new());
        },
    },
    Attack {
        name: "requests that cost much to read",
        threads: 12,
        attack: |server| {
            let junk = "[0],".repeat(59_000);
            server.attack("probe", &format!(r#"{{"do":"echo","more":[{junk}[0]]}}"#));
        },
    },
    Attack {
        name: "clients that do not read",
        threads: 4,
        attack: |server| {
            let Some(mut stream) = server.connect() else { return };
            let request = server.request(ATTACKER, "probe", r#"{"do":"output","bytes":1000000}"#);
            while stream.write_all(request.as_bytes()).is_ok() {}
        },
    },
    Attack {
        name: "calls that fill their memory",
        threads: 12,
        attack: |server| server.attack("probe", r#"{"do":"allocate","bytes":60000000}"#),
    },
    Attack {
        name: "calls that loop and are given up",
        threads: 4,
        attack: |server| {
            let Some(mut stream) = server.connect() else { return };
            let request = server.request(ATTACKER, "probe", r#"{"do":"spin"}"#);
            let _ = stream.write_all(request.as_bytes());
            std::thread::sleep(Duration::from_millis(50));
        },
    },
    Attack {
        name: "sessions begun and left",
        threads: 1,
        attack: |server| {
            server.send(&server.plain_head(INITIALIZE.len()), INITIALIZE);
            std::thread::sleep(Duration::from_millis(100));
        },
    },
    Attack {
        name: "scripts that start calls with junk",
        threads: 3,
        attack: |server| server.run(JUNK_CALLS),
    },
    Attack {
        name: "scripts that loop with calls in them",
        threads: 4,
        attack: |server| server.run(LOOP),
    },
    Attack {
        name: "scripts that fill the audit log",
        threads: 2,
        attack: |server| server.run(LOGGED_CALLS),
    },
    Attack {
        name: "calls left at a question",
        threads: 3,
        attack: |server| server.run(OPEN_QUESTION),
    },
    Attack {
        name: "calls left at an approval",
        threads: 2,
        attack: |server| {
            let text = "x".repeat(100_000);
            server.attack("guarded", &format!(r#"{{"do":"echo","text":"{text}"}}"#));
        },
    },
    Attack {
        name: "loops of other tools",
        threads: 6,
        attack: |server| {
            for tool in ["first", "second", "third"] {
                server.attack(tool, r#"{"do":"spin"}"#);
            }
        },
    },
];

/// The tools: `probe` under several names, `guarded`, whose calls need approval, and built-in
/// ones.
fn workspace(binary: &Path) -> Workspace {
    let mut config = unsaid_tool("probe");
    for name in ["first", "second", "third"] {
        config.push_str(&format!("{}limits.time = \"5s\"\n", unsaid_tool(name)));
    }
    config.push_str(&format!("{}approve = \"always\"\n", unsaid_tool("guarded")));
    let workspace = Workspace::new(&config);
    workspace.own_config(
        "[toolsets]\npython = true\ndata = true\ntime = true\n\
         [tools.python.grants]\ntools = { probe = \"probe\", query_data = \"query_data\" }\n\
         [audit]\nenable = true\nsize = \"8MiB\"\n",
    );
    workspace.compile(binary, "probe");
    workspace
}

impl Attacks {
    fn repeat(&self, number: usize, name: &str, mut attack: impl FnMut()) {
        while name.contains(&self.only) && Instant::now() < self.end {
            attack();
            self.counts[number].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Server {
    fn start(binary: &Path, workspace: &Workspace) -> Self {
        let mut command = workspace.command(binary);
        command.args(["serve", "--http", "127.0.0.1:0", "--log", "error"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut line = |prefix: &str| loop {
            let line = lines.next().unwrap().unwrap();
            if let Some(rest) = line.strip_prefix(prefix) {
                break rest.to_owned();
            }
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

    /// Returns the head of a message of any kind.
    fn plain_head(&self, length: usize) -> String {
        let (address, token) = (self.address, &self.token);
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    }

    /// Returns the head of a call.
    fn head(&self, tool: &str, length: usize) -> String {
        let more = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        self.plain_head(length).replacen("Content-Length", &format!("{more}Content-Length"), 1)
    }

    fn request(&self, client: &str, tool: &str, arguments: &str) -> String {
        let meta = format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"{client}","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}}}}}}"#
        );
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},{meta}}}}}"#
        );
        self.head(tool, body.len()) + &body
    }

    /// Makes a call and returns the raw answer.
    fn call(&self, client: &str, tool: &str, arguments: &str) -> String {
        self.send(&self.request(client, tool, arguments), "")
    }

    /// Makes a call as the attacker.
    fn attack(&self, tool: &str, arguments: &str) {
        self.call(ATTACKER, tool, arguments);
    }

    /// Runs a script as the attacker.
    fn run(&self, code: &str) {
        self.attack("python", &serde_json::json!({ "code": code }).to_string());
    }

    /// Sends a request on its own connection and returns the raw answer.
    fn send(&self, head: &str, body: &str) -> String {
        let Some(mut stream) = self.connect() else { return "no connection".to_owned() };
        let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(body.as_bytes());
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

/// Sends requests on standard input without reading the answers, until the session ends or the time
/// is over; returns the peak memory in KiB.
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
