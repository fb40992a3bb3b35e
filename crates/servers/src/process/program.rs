//! Programs of servers, and the directories that they need to run.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use kitbag_base::text::shown_path;

/// Interpreters that read their program from the file that is their first argument.
const INTERPRETERS: [&str; 10] =
    ["bash", "bun", "deno", "node", "nodejs", "perl", "python", "python3", "ruby", "sh"];

/// Returns the absolute path of a command. One with a slash is relative to `directory`, others are
/// searched in `path`.
///
/// # Errors
///
/// The reason, for a person.
pub(super) fn find(command: &str, directory: &Path, path: &OsStr) -> Result<PathBuf, String> {
    if command.is_empty() {
        return Err("the command is empty".to_owned());
    }
    if command.contains('/') {
        let program = directory.join(command);
        return match fs::metadata(&program) {
            Ok(metadata) if metadata.is_file() => Ok(program),
            Ok(_) => Err(format!("`{}` is not a file", shown_path(&program))),
            Err(error) => Err(error.to_string()),
        };
    }
    std::env::split_paths(path)
        .filter(|entry| entry.is_absolute())
        .map(|entry| entry.join(command))
        .find(|program| super::sys::is_executable(program))
        .ok_or_else(|| "no such program in `PATH`".to_owned())
}

/// Returns the files and directories that a program needs: itself, its interpreter, and the
/// directories in which they were installed. Directories of the system are not listed.
pub(super) fn parts(
    program: &Path,
    arguments: &[String],
    directory: &Path,
    path: &OsStr,
) -> BTreeSet<PathBuf> {
    let mut parts = BTreeSet::new();
    let mut next = Some(program.to_owned());
    // A script, `env`, an interpreter, its script; each may be a shim.
    for _ in 0..6 {
        let Some(file) = next.take() else { break };
        add_installation(&file, &mut parts);
        next = interpreter(&file, directory, path);
        if next.is_none() {
            let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let script = arguments.iter().find(|it| !it.starts_with('-'));
            if let Some(script) = script.filter(|_| INTERPRETERS.contains(&name)) {
                let script = directory.join(script);
                if script.is_file() {
                    add_installation(&script, &mut parts);
                }
            }
        }
    }
    parts
}

/// Adds a file, the files to which it links, and the directories in which they were installed.
fn add_installation(file: &Path, parts: &mut BTreeSet<PathBuf>) {
    let mut hop = file.to_owned();
    for _ in 0..16 {
        add_directories(&hop, parts);
        let Ok(target) = fs::read_link(&hop) else { break };
        hop = hop.parent().unwrap_or(&hop).join(target);
    }
    if let Ok(real) = file.canonicalize() {
        add_directories(&real, parts);
        parts.insert(real);
    }
}

/// Adds the directories in which a file was installed, as far as they can be recognised.
fn add_directories(file: &Path, parts: &mut BTreeSet<PathBuf>) {
    // Without links in the parents, and without `..`.
    let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else { return };
    let Ok(parent) = parent.canonicalize() else { return };
    let file = parent.join(name);

    // Packages of Node.js: the outermost `node_modules`.
    let mut outer = PathBuf::new();
    for component in file.components() {
        outer.push(component);
        if component == Component::Normal(OsStr::new("node_modules")) {
            parts.insert(outer.clone());
            break;
        }
    }
    // Virtual environments of Python, and the interpreter behind them.
    for ancestor in file.ancestors().skip(1).take(4) {
        let Ok(text) = fs::read_to_string(ancestor.join("pyvenv.cfg")) else { continue };
        parts.insert(ancestor.to_owned());
        let home = text.lines().filter_map(|line| line.split_once('='));
        let home = home.into_iter().find(|(key, _)| key.trim() == "home");
        if let Some((_, home)) = home {
            add_directories(&Path::new(home.trim()).join("python3"), parts);
        }
        break;
    }
    // `PREFIX/bin/PROGRAM`, and the shims of version managers.
    let Some(prefix) = parent.parent() else { return };
    if parent.ends_with("bin") {
        for name in ["bin", "lib", "lib64", "libexec", "include", "ssl"] {
            let directory = prefix.join(name);
            if directory.is_dir() {
                parts.insert(directory);
            }
        }
    } else if parent.ends_with("shims") {
        parts.insert(prefix.to_owned());
    }
}

/// Returns the interpreter in the first line of a script.
fn interpreter(file: &Path, directory: &Path, path: &OsStr) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(file).ok()?.take(512).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = str::from_utf8(line).ok()?.split_whitespace();
    let interpreter = words.next()?;
    if interpreter.ends_with("/env") {
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        return find(name, directory, path).ok();
    }
    Some(PathBuf::from(interpreter))
}


