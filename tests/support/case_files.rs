//! Cases as data: one file contains the files of a workspace, commands, and their output.
//!
//! ```text
//! # The title: the behaviour that the case shows.
//! === toolsets files write
//! === untrusted
//! === file .kitbag/config.toml
//! === own config
//! === stdin
//! === $ LANG=C kitbag run probe 'text=two words'
//! exit code: 0
//! --- stdout
//! --- changes
//! + notes.md
//! === cat notes.md
//! ```
//!
//! A section is a step, and steps run in order. Paths are relative to the workspace; `<workspace>`,
//! `<outside>`, `<home>`, `<cache>` and `<guests>` are placeholders for directories. The steps:
//!
//! - `include FILE` runs the steps of a file in the directory of the case.
//! - `toolsets NAME…`, `untrusted` and `own cache` describe the workspace and come first;
//!   `new workspace` drops it, and the next one is described in the same way.
//! - `file PATH`, `component PATH` (a tool with this description), `own config`, `hex PATH` (bytes),
//!   `wat PATH` (a component or module in the text format) and `stdin` (of the next command) have content. A last line `\ no newline` removes the newline
//!   before it.
//! - `copy FROM TO`, `dir PATH`, `link PATH TARGET`, `mode OCTAL PATH`, `remove PATH`, and
//!   `cd PATH` for the commands that follow.
//! - `$ COMMAND` runs kitbag and shows its output, and the paths outside kitbag's own directories
//!   that it created (`+`), changed (`~`) or removed (`-`), with unusual permissions.
//! - `terminal COMMAND` runs it on a terminal, where each line of `stdin` answers one question.
//! - `quiet COMMAND` prepares something: it must succeed, and its output is not shown.
//! - `cat PATH` shows a file, `ls PATH` a directory.
//!
//! `INSTA_UPDATE=always` writes the output into the file, and `CASE=PART` runs the cases with this
//! part in their path. Digests, times and IDs are replaced, because they differ from run to run.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use regex_lite::Regex;
use similar::TextDiff;

use super::files::names;
use super::terminal::{Terminal, answered};
use super::{Run, Workspace, crafted, repository};

const SECTION: &str = "=== ";
/// Follows a content whose last line has no newline.
const NO_NEWLINE: &str = "\\ no newline\n";

/// Runs every case below a directory of the repository, several at once.
#[track_caller]
pub(crate) fn check_case_files(directory: &str) {
    let mut paths = case_files(&repository().join(directory));
    assert!(!paths.is_empty(), "{directory} has no cases");
    if let Ok(part) = std::env::var("CASE") {
        paths.retain(|path| path.to_string_lossy().contains(&part));
    }
    let (left, failures) = (Mutex::new(paths), Mutex::new(String::new()));
    let next = || left.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(path) = next() {
                    if let Some(diff) = check(&path) {
                        writeln!(failures.lock().unwrap(), "{}\n{diff}", path.display()).unwrap();
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{failures}\nreview the difference after `INSTA_UPDATE=always cargo test --test main cases`"
    );
}

/// The files of the cases below a directory.
pub(crate) fn case_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(case_files(&path)),
            false if path.extension().is_some_and(|it| it == "case") => files.push(path),
            false => {}
        }
    }
    files
}

/// Runs one case. Returns the difference from the expected output.
fn check(path: &Path) -> Option<String> {
    let expected = fs::read_to_string(path).unwrap();
    let actual = match std::panic::catch_unwind(|| Case::run(path, &expected)) {
        Ok(Ok(actual)) => actual,
        Ok(Err(error)) => return Some(error),
        Err(_) => return Some("panicked\n".into()),
    };
    if actual == expected {
        return None;
    }
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(path, actual).unwrap();
        return None;
    }
    let diff = TextDiff::from_lines(&expected, &actual);
    Some(diff.unified_diff().header("expected", "actual").to_string())
}

/// A running case.
#[derive(Default)]
struct Case {
    path: PathBuf,
    toolsets: String,
    is_untrusted: bool,
    has_own_cache: bool,
    workspace: Option<Workspace>,
    directory: String,
    stdin: String,
}

