//! The paths of a unified diff.

/// The letters that git puts before a path: `a` and `b`, swapped in a reverse diff. With
/// `diff.mnemonicPrefix` they mean the commit, index, working tree and object.
const LETTERS: &str = "abciow";

/// Splits the letter of a path from the rest.
pub(super) fn split_letter(path: &str) -> Option<(char, &str)> {
    let mut chars = path.chars();
    let letter = chars.next().filter(|letter| LETTERS.contains(*letter))?;
    Some((letter, chars.as_str().strip_prefix('/')?))
}

/// Returns the path of a file that is created or removed, and an alternative path.
pub(super) fn path_of_one(path: &str) -> (String, Option<String>) {
    match split_letter(path) {
        Some(('a' | 'b', rest)) => (rest.to_owned(), Some(path.to_owned())),
        _ => (path.to_owned(), None),
    }
}

/// Returns the path of a file by those before and after a change, and its alternative. For
/// `diff -u old new` the path is the first one, which exists.
pub(super) fn path_of_both(old: &str, new: &str) -> (String, Option<String>) {
    match (split_letter(old), split_letter(new)) {
        (Some((one, rest)), Some((other, _))) if one != other => {
            (rest.to_owned(), Some(old.to_owned()))
        }
        (Some((_, rest)), _) if old == new => (old.to_owned(), Some(rest.to_owned())),
        _ => (old.to_owned(), None),
    }
}

/// Removes git's quotes from a path.
pub(super) fn unquoted_path(path: &str) -> String {
    let inner = path.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inner.and_then(unquoted).unwrap_or_else(|| path.to_owned())
}

/// Parses a name that git quotes like C: bytes outside of ASCII are octal.
fn unquoted(text: &str) -> Option<String> {
    let mut name = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            name.push(byte);
            continue;
        }
        name.push(match bytes.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            first @ b'0'..=b'3' => {
                let mut digit =
                    || bytes.next().filter(|it| (b'0'..=b'7').contains(it)).map(|it| it - b'0');
                (first - b'0') * 64 + digit()? * 8 + digit()?
            }
            other => other,
        });
    }
    String::from_utf8(name).ok()
}
