//! Projects that `kitbag new` writes: the files in `templates/`, and the SDK of their language.

use crate::commands::author::language::Language;
use crate::commands::author::template_files::FILES;

/// A file of a new project.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewFile {
    /// The path in the project.
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
}

/// The names of a tool in the forms that templates use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// As in `my_tool`: the name of the tool.
    pub(crate) snake: String,
    /// As in `my-tool`: the name of the package.
    kebab: String,
    /// As in `MyTool`: the name of a type.
    camel: String,
}

impl Names {
    /// Returns the forms of a name. `None` if it is not a lowercase word, or such words with `-` or
    /// `_` between them.
    pub(crate) fn new(name: &str) -> Option<Self> {
        const MOST: usize = 50;
        let words: Vec<_> = name.split(['-', '_']).collect();
        let is_word = |word: &&str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
        if name.len() > MOST || !starts || !words.iter().all(is_word) {
            return None;
        }
        let capital = |word: &&str| word[..1].to_ascii_uppercase() + &word[1..];
        Some(Self {
            snake: words.join("_"),
            kebab: words.join("-"),
            camel: words.iter().map(capital).collect(),
        })
    }

    fn fill(&self, text: &str) -> String {
        text.replace("my_tool", &self.snake)
            .replace("my-tool", &self.kebab)
            .replace("MyTool", &self.camel)
    }
}

/// Returns the files of a new project.
pub(crate) fn files(language: Language, names: &Names) -> Vec<NewFile> {
    let files = FILES.iter().filter(|(of, ..)| *of == language.name());
    let files = files.map(|(_, path, content)| {
        // The SDK does not depend on the name.
        let is_vendored = path.starts_with("vendor/");
        let path: Vec<_> = path.split('/').map(with_dot).collect();
        let path = path.join("/");
        match str::from_utf8(content) {
            Ok(text) if !is_vendored => {
                NewFile { path: names.fill(&path), content: names.fill(text).into() }
            }
            _ => NewFile { path, content: content.to_vec() },
        }
    });
    files.collect()
}

/// Returns a name in a project. In `templates/`, hidden files have names without the dot.
fn with_dot(name: &str) -> String {
    match name.strip_prefix("dot-") {
        Some(name) => format!(".{name}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn names_have_three_forms() {
        let names = |name: &str| {
            Names::new(name).map(|names| [names.snake, names.kebab, names.camel].join(" "))
        };
        for name in ["word-count", "word_count"] {
            assert_eq!(names(name).as_deref(), Some("word_count word-count WordCount"));
        }
        assert_eq!(names("a2").as_deref(), Some("a2 a2 A2"));
        let long = "a".repeat(51);
        for name in ["", "Word", "1st", "a b", "a--b", "-a", "a_", "a/b", "..", "ä", &*long] {
            assert_eq!(names(name), None, "{name}");
        }
    }

    #[test]
    fn templates_are_filled_with_the_name() {
        let names = Names::new("word-count").unwrap();
        for language in Language::value_variants() {
            let language = *language;
            let files = files(language, &names);
            let paths: Vec<_> = files.iter().map(|file| &*file.path).collect();
            for path in ["README.md", "cases.txt", ".gitignore", ".kitbag/config.toml"] {
                assert!(paths.contains(&path), "{language:?}: {paths:?}");
            }
            for file in files.iter().filter(|file| !file.path.starts_with("vendor/")) {
                let text = String::from_utf8_lossy(&file.content);
                for form in ["my_tool", "my-tool", "MyTool"] {
                    assert!(!text.contains(form), "{language:?}: {}", file.path);
                    assert!(!file.path.contains(form), "{language:?}: {}", file.path);
                }
            }
        }
    }
}
