//! Names of files that make another program run something: the built-in list and the names in a
//! grant that replace it.

use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use kitbag_contract::PROTECTED_BY_DEFAULT;
use kitbag_glob::Glob;

use crate::names::{fold, is_guarded, is_short_name};

/// The built-in list. Its first lines describe the format.
const BUILT_IN: &str = include_str!("../data/protected.txt");

/// The built-in list is parsed on first use: a call that changes nothing does not need it.
static LIST: LazyLock<List> = LazyLock::new(|| {
    let lines = BUILT_IN.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    List::read(lines).expect("the built-in list is valid")
});

/// Names that a tool may not change in a granted directory. Default: the built-in list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProtectedNames {
    /// `None`: only the built-in list.
    own: Option<Arc<OwnNames>>,
}

/// The names that a grant lists.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OwnNames {
    list: List,
    /// True if the built-in list is included.
    has_built_in: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct List {
    entries: Vec<Entry>,
    /// In the built-in list: dot names that a tool may create. In a grant: names that are not
    /// protected.
    exceptions: Vec<Entry>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Entry {
    /// The folded name of the directory to which the entry is limited. `None`: any directory.
    directory: Option<Box<str>>,
    name: Name,
}

/// A folded name or pattern.
#[derive(Debug)]
struct Name {
    text: Box<str>,
    /// Set for a name with `*` or `?`.
    glob: Option<Glob>,
}

impl ProtectedNames {
    /// The word that includes the built-in list in a list of names.
    pub const BUILT_IN: &str = PROTECTED_BY_DEFAULT;

    /// Parses `NAME` and `DIRECTORY/NAME`, ignoring case, which replace the built-in list;
    /// [`BUILT_IN`](Self::BUILT_IN) includes that list. `NAME` may contain `*` and `?`. A leading
    /// `!` exempts the name, also from the rule of [`forbid_new`](Self::forbid_new).
    ///
    /// # Errors
    ///
    /// The first invalid entry.
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Result<Self, &str> {
        let (built_in, texts): (Vec<_>, Vec<_>) =
            texts.iter().map(AsRef::as_ref).partition(|text| *text == Self::BUILT_IN);
        let list = List::read(texts)?;
        Ok(Self { own: Some(Arc::new(OwnNames { list, has_built_in: !built_in.is_empty() })) })
    }

    /// Returns the names that a grant protects: its own names or the built-in list.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn of_grant(names: Option<&[String]>) -> Result<Self, &str> {
        names.map_or_else(|| Ok(Self::default()), Self::new)
    }

    /// Returns true if no name is protected.
    pub fn is_empty(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.list.entries.is_empty() && !own.has_built_in)
    }

    /// Returns true if the built-in list is included.
    pub(crate) fn has_built_in(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.has_built_in)
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let built_in = self.has_built_in().then(|| &*LIST.entries);
        let own = self.own.as_ref().map(|own| &*own.list.entries);
        built_in.into_iter().chain(own).flatten()
    }

    /// Returns true if the grant exempts a name. Names are folded.
    fn is_exception(&self, directory: Option<&str>, name: &str) -> bool {
        let own = self.own.as_ref().map(|own| &*own.list.exceptions);
        own.into_iter().flatten().any(|entry| entry.matches(directory, name))
    }

    /// Returns true if a tool may not change this entry of a directory, in any spelling that a file
    /// system may treat as equal. `None`: the directory's name is unknown.
    pub fn matches_in(&self, directory: Option<&str>, name: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let name = fold(name);
        let mut named = self.entries().filter(|entry| entry.name.has_spelling(&name)).peekable();
        if named.peek().is_none() {
            return false;
        }
        let directory = directory.map(fold);
        let directory = directory.as_deref();
        named.any(|entry| entry.is_in(directory)) && !self.is_exception(directory, &name)
    }

    /// Returns true if a path in a granted directory contains a protected name. The granted
    /// directory itself may have a protected name.
    pub fn are_on(&self, granted: &Path, path: &str) -> bool {
        let granted = granted.file_name().map(|name| name.to_string_lossy());
        let mut above = granted.as_deref();
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.any(|name| self.matches_in(above.replace(name), name))
    }

    /// Returns true if a tool may not create an entry with this name: names that start with a dot
    /// configure programs, and no list of them is complete. Existing files may be edited.
    pub fn forbid_new(&self, directory: Option<&str>, name: &str) -> bool {
        let name = fold(name);
        // A guarded name is refused for that reason, and no grant allows it.
        if !name.starts_with('.') || !self.has_built_in() || is_guarded(&name) {
            return false;
        }
        let directory = directory.map(fold);
        let directory = directory.as_deref();
        let is_harmless = LIST.exceptions.iter().any(|entry| entry.matches(directory, &name));
        !is_harmless && !self.is_exception(directory, &name)
    }

    /// Returns true if some names are protected only in directories with this name. Such a
    /// directory must be created in place: another directory or a link may not be renamed to it.
    pub fn are_in(&self, directory: &str) -> bool {
        let directory = fold(directory);
        let mut listed = self.entries().filter_map(|entry| entry.directory.as_deref());
        listed.any(|listed| is_spelling(&directory, listed))
    }
}

