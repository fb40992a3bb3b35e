//! The sessions in `docs/registry.md` are real. `INSTA_UPDATE=always` records them again.

use std::{env, fs};

use kitbag_test_servers::{Answer, SeenRequest};
use serde_json::json;

use super::{Fixture, component};
use crate::support::repository;
use crate::support::terminal::{Terminal, answered};

/// The registry of the page.
const HOST: &str = "ghcr.io";

/// Prepares the registry for a command of the page.
fn prepare(fixture: &Fixture, command: &str) {
    let push = |rest: &str, version: &str, variables: &[&str], key| {
        fixture.push(rest, &component(version, variables), key).success();
    };
    let push_index = |names: &[(&str, &str)]| {
        let tools = names.iter().map(|(name, description)| {
            json!({ "name": name, "reference": format!("oci://{HOST}/org/{name}:1.0"),
                "description": description, "tags": ["text"] })
        });
        let index = json!({ "version": 1, "tools": tools.collect::<Vec<_>>() }).to_string();
        let file = fixture.author.file("tools.json", &index).display().to_string();
        let key = fixture.author.home().join("org.pem").display().to_string();
        let reference = fixture.reference("org/tools:1");
        fixture.author.run(&["push", &reference, &file, "--sign", &key]).success();
    };
    match command {
        "add oci://ghcr.io/org/count:1.0" => {
            push("org/count:1.0", "1.0", &["LANG"], Some("org.pem"))
        }
        "update count" => push("org/count:1.0", "1.1", &["LANG", "TZ"], Some("org.pem")),
        "add oci://ghcr.io/org/count:0.9" => push("org/count:0.9", "0.9", &[], None),
        "add oci://ghcr.io/org/count:2.0" => push("org/count:2.0", "2.0", &[], Some("eve.pem")),
        "add oci://ghcr.io/org/flipped:1.0" => {
            push("org/flipped:1.0", "1.0", &["LANG"], Some("org.pem"));
            fixture.registry.change(|request, answer| match request.path() {
                path if path.contains("/org/flipped/blobs/") => flipped(request, answer),
                _ => answer,
            });
        }
        _ if command.starts_with("push ") => {
            fixture.author.file("count.wasm", component("1.0", &["LANG"]));
            fs::copy(fixture.author.home().join("org.pem"), fixture.author.path("org.pem"))
                .unwrap();
        }
        "search words" => push_index(&[("count", "Count words.")]),
        "search text" => push_index(&[("count", "Count words."), ("sort", "Sort lines.")]),
        "search --update" => {}
        "add oci://ghcr.io/org/mirrored:1.0" => {
            push("org/mirrored:1.0", "1.0", &[], Some("org.pem"));
            fixture.registry.change(|request, answer| match request.path() {
                path if path.contains("/org/mirrored/") && answer.body.starts_with(b"\0asm") => {
                    Answer::redirect(307, "https://10.1.2.3/store/mirrored?signature=abc")
                }
                _ => answer,
            });
        }
        _ => panic!("the page has an unknown command: {command}"),
    }
}

fn flipped(_: &SeenRequest, mut answer: Answer) -> Answer {
    if answer.body.starts_with(b"\0asm") {
        answer.body[100] ^= 1;
    }
    answer
}

/// Runs a command of the page on a terminal, and returns what the terminal shows.
fn session(fixture: &Fixture, command: &str) -> String {
    prepare(fixture, command);
    let workspace = if command.starts_with("push ") { &fixture.author } else { &fixture.user };
    let mut started = workspace.command();
    started.args(command.replace(HOST, &fixture.registry.host()).split(' '));
    let run = answered(Terminal::wide_with_output(started), "y\n", |_| {});
    let text = workspace.redact(&run.stderr.replace(&fixture.registry.host(), HOST));
    // A terminal clears the progress before the next text.
    let lines = text.lines().map(|line| line.rsplit("\u{1b}[K").next().unwrap_or(line).trim_end());
    let text = lines.collect::<Vec<_>>().join("\n");
    text.replace("<home>", "/home/ada").replace("<workspace>", "/home/ada/src")
}

/// Replaces the fingerprints of keys, which are new in each run.
fn without_keys(text: &str) -> String {
    regex_lite::Regex::new("key [0-9a-f]{16}").unwrap().replace_all(text, "key …").into_owned()
}

#[test]
fn the_page_on_registries_is_real() {
    let fixture = Fixture::new(&["~/keys/org.pub"]);
    let settings = format!("[registry]\nindex = \"{}\"\n", fixture.reference("org/tools:1"));
    fixture.user.add_to_own_config(&settings);
    let path = repository().join("docs/registry.md");
    let page = fs::read_to_string(&path).unwrap();
    let is_recording = env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    let mut recorded = String::new();
    for (at, part) in page.split("```text\n").enumerate() {
        if at == 0 {
            recorded.push_str(part);
            continue;
        }
        let (block, rest) = part.split_once("```").unwrap();
        let mut real = String::new();
        for shown in block.split("$ kitbag ").skip(1) {
            let command = shown.lines().next().unwrap();
            let output = session(&fixture, command);
            real.push_str(&format!("$ kitbag {command}\n{}\n", output.trim_end()));
        }
        if !is_recording {
            assert_eq!(without_keys(block), without_keys(&real));
        }
        recorded.push_str(&format!("```text\n{real}```{rest}"));
    }
    if is_recording {
        fs::write(&path, &recorded).unwrap();
    }
}
