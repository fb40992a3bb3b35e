//! The house: format, lints, documentation, the guests' own tests, and that
//! what is built is what is written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::support::repository;

/// Cargo locks its target directory; the checks that share one wait here.
static CARGO: Mutex<()> = Mutex::new(());

#[track_caller]
fn cargo(directory: &Path, arguments: &[&str], env: &[(&str, &str)]) {
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

#[test]
fn unsafe_code_stands_only_where_native_code_is_loaded() {
    let mut found = BTreeMap::new();
    for directory in ["crates", "tests", "examples", "benches"] {
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
    ];
    assert_eq!(found, expected.map(|(path, count)| (path.to_owned(), count)).into());
}

fn visit(directory: &Path, look: &mut dyn FnMut(&Path, &str)) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, look);
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
    // The program headers of a 64-bit ELF file; the one of type 3 names the
    // dynamic loader.
    let number = |at: usize| u16::from_le_bytes([binary[at], binary[at + 1]]) as usize;
    let (start, size, count) = (number(32), number(54), number(56));
    let has_loader = (0..count).any(|index| binary[start + index * size] == 3);
    assert_eq!(has_loader, env!("TEST_LINKAGE") == "dynamic");
}
