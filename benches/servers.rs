//! Calls of an MCP server's tool: directly, and through `kitbag serve`, in one interleaved run. Both
//! have a process of the same server of their own.
//!
//! `cargo bench --bench servers` prints the times and their ratio. The server is another kitbag
//! whose tool returns its arguments. Another server is measured with `--server='node
//! …/server-everything/dist/index.js' --tool=echo --arguments='{"message":"x"}'`, and without
//! confinement with `--unconfined`.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::session::Session;
use crate::support::workspace::{Workspace, local_tool};
use crate::support::{CommandLine, percentile, time};

const CALLS: usize = 2_000;

fn main() {
    let command_line = CommandLine::read();
    let binary = command_line.binary();
    let upper = Workspace::new("");
    let lower = Workspace::new(&local_tool("echo"));
    let default = format!(
        "{} serve --trust-workspace --workspace {}",
        binary.display(),
        lower.root().display()
    );
    let server: String = command_line.value("server").unwrap_or(default);
    let tool: String = command_line.value("tool").unwrap_or_else(|| "echo".into());
    let arguments = r#"{"do":"echo","text":"one hundred bytes of text"}"#;
    let arguments: String = command_line.value("arguments").unwrap_or_else(|| arguments.into());
    let words: Vec<_> = server.split_whitespace().map(str::to_owned).collect();
    let home = lower.root().join("..").join("home");
    let confine = match command_line.has("unconfined") {
        true => String::new(),
        false => format!(
            "confine = {{ read = [{:?}], write = [{:?}], network = false }}\n",
            // The directory of all builds, with the component of the tool.
            binary.ancestors().nth(2).unwrap(),
            lower.root().join("..").canonicalize().unwrap()
        ),
    };
    upper.own_config(&format!(
        "[servers.lower]\ncommand = {words:?}\n{confine}env = [{{ name = \"HOME\", value = {home:?} }}]\n"
    ));
    run(upper.command(&binary).args(["update", "lower", "--yes"]));

    let mut direct = direct(&lower, &words);
    let mut through = Session::start(&binary, &upper, &[]);
    let call = |name: &str| format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
    let (plain, prefixed) = (call(&tool), call(&format!("lower_{tool}")));
    for _ in 0..CALLS / 10 {
        direct.call(&plain);
        through.call(&prefixed);
    }
    let (mut directly, mut by_kitbag) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        directly.push(time(|| direct.call(&plain)));
        by_kitbag.push(time(|| through.call(&prefixed)));
    }
    let ratio = |percent: usize, directly: &mut [Duration], by_kitbag: &mut [Duration]| {
        let (own, other) = (percentile(directly, percent), percentile(by_kitbag, percent));
        let ratio = other.as_secs_f64() / own.as_secs_f64();
        println!("p{percent}: directly {own:>10.1?}, through kitbag {other:>10.1?}, {ratio:.2}×");
    };
    ratio(50, &mut directly, &mut by_kitbag);
    ratio(99, &mut directly, &mut by_kitbag);
}

fn direct(workspace: &Workspace, words: &[String]) -> Session {
    let (program, arguments) = words.split_first().unwrap();
    let mut command = workspace.command(Path::new(program));
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command.args(arguments).stderr(Stdio::null());
    let mut session = Session::of(command);
    session.initialize();
    session
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
