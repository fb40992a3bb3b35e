//! A call of the same tool in each lane: it returns the text that it is given. All are measured in
//! turn in one run: whole processes of `kitbag run` with a warm cache, the first use of a file, and
//! warm calls in the library and over MCP.
//!
//! `cargo bench --bench lanes` prints medians and their ratio to `run`; another binary can be named,
//! `cargo bench --bench lanes -- target/release/kitbag`. `--extism=PATH` names the command line of
//! Extism, which then calls the same plugin. `--act=PATH` and `--act-tool=FILE` name the command line
//! of ACT and a component for it, whose tool `--act-call=NAME` needs no arguments; kitbag calls the
//! same file if it has the lane. `--quick` makes a tenth of the calls. Absolute times depend on the
//! machine: compare only figures of one run.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kitbag::Kitbag;
use serde_json::{Value, json};

use crate::support::session::Session;
use crate::support::workspace::{Workspace, guest};
use crate::support::{CommandLine, call, median, time};

const TEXT: &str = "a text of forty bytes, which comes back.";

/// The same tool in a lane.
struct Lane {
    name: &'static str,
    /// The component, or the module.
    bytes: Vec<u8>,
    /// Further keys of the tool's table.
    table: &'static str,
    /// The argument with the text.
    argument: &'static str,
}

/// The measured times of a lane.
#[derive(Default)]
struct Times {
    first: Vec<Duration>,
    process: Vec<Duration>,
    library: Vec<Duration>,
    mcp: Vec<Duration>,
}

fn lanes() -> Vec<Lane> {
    let text = |name: &'static str, text: &str, table, argument| {
        let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Lane { name, bytes, table, argument }
    };
    let core = r#"function = "execute""#;
    let command = "stdin = \"{text}\"\ncommand = []\nparameters.text.type = \"string\"";
    vec![
        Lane { name: "run", bytes: fs::read(guest("echo")).unwrap(), table: "", argument: "text" },
        text("functions", include_str!("functions.wat"), "", "text"),
        text("command", include_str!("command.wat"), command, "text"),
        text("agent", include_str!("agent.wat"), "", "text"),
        text("core", include_str!("core.wat"), core, "text"),
        text("plugin", include_str!("plugin.wat"), "", "input"),
        text("skill", include_str!("skill.wat"), "", "text"),
        text("act", include_str!("act.wat"), "", "text"),
    ]
}

fn main() {
    let command_line = CommandLine::read();
    let binary = command_line.binary();
    let divisor = if command_line.has("quick") { 10 } else { 1 };
    let (first_uses, processes, calls) = (10 / divisor, 100 / divisor, 2_000 / divisor);
    let lanes = lanes();
    let workspace = workspace(&lanes);
    for lane in &lanes {
        run(&binary, &workspace, lane);
    }
    let kitbag = Kitbag::builder()
        .workspace(workspace.root())
        .places(workspace.places())
        .trust_workspace(true)
        .build()
        .unwrap();
    let mut session = Session::start(&binary, &workspace, &[]);
    let mut times: Vec<_> = lanes.iter().map(|_| Times::default()).collect();
    for _ in 0..first_uses {
        for (lane, times) in lanes.iter().zip(&mut times) {
            let new = self::workspace(std::slice::from_ref(lane));
            times.first.push(time(|| run(&binary, &new, lane)));
        }
    }
    for _ in 0..processes {
        for (lane, times) in lanes.iter().zip(&mut times) {
            times.process.push(time(|| run(&binary, &workspace, lane)));
        }
    }
    for _ in 0..calls {
        for (lane, times) in lanes.iter().zip(&mut times) {
            let arguments = json!({ lane.argument: TEXT });
            times.library.push(time(|| call(&kitbag, lane.name, arguments.clone())));
            let params = json!({ "name": lane.name, "arguments": arguments }).to_string();
            times.mcp.push(time(|| session.call(&params)));
        }
    }
    show(&lanes, times);
    extism(&command_line, &workspace, processes);
    act(&command_line, &binary, processes);
}