impl List {
    fn read<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        let mut list = Self { entries: Vec::new(), exceptions: Vec::new() };
        for text in texts {
            let (names, name) = match text.strip_prefix('!') {
                Some(name) => (&mut list.exceptions, name),
                None => (&mut list.entries, text),
            };
            names.push(Entry::read(name).ok_or(text)?);
        }
        Ok(list)
    }
}

impl Entry {
    fn read(text: &str) -> Option<Self> {
        let (directory, name) = match text.split_once('/') {
            Some((directory, name)) => (Some(directory), name),
            None => (None, text),
        };
        let is_directory =
            |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['*', '?']);
        if !directory.is_none_or(is_directory) {
            return None;
        }
        let directory = directory.map(|name| fold(name).into());
        Some(Self { directory, name: Name::read(name)? })
    }

    fn matches(&self, directory: Option<&str>, name: &str) -> bool {
        self.is_in(directory) && self.name.has_spelling(name)
    }

    /// Returns true if the entry applies to directories with this name.
    fn is_in(&self, directory: Option<&str>) -> bool {
        let Some(listed) = &self.directory else { return true };
        directory.is_some_and(|directory| is_spelling(directory, listed))
    }
}

impl Name {
    fn read(text: &str) -> Option<Self> {
        let is_pattern = text.contains(['*', '?']);
        // A pattern that matches every name would protect the directory itself.
        let is_all = text.chars().all(|char| matches!(char, '*' | '?' | '.'));
        if is_all || text.contains(['/', '[', ']']) {
            return None;
        }
        let text: Box<str> = fold(text).into();
        // `**` is not valid in a name.
        let glob = if is_pattern { Some(Glob::new(&text).ok()?) } else { None };
        Some(Self { text, glob })
    }

