//! Fuzz targets, as plain functions. `cargo fuzz` runs them for any duration, and
//! `tests/meta/fuzzing.rs` runs each over the corpus with every `cargo test`. A function returns if the
//! input is harmless, and panics if it violates a guarantee.

use std::cell::RefCell;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use kitbag::base::ByteSize;
use kitbag::base::json::{self, JsonBudget};
use kitbag::base::text::{is_hidden, printable, shown};
use kitbag::contract::{Action, Limits};
use kitbag::host::{
    Call, Completion, Component, ComponentBytes, ComponentSource, Host, HostOptions, Metering,
    RunContext, inspect_file,
};
use kitbag::policy::{Access, DirectoryGrant, Grants};
use kitbag::{Arguments, CallContext, Invocation, Kitbag, NoAnswers, Outcome};
use serde_json::Value;
use tempfile::TempDir;

/// A target and its name, which is also the name of its corpus.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All targets.
pub(crate) const TARGETS: [Target; 10] = [
    ("configuration", configuration),
    ("arguments", arguments),
    ("component", component),
    ("core", core),
    ("plugin", plugin),
    ("functions", functions),
    ("act", act),
    ("skill", skill),
    ("learn", learn),
    ("output", output),
];

/// Checks that a configuration is either read or refused with a location, and that reading it
/// twice gives the same result.
pub(crate) fn configuration(data: &[u8]) {
    thread_local! {
        static WORKSPACE: TempDir = workspace(|_| {});
    }
    WORKSPACE.with(|workspace| {
        let file = workspace.path().join(".kitbag/config.toml");
        fs::write(&file, data).expect("the file is ours");
        let read = || {
            let builder = Kitbag::builder().workspace(workspace.path()).trust_workspace(true);
            builder.no_cache().build()
        };
        match read() {
            Ok(kitbag) => {
                let again = read().expect("what was read once is read again");
                let rows = |kitbag: &Kitbag| format!("{:?}", kitbag.toolbox().config());
                assert_eq!(rows(&kitbag), rows(&again));
                // Listing the tools compiles and runs nothing.
                let _: Vec<_> = kitbag.toolbox().summaries().collect();
                assert!(!kitbag.toolbox().host().is_started());
            }
            Err(errors) => {
                let text = errors.to_string();
                assert!(text.contains("config.toml"), "{text}");
                assert!(!text.contains('\u{1b}'), "{text:?}");
            }
        }
    });
}

/// Checks that arguments are either accepted unchanged or refused, and that arguments passed to
/// the tool match its schema.
pub(crate) fn arguments(data: &[u8]) {
    thread_local! {
        static KITBAG: (TempDir, Kitbag) = built(|root| {
            let parameters = r#"
[tools.t]
source = "local"
wasm = "t.wasm"
description = "t"
[tools.t.parameters.text]
type = "string"
required = true
[tools.t.parameters.count]
type = "integer"
default = 3
[tools.t.parameters.ratio]
type = "number"
[tools.t.parameters.flag]
type = "boolean"
[tools.t.parameters.kind]
type = "string"
enum = ["a", "b"]
[tools.t.parameters.list]
type = "array"
items = { type = "integer" }
"#;
            fs::write(root.join("t.wasm"), "").expect("the file is ours");
            fs::write(root.join(".kitbag/config.toml"), parameters).expect("the file is ours");
        });
    }
    // Lines are pairs; JSON is JSON.
    let given = match json::parse(data, JsonBudget::ARGUMENTS) {
        Ok(value) => {
            assert_eq!(
                json::parse(value.to_string().as_bytes(), JsonBudget::ARGUMENTS).as_ref(),
                Ok(&value)
            );
            Arguments::json(value)
        }
        Err(error) => {
            assert!(error.line >= 1 || data.len() > JsonBudget::ARGUMENTS.bytes);
            let text = String::from_utf8_lossy(data);
            let pairs = text.lines().filter_map(|line| line.split_once('='));
            let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            Arguments { pairs, ..Arguments::default() }
        }
    };
    KITBAG.with(|(_, kitbag)| {
        if let Err(error) = kitbag.toolbox().check("t", given) {
            let text = error.to_string();
            assert!(text.contains("arguments") || text.contains("limit"), "{text}");
        }
    });
}