/// A workspace with a tool for each lane, named like the lane.
fn workspace(lanes: &[Lane]) -> Workspace {
    let table = |lane: &Lane| {
        let Lane { name, table, .. } = lane;
        format!("[tools.{name}]\nwasm = \"{name}.wasm\"\n{table}\n")
    };
    let workspace = Workspace::new(&lanes.iter().map(table).collect::<String>());
    for lane in lanes {
        workspace.file(&format!("{}.wasm", lane.name), &lane.bytes);
    }
    workspace
}

/// Calls a tool in a process of its own.
fn run(binary: &Path, workspace: &Workspace, lane: &Lane) {
    let argument = format!("{}={TEXT}", lane.argument);
    let mut command = workspace.command(binary);
    let output = command.args(["run", lane.name, &argument]).output().unwrap();
    let (out, err) = (&output.stdout, &output.stderr);
    let out = String::from_utf8_lossy(out);
    assert!(out.contains(TEXT), "{}: {out}{}", lane.name, String::from_utf8_lossy(err));
}

fn show(lanes: &[Lane], mut times: Vec<Times>) {
    println!(
        "{:<10} {:>14} {:>14} {:>14} {:>14}   to `run`: process, library, MCP",
        "lane", "first use", "process", "library", "MCP"
    );
    let mut of_run: Option<[Duration; 3]> = None;
    for (lane, times) in lanes.iter().zip(&mut times) {
        let first = median(&mut times.first);
        let warm = [&mut times.process, &mut times.library, &mut times.mcp].map(|it| median(it));
        let base = *of_run.get_or_insert(warm);
        let ratio = |index: usize| warm[index].as_secs_f64() / base[index].as_secs_f64();
        let [process, library, mcp] = warm;
        println!(
            "{:<10} {first:>14.1?} {process:>14.1?} {library:>14.1?} {mcp:>14.1?}   {:.2}× {:.2}× {:.2}×",
            lane.name,
            ratio(0),
            ratio(1),
            ratio(2)
        );
    }
}

/// Measures a program that calls a tool, which must succeed.
fn measure(title: &str, rounds: usize, command: impl Fn() -> Command) {
    let once = || {
        let mut command = command();
        let output = command.stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("{title}: {error}"));
        assert!(output.status.success(), "{title}: {}", String::from_utf8_lossy(&output.stderr));
    };
    once();
    let mut times: Vec<_> = (0..rounds).map(|_| time(once)).collect();
    println!("{title}: {:.1?}", median(&mut times));
}

/// Calls the same plugin with Extism's command line.
fn extism(command_line: &CommandLine, workspace: &Workspace, rounds: usize) {
    let Some(extism) = command_line.value::<PathBuf>("extism") else {
        println!("extism call: not measured; name the program with `--extism=PATH`");
        return;
    };
    let plugin = workspace.root().join("plugin.wasm");
    measure("extism call, process", rounds, || {
        let mut command = Command::new(&extism);
        command.arg("call").arg(&plugin).args(["echo", "--input", TEXT]);
        command
    });
}

/// Calls a component with ACT's command line, and with kitbag.
fn act(command_line: &CommandLine, binary: &Path, rounds: usize) {
    let value = |name| command_line.value::<String>(name);
    let (Some(act), Some(file), Some(tool)) = (value("act"), value("act-tool"), value("act-call"))
    else {
        let options = "`--act=PATH --act-tool=FILE --act-call=NAME`";
        println!("act call: not measured; name the program, a component and a tool with {options}");
        return;
    };
    let workspace = Workspace::new(&format!("[tools.{tool}]\nwasm = \"act.wasm\"\n"));
    workspace.file("act.wasm", fs::read(&file).unwrap());
    let kitbag = || {
        let mut command = workspace.command(binary);
        command.args(["run", &tool]);
        command
    };
    let has_lane = kitbag().output().unwrap().status.success();
    measure("act call, process", rounds, || {
        let mut command = Command::new(&act);
        let no_arguments = Value::Object(serde_json::Map::new()).to_string();
        command.args(["call", &file, &tool, "--args", &no_arguments]);
        command
    });
    match has_lane {
        true => measure("kitbag run of the same component, process", rounds, kitbag),
        false => println!("kitbag run of the same component: not measured, the lane is missing"),
    }
}
