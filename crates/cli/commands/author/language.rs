//! The language of a project.

use std::path::Path;

/// A language with a template and a way to build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    /// Rust, with cargo
    Rust,
    /// Python, with componentize-py
    Python,
    /// JavaScript, with componentize-js
    Javascript,
    /// Go, with the Go compiler
    Go,
    /// C, with Zig or Clang
    C,
}

/// The file that identifies a project, in the order of the search: a project of Go or C may also
/// have a script for its build.
const MARKS: [(&str, Language); 6] = [
    ("Cargo.toml", Language::Rust),
    ("package.json", Language::Javascript),
    ("pyproject.toml", Language::Python),
    ("app.py", Language::Python),
    ("go.mod", Language::Go),
    ("build.sh", Language::C),
];

impl Language {
    /// Returns the language of the project in a directory.
    pub(crate) fn detect(directory: &Path) -> Option<Self> {
        let found = MARKS.iter().find(|(file, _)| directory.join(file).is_file());
        found.map(|(_, language)| *language)
    }

    /// Returns the files that identify a project.
    pub(crate) fn marks() -> [&'static str; 6] {
        MARKS.map(|(file, _)| file)
    }

    /// Returns the name of the language's directory in `templates/`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Javascript => "javascript",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// Returns the name for people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::Javascript => "JavaScript",
            Self::Go => "Go",
            Self::C => "C",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_identifies_the_language() {
        let check = |files: &[&str], expected| {
            let directory = tempfile::tempdir().unwrap();
            for file in files {
                fs::write(directory.path().join(file), "").unwrap();
            }
            assert_eq!(Language::detect(directory.path()), expected, "{files:?}");
        };
        check(&["Cargo.toml", "README.md"], Some(Language::Rust));
        check(&["package.json", "app.js"], Some(Language::Javascript));
        check(&["app.py"], Some(Language::Python));
        check(&["go.mod", "build.sh"], Some(Language::Go));
        check(&["my_tool.c", "build.sh"], Some(Language::C));
        check(&["README.md"], None);
        check(&[], None);
    }
}