    /// Returns true if a folded name is this name or its 8.3 name on FAT and NTFS.
    fn has_spelling(&self, folded: &str) -> bool {
        match &self.glob {
            None => is_spelling(folded, &self.text),
            Some(glob) => glob.matches(folded) || is_short_spelling(folded, &self.text),
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// Returns true if a folded name is a listed name or its 8.3 name on FAT and NTFS.
fn is_spelling(folded: &str, listed: &str) -> bool {
    let base = || folded.split('.').next().unwrap_or(folded);
    folded == listed || folded.contains('~') && is_short_name(base(), stem(listed))
}

/// Returns true if a folded name may be the 8.3 name of a name that a pattern matches:
/// `LEFTHO~1.YML` for `lefthook*`.
fn is_short_spelling(folded: &str, pattern: &str) -> bool {
    let (base, extension) = folded.split_once('.').unwrap_or((folded, ""));
    let Some((start, number)) = base.split_once('~') else { return false };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || extension.contains('.') {
        return false;
    }
    let literal = |text: &str| text.find(['*', '?']).map_or(text.len(), |end| end);
    let stem = stem(pattern);
    let stem = &stem[..literal(stem)];
    // Two letters and a checksum, if the plain 8.3 name is taken.
    let checksum = start.len() == 6 && start[2..].bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_start = |start: &str| start.starts_with(stem) || stem.starts_with(start);
    let has_extension = match pattern.trim_start_matches('.').rsplit_once('.') {
        Some((_, listed)) => {
            let length = literal(listed);
            let kept = listed.get(..length.min(3)).unwrap_or(listed);
            let is_whole = length < listed.len() || extension.len() == kept.len();
            extension.is_empty() || extension.starts_with(kept) && is_whole
        }
        None => extension.is_empty() || pattern.ends_with('*'),
    };
    has_extension && (is_start(start) || checksum && is_start(&start[..2]))
}

/// Returns the part of a name that begins its 8.3 name: without leading dot and extension.
fn stem(listed: &str) -> &str {
    let listed = listed.trim_start_matches('.');
    listed.split('.').next().unwrap_or(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &ProtectedNames, path: &str, expected: bool) {
        assert_eq!(names.are_on(Path::new("/granted"), path), expected, "{path}");
    }

    #[test]
    fn automatically_run_files_are_protected_in_every_spelling() {
        let names = ProtectedNames::default();
        for path in [
            ".envrc",
            "a/b/.ENVRC",
            ".e\u{200c}nvrc",
            "ENVRC~1",
            ".vscode/tasks.json",
            ".VSCode/Tasks.JSON",
            "a/.vscode/tasks.json. ",
            "VSCODE~1/TASKS~1",
            ".github/workflows",
            ".github/workflows/deep/build.yml",
            ".husky/pre-commit",
            ".claude/settings.json",
            "home/.bashrc",
            "home/.config/autostart/x.desktop",
            "a/kitbag.code-workspace",
            "KITBAG.Code-Workspace",
            "KITBAG~1.COD",
            ".code-workspace",
            "Jenkinsfile",
            "azure-pipelines.yml",
            "azure-pipelines.nightly.yaml",
            "AZURE-~1.YML",
            "lefthook-local.yml",
            "LEFTHO~1.YML",
            "le12ab~1.yml",
            ".lefthook.toml",
            ".yarnrc",
            ".config/tmux/tmux.conf",
            ".dir-locals-2.el",
            "DIR-LO~1.EL",
            "_vimrc",
            ".woodpecker.yaml",
            ".woodpecker/build.yml",
            "opencode.jsonc",
            ".claude.json",
            "mise.local.toml",
            ".mise.local.toml",
            ".tool-versions",
            ".vscode/keybindings.json",
            "Microsoft.PowerShell_profile.ps1",
            "lib/python3/site-packages/evil.pth",
        ] {
            check(&names, path, true);
        }
        for path in [
            "envrc",
            ".vscode",
            ".vscode/notes.md",
            ".github",
            ".github/ISSUE_TEMPLATE/bug.md",
            "workflows/build.yml",
            "src/tasks.json",
            ".config/app/settings.json",
            "src/.gitignore",
            "profile",
            "code-workspace",
            "a.code-workspace.md",
            "AGENTS.md",
            "CLAUDE.md",
            "Makefile",
            "leftover.yml",
            "lefth~1.yml.md",
            "mise/readme.md",
            "src/mise.rs",
            "azure-pipeline.yml",
            "",
        ] {
            check(&names, path, false);
        }
    }

    #[test]
    fn grants_replace_the_built_in_list() {
        let names = ProtectedNames::new(&["Makefile", "ci/run"]).unwrap();
        check(&names, "a/makefile", true);
        check(&names, "ci/run", true);
        check(&names, "run", false);
        check(&names, ".envrc", false);
        assert!(names.are_in("CI") && !names.are_in(".vscode"));
        let none = ProtectedNames::new::<&str>(&[]).unwrap();
        check(&none, ".envrc", false);
        let more = ProtectedNames::new(&["AGENTS.md", "default", "ci/*.sh"]).unwrap();
        for path in [".envrc", "a/agents.md", ".vscode/tasks.json", "ci/a.sh"] {
            check(&more, path, true);
        }
        check(&more, "a.sh", false);
        for text in [
            "", "/", "a/", "/a", "a/b/c", "..", "../a", "a/.", "*", "*.", "a**", "*.*", "*/a",
            "[a]",
        ] {
            assert_eq!(ProtectedNames::new(&[text]), Err(text));
        }
        let patterns = ProtectedNames::new(&["deploy*", "ci/?un"]).unwrap();
        check(&patterns, "a/Deploy-all.sh", true);
        check(&patterns, "ci/run", true);
        check(&patterns, "ci/begun", false);
    }

    #[test]
    fn dot_names_are_not_created() {
        let names = ProtectedNames::default();
        for name in [".newrc", ".NEW", "\u{ff0e}new", ".env.local", ".gitignore.sh", ".vscode"] {
            assert!(names.forbid_new(None, name), "{name}");
        }
        for name in
            ["new", ".gitignore", ".DockerIgnore", ".gitattributes", ".github", ".kitbag-new-1"]
        {
            assert!(!names.forbid_new(None, name), "{name}");
        }
        let own = ProtectedNames::new(&["Makefile"]).unwrap();
        assert!(!own.forbid_new(None, ".newrc"));
        let except = ProtectedNames::new(&["default", "!.newrc", "!.vscode/*.json"]).unwrap();
        assert!(!except.forbid_new(None, ".NewRC") && except.forbid_new(None, ".otherrc"));
        check(&except, ".vscode/tasks.json", false);
        check(&except, "other/.vscode", false);
        check(&except, ".envrc", true);
        assert!(ProtectedNames::new(&["Makefile", "default"]).unwrap().forbid_new(None, ".newrc"));
    }

    #[test]
    fn granted_directories_are_exempt_from_their_own_name() {
        let names = ProtectedNames::default();
        let check = |granted: &str, path: &str, expected: bool| {
            assert_eq!(names.are_on(Path::new(granted), path), expected, "{granted} {path}");
        };
        check("/home/a/.claude/worktrees/b", "src/main.rs", false);
        check("/home/a/.claude/worktrees/b", ".envrc", true);
        check("/a/.vscode", "tasks.json", true);
        check("/a/.vscode", "notes.md", false);
        check("/a/.github/workflows", "build.yml", false);
        check("/", ".envrc", true);
    }

    #[test]
    fn directories_with_protected_names_are_known() {
        let names = ProtectedNames::default();
        for name in [".vscode", ".GitHub", ".config", "Library"] {
            assert!(names.are_in(name), "{name}");
        }
        for name in ["src", ".husky", "workflows"] {
            assert!(!names.are_in(name), "{name}");
        }
    }
}