impl Case {
    /// Runs the steps of a case, and returns the case with their output.
    fn run(path: &Path, text: &str) -> Result<String, String> {
        let start = match text.starts_with(SECTION) {
            true => 0,
            false => text.find("\n=== ").ok_or("no section")? + 1,
        };
        let (title, steps) = text.split_at(start);
        let mut case = Self { path: path.to_owned(), ..Self::default() };
        Ok(format!("{title}{}", case.steps(steps)?))
    }

    /// Runs steps, and returns them with their output.
    fn steps(&mut self, steps: &str) -> Result<String, String> {
        let mut shown = String::new();
        for step in sections(steps) {
            let (head, content) = step.split_once('\n').unwrap_or((step, ""));
            let head = head.strip_prefix(SECTION).ok_or("no section")?;
            let output = self.step(head, content).map_err(|error| format!("{head}: {error}\n"))?;
            write!(shown, "{SECTION}{head}\n{output}").unwrap();
        }
        Ok(shown)
    }

    /// Runs one step, and returns the content that the step should have.
    fn step(&mut self, head: &str, content: &str) -> Result<String, String> {
        match head.split_once(' ').unwrap_or((head, "")) {
            ("toolsets", names) => self.toolsets = names.to_owned(),
            ("untrusted", "") => self.is_untrusted = true,
            ("own", "cache") => self.has_own_cache = true,
            ("new", "workspace") => {
                *self = Self { path: std::mem::take(&mut self.path), ..Self::default() }
            }
            ("include", file) => {
                let steps = fs::read_to_string(self.path.with_file_name(file));
                self.steps(&steps.map_err(|error| error.to_string())?)?;
            }
            ("stdin", "") => self.stdin = self.expanded(content),
            ("$" | "terminal" | "quiet", _) => {
                // A command may have several lines.
                let end = content
                    .find("exit code: ")
                    .or(content.find("--- changes"))
                    .unwrap_or(content.len());
                let command = format!("{head}\n{}", &content[..end]);
                let (kind, command) = command.split_once(' ').ok_or("no command")?;
                let output = self.command(kind, command.trim_end())?;
                return Ok(format!("{}{output}", &content[..end]));
            }
            (kind, rest) => {
                let text = self.expanded(content);
                let rest = self.expanded(rest);
                let paths = shlex::split(&rest).ok_or("a quotation mark has no end")?;
                let paths: Vec<_> = paths.iter().map(String::as_str).collect();
                return self
                    .file_step(kind, &paths, &text)
                    .map(|shown| shown.unwrap_or(content.to_owned()));
            }
        }
        Ok(content.to_owned())
    }

    fn file_step(
        &mut self,
        kind: &str,
        paths: &[&str],
        content: &str,
    ) -> Result<Option<String>, String> {
        let workspace = self.workspace();
        let at = |path: &str| workspace.path(path);
        match (kind, paths) {
            ("own", ["config"]) => workspace.own_config(content),
            ("file", [path]) => drop(workspace.file(path, content)),
            ("component", [path]) => {
                let component = match content.trim_end() {
                    "" => crafted::tool("a:b/c", ""),
                    description => crafted::describing(description),
                };
                drop(workspace.file(path, component));
            }
            ("wat", [path]) => drop(workspace.file(path, wat::parse_str(content).unwrap())),
            ("hex", [path]) => {
                let digits: Vec<_> = content.bytes().filter(u8::is_ascii_hexdigit).collect();
                let byte =
                    |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
                drop(workspace.file(path, digits.chunks(2).map(byte).collect::<Vec<_>>()));
            }
            ("copy", [from, to]) => drop(workspace.file(to, fs::read(at(from)).unwrap())),
            ("dir", [path]) => fs::create_dir_all(at(path)).unwrap(),
            ("link", [path, target]) => {
                fs::create_dir_all(at(path).parent().unwrap()).unwrap();
                remove(&at(path));
                symlink(target, at(path)).unwrap();
            }
            ("mode", [mode, path]) => {
                let mode = u32::from_str_radix(mode, 8).map_err(|error| error.to_string())?;
                fs::set_permissions(at(path), fs::Permissions::from_mode(mode)).unwrap();
            }
            ("remove", [path]) => remove(&at(path)),
            ("cd", [path]) => self.directory = at(path).to_str().unwrap().to_owned(),
            ("cat", [path]) => {
                let text = fs::read(at(path)).map_err(|error| error.to_string())?;
                let text = workspace.redact(&String::from_utf8_lossy(&text));
                let has_end = text.is_empty() || text.ends_with('\n');
                let end = if has_end { String::new() } else { format!("\n{NO_NEWLINE}") };
                return Ok(Some(normal(&format!("{text}{end}"))));
            }
            ("ls", [path]) => {
                return Ok(Some(names(&at(path)).iter().map(|name| format!("{name}\n")).collect()));
            }
            _ => return Err("this is not a step".into()),
        }
        Ok(None)
    }

