//! Programs of servers, and the directories that they need to run.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use kitbag_base::text::shown_path;

use super::sys::is_executable;

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
        .find(|program| is_executable(program))
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
        // A command line must not name a key as a program to make it readable.
        let Some(file) = next.take().filter(|file| is_executable(file)) else { break };
        add_installation(&file, &mut parts);
        next = interpreter(&file, directory, path);
        if file.ends_with("env") {
            let is_program = |word: &&String| !word.starts_with('-') && !word.contains('=');
            let program = arguments.iter().find(is_program);
            next = program.and_then(|program| find(program, directory, path).ok());
        } else if next.is_none() {
            let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let script = arguments.iter().find(|it| !it.starts_with('-'));
            if let Some(script) = script.filter(|_| INTERPRETERS.contains(&name)) {
                // Only a package: other files in a command line are not granted by it.
                parts.extend(package_directory(&directory.join(script)));
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

    parts.extend(package_directory(&file));
    // Virtual environments of Python, and the interpreter behind them.
    for ancestor in file.ancestors().skip(1).take(4) {
        let Ok(text) = fs::read_to_string(ancestor.join("pyvenv.cfg")) else { continue };
        parts.insert(ancestor.to_owned());
        let home = text.lines().filter_map(|line| line.split_once('='));
        let home = home.into_iter().find(|(key, _)| key.trim() == "home");
        let base = home.map(|(_, home)| Path::new(home.trim()).join("python3"));
        if let Some(base) = base.filter(|base| is_executable(base)) {
            add_directories(&base, parts);
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

/// Returns the outermost `node_modules` around a file of a package of Node.js.
fn package_directory(file: &Path) -> Option<PathBuf> {
    let file = file.canonicalize().ok()?;
    let mut outer = PathBuf::new();
    for component in file.components() {
        outer.push(component);
        if component == Component::Normal(OsStr::new("node_modules")) {
            return Some(outer);
        }
    }
    None
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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    /// A directory with files, whose `PATH` is `bin`.
    fn files(files: &[(&str, &str)]) -> (tempfile::TempDir, OsString) {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = root.path().join("bin").into_os_string();
        (root, path)
    }

    /// Returns the parts of a program as paths in the directory.
    fn found(root: &Path, path: &OsStr, command: &[&str]) -> Vec<String> {
        let program = find(command[0], root, path).unwrap();
        let arguments: Vec<String> = command[1..].iter().map(|it| (*it).to_owned()).collect();
        let root = root.canonicalize().unwrap();
        parts(&program, &arguments, &root, path)
            .iter()
            .filter_map(|part| part.strip_prefix(&root).ok())
            .map(|part| part.display().to_string())
            .collect()
    }

    #[test]
    fn programs_are_found_by_path_or_name() {
        let (root, path) = files(&[("bin/server", ""), ("own/server", "")]);
        let find = |command| find(command, root.path(), &path);
        assert_eq!(find("server"), Ok(root.path().join("bin/server")));
        assert_eq!(find("./own/server"), Ok(root.path().join("./own/server")));
        assert_eq!(find("other"), Err("no such program in `PATH`".to_owned()));
        assert_eq!(find(""), Err("the command is empty".to_owned()));
        assert!(find("./own").unwrap_err().ends_with("is not a file"));
    }

    #[test]
    fn packages_of_node_are_parts() {
        let (root, path) = files(&[
            ("bin/node", ""),
            ("lib/node_modules/server/dist/index.js", "#!/usr/bin/env node\n"),
        ]);
        let script = root.path().join("lib/node_modules/server/dist/index.js");
        std::os::unix::fs::symlink(&script, root.path().join("bin/server")).unwrap();
        let expected =
            ["bin", "bin/node", "lib", "lib/node_modules", "lib/node_modules/server/dist/index.js"];
        assert_eq!(found(root.path(), &path, &["server"]), expected);
        let script = "lib/node_modules/server/dist/index.js";
        let expected = ["bin", "bin/node", "lib", "lib/node_modules"];
        assert_eq!(found(root.path(), &path, &["node", script]), expected);
        let (root, path) = files(&[("bin/env", ""), ("bin/server", "")]);
        let parts = found(root.path(), &path, &["env", "A=b", "server"]);
        assert!(parts.contains(&"bin/server".to_owned()), "{parts:?}");
    }

    #[test]
    fn keys_in_a_command_line_are_not_parts() {
        use std::os::unix::fs::PermissionsExt;
        let (root, path) = files(&[
            ("bin/env", ""),
            ("bin/node", ""),
            ("key", ""),
            ("script", "#!/bin/sh\n"),
            ("keyed", ""),
        ]);
        let key = root.path().join("key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(root.path().join("keyed"), format!("#!{}\n", key.display())).unwrap();
        for command in [
            &["env", "-S./script", "./key"][..],
            &["node", "--import=./script", "./key"],
            &["./keyed"],
        ] {
            let parts = found(root.path(), &path, command);
            assert!(!parts.contains(&"key".to_owned()), "{parts:?}");
        }
    }

    #[test]
    fn environments_of_python_are_parts() {
        let (root, _) = files(&[("base/bin/python3", ""), ("base/lib/python3/os.py", "")]);
        let home = root.path().join("base/bin");
        let environment = root.path().join("environment");
        fs::create_dir_all(environment.join("bin")).unwrap();
        let text = format!("home = {}\nversion = 3\n", home.display());
        fs::write(environment.join("pyvenv.cfg"), text).unwrap();
        std::os::unix::fs::symlink(home.join("python3"), environment.join("bin/python")).unwrap();
        let parts = found(root.path(), OsStr::new(""), &["environment/bin/python", "-m", "server"]);
        let expected =
            ["base/bin", "base/bin/python3", "base/lib", "environment", "environment/bin"];
        assert_eq!(parts, expected);
    }
}
