//! Finds the paths that git reads commands from or runs because of its configuration.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::account::homes_of_account;

/// The largest configuration that is read, in bytes.
const CONFIG_BYTES: u64 = 1 << 20;

/// The most configurations that one configuration may include.
const CONFIGS: usize = 64;

/// Configurations of the user, relative to the home directory.
const OF_USER: [&str; 2] = [".gitconfig", ".config/git/config"];

/// Keys whose value is a path relative to the root of the work tree: a directory of hooks or a
/// file. Source: git-config(1).
const PATHS: [&str; 4] =
    ["core.hookspath", "core.attributesfile", "blame.ignorerevsfile", "mailmap.file"];

/// Keys whose value is a command, by the first and last part of their names. Source: git-config(1).
const COMMANDS: [(&str, &str); 21] = [
    ("alias", ""),
    ("browser", "cmd"),
    ("core", "askpass"),
    ("core", "editor"),
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "pager"),
    ("core", "sshcommand"),
    ("credential", "helper"),
    ("diff", "command"),
    ("diff", "external"),
    ("diff", "textconv"),
    ("difftool", "cmd"),
    ("filter", "clean"),
    ("filter", "process"),
    ("filter", "smudge"),
    ("gpg", "program"),
    ("merge", "driver"),
    ("mergetool", "cmd"),
    ("pager", ""),
    ("sequence", "editor"),
];

/// Names of hooks, for the case that tools may write the directory of hooks.
const HOOKS: [&str; 14] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "post-rewrite",
    "fsmonitor-watchman",
];

/// Returns the paths below `top`, or above it, that the applicable configurations of git name: the
/// configuration of the work tree that contains `top` and the user's.
pub(crate) fn named_paths(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // Looked up once, and only if there is a work tree.
    let homes = LazyCell::new(homes_of_account);
    for work_tree in top.ancestors() {
        let Some(own) = configuration(work_tree) else { continue };
        let of_user = homes.iter().flat_map(|home| OF_USER.map(|it| home.join(it)));
        let mut ahead: Vec<PathBuf> = of_user.chain([own]).collect();
        let mut known = HashSet::new();
        while let Some(path) = ahead.pop() {
            if known.len() == CONFIGS || !known.insert(path.clone()) {
                continue;
            }
            // An included file can set the same keys.
            found.push(path.clone());
            let Some(text) = read(&path) else { continue };
            for (key, value) in settings(&text) {
                if is_include(&key) {
                    ahead.push(resolve(path.parent().unwrap_or(&path), &value, &homes));
                } else {
                    found.extend(paths(&key, &value).map(|path| resolve(work_tree, path, &homes)));
                }
            }
        }
    }
    // A directory of hooks that contains the work tree is not sealed as a whole.
    let holds_top = |path: &PathBuf| top.starts_with(path);
    let (above, mut found): (Vec<_>, Vec<_>) = found.into_iter().partition(holds_top);
    found.extend(above.iter().flat_map(|path| HOOKS.map(|hook| path.join(hook))));
    found
}

/// Returns the configuration if the directory is the root of a work tree.
fn configuration(work_tree: &Path) -> Option<PathBuf> {
    let entry = work_tree.join(".git");
    if fs::metadata(&entry).ok()?.is_dir() {
        return Some(entry.join("config"));
    }
    // A linked work tree or a submodule has `gitdir: PATH`, and `commondir` in that directory leads
    // to the configuration.
    let text = read(&entry)?;
    let directory = work_tree.join(text.strip_prefix("gitdir:")?.trim());
    let common = read(&directory.join("commondir"));
    let common = common.map_or(directory.clone(), |common| directory.join(common.trim()));
    Some(common.join("config"))
}

fn read(path: &Path) -> Option<String> {
    // Reading a FIFO would block the call.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(CONFIG_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Resolves a path of a configuration against its base directory.
fn resolve(base: &Path, path: &str, homes: &[PathBuf]) -> PathBuf {
    let in_home = path.strip_prefix("~/").zip(homes.first()).map(|(rest, home)| home.join(rest));
    in_home.unwrap_or_else(|| base.join(path))
}

fn is_include(key: &str) -> bool {
    let (section, name) = (key.split('.').next(), key.rsplit('.').next());
    matches!(section, Some("include" | "includeif")) && name == Some("path")
}

/// Returns the paths in the value of a key.
fn paths<'a>(key: &str, value: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
    let (section, name) = (key.split('.').next(), key.rsplit('.').next());
    let is_path = PATHS.contains(&key);
    let is_command = COMMANDS
        .iter()
        .any(|(own, last)| section == Some(own) && (last.is_empty() || name == Some(last)));
    let whole = is_path.then_some(value);
    // Words of a command that may be files of the work tree.
    let words = value.split(|char: char| char.is_whitespace() || "'\";|&()<>=!".contains(char));
    let words = words
        .filter(|word| !word.is_empty() && !word.starts_with('-') && word.contains(['/', '.']));
    whole.into_iter().chain(words.filter(move |_| is_command))
}

