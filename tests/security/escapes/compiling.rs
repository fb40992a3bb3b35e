//! Compilers, which run in separate processes: their limits, their end, and calls whose compiler
//! fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kitbag::{Kitbag, Places};
use serde_json::json;

use crate::support::mcp::Client;
use crate::support::{CallInTest, Workspace, crafted, probe, process_stat, snapshot};

/// A workspace with an empty cache and the tool `odd`, whose component takes long to compile.
fn slow() -> Workspace {
    let workspace = odd();
    let heavy = format!("(func (local{}){})", " i32".repeat(5_000), "(loop)".repeat(5_000));
    workspace.file("odd.wasm", crafted::tool_with_core(&heavy.repeat(40), ""));
    workspace.date_back();
    workspace
}

fn odd() -> Workspace {
    let workspace = Workspace::with_own_cache();
    workspace.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
    workspace.file("odd.wasm", crafted::tool("a:b/c", ""));
    workspace
}

/// Polls until there is a result.
fn see<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: there is nothing to see");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Child processes that have not been waited for, running or ended.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|number| parent_of(*number) == Some(parent)).collect()
}

fn parent_of(process: u32) -> Option<u32> {
    process_stat(process, 1)?.parse().ok()
}

/// Returns true if a process has ended, even if it has not been waited for.
fn has_ended(process: u32) -> bool {
    process_stat(process, 0).is_none_or(|state| state == "Z")
}

/// The compiler that a server has started, once its limits are set.
fn compiler(client: &Client) -> u32 {
    see("the compiler", || {
        let compiler = children(client.process_id()).pop()?;
        let limits = fs::read_to_string(format!("/proc/{compiler}/limits")).ok()?;
        let files = limits.lines().find(|line| line.starts_with("Max file size"))?;
        files.split_whitespace().nth(3)?.eq("0").then_some(compiler)
    })
}

fn call(client: &mut Client) -> u64 {
    client.send("tools/call", json!({ "name": "odd", "arguments": {} }))
}

#[test]
fn a_compiler_has_limits_three_pipes_and_nothing_else() {
    let workspace = slow();
    // An inheritable file descriptor, as a shell's `3<secret` leaves it.
    let secret = workspace.outside().join("secret");
    fs::write(&secret, "the secret").unwrap();
    let left_open = fs::File::open(&secret).unwrap();
    rustix::io::fcntl_setfd(&left_open, rustix::io::FdFlags::empty()).unwrap();
    let mut client = Client::with_handshake(&workspace, json!({}));
    call(&mut client);
    let compiler = compiler(&client);
    let read = |name: &str| fs::read_to_string(format!("/proc/{compiler}/{name}")).unwrap();
    let limits = read("limits");
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    // The memory that the server has reserved for it: of the 1,152 MiB for calls and compilations,
    // as much as its heaviest function may take.
    let [memory, _] = &limit("Max data size")[..] else { panic!("{limits}") };
    let memory: u64 = memory.parse().unwrap();
    assert!((1 << 30..1152 << 20).contains(&memory), "{memory}");
    let addresses: u64 = limit("Max address space")[0].parse().unwrap();
    assert!((memory..memory + (4 << 30)).contains(&addresses), "{addresses}");
    let seconds: u64 = limit("Max cpu time")[0].parse().unwrap();
    assert!((60..=16 * 60).contains(&seconds), "{seconds}");
    assert_eq!(limit("Max core file size"), ["0"; 2]);
    assert_eq!(read("environ"), "");
    assert_eq!(fs::read_link(format!("/proc/{compiler}/cwd")).unwrap(), PathBuf::from("/"));
    let files_of = |process: u32| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
        files.flat_map(|file| fs::read_link(file.path())).collect::<Vec<_>>()
    };
    assert!(files_of(client.process_id()).contains(&secret.canonicalize().unwrap()));
    let files = files_of(compiler);
    let own = PathBuf::from(format!("/proc/{compiler}/pagemap"));
    let others = files.iter().filter(|file| **file != own);
    let others: Vec<_> = others.map(|file| file.to_str().unwrap()).collect();
    assert!(others.len() <= 3 && others.iter().all(|file| file.starts_with("pipe:")), "{files:?}");
}

