//! Measures the built-in tools: the first and a warm call of each, in the library and over MCP;
//! the search of a large tree and large files, with other programs for the same work; the file
//! tools, in turns with the file server that the Model Context Protocol's authors publish.
//!
//! `cargo bench --bench tools` prints the figures; another binary can be named,
//! `cargo bench --bench tools -- target/x86_64-unknown-linux-gnu/dist/kitbag`. `--files=1000` and
//! `--rows=1000` use less than 100,000 files and 1,000,000 rows. `--file-server=PATH` names the
//! script of `@modelcontextprotocol/server-filesystem` (`dist/index.js`), which `node` runs.
//! Programs that are not installed are skipped. Absolute times depend on the machine: compare only
//! figures of one run.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kitbag::Kitbag;
use serde_json::{Map, Value, json};

use crate::support::session::Session;
use crate::support::workspace::Workspace;
use crate::support::{CommandLine, call, median, percentile, time};

/// A call of each tool, and its project: the examples of `docs/tools.md`.
const EXAMPLES: &str = include_str!("../tests/meta/tools_page/examples.json");
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/meta/tools_page/project");

const FIRST_CALLS: usize = 9;
const WARM_CALLS: usize = 200;
const SEARCHES: usize = 7;

fn main() {
    let command_line = CommandLine::read();
    let binary = command_line.binary();
    each_tool(&binary);
    search(&binary, command_line.value("files").unwrap_or(100_000));
    large_files(&binary, command_line.value("rows").unwrap_or(1_000_000));
    file_tools(&binary, command_line.value::<String>("file-server").as_deref());
}

fn params(tool: &str, arguments: &Value) -> String {
    json!({ "name": tool, "arguments": arguments }).to_string()
}

/// A workspace with a copy of the project, in which tools may write and remove.
fn project() -> Workspace {
    let workspace = Workspace::new(
        "[toolsets]\nwrite = true\nmemory = true\n[tools.remove_path.answers]\nremove = true\n\
         [knowledge.team]\nsubjects = \"notes\"\n",
    );
    restore(&workspace);
    workspace
}

/// Undoes the changes that a call has made in the project.
fn restore(workspace: &Workspace) {
    for entry in fs::read_dir(workspace.root()).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with(".kitbag") => {}
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
    copy(Path::new(PROJECT), &workspace.root());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(fs::copy(&path, target).unwrap()),
        }
    }
}

/// Makes each call in the restored project; restoring it is not measured.
fn each_call(workspace: &Workspace, count: usize, mut call: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<_> = (0..count)
        .map(|_| {
            restore(workspace);
            call()
        })
        .collect();
    median(&mut times)
}

fn each_tool(binary: &Path) {
    let examples: Map<String, Value> = serde_json::from_str(EXAMPLES).unwrap();
    let workspace = project();
    let open = || {
        let builder = Kitbag::builder()
            .workspace(workspace.root())
            .places(workspace.places())
            .trust_workspace(true);
        builder.build().unwrap()
    };
    let warm_library = open();
    let mut warm_session = Session::start(binary, &workspace, &[]);
    println!("{:<18}{:>26}{:>26}", "", "library: first, warm", "MCP: first, warm");
    // `fetch` needs a network, and `forget` would find nothing to forget after the first call.
    let is_measured = |tool: &str| !matches!(tool, "fetch" | "forget");
    for (tool, arguments) in examples.iter().filter(|(tool, _)| is_measured(tool)) {
        let params = params(tool, arguments);
        let library = |kitbag: &Kitbag| time(|| call(kitbag, tool, arguments.clone()));
        let first = each_call(&workspace, FIRST_CALLS, || library(&open()));
        let warm = each_call(&workspace, WARM_CALLS, || library(&warm_library));
        let first_over_mcp = each_call(&workspace, FIRST_CALLS, || {
            let mut session = Session::start(binary, &workspace, &[]);
            time(|| session.call(&params))
        });
        let warm_over_mcp =
            each_call(&workspace, WARM_CALLS, || time(|| warm_session.call(&params)));
        println!(
            "{tool:<18}{first:>13.1?}{warm:>13.1?}{first_over_mcp:>13.1?}{warm_over_mcp:>13.1?}"
        );
    }
}