/// Parses a configuration into names (`section.subsection.name`, in lower case except for the
/// subsection) and unquoted values.
fn settings(text: &str) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    let mut section = String::new();
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    for line in joined.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let Some(end) = end_of_header(rest) else { continue };
            let (header, after) = (&rest[..end], &rest[end + 1..]);
            section = match header.split_once(char::is_whitespace) {
                Some((name, sub)) => {
                    format!("{}.{}", name.to_lowercase(), sub.trim().trim_matches('"'))
                }
                None => header.to_lowercase(),
            };
            line = after.trim();
        }
        if let Some((name, value)) = line.split_once('=') {
            let key = format!("{section}.{}", name.trim().to_lowercase());
            settings.push((key, unquoted(value.trim())));
        }
    }
    settings
}

/// Returns the end of a section header, which may contain `]` in quotes.
fn end_of_header(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.char_indices().find_map(|(at, char)| {
        is_quoted ^= char == '"';
        (char == ']' && !is_quoted).then_some(at)
    })
}

/// Removes the quotes, escapes and trailing comment of a value.
fn unquoted(text: &str) -> String {
    let (mut value, mut is_quoted) = (String::new(), false);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => is_quoted = !is_quoted,
            '\\' => value.extend(chars.next()),
            '#' | ';' if !is_quoted => break,
            char => value.push(char),
        }
    }
    value.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the named paths below a work tree with this configuration, relative to it.
    fn named(files: &[(&str, &str)], top: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(top)).unwrap();
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let paths = named_paths(&root.join(top)).into_iter();
        let below = paths.filter_map(|path| path.strip_prefix(&root).ok().map(Path::to_owned));
        let mut below: Vec<_> = below.map(|path| path.to_string_lossy().into_owned()).collect();
        below.sort();
        below
    }

    #[test]
    fn configured_hooks_includes_and_commands_are_found() {
        let config = r#"
[core]
    hooksPath = "tools/hooks" # ours
    pager = less -R
[include] path = ../shared/git.conf
[filter "clean [up]"]
    clean = ./scripts/clean.sh --fast %f
    smudge = cat
[Alias]
    check = "!python3 ci/check.py; echo done"
[remote "origin"]
    url = ../elsewhere.git
"#;
        let included = "[diff \"x\"]\ntextconv = 'bin/show it'\n";
        let files = [(".git/config", config), ("shared/git.conf", included)];
        assert_eq!(
            named(&files, "src"),
            [
                ".git/../shared/git.conf",
                ".git/config",
                "bin/show",
                "ci/check.py",
                "scripts/clean.sh",
                "tools/hooks",
            ]
        );
    }

    #[test]
    fn linked_work_trees_share_a_configuration() {
        let files = [
            ("main/.git/config", "[core]\nhooksPath = hooks\n"),
            ("main/.git/worktrees/w/commondir", "../..\n"),
            ("w/.git", "gitdir: ../main/.git/worktrees/w\n"),
        ];
        assert!(named(&files, "w").contains(&"w/hooks".to_owned()));
    }

    #[test]
    fn hooks_in_the_work_tree_itself_are_found_by_name() {
        let found = named(&[(".git/config", "[core]\n\thooksPath = .\n")], "");
        assert!(found.contains(&"pre-commit".to_owned()), "{found:?}");
        assert!(!found.contains(&String::new()), "{found:?}");
    }

    #[test]
    fn broken_configurations_are_read_as_far_as_possible() {
        for text in ["[core", "[core]\nhooksPath", "=", "[a \"]", "\\", "[core]\nhooksPath = \"\\"]
        {
            named(&[(".git/config", text)], "");
        }
        let found = named(&[(".git/config", "[broken\n[core]\r\nHOOKSPATH=x\r\n")], "");
        assert!(found.contains(&"x".to_owned()), "{found:?}");
    }
}
