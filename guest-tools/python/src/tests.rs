//! The tool without a host: what it answers, and what a script reaches in a directory.

use std::fs;

use kitbag_sdk::{Call, Stop, Tool, json, serde_json::Value};

use crate::Python;
use crate::answer::{MODULES, SHOWN_BYTES};

/// Runs a script in `root`.
fn run_in(root: &str, code: &str, inputs: &Value) -> Result<String, String> {
    let arguments = json!({ "code": code, "inputs": inputs }).to_string();
    let call = Call::new("python", root, arguments, "{}");
    match Python::run(&call, call.arguments().unwrap()) {
        Ok(answer) => Ok(answer),
        Err(Stop::Error(error)) => Err(error.message),
        Err(Stop::Question(question)) => panic!("{question:?}"),
    }
}

fn run(code: &str) -> Result<String, String> {
    run_in("/nowhere", code, &json!({}))
}

#[track_caller]
fn check(code: &str, expected: &str) {
    assert_eq!(run(code).as_deref(), Ok(expected), "{code}");
}

#[test]
fn output_precedes_the_value() {
    check("1 + 1", "2");
    check("print('a', 'b')\n[1, 'x']", "a b\n[1,\"x\"]");
    check("print('a', end='')\n1", "a\n1");
    check("print('a')", "a");
    check("x = 1", "nothing was printed, and the script does not end with a value");
    check("", "nothing was printed, and the script does not end with a value");
}

