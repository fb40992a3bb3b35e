//! The house: format, lints, documentation, the guests' own tests, and that
//! what is built is what is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Workspace, repository};

/// Cargo locks its target directory; the checks that share one wait here.
static CARGO: Mutex<()> = Mutex::new(());

/// Runs cargo, which has to succeed, and returns what it wrote to standard output.
#[track_caller]
fn cargo(directory: &Path, arguments: &[&str], env: &[(&str, &str)]) -> String {
    let _guard = CARGO.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(arguments)
        .current_dir(directory)
        .envs(env.iter().copied())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "cargo {}\n{}{}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    String::from_utf8(output.stdout).unwrap()
}

fn guests() -> PathBuf {
    repository().join("guest-tools")
}

#[test]
fn everything_is_formatted() {
    cargo(repository(), &["fmt", "--all", "--check"], &[]);
    cargo(&guests(), &["fmt", "--all", "--check"], &[]);
}

#[test]
fn no_lint_has_anything_to_say_about_the_host() {
    cargo(
        repository(),
        &["clippy", "--all-targets", "--features", "otlp", "--", "-D", "warnings"],
        &[],
    );
}

#[test]
fn no_lint_has_anything_to_say_about_the_guests() {
    let target = ["--target", "wasm32-wasip2", "--release", "--", "-D", "warnings"];
    cargo(&guests(), &[&["clippy", "--locked"], &target[..]].concat(), &[]);
}

#[test]
fn the_documentation_builds_without_a_warning() {
    cargo(repository(), &["doc", "--no-deps", "--workspace"], &[("RUSTDOCFLAGS", "-D warnings")]);
}

#[test]
fn the_guests_pass_their_own_tests() {
    cargo(&guests(), &["test", "--locked", "--workspace"], &[]);
}

#[test]
fn the_guests_are_the_same_bytes_wherever_they_are_built() {
    let components = |directory: &Path| {
        let copy = directory.join("kitbag");
        copy_tree(&guests(), &copy.join("guest-tools"));
        copy_tree(&repository().join("wit"), &copy.join("wit"));
        fs::copy(repository().join("rust-toolchain.toml"), copy.join("rust-toolchain.toml"))
            .unwrap();
        let target = directory.join("target");
        let flags = [(&*copy, "/kitbag"), (&cargo_home(), "/cargo"), (&target, "/target")]
            .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
            .join("\x1f");
        cargo(
            &copy.join("guest-tools"),
            &["build", "--release", "--locked", "--target", "wasm32-wasip2"],
            &[("CARGO_ENCODED_RUSTFLAGS", &flags), ("CARGO_TARGET_DIR", target.to_str().unwrap())],
        );
        fs::read(target.join("wasm32-wasip2/release/kitbag_learn.wasm")).unwrap()
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let built = fs::read(crate::support::guest("learn")).unwrap();
    assert!(components(elsewhere.path()) == built);
}

fn cargo_home() -> PathBuf {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo"))
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true if entry.file_name() == "target" => {}
            true => copy_tree(&path, &to),
            false => drop(fs::copy(&path, &to).unwrap()),
        }
    }
}

/// One thing that cargo would compile or run.
struct Unit {
    /// The package with its version, what of it, and what cargo does with that.
    name: String,
    /// Features and settings: what makes it another thing under the same name.
    how: String,
    /// Whether it comes from elsewhere.
    is_dependency: bool,
    /// What it needs, by index.
    needs: Vec<usize>,
}

/// What cargo would do for a command, without doing it.
///
/// Only an unstable option tells. It needs no other compiler, and does not change
/// under us, since `rust-toolchain.toml` names the one there is.
fn units(command: &str) -> Vec<Unit> {
    let mut arguments: Vec<_> = command.split(' ').collect();
    arguments.extend(["--unit-graph", "-Z", "unstable-options"]);
    let graph = cargo(repository(), &arguments, &[("RUSTC_BOOTSTRAP", "1")]);
    let graph: Value = serde_json::from_str(&graph).unwrap();
    let unit = |unit: &Value| {
        let (source, package) = unit["pkg_id"].as_str().unwrap().rsplit_once('#').unwrap();
        let mut profile = unit["profile"].clone();
        profile["name"].take();
        let (target, needs) = (&unit["target"], unit["dependencies"].as_array().unwrap());
        Unit {
            name: format!("{package} {} {} {}", target["kind"], target["name"], unit["mode"]),
            how: format!("{} {profile} {}", unit["features"], unit["platform"]),
            is_dependency: !source.starts_with("path+"),
            needs: needs.iter().map(|need| need["index"].as_u64().unwrap() as usize).collect(),
        }
    };
    graph["units"].as_array().unwrap().iter().map(unit).collect()
}

/// The names of what is there more than once.
fn twice(units: &[Unit]) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    units.iter().map(|unit| &*unit.name).filter(|name| !seen.insert(*name)).collect()
}

