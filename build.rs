//! Builds the guests, compiles the built-in tools to native code, and writes the code that the
//! library embeds.
//!
//! This script compiles with the engine that later runs the tools: `kitbag-engine` is also a build
//! dependency, so there is a single engine configuration.

#[path = "crates/kitbag/build/guests.rs"]
mod guests;
#[path = "crates/kitbag/build/snapshot.rs"]
mod snapshot;

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io, thread};

use kitbag_engine::{EmbeddedArtifact, EmbeddedComponent, Support, inspect_file, precompile};
use sha2::{Digest, Sha256};

use crate::guests::{Guests, find_target};
use crate::snapshot::{INITIALIZE, snapshot};

/// Time limit for compiling a component: the machine may be busy with other builds.
const COMPILE_TIME: Duration = Duration::from_secs(3600);

/// The component that is in every build: the host uses it for knowledge.
const ALWAYS: &str = "learn";

/// Components built separately, since their features would change the others: `data` requests
/// numbers with all their digits, and `learn` does not use `std`.
const ALONE: &[&str] = &["learn", "data"];

/// Components whose native code is used where it is in the binary. The others are packed: they are
/// three times as large, and unpacking one takes about 1 ms per MB at the first call of a process.
const IN_PLACE: &[&str] = &["calc", "files", "learn", "time"];

/// A guest for the tests that is built separately, since it requests asynchronous bindings.
const PROBE_ASYNC: &str = "probe-async";

/// Error message for a failed build: one line that names the fix.
type Failure = String;

fn main() {
    if let Err(failure) = run() {
        println!("cargo::error={failure}");
        exit(1);
    }
}

fn run() -> Result<(), Failure> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    watch(&root);
    find_target()?;
    let guests = Guests::new(&root, &out)?;
    // The tests load guests that are not part of the binary. `cargo run` also sets such variables,
    // so none may look like one of kitbag's own.
    println!("cargo::rustc-env=TEST_GUESTS={}", guests.components().display());
    embed(&guests, &out)
}

/// Tells cargo which files the result depends on. The host's own crates are build dependencies,
/// which cargo tracks automatically.
fn watch(root: &Path) {
    let guests = root.join("guest-tools");
    let members = fs::read_dir(&guests).into_iter().flatten().flatten();
    let members = members
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && path.file_name() != Some(OsStr::new("target")));
    let files = ["Cargo.toml", "Cargo.lock"].map(|name| guests.join(name));
    let others = ["build.rs", "crates/kitbag/build", "wit", "rust-toolchain.toml"]
        .map(|name| root.join(name));
    for path in members.chain(files).chain(others) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// Builds the guests and writes the file that the library includes. Built-ins are compiled to
/// native code while cargo builds other guests. Those with a workspace of their own take longest:
/// they are built first, beside the others where cargo's locks allow it.
fn embed(guests: &Guests, out: &Path) -> Result<(), Failure> {
    let is_wanted = |name: &&str| {
        let feature = format!("CARGO_FEATURE_TOOL_{}", name.to_uppercase());
        *name == ALWAYS || env::var_os(feature).is_some()
    };
    let builtins = guests.builtins()?;
    let names = builtins.iter().copied().filter(is_wanted);
    let (workspaces, names): (Vec<_>, Vec<_>) = names.partition(|name| guests.is_workspace(name));
    let (alone, together): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| ALONE.contains(name));
    let compiler = compiler(guests)?;
    let mut components = thread::scope(|scope| {
        let (finished, ready) = mpsc::channel::<&str>();
        let compiling = scope.spawn(|| {
            let ready = ready.into_iter();
            let compiled = ready.map(|name| compile(name, guests, &compiler));
            compiled.collect::<Result<Vec<_>, Failure>>()
        });
        // If compilation failed, that thread has ended and its error is returned below.
        let first = finished.clone();
        let building = scope.spawn(move || {
            workspaces.into_iter().try_for_each(|name| {
                guests.build_workspace(name)?;
                let _ = first.send(name);
                Ok::<_, Failure>(())
            })
        });
        let build = |names: &[&'static str]| {
            let packages: Vec<_> =
                names.iter().map(|name| format!("--package=kitbag-{name}")).collect();
            guests.build(&packages)?;
            for name in names {
                let _ = finished.send(name);
            }
            Ok::<_, Failure>(())
        };
        if !together.is_empty() {
            build(&together)?;
        }
        alone.iter().try_for_each(|name| build(&[*name]))?;
        drop(finished);
        // Guests for the tests. One of them is also used to check a release archive.
        let others = builtins.iter().copied().filter(|name| !guests.is_workspace(name));
        let others = others.chain([PROBE_ASYNC]).map(|name| format!("--exclude=kitbag-{name}"));
        guests.build(&["--workspace".to_owned()].into_iter().chain(others).collect::<Vec<_>>())?;
        guests.build(&[format!("--package=kitbag-{PROBE_ASYNC}")])?;
        building.join().unwrap_or_else(|_| Err("building a built-in panicked".into()))?;
        compiling.join().unwrap_or_else(|_| Err("compiling a built-in panicked".into()))
    })?;
    components.sort_unstable_by_key(|(name, _)| *name);
    let components: Vec<_> = components.into_iter().map(|(_, component)| component).collect();
    fs::write(out.join("builtins.rs"), EmbeddedComponent::table(&components)?)
        .map_err(|error| format!("builtins.rs: {error}"))
}

