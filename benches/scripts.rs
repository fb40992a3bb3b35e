//! Scripts of `python` that call tools over MCP, compared with direct calls of the same tools and
//! with `python3` as a process that does the same.
//!
//! `cargo bench --bench scripts` prints medians; another binary can be named, as for `tools`. The
//! relevant figures are the cost of a script before its first call (a script with one call, less a
//! direct call), and of each further call compared with a direct call. If `python3` is not
//! installed, the output says it.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::session::Session;
use crate::support::workspace::{Workspace, local_tool};
use crate::support::{CommandLine, median, time};

/// Scripts without calls of tools, by what they do. Each is an expression after statements.
const SCRIPTS: [(&str, &str, &str); 4] = [
    ("1 + 1", "", "1 + 1"),
    ("a dataclass", DATACLASS, "Point(1, 2)"),
    ("20 files", "", "sum(len(open(f'notes/{n}.txt').read()) for n in range(20))"),
    ("a million iterations", "total = 0\nfor n in range(1_000_000):\n    total += n", "total"),
];
const DATACLASS: &str =
    "from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n    y: int";

const ROUNDS: usize = 200;
/// Rounds of a script that takes much longer than a call.
const FEW_ROUNDS: usize = 10;
const PROCESSES: usize = 20;
const CALLS: usize = 20;

fn main() {
    let binary = CommandLine::read().binary();
    let workspace = Workspace::new(&local_tool("echo"));
    for number in 0..CALLS {
        workspace.file(&format!("notes/{number}.txt"), "a line of text\n".repeat(20));
    }
    let mut session = Session::start(&binary, &workspace, &[]);
    let mut measure_in = |rounds: usize, params: &[String]| {
        params.iter().for_each(|params| session.call(params));
        let mut times: Vec<_> = (0..rounds)
            .map(|_| time(|| params.iter().for_each(|params| session.call(params))))
            .collect();
        median(&mut times)
    };
    let call =
        |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments }).to_string();
    let script = |code: &str| [call("python", json!({ "code": code }))];
    for (name, statements, value) in SCRIPTS {
        let rounds = if name.contains("million") { FEW_ROUNDS } else { ROUNDS };
        let own = measure_in(rounds, &script(&format!("{statements}\n{value}")));
        let process = process(&workspace, &format!("{statements}\nprint({value})"));
        let process = process.map_or("not installed".into(), |time| format!("{time:.1?}"));
        println!("{:<44}{own:>12.1?}{process:>18}", format!("{name}; `python3` as a process"));
    }
    let mut measure = |params: &[String]| measure_in(ROUNDS, params);
    let direct = call("echo", json!({ "text": "x" }));

    let nothing = measure(&script("1"));
    let one = measure(&script("len(echo(text='x'))"));
    let many = measure(&script(&format!("for _ in range({CALLS}): echo(text='x')")));
    let at_once = measure(&script(&format!(
        "import asyncio\nlen(await asyncio.gather(*[echo(text='x') for _ in range({CALLS})]))"
    )));
    let one_direct = measure(std::slice::from_ref(&direct));
    let many_direct = measure(&vec![direct; CALLS]);

    let line = |what: &str, time: Duration| println!("{what:<44}{time:>12.1?}");
    line("a script without a call", nothing);
    line("a direct call", one_direct);
    line("a script of one call", one);
    line("a script before its first call", one.saturating_sub(one_direct));
    line(&format!("{CALLS} direct calls"), many_direct);
    line(&format!("a script of {CALLS} calls"), many);
    line(&format!("a script of {CALLS} calls at once"), at_once);
    let each = many.saturating_sub(one) / (CALLS as u32 - 1);
    let ratio = each.as_secs_f64() / (many_direct / CALLS as u32).as_secs_f64();
    line("each further call", each);
    println!("{:<44}{ratio:>12.2}", "beside a direct one over MCP");
}

/// Returns the time that `python3` takes, if it is installed.
fn process(workspace: &Workspace, code: &str) -> Option<Duration> {
    let run = || {
        let mut command = workspace.command(Path::new("python3"));
        command.env("PATH", std::env::var_os("PATH")?).args(["-I", "-S", "-c", code]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut ended = None;
        let took = time(|| ended = command.status().ok());
        ended.is_some_and(|status| status.success()).then_some(took)
    };
    let mut times = (0..PROCESSES).map(|_| run()).collect::<Option<Vec<_>>>()?;
    Some(median(&mut times))
}
