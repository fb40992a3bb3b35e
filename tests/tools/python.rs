//! `python`, through the real binary: the answers, access and limits of scripts. The rules in
//! detail are tested in `guest-tools/python`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{CallInTest, Workspace, repository, snapshot};

fn workspace() -> Workspace {
    Workspace::with_toolsets(&["python"])
}

/// A workspace with a grant that would let scripts change it.
fn writable() -> Workspace {
    let workspace = workspace();
    workspace.config(
        "[tools.python.grants]\n\
         filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n",
    );
    workspace
}

#[test]
fn endless_or_large_scripts_end_with_a_named_limit() {
    let workspace = workspace();
    let check = |code: &str, expected: &str| {
        let answer = workspace.run(&["run", "python", "--time", "3s", &format!("code={code}")]);
        let shown = answer.shown();
        let line = shown.lines().find(|line| line.contains(expected));
        assert!(line.is_some(), "{code}: {shown}");
        assert!(!shown.contains("panicked") && !shown.contains("unreachable"), "{code}: {shown}");
    };
    check("while True: pass", "error: limit: time (3s): request less, or a part of it");
    check("while True: print('x')", "error: limit: time (3s): request less, or a part of it");
    check("import re\nre.sub('(x+x+)+y', '', 'x' * 40)", "");
    check(
        "x = []\nwhile True: x.append('a' * 100_000)",
        "error: limit: memory (64 MiB): give it less data, or a part of it",
    );
    check("[0] * 10 ** 7", "error: limit: memory (64 MiB): give it less data, or a part of it");
    check("[0] * 10 ** 9", "a value may take at most 1 GiB; work on a part of the data at a time");
    check("2 ** 10 ** 9", "error: limit: memory (64 MiB): give it less data, or a part of it");
    check("'a' * 10 ** 10", "OverflowError");
    check("def f(n): return f(n + 1)\nf(0)", "RecursionError: maximum recursion depth exceeded");
    check("int('9' * 5000)", "ValueError: Exceeds the limit (4300 digits)");
    let nested = "(".repeat(5000) + "1" + &")".repeat(5000);
    check(&nested, "SyntaxError: Source is too deeply nested");
    check(
        &["1"; 50_000].join("+"),
        "error: limit: stack (512 KiB): give arguments or data with less nesting",
    );
    check(
        "a = 1\nfor _ in range(100_000): a = [a]\na",
        "error: limit: stack (512 KiB): give arguments or data with less nesting",
    );
}

#[test]
fn a_huge_input_is_read_and_a_huge_answer_is_truncated() {
    let workspace = workspace();
    let text = "ü".repeat(400_000);
    let answer = workspace.call("python", json!({ "code": "len(t)", "inputs": { "t": text } }));
    assert_eq!(answer, "400000");
    let answer =
        workspace.call("python", json!({ "code": "print('ü' * 1_000_000)\n'b' * 10 ** 6" }));
    assert!(answer.len() < (64 << 10) + 300, "{}", answer.len());
    assert!(answer.contains("\n[1967233 more bytes were printed: print less]"), "{}", answer.len());
    assert!(answer.ends_with("\n[967234 more bytes of the value: end with a part of it]"));
    workspace.file("big.txt", "a\n".repeat(5 << 20));
    let code = "open('big.txt').read().count('\\n')";
    let answer = workspace.run(&["run", "python", &format!("code={code}"), "--memory", "512MiB"]);
    assert_eq!(answer.success(), format!("{}\n", 5 << 20));
}

#[test]
fn concurrent_and_later_calls_share_nothing() {
    let workspace = workspace();
    let kitbag = workspace.kitbag();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let kitbag = &kitbag;
            scope.spawn(move || {
                for round in 0..10 {
                    let code = "try:\n    seen\n    kept = True\nexcept NameError:\n    \
                                kept = False\nseen = n\n(n * n, kept)";
                    let n = thread * 100 + round;
                    let arguments = json!({ "code": code, "inputs": { "n": n } });
                    let answer = kitbag.call_in_test("python", arguments);
                    assert_eq!(answer, format!("[{},false]", n * n));
                }
            });
        }
    });
}