    fn workspace(&mut self) -> &Workspace {
        self.workspace.get_or_insert_with(|| {
            let toolsets: Vec<_> = self.toolsets.split_whitespace().collect();
            let mut workspace = Workspace::with_toolsets(&toolsets);
            if self.has_own_cache {
                workspace.use_own_cache();
            }
            if self.is_untrusted { workspace.untrusted() } else { workspace }
        })
    }

    /// Expands the directories of the workspace, and removes the newline that is excluded.
    fn expanded(&mut self, text: &str) -> String {
        let end = text.strip_suffix(NO_NEWLINE).and_then(|text| text.strip_suffix('\n'));
        self.workspace().expand(end.unwrap_or(text))
    }

    /// Runs a command, and returns its output and the files that it changed.
    fn command(&mut self, kind: &str, command: &str) -> Result<String, String> {
        let (stdin, directory) = (std::mem::take(&mut self.stdin), self.directory.clone());
        let workspace = self.workspace();
        let words = shlex::split(command).ok_or("a quotation mark has no end")?;
        let words: Vec<_> = words.iter().map(|word| workspace.expand(word)).collect();
        let at =
            words.iter().position(|word| word == "kitbag").ok_or("the command is not kitbag")?;
        let mut command = workspace.command();
        if !directory.is_empty() {
            command.current_dir(directory);
        }
        for variable in &words[..at] {
            let (name, value) = variable.split_once('=').ok_or("not a variable")?;
            command.env(name, value);
        }
        command.args(&words[at + 1..]);
        let before = workspace.tree();
        let run = match kind {
            "terminal" => answered(Terminal::wide(command), &stdin, |_| {}),
            _ => workspace.finish(command, &stdin),
        };
        let run = Run {
            stdout: workspace.redact(&run.stdout),
            stderr: workspace.redact(&run.stderr),
            ..run
        };
        let shown = normal(&run.shown());
        let mut shown = match kind {
            "terminal" => shown.replace("--- stderr\n", "--- terminal\n"),
            "quiet" if run.code == 0 => return Ok(String::new()),
            _ => shown,
        };
        let changes = changes(&before, &workspace.tree());
        if !changes.is_empty() {
            write!(shown, "--- changes\n{changes}").unwrap();
        }
        Ok(shown)
    }
}

/// Removes a file, a link, or a directory with its content.
fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// The sections of a case, each with its first line.
fn sections(steps: &str) -> Vec<&str> {
    let mut starts: Vec<_> = steps.match_indices("\n=== ").map(|(at, _)| at + 1).collect();
    starts.insert(0, 0);
    let ends = starts.iter().skip(1).copied().chain([steps.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &steps[start..end]).collect()
}

/// A file, a directory or a link, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    File { mode: u32, content: Vec<u8> },
    Directory { mode: u32 },
    Link { target: PathBuf },
    Other,
}

/// The files of a workspace, by the names that [`Workspace::redact`] gives them.
pub(crate) type Tree = BTreeMap<String, Entry>;