/// The names of what is in both, and not the same.
fn different<'a>(a: &'a [&Unit], b: &[&Unit]) -> BTreeSet<&'a str> {
    let b: BTreeMap<_, _> = b.iter().map(|unit| (&unit.name, &unit.how)).collect();
    let is_other = |unit: &&&Unit| b.get(&unit.name).is_some_and(|how| **how != unit.how);
    a.iter().filter(is_other).map(|unit| &*unit.name).collect()
}

fn dependencies(units: &[Unit]) -> Vec<&Unit> {
    units.iter().filter(|unit| unit.is_dependency).collect()
}

/// The dependencies of kitbag's own build script, wasmtime among them.
fn below_the_build_script(units: &[Unit]) -> Vec<&Unit> {
    let is_script = |unit: &Unit| {
        unit.name.starts_with("kitbag@")
            && unit.name.ends_with("[\"custom-build\"] \"build-script-build\" \"build\"")
    };
    let mut waiting: Vec<_> = (0..units.len()).filter(|&index| is_script(&units[index])).collect();
    let mut found = BTreeSet::new();
    while let Some(index) = waiting.pop() {
        if found.insert(index) {
            waiting.extend(&units[index].needs);
        }
    }
    let found: Vec<_> = found.into_iter().map(|index| &units[index]).collect();
    assert!(found.iter().any(|unit| unit.name.starts_with("wasmtime@")));
    found.into_iter().filter(|unit| unit.is_dependency).collect()
}

#[test]
fn nothing_is_compiled_twice() {
    // Without `compiler` some of it is: the build script has it all the same.
    let commands = [
        "build",
        "build --features otlp",
        "build --release",
        "build --release --features otlp",
        "test --no-run",
        "test --no-run --features otlp --test otlp",
        "bench --no-run",
    ];
    let found = commands.map(|command| {
        let units = units(command);
        twice(&units).into_iter().map(|name| format!("{command}: {name}\n")).collect::<String>()
    });
    let found = found.concat();
    assert!(found.is_empty(), "ask for the same features on both sides, in Cargo.toml:\n{found}");
}

#[test]
fn one_command_of_cargo_leaves_to_the_next_what_it_compiled() {
    let check = |first: &str, next: &str, shared: fn(&[Unit]) -> Vec<&Unit>| {
        let (a, b) = (units(first), units(next));
        assert_eq!(different(&shared(&a), &shared(&b)), BTreeSet::new(), "{first}; {next}");
    };
    check("build", "test --no-run", dependencies);
    check("build", "bench --no-run --profile dev", dependencies);
    check("build --release", "bench --no-run", dependencies);
    // Their own dependencies ask for other features; that takes seconds.
    check("build", "test --no-run --features otlp --test otlp", below_the_build_script);
    check("build", "clippy --all-targets --features otlp", below_the_build_script);
}

#[test]
fn unsafe_code_stands_only_where_native_code_is_loaded() {
    let mut found = BTreeMap::new();
    for directory in ["crates", "tests", "examples", "benches", "guest-tools"] {
        visit(&repository().join(directory), &mut |path, text| {
            let count = text.lines().filter(|line| line.contains(concat!("unsafe", " {"))).count();
            if count > 0 {
                let path = path.strip_prefix(repository()).unwrap();
                found.insert(path.display().to_string(), count);
            }
        });
    }
    let expected = [
        ("crates/host/src/artifact.rs", 5),
        ("crates/host/src/cache/entry.rs", 1),
        ("crates/host/src/code_memory.rs", 1),
        ("crates/kitbag/builtins.rs", 1),
        // Inside the sandbox: memory for a guest without `std`.
        ("guest-tools/alone/src/lib.rs", 4),
    ];
    assert_eq!(found, expected.map(|(path, count)| (path.to_owned(), count)).into());
}

fn visit(directory: &Path, look: &mut dyn FnMut(&Path, &str)) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Not into what somebody built by hand.
            if !path.ends_with("target") {
                visit(&path, look);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_test_guests_are_no_part_of_the_binary() {
    let binary = fs::read(env!("CARGO_BIN_EXE_kitbag")).unwrap();
    let holds = |text: &[u8]| binary.windows(text.len()).any(|window| window == text);
    assert!(holds(b"Already learned (in system prompt)"), "`learn` is in there");
    // What `probe` says and nobody else does.
    assert!(!holds(b"marker absent, left one"));
}

#[test]
#[cfg(target_os = "linux")]
fn the_binary_is_linked_as_its_build_says() {
    let binary = fs::read(env!("CARGO_BIN_EXE_kitbag")).unwrap();
    // A 64-bit ELF file: its type is 3 where it can be loaded at any address. Then the
    // program headers, of which the one of type 3 names the dynamic loader.
    let number = |at: usize| u16::from_le_bytes([binary[at], binary[at + 1]]) as usize;
    assert_eq!(number(16), 3, "the binary can be loaded at one address only");
    let (start, size, count) = (number(32), number(54), number(56));
    let has_loader = (0..count).any(|index| binary[start + index * size] == 3);
    assert_eq!(has_loader, env!("TEST_LINKAGE") == "dynamic");
}

#[test]
#[cfg(target_os = "linux")]
fn the_binary_lies_at_another_address_each_time() {
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