/// Checks that bytes either are a tool or are refused with a reason, and that a loaded tool ends
/// within its limits.
pub(crate) fn component(data: &[u8]) {
    thread_local! {
        static HOST: (TempDir, Host) =
            (workspace(|_| {}), Host::new(HostOptions::default()));
    }
    HOST.with(|(workspace, host)| {
        let path = workspace.path().join("tool.wasm");
        fs::write(&path, data).expect("the file is ours");
        let inspected = inspect_file(&path);
        let context = RunContext::default();
        let source = ComponentSource::File(path.into());
        let known = host.known_description(&source, Metering::Off);
        let Ok(component) = host.component(&source, &Limits::default(), &context) else { return };
        let known = known.ok().flatten();
        assert!(known.is_none_or(|known| known == *component.described()), "read before and after");
        assert!(inspected.is_ok(), "what runs can be inspected");
        drop(run(host, &component, "{}".into(), Grants::default()));
    });
}

/// Checks that results of a core module end its call, or are read as JSON or capability calls.
pub(crate) fn core(data: &[u8]) {
    thread_local! {
        static TOOL: (Host, Component) = module(include_str!("core.wat"));
    }
    let mut grants = Grants::default();
    let names = "clock.now_unix log.emit http.request x secrets.get";
    grants.config.set("capabilities", names).expect("a short value");
    let arguments = String::from_utf8_lossy(data).into_owned();
    TOOL.with(|(host, component)| drop(run(host, component, arguments, grants)));
}

/// Checks that any sequence of calls of host functions stays within the limits of the call.
pub(crate) fn plugin(data: &[u8]) {
    thread_local! {
        static TOOL: (Host, Component) = module(include_str!("plugin.wat"));
    }
    let arguments = serde_json::json!({ "input": String::from_utf8_lossy(data) });
    let mut grants = Grants::default();
    grants.config.set("0", "value").expect("a short value");
    TOOL.with(|(host, component)| drop(run(host, component, arguments.to_string(), grants)));
}

/// Checks that data of a component for ACT ends its call, or is read, and that CBOR becomes JSON.
pub(crate) fn act(data: &[u8]) {
    thread_local! {
        static TOOL: (Host, Component) = module(include_str!("act.wat"));
    }
    let letter = |nibble: u8| char::from(b'@' | nibble);
    let letters: String =
        data.iter().flat_map(|byte| [letter(byte >> 4), letter(byte & 15)]).collect();
    let arguments = Value::from(letters).to_string();
    let completion =
        TOOL.with(|(host, component)| run(host, component, arguments, Grants::default()));
    let is_cbor = data.first() == Some(&0);
    if let Ok(Outcome::Success(text)) = &completion.result
        && is_cbor
        && !text.ends_with(" bytes]")
    {
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text:?}");
    }
}

/// Checks that any sequence of calls of a skill's host functions stays within the limits of the
/// call and in its directory.
pub(crate) fn skill(data: &[u8]) {
    thread_local! {
        static TOOL: (TempDir, (Host, Component)) =
            (workspace(|_| {}), module(include_str!("skill.wat")));
    }
    TOOL.with(|(workspace, (host, component))| {
        let root = workspace.path().canonicalize().expect("the directory is ours");
        let directory = root.join("data");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).expect("the directory is ours");
        fs::write(directory.join("in.txt"), "content").expect("the file is ours");
        fs::write(root.join("outside.txt"), "outside").expect("the file is ours");
        let mut grants = Grants::default();
        grants.config.set("KEY", "value").expect("a short value");
        grants.directories.push(DirectoryGrant {
            host: directory,
            guest: "/data".parse().expect("a path"),
            access: Access::ReadWrite,
            include: Vec::new(),
            protected: None,
            identity: None,
        });
        drop(run(host, component, String::from_utf8_lossy(data).into_owned(), grants));
        let outside = fs::read_dir(&root).expect("the directory is ours").count();
        assert_eq!(outside, 3, "a file outside of the granted directory");
        assert_eq!(fs::read(root.join("outside.txt")).expect("it exists"), b"outside");
    });
}

/// Loads a module in the text format.
fn module(text: &str) -> (Host, Component) {
    let host = Host::new(HostOptions::default());
    let bytes = wat::parse_str(text).expect("the module is valid");
    let source = ComponentSource::Bytes(ComponentBytes::new("module.wasm", bytes));
    let component = host.component(&source, &Limits::default(), &RunContext::default());
    (host, component.expect("the module is a tool"))
}

/// Calls a tool, and checks that it stays within its memory limit.
fn run(host: &Host, component: &Component, arguments: String, grants: Grants) -> Completion {
    let call = Call {
        name: "tool".into(),
        function: None,
        action: Action::Run,
        arguments,
        answers: "{}".into(),
        grants: Arc::new(grants),
        guard: Arc::default(),
        secrets: Default::default(),
        storage: None,
        tools: None,
        limits: Limits {
            time: Duration::from_millis(50),
            memory: ByteSize::mib(16),
            ..Limits::default()
        },
    };
    let completion = host.call_blocking(component, &call, &RunContext::default());
    assert!(completion.usage.memory.as_u64() <= 16 << 20);
    completion
}