#[test]
fn a_value_is_json_where_all_of_it_is_data() {
    check("{'a': (1, 2.5, None, True), 'b': 'é\\n'}", r#"{"a":[1,2.5,null,true],"b":"é\n"}"#);
    check("2 ** 70", "1180591620717411303424");
    check("1.0", "1.0");
    check("{1: 'a'}", "{1: 'a'}");
    check("{3}", "{3}");
    check("[float('nan')]", "[nan]");
    check("b'\\x00'", r"b'\x00'");
    check("import datetime\ndatetime.date(2026, 2, 28)", "datetime.date(2026, 2, 28)");
    check("a = []\na.append(a)\na", "[[...]]");
    check("len", "<built-in function len>");
}

#[test]
fn inputs_are_variables_and_keep_their_order_and_digits() {
    let inputs = json!({
        "big": u64::MAX, "words": ["a", "bc"], "nested": { "b": { "x": null }, "a": 1.5 },
    });
    let code = "print(big, words, nested)\nsum(len(w) for w in words)";
    let printed = "18446744073709551615 ['a', 'bc'] {'a': 1.5, 'b': {'x': None}}";
    assert_eq!(run_in("/nowhere", code, &inputs), Ok(format!("{printed}\n3")));
    let wrong = run_in("/nowhere", "1", &json!({ "a b": 1 })).unwrap_err();
    assert_eq!(wrong, "SyntaxError: Input name 'a b' not a valid identifier");
}

#[test]
fn an_exception_is_a_traceback_behind_what_was_printed() {
    assert_eq!(
        run("print('before')\ndef f():\n    return 1 / 0\nf()").unwrap_err(),
        "before\nTraceback (most recent call last):\n  File \"script.py\", line 4, in <module>\n    \
         f()\n    ~~~\n  File \"script.py\", line 3, in f\n    return 1 / 0\n           ~~~~~\n\
         ZeroDivisionError: division by zero"
    );
    let syntax = run("def f(:\n  pass").unwrap_err();
    assert!(syntax.contains("line 1") && syntax.contains("SyntaxError"), "{syntax}");
    let undefined = run("fetch('x')").unwrap_err();
    assert!(undefined.ends_with("NameError: name 'fetch' is not defined"), "{undefined}");
    // As in the script, even if the name was changed for the interpreter.
    assert_eq!(
        run("x = 1 + await fetch('x')").unwrap_err(),
        "Traceback (most recent call last):\n  File \"script.py\", line 1, in <module>\n    \
         x = 1 + await fetch('x')\n                  ~~~~~~~~~~\nNameError: name 'fetch' is not defined"
    );
}

#[test]
fn listed_modules_can_be_imported() {
    for module in MODULES {
        check(&format!("import {module}\n1"), "1");
    }
    let missing = run("import random").unwrap_err();
    assert!(
        missing.contains("ModuleNotFoundError: No module named 'random'\nthe modules here are "),
        "{missing}"
    );
}

#[test]
fn long_output_is_cut_with_a_note() {
    let printed = run("for i in range(100_000):\n    print('é' * 9)\n1").unwrap();
    assert!(printed.len() < SHOWN_BYTES + 200, "{}", printed.len());
    let end = "[1867232 more bytes were printed: print less]\n1";
    assert!(printed.ends_with(end), "{}", printed.lines().rev().take(2).collect::<String>());
    let value = run("'x' * 100_000").unwrap();
    assert!(value.ends_with("\n[67234 more bytes of the value: end with a part of it]"));
}

#[test]
fn a_long_traceback_keeps_its_beginning_and_its_end() {
    let error = run("def f(n): g(n)\ndef g(n): f(n)\nf(0)").unwrap_err();
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(lines.len(), 62);
    assert_eq!(lines[1], "  File \"script.py\", line 3, in <module>");
    assert_eq!(lines[20], "  [2945 lines are left out]");
    assert_eq!(lines[60], "RecursionError: maximum recursion depth exceeded");
    assert!(lines[61].starts_with("calls may be 1,000 deep"), "{}", lines[61]);
    let long = run(&format!("len('{}') / 0", "x".repeat(500))).unwrap_err();
    assert!(long.lines().all(|line| line.chars().count() <= 401), "{long}");
    assert!(long.ends_with("ZeroDivisionError: division by zero"), "{long}");
}

#[test]
fn files_are_read_as_in_python_and_changed_by_tools() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    fs::write(directory.path().join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(directory.path().join("latin.txt"), b"caf\xe9").unwrap();
    fs::create_dir_all(directory.path().join("d")).unwrap();
    let check = |code: &str, expected: Result<&str, &str>| {
        let answer = run_in(root, code, &json!({}));
        match (&answer, expected) {
            (Err(error), Err(end)) => assert!(error.ends_with(end), "{code}: {error}"),
            _ => assert_eq!(answer.as_deref().map_err(String::as_str), expected, "{code}"),
        }
    };
    check("[line.strip() for line in open('a.txt').readlines()]", Ok(r#"["one","two"]"#));
    check("with open('a.txt') as f:\n    text = f.read()\ntext", Ok(r#""one\ntwo\n""#));
    check("from pathlib import Path\nPath('x/../a.txt').read_bytes()[:3]", Ok("b'one'"));
    check(
        "from pathlib import Path\n[str(p) for p in Path('.').iterdir()]",
        Ok(r#"["a.txt","d","latin.txt"]"#),
    );
    check(
        "from pathlib import Path\np = Path('a.txt')\n(p.exists(), p.stat().st_size)",
        Ok("[true,8]"),
    );
    check(
        "open('no.txt')",
        Err("FileNotFoundError: [Errno 2] No such file or directory: 'no.txt'"),
    );
    check("open('d')", Err("IsADirectoryError: [Errno 21] Is a directory: 'd'"));
    check("open('a\\0b')", Err("ValueError: embedded null byte"));
    check("open('latin.txt').read()", Ok("[`latin.txt` is Latin-1]\n\"caf\u{e9}\""));
    check("from pathlib import Path\nPath('d').mkdir(exist_ok=True)\n1", Ok("1"));
    for (change, path) in [
        ("open('a.txt', 'w')", "a.txt"),
        ("open('b.txt', 'a')", "b.txt"),
        ("Path('a.txt').write_text('')", "a.txt"),
        ("Path('a.txt').write_bytes(b'')", "a.txt"),
        ("Path('a.txt').unlink()", "a.txt"),
        ("Path('a.txt').rename('b.txt')", "a.txt"),
        ("Path('d').rmdir()", "d"),
        ("Path('d/e').mkdir(parents=True)", "d/e"),
        ("Path('d').mkdir()", "d"),
    ] {
        let error = format!(
            "PermissionError: [Errno 13] Permission denied: '{path}': a script changes files by \
             tools alone, such as `write_file(path=…, content=…)`, which the user turns on with \
             `[toolsets] write = true`"
        );
        check(&format!("from pathlib import Path\n{change}"), Err(&error));
    }
    assert_eq!(fs::read_to_string(directory.path().join("a.txt")).unwrap(), "one\ntwo\n");
}

#[test]
fn without_a_host_there_are_no_tools() {
    check("help()", "there are no tools that this script can call");
    check("help(help)", "help() lists the tools, and help(tool) shows one.");
    let unknown = run("help('fetch')").unwrap_err();
    assert!(unknown.ends_with("LookupError: there is no tool `fetch`"), "{unknown}");
    let wrong = run("help(len)").unwrap_err();
    assert!(wrong.ends_with("TypeError: help() takes a tool, or nothing"), "{wrong}");
}

#[test]
fn the_clock_is_utc() {
    let code = "from datetime import datetime, timezone\n\
                naive, aware = datetime.now(), datetime.now(timezone.utc)\n\
                abs((aware.replace(tzinfo=None) - naive).total_seconds()) < 60";
    check(code, "true");
    check("import os\nos.getenv('KITBAG_NO_SUCH_VARIABLE', 'unset')", "\"unset\"");
}