#[test]
fn a_compilation_waits_for_the_memory_of_the_server() {
    let workspace = odd();
    let tables = "[tools.probe.grants]
filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]
[tools.odd]
source = \"local\"
wasm = \"odd.wasm\"
limits.memory = \"4MiB\"
";
    workspace.config(&probe(tables));
    // One call of the default size, but neither a second call nor a compilation.
    workspace.own_config("[serve]\nmemory = \"384MiB\"\n");
    let component = workspace.path("odd.wasm");
    let content = fs::read(&component).unwrap();
    fs::remove_file(&component).unwrap();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let arguments = json!({ "do": "gather", "path": "here", "until": "go" });
    let first = client.send("tools/call", json!({ "name": "probe", "arguments": arguments }));
    see("the call", || workspace.path("here").exists().then_some(()));
    fs::write(&component, content).unwrap();
    let params = json!({ "name": "odd", "arguments": {}, "_meta": { "progressToken": "wait" } });
    let second = client.send("tools/call", params);
    let waits = client
        .wait(|message| message["method"] == "notifications/progress" || message["id"] == second);
    assert_eq!(waits["method"], "notifications/progress", "{waits}");
    assert_eq!(children(client.process_id()), [0; 0]);
    workspace.file("go", "");
    // The memory is free before the first call is logged and answered.
    for id in [first, second] {
        let answer = client.answer(id);
        assert_ne!(answer["result"]["isError"], true, "{answer}");
    }
}

#[test]
fn a_compiler_ends_with_the_call_that_needs_it() {
    let workspace = slow();
    let mut client = Client::with_handshake(&workspace, json!({}));
    end_background(&client);
    // More than the number of compiler slots: each slot is free again.
    for _ in 0..3 {
        let id = call(&mut client);
        let compiler = compiler(&client);
        client.notify("notifications/cancelled", json!({ "requestId": id }));
        see("its end", || children(client.process_id()).is_empty().then_some(()));
        assert!(has_ended(compiler));
    }
    workspace.file("odd.wasm", crafted::tool("a:b/c", ""));
    assert_eq!(client.call("odd", json!({}))["content"][0]["text"], "ok");
    assert_eq!(children(client.process_id()), [0; 0], "what has ended was waited for");
    assert_eq!(fs::read_dir(workspace.cache()).unwrap().count(), 1);
}

#[test]
fn a_compiler_ends_when_its_server_ends_or_is_killed() {
    for is_killed in [false, true] {
        let workspace = slow();
        let mut client = Client::with_handshake(&workspace, json!({}));
        call(&mut client);
        let compiler = compiler(&client);
        match is_killed {
            true => client.kill(),
            false => drop(client.close()),
        }
        see("its end", || has_ended(compiler).then_some(()));
    }
}

#[test]
fn a_killed_compiler_is_an_error_and_the_next_call_works() {
    let workspace = slow();
    let mut client = Client::with_handshake(&workspace, json!({}));
    end_background(&client);
    let id = call(&mut client);
    kill(compiler(&client));
    let result = client.answer(id)["result"].clone();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("the compiler ended without a result: signal: 6"), "{text}");
    assert_eq!(result["content"][1]["text"], "Trying again may help.", "{result}");
    let again = call(&mut client);
    compiler(&client);
    client.notify("notifications/cancelled", json!({ "requestId": again }));
}

