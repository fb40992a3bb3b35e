//! The version of the program, and how it was built.
//!
//! Everything is known at build time without a clock or the state of the machine, so that builds
//! are reproducible. The build sets the variable `SOURCE_COMMIT` to name its commit.

use std::ffi::OsString;

use serde_json::{Value, json};

use crate::console::output;
use crate::error::CliError;

const VERSION: &str = env!("CARGO_PKG_VERSION");

const COMMIT: Option<&str> = option_env!("SOURCE_COMMIT");

/// The features of this build, which `Cargo.toml` explains.
const FEATURES: [(&str, bool); 5] = [
    ("compiler", cfg!(feature = "compiler")),
    ("otlp", cfg!(feature = "otlp")),
    ("serve", cfg!(feature = "serve")),
    ("storage", cfg!(feature = "storage")),
    ("store", cfg!(feature = "store")),
];

/// Returns whether a command line asks for the version and the build: `--version` with `--verbose`
/// or `--json`, and no other words.
pub(crate) fn is_asked(arguments: impl Iterator<Item = OsString>) -> Option<bool> {
    let (mut version, mut verbose, mut json) = (false, false, false);
    for argument in arguments {
        match argument.to_str() {
            Some("--version" | "-V") => version = true,
            Some("--verbose" | "-v") => verbose = true,
            Some("--json") => json = true,
            _ => return None,
        }
    }
    (version && (verbose || json)).then_some(json)
}

/// Prints the version and the build.
pub(crate) fn print(as_json: bool) -> Result<(), CliError> {
    if as_json {
        return output::json(&json());
    }
    let rows = [
        ("commit", COMMIT.unwrap_or("unknown").to_owned()),
        ("target", target()),
        ("profile", profile().to_owned()),
        ("features", features().join(", ")),
        ("engine", engine()),
        ("tools", toolsets().join(", ")),
    ];
    let rows: Vec<_> =
        rows.into_iter().map(|(key, value)| vec![format!("{key}:"), value]).collect();
    output::data(&format!("kitbag {VERSION}\n{}", output::aligned(&rows)))
}

/// Returns the version and the build in one line.
pub(crate) fn line() -> String {
    let commit = COMMIT.map(|commit| format!(" ({commit})")).unwrap_or_default();
    format!("kitbag {VERSION}{commit}, {}, {}, {}", target(), profile(), engine())
}

pub(crate) fn json() -> Value {
    json!({
        "version": VERSION,
        "commit": COMMIT,
        "target": target(),
        "profile": profile(),
        "features": features(),
        "engine": engine(),
        "tools": toolsets(),
    })
}

fn target() -> String {
    let libc = match () {
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "gnu") => "-gnu",
        () => "",
    };
    format!("{}-{}{libc}", std::env::consts::ARCH, std::env::consts::OS)
}

fn profile() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

fn features() -> Vec<&'static str> {
    FEATURES.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect()
}

fn engine() -> String {
    format!("wasmtime {}", kitbag::host::ENGINE_VERSION)
}

fn toolsets() -> Vec<&'static str> {
    kitbag::Kitbag::toolset_names()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_question_for_the_version_is_one() {
        let check = |line: &str, expected: Option<bool>| {
            assert_eq!(is_asked(line.split_whitespace().map(OsString::from)), expected, "{line}");
        };
        check("--version --verbose", Some(false));
        check("-v -V", Some(false));
        check("--version --json", Some(true));
        check("--version", None);
        check("--verbose", None);
        check("run --version --verbose", None);
    }
}
