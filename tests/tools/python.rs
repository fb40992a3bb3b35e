//! `python`, through the real binary: the answers, access and limits of scripts. The rules in
//! detail are tested in `guest-tools/python`.

mod attacks;
mod features;

use std::fs;

use serde_json::json;

use crate::support::mcp::Client;
use crate::support::{CallInTest, Workspace, repository};

fn workspace() -> Workspace {
    Workspace::with_toolsets(&["python"])
}

/// A script, and its answer.
struct Snippet {
    code: String,
    expected: String,
}

/// Reads snippets: an empty line is between two of them, and `=> ` begins a line of the answer.
fn snippets(file: &str) -> Vec<Snippet> {
    let text = fs::read_to_string(repository().join(file)).unwrap();
    let snippets = text.trim_end().split("\n\n").map(|snippet| {
        let (answer, code): (Vec<_>, Vec<_>) =
            snippet.lines().partition(|line| line.starts_with("=> "));
        assert!(!answer.is_empty(), "{file}: no answer: {snippet}");
        let answer: Vec<_> = answer.iter().map(|line| &line[3..]).collect();
        Snippet { code: code.join("\n"), expected: answer.join("\n") }
    });
    snippets.collect()
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

#[test]
fn a_panic_of_the_interpreter_is_an_error_of_the_script() {
    let workspace = workspace();
    // No exception: code after it does not run.
    let code = "print('before')\ndef f(): return 1\n\
                f.__code__ = f.__code__.replace(co_code=bytes([255, 1] * 50))\n\
                try:\n    f()\nfinally:\n    print('after')\n";
    let expected = "before\nTraceback (most recent call last):\n  \
                    File \"script.py\", line 5, in <module>\n    f()\n  \
                    File \"script.py\", line 2, in f\n    def f(): return 1\n\
                    SystemError: the interpreter stopped: internal error: entered unreachable code: \
                    EnterExecutor instruction should not be executed; change the script";
    let run = workspace.run(&["run", "--verbose", "python", &format!("code={code}")]);
    assert_eq!((run.code, &*run.stdout), (1, ""), "{}", run.shown());
    assert_eq!(run.stderr.matches("EnterExecutor").count(), 1, "{}", run.shown());
    workspace.file(".kitbag/scripts/broken.py", code);
    let mut client = Client::stateless(&workspace, json!({}));
    for (tool, arguments) in [("python", json!({ "code": code })), ("broken", json!({}))] {
        let error = client.call(tool, arguments);
        assert_eq!(error["isError"], true, "{error}");
        assert_eq!(error["content"][0]["text"], expected);
    }
}

#[test]
fn calls_of_tools_are_counted_if_the_interpreter_panics() {
    let workspace = Workspace::with_toolsets(&["python", "files"]);
    workspace.file("a.txt", "text\n");
    let code = "def f(): return 1\nread_file('a.txt')\n\
                f.__code__ = f.__code__.replace(co_code=bytes([255, 1] * 50))\nf()\n";
    let kitbag = workspace.kitbag();
    let answer = kitbag.call_in_test("python", json!({ "code": code }));
    assert!(answer.contains("\nSystemError: the interpreter stopped: "), "{answer}");
    assert!(answer.contains("; change the script\n[1 call of tools: "), "{answer}");
}