#[test]
fn background_compilation_has_a_low_priority() {
    let workspace = slow();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let niceness = |process: u32| process_stat(process, 16).unwrap().parse::<i32>().unwrap();
    let (own, first) = (niceness(client.process_id()), compiler(&client));
    see("the priority", || (niceness(first) == (own + 5).min(19)).then_some(()));
    // The call waits for the compiler, which continues after the call is cancelled.
    let id = call(&mut client);
    client.notify("notifications/cancelled", json!({ "requestId": id }));
    client.request("tools/list", json!({}));
    assert_eq!(children(client.process_id()), [first]);
    // If the background compiler fails, a call that needs the tool compiles it again.
    call(&mut client);
    kill(first);
    see("its end", || has_ended(first).then_some(()));
    let others = || children(client.process_id()).into_iter().find(|child| *child != first);
    let second = see("the next", others);
    assert_eq!(niceness(second), own);
}

/// Kills the compiler of the background, which the server does not start again.
fn end_background(client: &Client) {
    let first = compiler(client);
    kill(first);
    see("its end", || children(client.process_id()).is_empty().then_some(()));
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::ABORT).unwrap();
}

#[test]
fn a_failed_compiler_affects_only_its_tool() {
    let calls = |script: &str| {
        let workspace = odd();
        let program = workspace.file("compiler", format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let places = Places { cache: Some(workspace.cache().into()), ..Places::default() };
        let builder =
            Kitbag::builder().workspace(workspace.root()).places(places).trust_workspace(true);
        let kitbag = builder.compiler(program).build().unwrap();
        let said = kitbag.call_in_test("odd", json!({}));
        let learn = kitbag.call_in_test("learn", json!({ "topic": "none" }));
        assert!(learn.starts_with("error: "), "{learn}");
        let entries = fs::read_dir(workspace.cache()).map_or(0, Iterator::count);
        assert_eq!(entries, 0, "nothing is kept");
        format!("$ {script}\n{}\n", workspace.redact(&said))
    };
    let frame = |kind: u8, length: &str, text: &str| {
        format!(r"cat >/dev/null; printf '\00{kind}{length}{text}'")
    };
    let report = [
        calls("kill -SEGV $$"),
        calls("kill -KILL $$"),
        calls("kill -XCPU $$"),
        calls("echo 'memory allocation of 5 bytes failed' >&2; kill -ABRT $$"),
        calls(r"cat >/dev/null; printf 'panicked\033[2J' >&2; exit 3"),
        calls("exec >&- 2>&- <&-"),
        calls(&frame(1, r"\003\000\000\000\000\000\000\000", "odd")),
        calls(&frame(2, r"\003\000\000\000\000\000\000\000", "odd")),
        // A length beyond the end of the output, and a length beyond the limit.
        calls(&frame(0, r"\004\000\000\000\000\000\000\000", "odd")),
        calls(&frame(0, r"\000\000\000\000\000\001\000\000", "odd")),
        // An artifact that the engine does not accept.
        calls(&frame(0, r"\003\000\000\000\000\000\000\000", "odd")),
    ];
    snapshot!("what becomes of it", &report.join("\n"));
}

#[test]
fn without_a_compiler_the_process_compiles_the_tool() {
    let workspace = odd();
    for program in [workspace.path("nowhere"), workspace.path("odd.wasm")] {
        let builder = workspace.builder().compiler(program);
        let kitbag = builder.build().unwrap();
        assert_eq!(kitbag.call_in_test("odd", json!({})), "ok");
    }
}

#[test]
fn a_component_larger_than_a_pipe_is_compiled() {
    // Larger than a pipe, in both directions.
    let workspace = odd();
    let called = "(call $f (local.get 0)) (local.set 0)".repeat(200);
    let function = format!("(func $f (param i32) (result i32) {called} (local.get 0))");
    let others = function.replace("(func $f", "(func").repeat(100);
    workspace.file("odd.wasm", crafted::tool_with_core(&format!("{function}{others}"), ""));
    assert_eq!(workspace.run(&["run", "odd"]).success(), "ok\n");
    let entry = fs::metadata(workspace.cached()).unwrap();
    assert!(entry.len() > 1 << 17, "{}", entry.len());
}
