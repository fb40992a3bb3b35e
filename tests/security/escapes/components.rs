//! Invalid components are refused with a reason.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kitbag::base::ByteSize;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::{Map, Value, json};

use crate::support::{CallInTest, Workspace, crafted, snapshot};

/// A workspace with a tool `odd` whose file has not been written yet.
fn odd() -> Workspace {
    let workspace = Workspace::new();
    workspace
        .config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\ndescription = \"odd\"\n");
    workspace
}

/// The output of `run`, `inspect` and `check` for a file.
fn says(workspace: &Workspace) -> String {
    workspace.session(&[
        &["run", "odd"],
        &["run", "odd", "--json"],
        &["inspect", "odd.wasm"],
        &["check"],
    ])
}

fn check(name: &str, bytes: &[u8]) {
    let workspace = odd();
    workspace.file("odd.wasm", bytes);
    snapshot!(name, &says(&workspace));
}

#[test]
fn a_file_without_a_component_is_refused() {
    check("not wasm", b"#!/bin/sh\necho hello\n");
    check("empty", b"");
    check("core module", &crafted::core_module());
    let whole = crafted::other_run();
    check("truncated", &whole[..whole.len() / 2]);
    check("cut in the header", &whole[..6]);
}

#[test]
fn a_component_without_a_tool_is_refused() {
    check("without run", &crafted::without_run());
    check("program", &crafted::program());
    check("another run", &crafted::other_run());
    check("another contract", &crafted::tool("kitbag:tool/types@9.9.0", ""));
    let printer = r#"(import "acme:printer/paper@1.0.0" (instance (export "print" (func))))"#;
    check("unknown import", &crafted::tool("kitbag:tool/types@0.1.0", printer));
    let http = r#"(import "wasi:http/outgoing-handler@0.3.0" (instance (export "handle" (func))))"#;
    let host = |version: &str, log: &str| {
        format!(r#"(import "kitbag:tool/host@{version}" (instance (export "log" (func {log}))))"#)
    };
    let newer = host("0.2.0", r#"(param "message" string)"#);
    check("another host", &crafted::tool("kitbag:tool/types@0.1.0", &newer));
    let other = host("0.1.0", r#"(param "message" string)"#);
    check("host of other types", &crafted::tool("kitbag:tool/types@0.1.0", &other));
    check("http import", &crafted::tool("kitbag:tool/types@0.1.0", http));
}

#[test]
fn a_tool_with_the_types_of_wasi_0_3_runs() {
    check("stream", &crafted::tool("kitbag:tool/types@0.1.0", "(type (stream u8))"));
}

#[test]
fn an_endless_type_is_not_printed() {
    let workspace = odd();
    workspace.file("odd.wasm", crafted::long_type());
    for command in [["run", "odd"], ["inspect", "odd.wasm"]] {
        let run = workspace.run(&command);
        assert!(run.stderr.len() + run.stdout.len() < 200_000, "{command:?}");
        let says = format!("{}{}", run.stdout, run.stderr);
        assert!(says.contains("tuple<") && says.contains('…'), "{command:?}: {says}");
    }
}

#[test]
fn the_types_of_many_exports_are_not_all_printed() {
    let workspace = odd();
    // Three megabytes, and six gigabytes if each type were printed.
    workspace.file("odd.wasm", crafted::long_export(100_000));
    for command in
        [&["inspect", "odd.wasm"][..], &["inspect", "odd.wasm", "--json"], &["run", "odd"]]
    {
        let run = workspace.run_within(ByteSize::mib(512), command);
        assert!(run.stdout.len() + run.stderr.len() < 16 << 20, "{command:?}");
        assert!([0, 7].contains(&run.code), "{command:?}: {}", run.stderr);
    }
}

#[test]
fn the_names_of_many_imports_are_not_all_printed() {
    let workspace = odd();
    let imports: String = (0..900)
        .map(|number| format!("(import \"x:y/z{number}\" (instance (export \"f\" (func))))\n"))
        .collect();
    workspace.file("odd.wasm", crafted::tool("a:b/c", &imports));
    let run = workspace.run(&["run", "odd"]);
    assert_eq!(run.code, 7, "{}", run.shown());
    let expected = "the component imports `x:y/z0`, `x:y/z1`, `x:y/z2`, `x:y/z3`, `x:y/z4`, \
                    `x:y/z5`, `x:y/z6`, `x:y/z7`, `x:y/z8`, `x:y/z9` and 890 more, which kitbag \
                    does not provide";
    assert!(run.stderr.contains(expected), "{}", &run.stderr[..run.stderr.len().min(2_000)]);
    assert!(run.stderr.len() < 2_000);
}

#[test]
fn a_deep_type_is_refused() {
    let workspace = odd();
    let types = (1..10_000).map(|n| format!("(type $t{n} (list $t{}))", n - 1)).collect::<String>();
    let imports = format!(r#"(type $t0 (list u8)) {types} (import "f" (func (param "x" $t9999)))"#);
    workspace.file("odd.wasm", crafted::tool("a:b/c", &imports));
    snapshot!("deep type", &says(&workspace));
}

#[test]
fn unneeded_webassembly_features_are_refused() {
    // In wasmtime 48.0.8 this aborts the whole process unless garbage collection
    // is off: GHSA-rc4p-x33f-vpr2.
    let non_final = "(type $open (sub (func))) (table 1 funcref)";
    let call = "(call_indirect (type $open) (i32.const 0))";
    check("garbage collection", &crafted::tool_with_core(non_final, call));
    check("64-bit table", &crafted::tool_with_core("(table i64 0x1000000000000000 funcref)", ""));
    check("64-bit memory", &crafted::tool_with_core("(memory $more i64 1)", ""));
    check("shared memory", &crafted::tool_with_core("(memory $more 1 1 shared)", ""));
    let wait = "(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))";
    check("threads", &crafted::tool_with_core("", wait));
}

#[test]
fn an_excessive_function_is_refused_before_compiling() {
    let large = "(drop (i32.const 1))".repeat(400_000);
    check("large function", &crafted::tool_with_core("", &large));
    // Each is small, but would take a compiler tens of gigabytes.
    let locals = format!("(func (local{}){})", " i32".repeat(50_000), "(loop)".repeat(50_000));
    check("many locals in many loops", &crafted::tool_with_core(&locals, ""));
    let wide = crafted::wide_branches(1_000);
    check("many values to many targets", &crafted::tool_with_core(&wide, ""));
}

#[test]
fn excessive_declarations_are_refused_before_use() {
    // A validator and an engine take hundreds of bytes for each.
    check("many types", &crafted::beside(&"(type (func (param i32)))".repeat(30_000)));
    let wide = format!("(type (func (param {})))", "i64 ".repeat(900));
    check("wide types", &crafted::beside(&wide.repeat(3_000)));
    check("many functions", &crafted::beside(&"(func)".repeat(1_100_000)));
    // A few kilobytes, for which each call would take the host hundreds of megabytes.
    let globals = "(global i32 (i32.const 0))".repeat(50_000);
    check("many globals", &crafted::beside(&globals.repeat(5)));
    check("globals of many instances", &crafted::instances_of(&globals, 200, false));
    let few = "(global i32 (i32.const 0))".repeat(1_000);
    check("instances within a component", &crafted::instances_of(&few, 1, true));
    // A few megabytes that would take many seconds to copy, without a check of the time limit.
    let data = format!("(memory 64) (data (i32.const 0) \"{}\")", "a".repeat(4 << 20));
    check("memories that are filled often", &crafted::instances_of(&data, 100, false));
}

#[test]
fn valid_odd_components_run_or_report_a_limit() {
    let check = |name: &str, bytes: &[u8], time: &str| {
        let workspace = odd();
        workspace.file("odd.wasm", bytes);
        let run = workspace.run(&["run", "odd", "--time", time]);
        format!("# {name}\n{}\n", run.shown())
    };
    let long_types: String =
        (1..10_000).map(|n| format!("(type (func (param (ref null {}))))", n - 1)).collect();
    let report = [
        check(
            "A trace of 100,000 entries that are all the same 64 KiB.",
            &crafted::same_text_again(100_000, 65_536),
            "10s",
        ),
        check("A short one is an error like any other.", &crafted::same_text_again(2, 3), "10s"),
        check("Five hundred handles of its own.", &crafted::own_handles(500), "10s"),
        check("Six hundred.", &crafted::own_handles(600), "10s"),
        check("A hundred core instances.", &crafted::many_instances(100), "10s"),
        check("Three hundred.", &crafted::many_instances(300), "10s"),
        check("A thousand.", &crafted::many_instances(1_000), "10s"),
        check("Sixteen memories.", &crafted::beside(&"(memory 0)".repeat(15)), "10s"),
        check("Seventeen.", &crafted::beside(&"(memory 0)".repeat(16)), "10s"),
        check("Sixteen tables.", &crafted::beside(&"(table 0 funcref)".repeat(16)), "10s"),
        check("Seventeen.", &crafted::beside(&"(table 0 funcref)".repeat(17)), "10s"),
        check(
            "A table of four thousand million.",
            &crafted::tool_with_core("(table 0xfffffff0 funcref)", ""),
            "10s",
        ),
        check("A memory of 4 GiB.", &crafted::tool_with_core("(memory $more 65536)", ""), "10s"),
        check(
            "A chain of types that refer to each other.",
            &crafted::tool_with_core(&format!("(type (func)){long_types}"), ""),
            "10s",
        ),
    ];
    snapshot!("odd", &report.concat());
}

#[test]
fn a_tool_without_a_working_describe_runs() {
    let workspace = Workspace::with_own_cache();
    workspace.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
    workspace.file("odd.wasm", crafted::endless_description());
    let mut command = workspace.command();
    let mut child = command.args(["run", "odd"]).stdout(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", child.kill());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait_with_output().unwrap().stdout, b"ok\n");
    // The description is requested again the next time.
    assert_eq!(fs::read_dir(workspace.cache()).into_iter().flatten().count(), 0);
    let run = workspace.run(&["check"]);
    assert_eq!(run.code, 7, "{}", run.shown());
    assert!(
        run.stderr.contains("tool `odd`: ") && run.stderr.contains("in time"),
        "{}",
        run.shown()
    );
}

#[test]
fn a_schema_cannot_keep_the_host_busy() {
    // Each definition refers to the next one twice: forty of them are 2⁴⁰ checks.
    let next = |index: usize| json!({ "$ref": format!("#/$defs/{}", index + 1) });
    let twice = |index: usize| json!({ "anyOf": [next(index), next(index)] });
    let mut definitions: Map<String, Value> =
        (0..40).map(|index| (index.to_string(), twice(index))).collect();
    definitions.insert("40".into(), json!({ "type": "string" }));
    let branching = json!({
        "type": "object",
        "properties": { "x": { "$ref": "#/$defs/0" }, "y": { "minimum": 0 } },
        "$defs": definitions,
    });
    // The same cost, but only for an argument of this many levels.
    let own = json!({ "$ref": "#" });
    let growing = json!({ "type": "object", "properties": { "x": { "anyOf": [own, own] } } });
    let arguments = (0..40).fold(json!({}), |inner, _| json!({ "x": inner })).to_string();
    let endless = json!({ "type": "object", "anyOf": [{ "$ref": "#" }] });
    let mut links: Map<String, Value> =
        (0..600).map(|index| (index.to_string(), next(index))).collect();
    links.insert("600".into(), json!({ "type": "object" }));
    let deep = json!({ "$ref": "#/$defs/0", "$defs": links });
    let workspace = Workspace::new();
    workspace.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
    let says = |schema: Value, commands: &[&[&str]]| {
        let description = json!({ "name": "odd", "inputSchema": schema });
        workspace.file("odd.wasm", crafted::describing(&description.to_string()));
        workspace.session(commands)
    };
    let said = [
        says(
            branching,
            &[
                &["run", "odd", "x:=1"],
                &["run", "odd", "y:=1", "--json"],
                &["run", "odd", "--args", r#"{"x": null}"#, "--without-nulls"],
                &["export", "odd", "--format", "mcp"],
            ],
        ),
        says(growing, &[&["run", "odd", "--args", "{}"], &["run", "odd", "--args", &arguments]]),
        says(endless, &[&["run", "odd"]]),
        says(deep, &[&["run", "odd"]]),
    ];
    snapshot!("a schema that branches", &said.concat());
}

#[test]
fn the_smallest_tool_runs_under_any_package_name() {
    for package in ["kitbag:tool/types@0.1.0", "acme:widgets/shapes@2.3.4", "a:b/c"] {
        let workspace = odd();
        workspace.file("odd.wasm", crafted::tool(package, ""));
        assert_eq!(workspace.run(&["run", "odd"]).success(), "ok\n", "{package}");
    }
}

#[test]
fn a_precompiled_artifact_is_never_loaded_from_a_file() {
    // A real artifact: the cache entry of this very binary, without its header.
    let workspace = odd();
    workspace.file("odd.wasm", crafted::tool("a:b/c", ""));
    let cached = Workspace::with_own_cache();
    cached.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
    cached.file("odd.wasm", crafted::tool("a:b/c", ""));
    cached.run(&["run", "odd"]).success();
    let entry = fs::read_dir(cached.cache()).unwrap().next().unwrap().unwrap().path();
    let entry = fs::read(entry).unwrap();
    let elf = entry.windows(4).position(|bytes| bytes == b"\x7fELF").unwrap();
    workspace.file("odd.wasm", &entry[elf..]);
    snapshot!("precompiled", &says(&workspace));
    workspace.file("odd.wasm", &entry);
    let whole = workspace.run(&["run", "odd"]);
    assert_eq!(whole.code, 7, "{}", whole.shown());
}

#[test]
fn special_files_are_refused_without_waiting() {
    let workspace = odd();
    fs::create_dir(workspace.path("odd.wasm")).unwrap();
    snapshot!("a directory", &says(&workspace));
    fs::remove_dir(workspace.path("odd.wasm")).unwrap();
    mknodat(CWD, workspace.path("odd.wasm"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    snapshot!("a fifo", &says(&workspace));
    fs::remove_file(workspace.path("odd.wasm")).unwrap();
    snapshot!("missing", &says(&workspace));
}

#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let workspace = odd();
    let file = fs::File::create(workspace.path("odd.wasm")).unwrap();
    file.set_len(1 << 30).unwrap();
    snapshot!("too large", &says(&workspace));
    for command in [&["run", "odd"][..], &["inspect", "odd.wasm"], &["check"]] {
        let read = read_bytes(workspace.command().args(command));
        // Only its configuration, and data about its own process.
        assert!((1..1 << 20).contains(&read), "{command:?} reads {read} bytes");
    }
}

/// Number of bytes that a command reads until its end, according to the kernel.
fn read_bytes(command: &mut Command) -> u64 {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = WaitId::Pid(Pid::from_child(&child));
    // The process has ended, but its counters exist until it is waited for.
    waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let counters = fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
    child.wait().unwrap();
    let read = counters.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
    read.parse().unwrap()
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let workspace = odd();
    let path = workspace.file("odd.wasm", crafted::tool("a:b/c", ""));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Root reads every file, as long as it has the capabilities.
    let binary = workspace.command();
    let mut command = match rustix::process::geteuid().is_root() {
        false => workspace.command(),
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--bounding-set", "-dac_override,-dac_read_search"]);
            command.arg(binary.get_program()).current_dir(workspace.root());
            command.envs(binary.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command
        }
    };
    let output = command.args(["run", "odd"]).output().unwrap();
    let said = workspace.redact(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(7), "{said}");
    let expected = "error: `<workspace>/odd.wasm` cannot be read: Permission denied";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn a_file_swapped_after_its_check_is_checked_again() {
    let workspace = odd();
    workspace.file("odd.wasm", crafted::tool("a:b/c", ""));
    let kitbag = workspace.kitbag();
    kitbag.toolbox().load("odd").unwrap();
    assert_eq!(kitbag.call_in_test("odd", json!({})), "ok");
    workspace.file("odd.wasm", crafted::core_module());
    let got = kitbag.call_in_test("odd", json!({}));
    assert!(got.contains("this is a core WebAssembly module"), "{got}");
    workspace.file("odd.wasm", crafted::tool("a:b/d", ""));
    assert_eq!(kitbag.call_in_test("odd", json!({})), "ok");
}

/// Runs a tool with an existing cache entry after tampering with the cache, and returns the output.
fn with_cache(name: &str, tamper: impl FnOnce(&Workspace, &Path)) {
    let workspace = Workspace::with_own_cache();
    workspace.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
    workspace.file("odd.wasm", crafted::tool("a:b/c", ""));
    workspace.run(&["run", "odd"]).success();
    let entry = fs::read_dir(workspace.cache()).unwrap().next().unwrap().unwrap();
    // The owner of the entry can change its permissions, but a tool cannot.
    fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600)).unwrap();
    tamper(&workspace, &entry.path());
    let name_of_entry = entry.file_name().into_string().unwrap();
    let mut text = String::new();
    for _ in 0..2 {
        text.push_str(&workspace.run(&["run", "odd"]).shown().replace(&name_of_entry, "<entry>"));
    }
    snapshot!(&format!("cache: {name}"), &text);
}

#[test]
fn a_hostile_cache_is_never_executed() {
    with_cache("untouched", |_, _| {});
    with_cache("one bit", |_, entry| {
        let mut bytes = fs::read(entry).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(entry, bytes).unwrap();
    });
    with_cache("truncated", |_, entry| {
        let file = fs::File::options().write(true).open(entry).unwrap();
        file.set_len(1000).unwrap();
    });
    with_cache("planted", |_, entry| {
        fs::write(entry, b"\x7fELF native code that was planted").unwrap();
    });
    with_cache("of another tool", |_, entry| {
        // A valid entry of another tool under the name of this entry: the other tool traps.
        let other = Workspace::with_own_cache();
        other.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
        other.file("odd.wasm", crafted::tool_with_core("", "unreachable"));
        assert_eq!(other.run(&["run", "odd"]).code, 7);
        fs::write(entry, fs::read(other.cached()).unwrap()).unwrap();
    });
    with_cache("symbolic link", |workspace, entry| {
        let elsewhere = workspace.path("elsewhere");
        fs::rename(entry, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, entry).unwrap();
    });
    with_cache("writable by others", |_, entry| {
        fs::set_permissions(entry, fs::Permissions::from_mode(0o666)).unwrap();
    });
    with_cache("open directory", |workspace, _| {
        fs::set_permissions(workspace.cache(), fs::Permissions::from_mode(0o777)).unwrap();
    });
    with_cache("linked directory", |workspace, _| {
        let elsewhere = workspace.path("elsewhere");
        fs::rename(workspace.cache(), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, workspace.cache()).unwrap();
    });
    with_cache("a file in its place", |workspace, _| {
        fs::remove_dir_all(workspace.cache()).unwrap();
        fs::write(workspace.cache(), "").unwrap();
    });
}

#[test]
fn a_cache_of_another_user_is_never_used() {
    let workspace = Workspace::with_own_cache();
    workspace.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
    workspace.file("odd.wasm", crafted::tool("a:b/c", ""));
    workspace.run(&["run", "odd"]).success();
    let check = |cache: &Path, expected: &str| {
        let cache = cache.to_str().unwrap();
        let run = workspace.run_with(&["run", "odd"], "", &[("KITBAG_CACHE_DIR", cache)]);
        assert_eq!((run.code, &*run.stdout), (0, "ok\n"), "{}", run.shown());
        assert_eq!(run.stderr.contains("owned by another user"), !expected.is_empty());
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    };
    let directory = "is not used: it is owned by another user";
    if !rustix::process::geteuid().is_root() {
        // Only root can change an owner; this directory belongs to root.
        return check(Path::new("/usr"), directory);
    }
    // Complete, private and valid, except for its owner.
    let give_away = |path: &Path| std::os::unix::fs::chown(path, Some(1), None).unwrap();
    let entry = fs::read_dir(workspace.cache()).unwrap().next().unwrap().unwrap().path();
    give_away(&entry);
    check(workspace.cache(), "was owned by another user; it was compiled again and replaced");
    check(workspace.cache(), "");
    give_away(workspace.cache());
    check(workspace.cache(), directory);
}

#[test]
fn a_cache_that_cannot_be_written_only_costs_time() {
    let workspace = Workspace::with_own_cache();
    workspace.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
    workspace.file("odd.wasm", crafted::tool("a:b/c", ""));
    fs::DirBuilder::new().mode(0o500).create(workspace.cache()).unwrap();
    // Root can write to it; other users get a warning.
    assert_eq!(workspace.run(&["run", "odd"]).success(), "ok\n");
    let nowhere =
        workspace.run_with(&["run", "odd"], "", &[("KITBAG_CACHE_DIR", "/proc/none/cache")]);
    assert!(
        nowhere.stderr.contains("cannot be kept") || nowhere.stderr.contains("is not used"),
        "{}",
        nowhere.stderr
    );
    assert_eq!(nowhere.success(), "ok\n");
}

#[test]
fn a_manifest_that_is_not_a_file_is_a_problem() {
    let check = |make: &dyn Fn(&Path), expected: &str| {
        let workspace = Workspace::new();
        workspace.file(".kitbag/tools/odd.wasm", crafted::tool("a:b/c", ""));
        make(&workspace.path(".kitbag/tools/odd.toml"));
        let run = workspace.run(&["check"]);
        assert!(run.code == 4 && run.shown().contains(expected), "{}", run.shown());
        assert!(run.shown().contains(".kitbag/tools/odd.toml"), "{}", run.shown());
    };
    check(&|path| fs::create_dir(path).unwrap(), "directory");
    let fifo = |path: &Path| {
        let (kind, mode) = (FileType::Fifo, Mode::RUSR);
        mknodat(CWD, path, kind, mode, 0).unwrap();
    };
    check(&fifo, "file");
}

#[test]
fn clearing_the_cache_keeps_foreign_files() {
    let workspace = Workspace::with_own_cache();
    workspace.config("[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n");
    workspace.file("odd.wasm", crafted::tool("a:b/c", ""));
    workspace.run(&["run", "odd"]).success();
    let entry = workspace.cached();
    let alien = ["b.kitbag", ".lock-x", "letter.txt"].map(|name| workspace.cache().join(name));
    alien.iter().for_each(|path| fs::write(path, "mine").unwrap());
    let directory = workspace.cache().join(format!("{}.kitbag", "b".repeat(64)));
    fs::create_dir(&directory).unwrap();
    let cleared = workspace.run(&["cache", "--clear"]).success();
    assert!(cleared.contains("removed 1 entry"), "{cleared}");
    assert!(!entry.exists());
    assert!(alien.iter().chain([&directory]).all(|path| path.exists()));
}