/// A component that returns its argument, a list of records with values of all types.
const ECHO: &str = r#"(component
    (core module $m
        (memory (export "memory") 64)
        (global $next (mut i32) (i32.const 1024))
        (func (export "realloc") (param i32 i32 i32 i32) (result i32)
            (local $at i32)
            (local.set $at
                (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
            (global.set $next (i32.add (local.get $at) (local.get 3)))
            (local.get $at))
        (func (export "echo") (param i32 i32) (result i32)
            (i32.store (i32.const 0) (local.get 0))
            (i32.store (i32.const 4) (local.get 1))
            (i32.const 0)))
    (core instance $i (instantiate $m))
    (alias core export $i "memory" (core memory $memory))
    (alias core export $i "realloc" (core func $realloc))
    (type $color' (enum "red" "green"))
    (export $color "color" (type $color'))
    (type $set' (flags "a" "b" "c"))
    (export $set "set" (type $set'))
    (type $shape' (variant (case "none") (case "some" u64) (case "many" (list s8))))
    (export $shape "shape" (type $shape'))
    (type $all' (record
        (field "b" bool) (field "n" s64) (field "u" u8) (field "f" f32) (field "d" f64)
        (field "c" char) (field "s" string) (field "l" (list u16)) (field "t" (tuple u32 string))
        (field "o" (option (option bool))) (field "r" (result string (error $color)))
        (field "e" $color) (field "g" $set) (field "v" $shape)))
    (export $all "all" (type $all'))
    (func (export "echo") (param "it" (list $all)) (result (list $all))
        (canon lift (core func $i "echo") (memory $memory) (realloc (core func $realloc)))))"#;

/// Checks that a function returns the JSON of its arguments, in a form that it returns unchanged.
pub(crate) fn functions(data: &[u8]) {
    thread_local! {
        static FUNCTION: (Host, Component) = {
            let host = Host::new(HostOptions::default());
            let bytes = wat::parse_str(ECHO).expect("the text is ours");
            let source = ComponentSource::Bytes(ComponentBytes::new("echo.wasm", bytes));
            let component = host.component(&source, &Limits::default(), &RunContext::default());
            (host, component.expect("the component is ours"))
        };
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let echo = |list: &str| {
        FUNCTION.with(|(host, component)| {
            let call = Call {
                name: "echo".into(),
                function: None,
                action: Action::Run,
                arguments: format!("{{\"it\":{list}}}"),
                answers: "{}".into(),
                grants: Arc::default(),
                guard: Arc::default(),
                secrets: Default::default(),
                storage: None,
                tools: None,
                limits: Limits::default(),
            };
            host.call_blocking(component, &call, &RunContext::default()).result
        })
    };
    match echo(&format!("[{text}]")) {
        Ok(Outcome::Success(list)) => {
            let again = echo(&list).expect("the result is an argument");
            assert_eq!(again, Outcome::Success(list));
        }
        Ok(Outcome::Error(error)) => assert!(error.message.contains("argument"), "{error:?}"),
        other => panic!("{other:?}"),
    }
}

/// Checks that `learn` selects the same subjects for names and globs as a plain model.
pub(crate) fn learn(data: &[u8]) {
    const SUBJECTS: [&str; 8] = ["a", "ab", "b", "dir/a", "dir/b.c", "dir/sub/a", "x[y", "ä"];
    thread_local! {
        static KITBAG: (TempDir, Kitbag) = built(|root| {
            fs::create_dir_all(root.join("kb/dir/sub")).expect("the directory is ours");
            for subject in SUBJECTS {
                let text = format!("<<{subject}>>");
                fs::write(root.join(format!("kb/{subject}.md")), text).expect("the file is ours");
            }
            let config = "[knowledge.t]\nsubjects = \"kb\"\n";
            fs::write(root.join(".kitbag/config.toml"), config).expect("the file is ours");
        });
    }
    let Ok(pattern) = std::str::from_utf8(data) else { return };
    // The tool's own tests cover character classes and long patterns. A pattern without a match is
    // repeated in the answer, and must not look like a document.
    if pattern.trim() != pattern || pattern.is_empty() || pattern.len() > 64 {
        return;
    }
    if pattern.contains(['[', ']', ',', '\n', '{', '}', '!', '\\', '<']) || pattern.contains("***")
    {
        return;
    }
    let arguments = serde_json::json!({ "topic": "t", "subjects": pattern });
    let arguments = Arguments::json(arguments);
    KITBAG.with(|(_, kitbag)| {
        let (invocation, context) = (Invocation::tool("learn", arguments), CallContext::default());
        let ended = kitbag.toolbox().call_blocking(invocation, context, &mut NoAnswers);
        let Ok(completion) = ended.expect("the arguments fit").completion();
        let answer = match completion.result.expect("learn answers") {
            Outcome::Success(content) => content,
            Outcome::Error(error) => error.message,
            Outcome::NeedsInput(_) => panic!("learn asks nothing"),
        };
        let is_glob = pattern.contains(['*', '?']);
        // `**` is special only as a whole component.
        let is_odd = pattern.split('/').any(|part| part.contains("**") && part != "**");
        for subject in SUBJECTS {
            let expected = match is_glob {
                true => !is_odd && matches(pattern, subject),
                false => pattern == subject,
            };
            let got = answer.contains(&format!("<<{subject}>>"));
            assert_eq!(got, expected, "{pattern:?} and {subject:?}: {answer}");
        }
    });
}

/// Checks that no output of a tool acts on a terminal, and that no output is lost.
pub(crate) fn output(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let safe = printable(&text).to_string();
    let acts = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    assert!(!safe.chars().any(acts), "{safe:?}");
    let plain = !text.chars().any(|c| acts(c) || c == '\\');
    assert!(!plain || safe == text, "{text:?} became {safe:?}");
    let line = shown(&text).to_string();
    assert!(!line.chars().any(is_hidden), "{line:?}");
    // JSON preserves the text.
    let json = Value::from(text.as_ref()).to_string();
    assert_eq!(
        json::parse(json.as_bytes(), JsonBudget::OUTPUT).expect("JSON"),
        Value::from(text.as_ref())
    );
}

/// Matches a glob with a plain model: `?` is one character of a component, `*` any number of
/// characters, `**` any number of components.
fn matches(pattern: &str, path: &str) -> bool {
    let components = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
    // A pattern that ends in `**` may also end in a slash.
    let pattern = if pattern.ends_with("**/") { &pattern[..pattern.len() - 1] } else { pattern };
    match_components(&components(pattern), &components(path))
}

fn match_components(pattern: &[String], path: &[String]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((first, rest)) if first == "**" => {
            (0..=path.len()).any(|skipped| match_components(rest, &path[skipped..]))
                && !(rest.is_empty() && path.is_empty())
        }
        Some((first, rest)) => path.split_first().is_some_and(|(name, others)| {
            let (first, name): (Vec<_>, Vec<_>) = (first.chars().collect(), name.chars().collect());
            match_name(&first, &name) && match_components(rest, others)
        }),
    }
}

fn match_name(pattern: &[char], name: &[char]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => (0..=name.len()).any(|skipped| match_name(rest, &name[skipped..])),
        Some((first, rest)) => name
            .split_first()
            .is_some_and(|(c, others)| (*first == '?' || first == c) && match_name(rest, others)),
    }
}

fn workspace(fill: impl Fn(&std::path::Path)) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(directory.path().join(".kitbag")).expect("the directory is ours");
    fill(directory.path());
    directory
}

fn built(fill: impl Fn(&std::path::Path)) -> (TempDir, Kitbag) {
    let directory = workspace(fill);
    let builder = Kitbag::builder().workspace(directory.path()).trust_workspace(true);
    let kitbag = builder.no_cache().single_call().build();
    (directory, kitbag.expect("the configuration is right"))
}

/// Creates a mutated input, for tests that run without a fuzzer.
#[allow(dead_code, reason = "the fuzzer makes its own inputs")]
pub(crate) fn mutated(seed: &[u8], number: u64, state: &RefCell<u64>) -> Vec<u8> {
    // xorshift64 gives the same inputs on every machine.
    let next = || {
        let mut x = *state.borrow() ^ (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *state.borrow_mut() = x;
        x
    };
    let mut data = seed.to_owned();
    for _ in 0..=next() % 4 {
        let at = usize::try_from(next()).unwrap_or(0) % (data.len() + 1);
        let byte = next().to_le_bytes()[0];
        match next() % 4 {
            0 => data.insert(at, byte),
            1 if at < data.len() => drop(data.remove(at)),
            2 if at < data.len() => data[at] = byte,
            _ => {
                let end = (at + usize::from(byte % 8)).min(data.len());
                let piece = data[at..end].to_owned();
                data.extend_from_slice(&piece);
            }
        }
    }
    data
}
