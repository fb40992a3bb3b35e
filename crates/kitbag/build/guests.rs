//! The guests' workspace, built with cargo for WebAssembly.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use super::{Failure, variable};

const GUEST_TARGET: &str = "wasm32-wasip2";

/// Checks that the guests' target is installed. Without it, cargo fails late, with an error that
/// does not say what to do.
pub(super) fn find_target() -> Result<(), Failure> {
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

/// The guests' workspace, with its profile and directories for this build of kitbag.
pub(super) struct Guests {
    pub(super) root: PathBuf,
    /// Shared by all profiles of kitbag. Separate from the outer target directory, on which cargo
    /// holds a lock.
    pub(super) target_dir: PathBuf,
    /// A profile of `guest-tools/Cargo.toml`.
    profile: &'static str,
}

impl Guests {
    pub(super) fn new(root: &Path, out: &Path) -> Result<Self, Failure> {
        // OUT_DIR is `target/PROFILE/build/kitbag-HASH/out`, or `target/TRIPLE/PROFILE/…` if cargo
        // was invoked with `--target`.
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

    /// Returns the names of the components in the binary: the directories with a `describe.json`,
    /// in order. Disabling the feature `tool-NAME` omits one.
    pub(super) fn builtins(&self) -> Result<Vec<&'static str>, Failure> {
        let guests = self.root.join("guest-tools");
        let failed = |error: io::Error| format!("{}: {error}", guests.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(&guests).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.path().join("describe.json").exists() {
                names.push(&*entry.file_name().to_string_lossy().into_owned().leak());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Builds packages in one invocation of cargo, which unifies their features.
    pub(super) fn build(&self, packages: &[String]) -> Result<(), Failure> {
        let mut cargo = self.cargo(&self.root.join("guest-tools/Cargo.toml"))?;
        run(cargo.args(["--profile", self.profile]).args(packages))
    }

    /// Builds a guest that is a workspace of its own, always with the profile `release`: its
    /// dependencies take minutes, so that all builds of kitbag share them. They declare a newer
    /// Rust than they need.
    pub(super) fn build_workspace(&self, name: &str) -> Result<(), Failure> {
        let manifest = self.root.join("guest-tools").join(name).join("Cargo.toml");
        let mut cargo = self.cargo(&manifest)?;
        cargo.args(["--release", "--ignore-rust-version"]).arg(format!("--package=kitbag-{name}"));
        // Another value would compile its local crates, and all that depend on them, again.
        run(cargo.env("CARGO_INCREMENTAL", "0"))
    }

    fn cargo(&self, manifest: &Path) -> Result<Command, Failure> {
        let mut cargo = Command::new(variable("CARGO")?);
        cargo
            .args(["build", "--locked", "--target", GUEST_TARGET])
            .arg("--manifest-path")
            .arg(manifest)
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
        // Makes the output independent of the source directory.
        let remap =
            [(&self.root, "/kitbag"), (&cargo_home(), "/cargo"), (&self.target_dir, "/target")];
        let remap =
            remap.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
        // `memchr` has an implementation for SIMD.
        let flags: Vec<_> = remap.chain(["-Ctarget-feature=+simd128".to_owned()]).collect();
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        Ok(cargo)
    }

    /// Returns the profile that a guest is built with.
    pub(super) fn profile(&self, name: &str) -> &'static str {
        if self.is_workspace(name) { "release" } else { self.profile }
    }

    /// Returns true if a guest is a workspace of its own.
    pub(super) fn is_workspace(&self, name: &str) -> bool {
        self.root.join("guest-tools").join(name).join("Cargo.lock").exists()
    }

    /// Returns the file of a built-in.
    pub(super) fn component(&self, name: &str) -> PathBuf {
        let directory = self.target_dir.join(GUEST_TARGET).join(self.profile(name));
        directory.join(format!("kitbag_{name}.wasm"))
    }

    pub(super) fn components(&self) -> PathBuf {
        self.target_dir.join(GUEST_TARGET).join(self.profile)
    }

    /// Returns the directory of a guest's native code for this target. All builds share it, since
    /// each set of features and each lint run has its own build script.
    pub(super) fn made(&self, name: &str) -> Result<PathBuf, Failure> {
        let name = format!("{}-{}", variable("TARGET")?, self.profile(name));
        let directory = self.target_dir.join("built-ins").join(name);
        fs::create_dir_all(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(directory)
    }
}

fn run(cargo: &mut Command) -> Result<(), Failure> {
    // Standard error is inherited from the build script; cargo shows it on failure.
    let status = cargo.status().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !status.success() {
        return Err("the guests in guest-tools/ cannot be built; see the output above".into());
    }
    Ok(())
}

/// Returns true if a variable belongs to the build of kitbag and would affect the build of the
/// guests.
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

fn cargo_home() -> PathBuf {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo"))
}

/// Returns the compiler that cargo uses.
fn rustc() -> OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}