impl Workspace {
    /// The files of the workspace and around it, except kitbag's own state and cache.
    pub(crate) fn tree(&self) -> Tree {
        let (mut tree, mut left) = (Tree::new(), vec![self.outside().to_owned()]);
        let own = [".local", ".cache"].map(|name| self.home().join(name));
        while let Some(path) = left.pop() {
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mode = metadata.permissions().mode() & 0o7777;
            let entry = if metadata.is_symlink() {
                Entry::Link { target: fs::read_link(&path).unwrap() }
            } else if metadata.is_dir() {
                if own.contains(&path) || path == self.cache() {
                    continue;
                }
                let entries = fs::read_dir(&path).into_iter().flatten();
                left.extend(entries.map(|entry| entry.unwrap().path()));
                Entry::Directory { mode }
            } else if metadata.is_file() {
                Entry::File { mode, content: fs::read(&path).unwrap_or_default() }
            } else {
                Entry::Other
            };
            let name = self.redact(&path.to_string_lossy());
            tree.insert(name.strip_prefix("<workspace>/").unwrap_or(&name).to_owned(), entry);
        }
        tree
    }
}

fn changes(before: &Tree, after: &Tree) -> String {
    let mut lines = Vec::new();
    for (name, entry) in after {
        let mode = match entry {
            Entry::File { mode, .. } if ![0o644, 0o664].contains(mode) => {
                format!(" (mode {mode:o})")
            }
            Entry::Directory { mode } if ![0o755, 0o775].contains(mode) => {
                format!(" (mode {mode:o})")
            }
            _ => String::new(),
        };
        match before.get(name) {
            None => lines.push((name, format!("+ {name}{mode}\n"))),
            Some(old) if old != entry => lines.push((name, format!("~ {name}{mode}\n"))),
            Some(_) => {}
        }
    }
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    lines.extend(removed.map(|name| (name, format!("- {name}\n"))));
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Replaces text that differs between runs or builds.
fn normal(text: &str) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let rules = [
            // The progress of a compilation, which a terminal clears before the next text.
            (r"(?m)^.*\x1b\[K", ""),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)Z", "<time>"),
            (r"\d{4}-\d\d-\d\d \(UTC\)", "<day> (UTC)"),
            (r"(?m)^  \d\d:\d\d  ", "  <time>  "),
            (r#""micros":\d+"#, r#""micros":<micros>"#),
            (r"\b[0-9a-f]{16}-(\d+)\b", "<run>-$1"),
            (r"kitbag/approve/[0-9a-f]{32}", "kitbag/approve/<id>"),
            (r"\b[0-9a-f]{64}\b", "<sha256>"),
            (r"\d+ bytes, digest", "<size>, digest"),
            (r"(?m)^Size: \d+ bytes", "Size: <size>"),
            (r"\b(digest|content|was) [0-9a-f]{12}(…|\b[^\];])", "$1 <digest>$2"),
            (r"`[0-9a-f]{12}…`", "`<digest>`"),
            (r"\.wasm: [0-9a-f]{16}", ".wasm: <digest>"),
            (r"took [0-9.]+ ?(ms|s)\b", "took <time>"),
            (r"(calls? of tools[^:\n]*): [0-9.]+ (ms|s)\b", "$1: <time>"),
            (r"try again in \d+ ?\w+", "try again in <time>"),
            (r#""modified":"[^"]*""#, r#""modified":"<time>""#),
            (r"\bm\d{12} \d{4}-\d\d-\d\d", "<memory> <day>"),
            (r"\bm\d{12}\b", "<memory>"),
        ];
        rules.map(|(rule, by)| (Regex::new(rule).unwrap(), by)).into()
    });
    let user = kitbag::Caller::this_user().to_string();
    let text = text.replace(env!("CARGO_BIN_EXE_kitbag"), "<kitbag>").replace(&user, "user <id>");
    RULES.iter().fold(text, |text, (rule, by)| rule.replace_all(&text, *by).into_owned())
}