#[test]
fn clients_of_both_eras_run_scripts() {
    let workspace = workspace();
    let old = Client::with_handshake(&workspace, json!({}));
    let new = Client::stateless(&workspace, json!({}));
    for mut client in [old, new] {
        let tools = client.request("tools/list", json!({}));
        let tools = tools["result"]["tools"].as_array().unwrap();
        let python = tools.iter().find(|tool| tool["name"] == "python").unwrap();
        assert_eq!(python["annotations"]["readOnlyHint"], true, "{python}");
        // Four characters per token: the name, the description and the schema of the arguments.
        let description = python["description"].as_str().unwrap();
        let size = "python".len() + description.len() + python["inputSchema"].to_string().len();
        assert!(size <= 1_000, "{size}");
        let answer = client.call("python", json!({ "code": "print('ü')\n6 * 7" }));
        assert_eq!(answer["content"][0]["text"], "ü\n42");
        let error = client.call("python", json!({ "code": "1 / 0" }));
        assert_eq!(error["isError"], true);
        let text = error["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("ZeroDivisionError: division by zero"), "{text}");
    }
}

/// The test cases of the crate that the component uses, by name. They are in its package, which the
/// guests' lock file pins.
fn cases() -> Vec<(String, String)> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(["--filter-platform", "wasm32-wasip2", "--manifest-path"])
        .arg(repository().join("guest-tools/Cargo.toml"));
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages = metadata["packages"].as_array().unwrap().iter();
    let monty = packages.find(|package| package["name"] == "monty").unwrap();
    let manifest = PathBuf::from(monty["manifest_path"].as_str().unwrap());
    let cases = fs::read_dir(manifest.with_file_name("test_cases")).unwrap();
    let mut cases: Vec<_> = cases
        .map(|entry| entry.unwrap().path())
        .map(|path| (name_of(&path), fs::read_to_string(&path).unwrap()))
        .collect();
    cases.sort();
    cases
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Runs a case and describes in one line any difference from its expected result.
///
/// A case ends without an exception, unless its last lines declare another end: `# Raise=` an
/// exception, `# Return=` a value, or a traceback in a string.
fn difference(name: &str, code: &str) -> Option<String> {
    let workspace = writable();
    let mut script = code.to_owned();
    if code.starts_with("# mount-fs") {
        for (path, content) in [
            ("hello.txt", "hello world\n"),
            ("empty.txt", ""),
            ("data.bin", "\0\u{1}\u{2}\u{3}"),
            ("readonly.txt", "readonly content"),
            ("subdir/nested.txt", "nested content"),
            ("subdir/deep/file.txt", "deep file"),
        ] {
            workspace.file(&format!("mnt/{path}"), content);
        }
        workspace.config(
            "[tools.python.grants]\nfilesystem = [{ host = \"mnt\", guest = \"/mnt\", mode = \"rw\" }]\n",
        );
        script = code.replacen("# mount-fs", "from pathlib import Path; root = Path('/mnt')", 1);
    }
    let answer = workspace.call("python", json!({ "code": script }));
    // The hint that the tool adds to a traceback.
    let answer = answer.split("\nthe modules here are ").next().unwrap();
    let error = answer.strip_prefix("error: ");
    let last = || answer.lines().last().unwrap_or_default().to_owned();
    let expected = |mark: &str| {
        let line = code.lines().last().unwrap_or_default();
        line.strip_prefix("# ")?.strip_prefix(mark).map(str::to_owned)
    };
    if let Some((_, traceback)) = code.split_once("\"\"\"\nTRACEBACK:\n") {
        let traceback = traceback.trim_end().trim_end_matches("\"\"\"").trim_end();
        let traceback = traceback.replace(&format!("{name}.py"), "script.py");
        return (error != Some(&traceback)).then(last);
    }
    if let Some(exception) = expected("Raise=") {
        return (!error?.ends_with(&message(&exception))).then(last);
    }
    if let Some(text) = expected("Return.str=") {
        let text = json!(text).to_string();
        return (answer != text).then(last);
    }
    if let Some(value) = expected("Return=") {
        return (plain(answer) != plain(&value)).then(last);
    }
    (error.is_some() || answer.starts_with("failed: ")).then(last)
}

/// The last line of the traceback of `TypeError('no')`: `TypeError: no`.
fn message(exception: &str) -> String {
    let (kind, text) = exception.split_once('(').unwrap_or((exception, ")"));
    let text = text.strip_suffix(')').unwrap_or(text);
    let text = text.strip_prefix(['\'', '"']).unwrap_or(text);
    let text = text.strip_suffix(['\'', '"']).unwrap_or(text);
    let text = text.replace("\\n", "\n").replace("\\'", "'").replace("\\\\", "\\");
    if text.is_empty() { kind.to_owned() } else { format!("{kind}: {text}") }
}

/// Normalizes a value in the notation of JSON or Python.
fn plain(value: &str) -> String {
    let value = value.replace('"', "'").replace(' ', "");
    let value = value.replace("True", "true").replace("False", "false").replace("None", "null");
    value.replace('(', "[").replace(')', "]")
}

#[test]
fn only_the_listed_cases_of_the_crate_fail() {
    let cases = cases();
    let mut shown = String::new();
    let mut failed = 0;
    for (name, code) in &cases {
        if let Some(difference) = difference(name, code) {
            failed += 1;
            let difference: String = difference.chars().take(160).collect();
            shown.push_str(&format!("{name}: {difference}\n"));
        }
    }
    snapshot!("cases", &format!("{failed} of {} fail\n\n{shown}", cases.len()));
}
