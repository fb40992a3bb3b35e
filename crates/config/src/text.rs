//! What messages have in common.

use std::path::Path;
use std::sync::Arc;

use kitbag_contract::text::shown;

/// Shows a path of unknown origin, as [`shown`] does a text.
pub(crate) fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy()).to_string()
}

/// The user's own file, as messages name it.
pub(crate) fn own_file(file: &Option<Arc<Path>>) -> String {
    match file {
        Some(path) => format!("your own `{}`", shown_path(path)),
        None => "your own `config.toml`".to_owned(),
    }
}

/// ``did you mean `x`?``, where something was.
pub(crate) fn did_you_mean(word: Option<&str>) -> Option<String> {
    word.map(|word| format!("did you mean `{}`?", shown(word)))
}

/// ``known keys: `a`, `b` ``, where there are any.
pub(crate) fn known_words<'a>(what: &str, words: impl Iterator<Item = &'a str>) -> Option<String> {
    let words: Vec<_> = words.map(|word| format!("`{}`", shown(word))).collect();
    (!words.is_empty()).then(|| format!("known {what}: {}", words.join(", ")))
}
