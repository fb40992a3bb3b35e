//! Names of files by which another program runs something: the one list, and what a grant
//! says instead of it.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use crate::names::{fold, is_short_name};

/// What runs without anybody asking for it: when a directory is entered, a shell starts, a
/// repository is committed or pushed to, or an editor or an agent opens the directory. Names in
/// any directory, and `DIRECTORY/NAME` for those that mean this in one of that name alone; a
/// directory stands for all in it, and `*.EXTENSION` for all names that end so. In lower case.
///
/// What people write for agents to read (`AGENTS.md`, `CLAUDE.md`) is not among them: it is a
/// document of the project, which tools are asked to write.
const PROTECTED: [&str; 95] = [
    // Shells, sessions and what is loaded with a directory.
    ".envrc",
    ".bashrc",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/systemd",
    ".config/direnv",
    ".direnvrc",
    ".bashrc.d",
    ".inputrc",
    ".tmux.conf",
    ".mise.toml",
    "mise.toml",
    ".local/bin",
    "library/launchagents",
    // Editors and debuggers.
    ".vscode/tasks.json",
    ".vscode/launch.json",
    ".vscode/settings.json",
    ".vscode/mcp.json",
    "*.code-workspace",
    ".idea",
    ".devcontainer",
    ".devcontainer.json",
    ".vimrc",
    ".nvimrc",
    ".nvim.lua",
    ".exrc",
    ".emacs",
    ".emacs.d",
    ".config/nvim",
    ".vim",
    ".zed",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    // Version control and what it starts.
    ".gitconfig",
    ".gitmodules",
    ".config/git",
    ".githooks",
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    // Builds that a push starts.
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".circleci",
    ".travis.yml",
    ".gitea/workflows",
    ".forgejo/workflows",
    ".buildkite",
    ".drone.yml",
    ".woodpecker",
    ".woodpecker.yml",
    ".cirrus.yml",
    ".appveyor.yml",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "jenkinsfile",
    // Agents: their hooks and servers.
    ".mcp.json",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".windsurf",
    ".roo",
    ".kiro",
    ".amazonq",
    ".opencode",
    "opencode.json",
    ".continue",
    ".aider.conf.yml",
    ".cursorrules",
    // Package managers that run a file which they find.
    ".yarnrc.yml",
    ".pnpmfile.cjs",
];

/// Tells the names that a tool does not change in a granted directory. Default: those of the
/// built-in list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProtectedNames {
    /// `None`: the built-in list.
    own: Option<Arc<[Entry]>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    /// The directory in which the name means something. `None`: any.
    directory: Option<Box<str>>,
    name: Box<str>,
}

impl ProtectedNames {
    /// What stands for the built-in list among other names.
    pub const BUILT_IN: &str = "default";

    /// Reads `NAME`, `DIRECTORY/NAME` and `*.EXTENSION`, in any case, instead of the built-in list,
    /// and [`BUILT_IN`](Self::BUILT_IN) for that.
    ///
    /// # Errors
    ///
    /// The first text that is neither.
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Result<Self, &str> {
        Ok(Self { own: Some(read(texts)?.into()) })
    }