/// A tree of this many files, in directories of a hundred; one file in each directory contains the
/// search pattern.
fn tree(files: usize) -> Workspace {
    let workspace = Workspace::new("");
    let line = "let total = orders.iter().map(|order| order.count).sum::<u64>();\n";
    for number in 0..files {
        let found = if number % 100 == 0 { "// The needle is here.\n" } else { "" };
        let text = line.repeat(5 + number % 60) + found;
        let directory = format!("d{:02}/e{:02}", number / 10_000, number / 100 % 100);
        workspace.file(&format!("{directory}/file{number}.rs"), text);
    }
    workspace
}

/// Compares the tools in a warm server with the others as processes, since each is used that way.
fn search(binary: &Path, files: usize) {
    let workspace = tree(files);
    let mut session = Session::start(binary, &workspace, &[]);
    let mut tool = |name: &str, arguments: Value| warm_call(&mut session, name, &arguments);
    println!("\n{files} files");
    let found = tool("search_files", json!({ "pattern": "needle", "limit": 10_000 }));
    // The same search: a lower-case pattern matches any case.
    let rg = |pattern| process(&workspace, &["rg"], &["-j1", "-nS", pattern]);
    report("search_files", found, "rg -j1", rg("needle"));
    let found = tool("search_files", json!({ "pattern": "or[a-z]+s\\.push" }));
    report("search_files, a regex without a hit", found, "rg -j1", rg("or[a-z]+s\\.push"));
    let found = tool("find_files", json!({ "globs": ["*99.rs"], "limit": 10_000 }));
    let fd = process(&workspace, &["fd", "fdfind"], &["-j1", "--glob", "*99.rs"]);
    report("find_files", found, "fd -j1", fd);
}

fn warm_call(session: &mut Session, tool: &str, arguments: &Value) -> Duration {
    let params = params(tool, arguments);
    session.call(&params);
    let mut times: Vec<_> = (0..SEARCHES).map(|_| time(|| session.call(&params))).collect();
    median(&mut times)
}

/// Compares the tools that read a whole file in a warm server with other programs as processes. The
/// log has 200 bytes for each row of the CSV, and the JSON Lines 32.
fn large_files(binary: &Path, rows: usize) {
    let workspace = Workspace::new("");
    workspace.own_config("[limits]\ntime = \"10m\"\n");
    let lines = |bytes: usize, line: &dyn Fn(usize) -> String| {
        let mut text = String::with_capacity(bytes + 200);
        let mut number = 0;
        while text.len() < bytes {
            text.push_str(&line(number));
            number += 1;
        }
        text
    };
    let log = lines(200 * rows, &|number| {
        format!("2026-11-27T17:02:03Z INFO worker-{} handled request {number:08x}\n", number % 97)
    });
    workspace.file("large.log", log + "the needle is here\n");
    let csv =
        (0..rows).map(|number| format!("{number},name{},{}.5\n", number % 1000, number % 977));
    workspace.file("rows.csv", "id,name,amount\n".to_owned() + &csv.collect::<String>());
    let json = lines(32 * rows, &|number| {
        format!(
            "{{\"id\": {number}, \"name\": \"name{}\", \"tags\": [\"a\", \"b\"]}}\n",
            number % 1000
        )
    });
    workspace.file("rows.jsonl", json);
    let mut session = Session::start(binary, &workspace, &[]);
    let mut tool = |name: &str, arguments: Value| warm_call(&mut session, name, &arguments);
    println!("\n{rows} rows");
    let found = tool("search_files", json!({ "pattern": "needle", "path": "large.log" }));
    let rg = process(&workspace, &["rg"], &["-j1", "-nS", "needle", "large.log"]);
    report("search_files, a log", found, "rg -j1", rg);
    let hashed = tool("hash_text", json!({ "path": "large.log" }));
    let sha256sum = process(&workspace, &["sha256sum"], &["large.log"]);
    report("hash_text, the log", hashed, "sha256sum", sha256sum);
    let query = json!({ "path": "rows.csv", "query": "select(.id == -1)" });
    let queried = tool("query_data", query);
    let code = "import csv\nfor row in csv.DictReader(open('rows.csv')): row['id'] == '-1'";
    let python = process(&workspace, &["python3"], &["-c", code]);
    report("query_data, jq over CSV", queried, "python3 csv", python);
    let query = json!({ "path": "rows.jsonl", "query": "select(.id == -1)" });
    let queried = tool("query_data", query);
    let jq = process(&workspace, &["jq"], &["-c", "select(.id == -1)", "rows.jsonl"]);
    report("query_data, jq over JSON Lines", queried, "jq", jq);
}

