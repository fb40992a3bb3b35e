//! Rules of the house style: the location of platform-specific code, and the linking of the binary.
//! Formatting, lints, documentation and the guests' own tests are steps of `.ci/run`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::mcp::Client;
use crate::support::{Workspace, repository};

#[test]
fn platform_specific_code_is_in_modules_named_sys() {
    /// Returns true for these modules, and for tests, which create links and FIFOs.
    fn may(path: &Path) -> bool {
        let is_named =
            |names: [&str; 3]| path.iter().any(|part| names.iter().any(|it| part == *it));
        is_named(["sys", "sys.rs", "tests.rs"]) || is_named(["tests", "benches", "examples"])
    }
    // The last term is also part of `unix::`.
    const TERMS: [&str; 4] = ["std::os::", "rustix::", "libc::", "nix::"];
    let (mut found, mut modules) = (Vec::new(), 0);
    visit(&repository().join("crates"), &mut |path, text| {
        let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = own.lines().enumerate();
        let mut lines = lines.filter(|(_, line)| TERMS.iter().any(|term| line.contains(term)));
        let path = path.strip_prefix(repository()).unwrap();
        if may(path) {
            modules += usize::from(lines.next().is_some());
        } else {
            found.extend(lines.map(|(at, line)| format!("{}:{}: {line}", path.display(), at + 1)));
        }
    });
    assert!(modules > 0, "nothing was looked at");
    assert_eq!(found, [""; 0], "this belongs into the module `sys` of its crate");
}

/// Errors are prose: the debug output in each of these files has a reason.
#[test]
fn messages_hold_no_debug_text() {
    let mut found = BTreeMap::new();
    for directory in ["crates", "guest-tools"] {
        visit(&repository().join(directory), &mut |path, text| {
            let is_test = |part: &std::ffi::OsStr| {
                ["tests", "tests.rs", "benches", "examples", "build.rs"]
                    .iter()
                    .any(|it| part == *it)
            };
            if path.iter().any(is_test) {
                return;
            }
            let own = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let is_message = |line: &&str| {
                let is_debug = line.contains(":?}") || line.contains(":#?}");
                is_debug && !["assert", "panic!", "//"].iter().any(|it| line.contains(it))
            };
            let count = own.lines().filter(is_message).count();
            if count > 0 {
                let path = path.strip_prefix(repository()).unwrap();
                found.insert(path.display().to_string(), count);
            }
        });
    }
    let expected = [
        // Names of variants, which are turned into words.
        ("crates/base/src/text.rs", 1),
        // Source text of the built-ins, for the build script.
        ("crates/engine/src/embed.rs", 2),
        // Keys of connections, which are never shown.
        ("crates/host/src/grants/http.rs", 1),
        // Numbers as JSON, with a decimal point.
        ("crates/host/src/lanes/act/cbor.rs", 1),
        // An implementation of `Debug`.
        ("crates/secrets/src/leaks.rs", 1),
        // The digest of a call.
        ("crates/toolbox/src/approval/binding.rs", 3),
        // Guests of tests.
        ("guest-tools/probe-async/src/sentence.rs", 1),
        ("guest-tools/relay/src/lib.rs", 1),
        ("guest-tools/request/src/lib.rs", 1),
        ("guest-tools/settings/src/lib.rs", 1),
    ];
    assert_eq!(found, expected.map(|(path, count)| (path.to_owned(), count)).into());
}

fn visit(directory: &Path, look: &mut dyn FnMut(&Path, &str)) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Not into a hand-made build directory.
            if !path.ends_with("target") {
                visit(&path, look);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_binary_does_not_contain_test_guests() {
    let binary = fs::read(env!("CARGO_BIN_EXE_kitbag")).unwrap();
    let holds = |text: &[u8]| memchr::memmem::find(&binary, text).is_some();
    assert!(holds(b"Already learned (in system prompt)"), "`learn` is in there");
    // A string that only `probe` contains.
    assert!(!holds(b"marker absent, left one"));
}

#[test]
#[cfg(target_os = "linux")]
fn the_binary_is_linked_as_the_target_requires() {
    let binary = fs::read(env!("CARGO_BIN_EXE_kitbag")).unwrap();
    // A 64-bit ELF file: type 3 can be loaded at any address. In the program headers, type 3 is the
    // path of the dynamic loader.
    let number = |at: usize| u16::from_le_bytes([binary[at], binary[at + 1]]) as usize;
    assert_eq!(number(16), 3, "the binary can be loaded at one address only");
    let (start, size, count) = (number(32), number(54), number(56));
    let has_loader = (0..count).any(|index| binary[start + index * size] == 3);
    assert_eq!(has_loader, !cfg!(target_feature = "crt-static"));
}

#[test]
#[cfg(target_os = "linux")]
fn the_binary_is_loaded_at_a_random_address() {
    let workspace = Workspace::new();
    let address = || {
        let server = Client::with_handshake(&workspace, json!({}));
        let maps = fs::read_to_string(format!("/proc/{}/maps", server.process_id())).unwrap();
        let line = maps.lines().find(|line| line.ends_with("/kitbag")).unwrap();
        line.split_once('-').unwrap().0.to_owned()
    };
    let addresses: BTreeSet<_> = (0..3).map(|_| address()).collect();
    assert_eq!(addresses.len(), 3, "{addresses:?}");
}

#[test]
fn values_in_printed_commands_are_quoted() {
    // A command in a message that contains an unquoted value, such as "`kitbag run {name}`".
    let mut found = Vec::new();
    visit(&repository().join("crates"), &mut |path, text| {
        let path = path.strip_prefix(repository()).unwrap();
        let code = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
        let code = code.collect::<Vec<_>>().join(" ").replace("\\ ", "");
        for (start, _) in code.match_indices(concat!("`", "kitbag ")) {
            let rest = &code[start + 1..];
            let command = &rest[..rest.find(['`', '"']).unwrap_or(rest.len())];
            if command.contains('{') {
                found.push(format!("{}: {command}", path.display()));
            }
        }
    });
    assert_eq!(found, [""; 0], "put these together with `shell::command`");
}