    /// The names that a grant protects: its own, or the built-in list.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn of_grant(names: Option<&[String]>) -> Result<Self, &str> {
        names.map_or_else(|| Ok(Self::default()), Self::new)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.is_empty())
    }

    /// The built-in list is read at its first use: a call that changes nothing has none.
    fn entries(&self) -> &[Entry] {
        static LIST: LazyLock<Vec<Entry>> =
            LazyLock::new(|| read(&PROTECTED).expect("the list holds names"));
        self.own.as_deref().unwrap_or_else(|| &LIST)
    }

    /// Whether a tool does not change what has this name in a directory of that one, in any
    /// spelling that some file system takes for it. `None`: the directory is not known.
    pub fn matches_in(&self, directory: Option<&str>, name: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let name = fold(name);
        let mut named =
            self.entries().iter().filter(|entry| is_spelling(&name, &entry.name)).peekable();
        if named.peek().is_none() {
            return false;
        }
        let directory = directory.map(fold);
        named.any(|entry| match (&entry.directory, &directory) {
            (None, _) => true,
            (Some(listed), Some(directory)) => is_spelling(directory, listed),
            (Some(_), None) => false,
        })
    }

    /// Whether one of the names on a path in a granted directory is one of these. A directory
    /// that is granted by name may itself be one.
    pub fn are_on(&self, granted: &Path, path: &str) -> bool {
        let granted = granted.file_name().map(|name| name.to_string_lossy());
        let mut above = granted.as_deref();
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.any(|name| self.matches_in(above.replace(name), name))
    }

    /// Whether some names are protected in directories of this name alone. Such a directory is
    /// made where it is to be, and does not come about by another one, or a link, getting its
    /// name.
    pub fn are_in(&self, directory: &str) -> bool {
        let directory = fold(directory);
        let listed = self.entries().iter().filter_map(|entry| entry.directory.as_deref());
        listed.into_iter().any(|listed| is_spelling(&directory, listed))
    }
}

/// Reads names; the built-in list among them stands for its own.
fn read<T: AsRef<str>>(texts: &[T]) -> Result<Vec<Entry>, &str> {
    let entry = |text: &str| -> Option<Entry> {
        let (directory, name) = match text.split_once('/') {
            Some((directory, name)) => (Some(directory), name),
            None => (None, text),
        };
        let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('/');
        let is_pattern = |name: &str| name.contains('*');
        let is_ending = |name: &str| {
            name.strip_prefix("*.").is_some_and(|rest| !is_pattern(rest) && !rest.is_empty())
        };
        let fits = is_name(name)
            && (!is_pattern(name) || is_ending(name))
            && directory.is_none_or(|directory| is_name(directory) && !is_pattern(directory));
        let folded = |name| fold(name).into_boxed_str();
        fits.then(|| Entry { directory: directory.map(folded), name: folded(name) })
    };
    let (built_in, texts): (Vec<_>, Vec<_>) =
        texts.iter().map(AsRef::as_ref).partition(|text| *text == ProtectedNames::BUILT_IN);
    let texts = built_in.first().map(|_| PROTECTED).into_iter().flatten().chain(texts);
    texts.map(|text| entry(text).ok_or(text)).collect()
}

/// Whether a folded name is a listed one, or what FAT and NTFS call that.
fn is_spelling(folded: &str, listed: &str) -> bool {
    if let Some(ending) = listed.strip_prefix('*') {
        // There an extension has three letters.
        let short = ending.get(..4).unwrap_or(ending);
        return folded.ends_with(ending) || folded.contains('~') && folded.ends_with(short);
    }
    let base = || folded.split('.').next().unwrap_or(folded);
    folded == listed || folded.contains('~') && is_short_name(base(), short(listed))
}

/// What a name is shortened from: without its first dot and its extension.
fn short(listed: &str) -> &str {
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
    fn what_runs_by_itself_is_protected_in_every_spelling() {
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
        ] {
            check(&names, path, true);
        }
        for path in [
            "envrc",
            ".envrc.md",
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
            "",
        ] {
            check(&names, path, false);
        }
    }

    #[test]
    fn a_grant_names_others_instead_or_none() {
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
        for text in
            ["", "/", "a/", "/a", "a/b/c", "..", "../a", "a/.", "*", "*.", "a*", "*.*", "*/a"]
        {
            assert_eq!(ProtectedNames::new(&[text]), Err(text));
        }
    }

    #[test]
    fn a_directory_that_is_granted_by_name_is_no_name_on_a_path_in_it() {
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
    fn directories_that_hold_protected_names_are_known() {
        let names = ProtectedNames::default();
        for name in [".vscode", ".GitHub", ".config", "Library"] {
            assert!(names.are_in(name), "{name}");
        }
        for name in ["src", ".husky", "workflows"] {
            assert!(!names.are_in(name), "{name}");
        }
    }
}
