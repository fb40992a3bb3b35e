//! Builds the guests, compiles the built-in ones to native code, and writes
//! what the library embeds.
//!
//! The engine that compiles here is the one that runs later: `kitbag-host` is
//! a build dependency as well, so there is one configuration of it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io, thread};

use kitbag_contract::{Description, ToolDescription};
use kitbag_host::{
    ComponentSource, EmbeddedArtifact, Host, HostOptions, Limits, Precompiled, RunContext,
};
use kitbag_policy::{
    Access, Grants, Request, RequestedGrants, StorageGrant, StorageRequest, WantedTool,
};
use sha2::{Digest, Sha256};

/// How long a component may take to compile: the machine may be busy with other builds.
const COMPILE_TIME: Duration = Duration::from_secs(3600);

/// The components that are part of the binary, by the name of their directory. Each
/// describes its tools, of which it may have several. The feature `tool-NAME` leaves one out.
const BUILTINS: &[&str] =
    &["calc", "data", "fetch", "files", "learn", "memory", "python", "search", "text", "time"];

/// The component that is in every build: the host asks it for knowledge.
const ALWAYS: &str = "learn";

/// What guests are built for.
const GUEST_TARGET: &str = "wasm32-wasip2";

/// Why a build stops, in one line that says what to do.
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
    // For the tests, which load guests that are no part of the binary. `cargo run`
    // sets such variables too, so none may look like one of kitbag's own.
    println!("cargo::rustc-env=TEST_GUESTS={}", guests.components().display());
    embed(&guests, &out)
}

/// Tells cargo what the result depends on. The host's own crates are build
/// dependencies, which cargo watches by itself.
fn watch(root: &Path) {
    let guests = root.join("guest-tools");
    let members = fs::read_dir(&guests).into_iter().flatten().flatten();
    let members = members
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && path.file_name() != Some(OsStr::new("target")));
    let files = ["Cargo.toml", "Cargo.lock"].map(|name| guests.join(name));
    let others = ["build.rs", "wit", "rust-toolchain.toml"].map(|name| root.join(name));
    for path in members.chain(files).chain(others) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// Makes sure that the guests' target is there before cargo fails without it,
/// late and with an error that does not say what to do.
fn find_target() -> Result<(), Failure> {
    let has_target = || {
        let output = Command::new(rustc())
            .args(["--print", "target-libdir", "--target", GUEST_TARGET])
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let directory = String::from_utf8(output.stdout).ok()?;
        let mut libraries = fs::read_dir(directory.trim()).ok()?.flatten();
        libraries
            .any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
            .then_some(())
    };
    if has_target().is_some() {
        return Ok(());
    }
    println!("cargo::warning=adding the target {GUEST_TARGET} with rustup");
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", GUEST_TARGET]).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(toolchain) = env::var_os("RUSTUP_TOOLCHAIN") {
        rustup.arg("--toolchain").arg(toolchain);
    }
    match rustup.output() {
        Ok(output) if output.status.success() && has_target().is_some() => Ok(()),
        _ => Err(format!(
            "the tools inside kitbag are built for {GUEST_TARGET}, which this Rust does not have; \
             install it with `rustup target add {GUEST_TARGET}`, or with your distribution's \
             package of the Rust standard library for that target"
        )),
    }
}

/// The guests' workspace, as it is built for this build of kitbag.
struct Guests {
    root: PathBuf,
    /// Shared by all profiles of kitbag. A directory of its own: cargo holds a lock on the
    /// outer one.
    target_dir: PathBuf,
    /// As in `guest-tools/Cargo.toml`.
    profile: &'static str,
}

impl Guests {
    fn new(root: &Path, out: &Path) -> Result<Self, Failure> {
        // OUT_DIR is `target/PROFILE/build/kitbag-HASH/out`; where cargo was asked for a
        // target, `target/TRIPLE/PROFILE/…`.
        let mut target = out.ancestors().nth(4).unwrap_or(out);
        if target.file_name() == Some(OsStr::new(&variable("TARGET")?)) {
            target = target.parent().unwrap_or(target);
        }
        let profile = match variable("PROFILE")?.as_str() {
            "release" => "release",
            _ => "quick",
        };
        Ok(Self { root: root.to_owned(), target_dir: target.join("guests"), profile })
    }