/// Returns the time of a program, under the first of its names that is installed.
fn process(workspace: &Workspace, names: &[&str], arguments: &[&str]) -> Option<Duration> {
    let run = |name: &str| {
        let mut command = workspace.command(Path::new(name));
        command.env("PATH", std::env::var_os("PATH")?).args(arguments);
        let start = Instant::now();
        let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).status().ok()?;
        // A search without matches exits with 1.
        assert!(matches!(ended.code(), Some(0 | 1)), "{name} ended with {ended}");
        Some(start.elapsed())
    };
    let name = names.iter().find(|name| run(name).is_some())?;
    let mut times: Vec<_> = (0..SEARCHES).filter_map(|_| run(name)).collect();
    Some(median(&mut times))
}

fn report(what: &str, ours: Duration, other: &str, theirs: Option<Duration>) {
    match theirs {
        Some(theirs) => {
            let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
            println!("{what:<38}{ours:>10.1?}  {other:<12}{theirs:>10.1?}  ratio {ratio:.2}");
        }
        None => println!("{what:<38}{ours:>10.1?}  {other}: not installed"),
    }
}

/// The file tools in a warm session, in turns with those of another server: latencies, and calls
/// per second.
fn file_tools(binary: &Path, script: Option<&str>) {
    const ROUNDS: usize = 7;
    let workspace = project();
    workspace.file("src/large.txt", "It is a line of a file of 4 KB.\n".repeat(128));
    let mut ours = Session::start(binary, &workspace, &[]);
    let mut theirs = script.map(|script| {
        let mut node = Command::new("node");
        node.arg(script).arg(workspace.root()).stderr(Stdio::null());
        let mut session = Session::of(node);
        session.initialize();
        session
    });
    let absolute = |path: &str| workspace.root().join(path);
    let calls = [
        ("now", json!({}), None),
        (
            "read_file",
            json!({ "path": "src/large.txt" }),
            Some(params("read_text_file", &json!({ "path": absolute("src/large.txt") }))),
        ),
        (
            "file_info",
            json!({ "path": "src/large.txt" }),
            Some(params("get_file_info", &json!({ "path": absolute("src/large.txt") }))),
        ),
        (
            "list_dir",
            json!({ "path": "src" }),
            Some(params("list_directory", &json!({ "path": absolute("src") }))),
        ),
        ("search_files", json!({ "pattern": "needle", "path": "src" }), None),
    ];
    println!("\n{:<14}{:>12}{:>12}{:>12}{:>12}", "over MCP", "p50", "p99", "node p50", "node p99");
    for (tool, arguments, other) in &calls {
        let mine = params(tool, arguments);
        let (mut times, mut their_times) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            times.extend((0..WARM_CALLS).map(|_| time(|| ours.call(&mine))));
            if let (Some(session), Some(other)) = (&mut theirs, other) {
                their_times.extend((0..WARM_CALLS).map(|_| time(|| session.call(other))));
            }
        }
        print!("{tool:<14}");
        for times in [&mut times, &mut their_times].into_iter().filter(|times| !times.is_empty()) {
            print!("{:>12.1?}{:>12.1?}", percentile(times, 50), percentile(times, 99));
        }
        println!();
    }
    println!("\n{:<14}{:>12}{:>12}{:>12}", "read_file", "in flight", "calls/s", "node");
    let (_, arguments, other) = &calls[1];
    let mine = params("read_file", arguments);
    for in_flight in [1, 8, 64] {
        let (mut rates, mut their_rates) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            rates.push(ours.rate(&mine, in_flight, 5 * WARM_CALLS));
            if let (Some(session), Some(other)) = (&mut theirs, other) {
                their_rates.push(session.rate(other, in_flight, 5 * WARM_CALLS));
            }
        }
        print!("{:<14}{in_flight:>12}", "");
        for rates in [&mut rates, &mut their_rates].into_iter().filter(|it| !it.is_empty()) {
            rates.sort_by(f64::total_cmp);
            print!("{:>12.0}", rates[rates.len() / 2]);
        }
        println!();
    }
}
