//! The format of the answers, as in `probe`.

/// Maximum number of displayed characters of a name, and of content.
const NAME_CHARS: usize = 60;
const CONTENT_CHARS: usize = 200;

/// The result of an attempt: a fact, or the code of a refusal.
pub(crate) type Tried = Result<String, String>;

/// Formats a refusal with the name of a code as a generated type prints it: `NotPermitted`.
pub(crate) fn refused(code: &impl std::fmt::Debug) -> String {
    format!("refused ({})", kebab(code))
}

/// Formats a refusal in one of several steps.
pub(crate) fn refused_at(code: &impl std::fmt::Debug, step: &str) -> String {
    format!("{} at {step}", refused(code))
}

/// Returns the name of a case in WIT, without its payload: `ErrorCode::NotPermitted` is
/// `not-permitted`.
pub(crate) fn kebab(case: &impl std::fmt::Debug) -> String {
    let text = format!("{case:?}");
    let name = text.split(['(', ' ']).next().unwrap_or_default();
    let name = name.rsplit("::").next().unwrap_or_default();
    let mut kebab = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.extend(character.to_lowercase());
    }
    kebab
}

/// Formats the operation and its result.
pub(crate) fn sentence(tried: &str, result: Tried) -> String {
    format!("{tried}: {}", result.unwrap_or_else(|refusal| refusal))
}

/// Formats a name of any length and kind on one line.
pub(crate) fn shown(name: &str) -> String {
    if name.is_empty() {
        return "``".to_owned();
    }
    shortened(name, NAME_CHARS)
}

/// Formats content of any length and kind on one line.
pub(crate) fn content(bytes: &[u8]) -> String {
    shortened(&String::from_utf8_lossy(bytes), CONTENT_CHARS)
}

/// Formats a number with its noun.
pub(crate) fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// Formats a list, or `none`.
pub(crate) fn list(things: &[String]) -> String {
    if things.is_empty() { "none".to_owned() } else { things.join(", ") }
}

fn shortened(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    for character in text.chars().take(limit) {
        match character {
            '\n' => shown.push_str("\\n"),
            character if character.is_control() => shown.extend(character.escape_default()),
            character => shown.push(character),
        }
    }
    if text.chars().nth(limit).is_some() {
        shown.push_str(&format!("… ({} bytes)", text.len()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    #[expect(dead_code, reason = "only printed")]
    enum Code {
        NotPermitted,
        Other(Option<String>),
    }

    #[test]
    fn codes_have_their_names_in_wit() {
        assert_eq!(refused(&Code::NotPermitted), "refused (not-permitted)");
        assert_eq!(refused_at(&Code::Other(Some("a b".into())), "bind"), "refused (other) at bind");
    }
}