    /// Builds some packages with nothing but the features that they ask for themselves, so
    /// that the bytes of a component do not depend on the others.
    fn build(&self, packages: &[String]) -> Result<(), Failure> {
        let mut cargo = Command::new(variable("CARGO")?);
        cargo
            .args(["build", "--profile", self.profile, "--locked", "--target", GUEST_TARGET])
            .args(packages)
            .arg("--manifest-path")
            .arg(self.root.join("guest-tools/Cargo.toml"))
            .arg("--target-dir")
            .arg(&self.target_dir)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        for (name, _) in env::vars_os() {
            if is_of_outer_build(&name) {
                cargo.env_remove(name);
            }
        }
        // The same sources give the same bytes, wherever they lie.
        let remap =
            [(&self.root, "/kitbag"), (&cargo_home(), "/cargo"), (&self.target_dir, "/target")];
        let remap =
            remap.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
        // `memchr`, below whatever searches, has code for it.
        let flags: Vec<_> = remap.chain(["-Ctarget-feature=+simd128".to_owned()]).collect();
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        // Standard error is the build script's own, which cargo shows when it fails.
        let status = cargo.status().map_err(|error| format!("cargo cannot be started: {error}"))?;
        if !status.success() {
            return Err("the guests in guest-tools/ cannot be built; see the output above".into());
        }
        Ok(())
    }

    /// Where the components are.
    fn components(&self) -> PathBuf {
        self.target_dir.join(GUEST_TARGET).join(self.profile)
    }