/// Compiles a built-in to native code and packs it, unless the same compiler has already done so
/// for the same component.
fn compile<'a>(
    name: &'a str,
    guests: &Guests,
    compiler: &[u8],
) -> Result<(&'a str, EmbeddedComponent), Failure> {
    let failed = |what: &str, error: &dyn fmt::Display| {
        format!("the built-in `{name}` cannot be {what}: {error}")
    };
    let wasm = guests.component(name);
    let content = fs::read(&wasm).map_err(|error| failed("read", &error))?;
    let made = guests.made(name)?;
    let [artifact_file, packed, made_from, lock] =
        ["artifact", "packed", "key", "lock"].map(|it| made.join(format!("{name}.{it}")));
    // Another build may compile the same built-in at the same time.
    let lock = File::create(lock).and_then(|lock| lock.lock().map(|()| lock));
    let _lock = lock.map_err(|error| failed("locked", &error))?;
    // Without native code, a built-in is compiled at its first use.
    let native = has_compiler_for(&variable("CARGO_CFG_TARGET_ARCH")?);
    let key = [compiler, &[u8::from(native)], &Sha256::digest(&content)].concat();
    if fs::read(&made_from).ok().as_ref() != Some(&key) {
        let _ = fs::remove_file(&made_from);
        let exports = inspect_file(&wasm, &Support::ANY).map_err(|error| failed("read", &error))?;
        let content = match exports.exports.iter().any(|export| export.name == INITIALIZE) {
            true => snapshot(&content)
                .map_err(|error| failed("initialised", &format_args!("{error:#}")))?,
            false => content.clone(),
        };
        // Level 19 takes half a minute for all built-ins, and more for the snapshot of Python.
        let level = match guests.profile(name) {
            "release" if guests.is_workspace(name) => 17,
            "release" => 19,
            _ => 1,
        };
        let artifact = match native {
            true => {
                let target = variable("TARGET")?;
                precompile(&wasm, content.clone(), &target, COMPILE_TIME, &Support::ANY)
                    .map_err(|error| failed("compiled", &error))?
            }
            false => Vec::new(),
        };
        let component = EmbeddedArtifact::pack(&content, &artifact, level);
        let artifact = match artifact.is_empty() || IN_PLACE.contains(&name) {
            true => Ok(artifact),
            false => EmbeddedArtifact::pack(&artifact, &[], level),
        };
        let files = [
            (&artifact_file, artifact.map_err(|error| failed("packed", &error))?),
            (&packed, component.map_err(|error| failed("packed", &error))?),
            (&made_from, key),
        ];
        for (path, bytes) in files {
            fs::write(path, bytes).map_err(|error| failed("written", &error))?;
        }
    }
    Ok((name, EmbeddedComponent::read(name, &content, artifact_file, packed)?))
}

/// Returns true if the compiler in this script can compile for a processor.
fn has_compiler_for(architecture: &str) -> bool {
    architecture == env::consts::ARCH
        || (cfg!(feature = "cross-arm64") && architecture == "aarch64")
}

/// Returns a digest of the code that compiles the built-ins and reads their descriptions: its
/// sources, and the versions of its dependencies.
fn compiler(guests: &Guests) -> Result<Vec<u8>, Failure> {
    let Guests { root, target_dir, .. } = guests;
    let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let names = [
        "build.rs",
        "crates/base",
        "crates/contract",
        "crates/engine",
        "crates/kitbag/build",
        "wit",
    ];
    let mut waiting: Vec<_> = names.map(|name| root.join(name)).into();
    let mut digest = Sha256::new();
    if target_dir.ancestors().nth(2) == Some(root) {
        waiting.push(root.join("Cargo.lock"));
    } else {
        // Another workspace may determine the versions, so the script itself identifies them.
        let script = env::current_exe().and_then(|script| script.metadata());
        let modified = script.and_then(|script| script.modified());
        digest.update(format!("{:?}", modified.map_err(|error| failed(root, error))?));
    }
    let mut files = Vec::new();
    while let Some(path) = waiting.pop() {
        if !path.is_dir() {
            files.push(path);
            continue;
        }
        for entry in fs::read_dir(&path).map_err(|error| failed(&path, error))? {
            waiting.push(entry.map_err(|error| failed(&path, error))?.path());
        }
    }
    files.sort_unstable();
    for path in files {
        digest.update(Sha256::digest(fs::read(&path).map_err(|error| failed(&path, error))?));
    }
    Ok(digest.finalize().to_vec())
}

fn variable(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|_| format!("cargo did not set `{name}`"))
}