    /// Where what is made of them lies, for this target: shared by all builds, since each
    /// set of features and each lint has a build script of its own.
    fn made(&self) -> Result<PathBuf, Failure> {
        let name = format!("{}-{}", variable("TARGET")?, self.profile);
        let directory = self.target_dir.join("built-ins").join(name);
        fs::create_dir_all(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(directory)
    }
}

/// Whether a variable belongs to the build of kitbag and would steer that of
/// the guests.
fn is_of_outer_build(name: &OsString) -> bool {
    const NAMES: [&str; 5] = [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_TARGET",
    ];
    const PREFIXES: [&str; 7] = [
        "CARGO_CFG_",
        "CARGO_FEATURE_",
        "CARGO_MANIFEST_",
        "CARGO_PKG_",
        "CARGO_PROFILE_",
        "CARGO_TARGET_",
        "DEP_",
    ];
    let name = name.to_string_lossy();
    NAMES.contains(&&*name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Builds the built-ins and writes the file that the library includes. While one is
/// compiled to native code, cargo builds the next.
fn embed(guests: &Guests, out: &Path) -> Result<(), Failure> {
    let is_wanted = |name: &&&str| {
        let feature = format!("CARGO_FEATURE_TOOL_{}", name.to_uppercase());
        **name == ALWAYS || env::var_os(feature).is_some()
    };
    let names: Vec<_> = BUILTINS.iter().filter(is_wanted).copied().collect();
    let made = guests.made()?;
    let compiler = compiler(guests)?;
    let (made, compiler) = (&made, &compiler);
    let built = thread::scope(|scope| {
        // One after the other, each on all processors, while cargo builds the next one: a
        // process compiles only a few at once.
        let (finished, ready) = mpsc::channel::<(&str, PathBuf)>();
        let compiling = scope.spawn(move || {
            let built = ready.iter().map(|(name, wasm)| Built::new(name, &wasm, made, compiler));
            built.collect::<Result<Vec<_>, Failure>>()
        });
        for &name in &names {
            guests.build(&["--package".into(), format!("kitbag-{name}")])?;
            let wasm = guests.components().join(format!("kitbag_{name}.wasm"));
            if finished.send((name, wasm)).is_err() {
                // Compiling has failed, which is what it ends with.
                break;
            }
        }
        drop(finished);
        // What the tests load, and the archive of a release is tried with.
        let others = BUILTINS.iter().map(|name| format!("--exclude=kitbag-{name}"));
        guests.build(&["--workspace".to_owned()].into_iter().chain(others).collect::<Vec<_>>())?;
        compiling.join().unwrap_or_else(|_| Err("compiling a built-in panicked".into()))
    })?;

    let mut entries = String::new();
    let mut tools: Vec<&str> = Vec::new();
    for (name, built) in names.iter().zip(&built) {
        if let Some(tool) = built.tools.iter().find(|tool| tools.contains(&tool.name.as_str())) {
            return Err(format!("two built-ins have a tool `{}`, one is `{name}`", tool.name));
        }
        let declared: Vec<_> = built.tools.iter().map(ToString::to_string).collect();
        let (native, packed) = (&built.native, &built.packed);
        let declared = declared.join(", ");
        writeln!(entries, "    {name}: {native:?}, {packed:?}, [{declared}];")
            .expect("a string grows");
        tools.extend(built.tools.iter().map(|tool| tool.name.as_str()));
    }
    let names = tools.join(" ");
    let text = format!(
        "/// Calls a macro with the names of all built-in tools, as identifiers.\n\
         ///\n\
         /// `tests/` uses it to prove that every tool has its tests.\n\
         #[macro_export]\n\
         macro_rules! for_each_tool {{\n    ($macro:ident) => {{ $macro! {{ {names} }} }};\n}}\n\n\
         builtins! {{\n{entries}}}\n"
    );
    fs::write(out.join("builtins.rs"), text).map_err(|error| format!("builtins.rs: {error}"))
}

/// A built-in component, as the library includes it.
struct Built {
    /// The file of its native code.
    native: PathBuf,
    /// The file of the component, packed.
    packed: PathBuf,
    tools: Vec<Declared>,
}

/// One tool of a built-in component.
struct Declared {
    name: String,
    /// As JSON.
    description: String,
    workspace: Option<Access>,
    /// Whether it asks for storage, of which each has the default.
    keeps: bool,
    /// The guest paths of the directories that each call is given.
    given_by_call: Vec<String>,
    /// What it cannot do without, by kind: a line of its grants in TOML.
    required: Vec<String>,
    /// Whether it asks for what its caller may call.
    calls: bool,
}

impl Built {
    fn new(name: &str, wasm: &Path, made: &Path, compiler: &[u8]) -> Result<Self, Failure> {
        let failed = |what: &str, error: &dyn fmt::Display| {
            format!("the built-in `{name}` cannot be {what}: {error}")
        };
        let file = |extension: &str| made.join(format!("{name}.{extension}"));
        let [native, packed, described, made_from] =
            ["artifact", "packed", "json", "key"].map(file);
        let content = fs::read(wasm).map_err(|error| failed("read", &error))?;
        // Another build may make the same at the same time.
        let lock = File::create(file("lock")).and_then(|lock| lock.lock().map(|()| lock));
        let lock = lock.map_err(|error| failed("locked", &error))?;
        // What was made from this component by the same compiler is made already.
        let key = [compiler, &Sha256::digest(&content)].concat();
        if fs::read(&made_from).ok().as_ref() != Some(&key) {
            let _ = fs::remove_file(&made_from);
            let compiled = is_compiled()?
                .then(|| {
                    Host::precompile(wasm, &content, &variable("TARGET")?, COMPILE_TIME)
                        .map_err(|error| failed("compiled", &error))
                })
                .transpose()?;
            let (artifact, described_by) = match compiled {
                Some(Precompiled { native, described }) => (native, described),
                None => (Vec::new(), None),
            };
            // The smallest takes half a minute for all of them.
            let level = if variable("PROFILE")? == "release" { 19 } else { 1 };
            let pack = |bytes: &[u8]| {
                EmbeddedArtifact::pack(bytes, level).map_err(|error| failed("packed", &error))
            };
            let artifact = EmbeddedArtifact::pack_native(artifact, level)
                .map_err(|error| failed("packed", &error))?;
            let says = match described_by {
                Some(says) => says,
                // What is compiled for another machine is compiled once more for this one.
                None => {
                    let host = Host::new(HostOptions::default());
                    let source = ComponentSource::File(wasm.to_owned().into());
                    let limits = Limits { compile: COMPILE_TIME, ..Limits::default() };
                    let component = host
                        .component(&source, &limits, &RunContext::default())
                        .map_err(|error| failed("described", &error))?;
                    component.described().clone()
                }
            };
            let description = says
                .description()
                .ok_or_else(|| failed("described", &"it exports no usable `describe`"))?;
            let json =
                serde_json::to_vec(description).map_err(|error| failed("described", &error))?;
            let files = [
                (&native, artifact),
                (&packed, pack(&content)?),
                (&described, json),
                (&made_from, key),
            ];
            for (path, bytes) in files {
                fs::write(path, bytes).map_err(|error| failed("written", &error))?;
            }
        }
        drop(lock);
        let json = fs::read(&described).map_err(|error| failed("read", &error))?;
        let description: Description =
            serde_json::from_slice(&json).map_err(|error| failed("described", &error))?;
        if description.tools.is_empty() {
            return Err(failed("described", &"it has no tool"));
        }
        if !description.prompts.is_empty() || !description.resources.is_empty() {
            return Err(failed("described", &"only tools can be built in"));
        }
        let declared = |tool: &ToolDescription| {
            let requested = RequestedGrants::read(&tool.grants.clone().unwrap_or_default());
            let requested = requested.map_err(|error| failed("described", &error))?;
            let mut declared = Declared {
                name: tool.name.clone(),
                description: serde_json::to_string(tool)
                    .map_err(|error| failed("described", &error))?,
                workspace: None,
                keeps: false,
                given_by_call: Vec::new(),
                required: Vec::new(),
                calls: false,
            };
            let nothing = Grants::default();
            for (_, missing) in requested.missing_required(&nothing) {
                declared.required.push(missing.as_setting());
            }
            for request in requested.requests() {
                let request = match request {
                    Request::Path(request) => request,
                    Request::Tool(WantedTool::Caller) => {
                        declared.calls = true;
                        continue;
                    }
                    Request::Storage(StorageRequest(wanted)) => {
                        if wanted != StorageGrant::default() {
                            return Err(failed(
                                "described",
                                &"it asks for storage of another size",
                            ));
                        }
                        declared.keeps = true;
                        continue;
                    }
                    // What is granted by name is not given to a built-in by itself.
                    _ => continue,
                };
                if !request.is_workspace() {
                    declared.given_by_call.push(request.guest.to_string());
                } else if declared.workspace != Some(Access::ReadWrite) {
                    declared.workspace = Some(request.access);
                }
            }
            Ok(declared)
        };
        let tools = description.tools.iter().map(declared).collect::<Result<_, Failure>>()?;
        Ok(Self { native, packed, tools })
    }
}

/// Whether the built-ins can be compiled to native code here. For another processor than
/// this machine's kitbag has no compiler: such a build compiles them where it runs.
fn is_compiled() -> Result<bool, Failure> {
    Ok(variable("CARGO_CFG_TARGET_ARCH")? == env::consts::ARCH)
}

/// The digest of what compiles the built-ins and reads what they say: the sources that this
/// script has it from, and the versions of what they use.
fn compiler(guests: &Guests) -> Result<Vec<u8>, Failure> {
    let Guests { root, target_dir, .. } = guests;
    let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let names = ["build.rs", "crates/contract", "crates/host", "crates/policy", "wit"];
    let mut waiting: Vec<_> = names.map(|name| root.join(name)).into();
    let mut digest = Sha256::new();
    if target_dir.ancestors().nth(2) == Some(root) {
        waiting.push(root.join("Cargo.lock"));
    } else {
        // The versions may be those of another workspace: what differs is another script.
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

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, workspace, keeps, given_by_call, required, calls } = self;
        let workspace = match workspace {
            None => "none",
            Some(Access::ReadOnly) => "ro",
            Some(Access::ReadWrite) => "rw",
        };
        write!(
            f,
            "{name}: {description:?}, {workspace}, {keeps}, {given_by_call:?}, {required:?}, {calls}"
        )
    }
}

fn cargo_home() -> PathBuf {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo"))
}

/// The compiler that cargo uses.
fn rustc() -> OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn variable(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|_| format!("cargo did not set `{name}`"))
}
