//! Names with a meaning to other programs, in every spelling that a file system may treat as equal.

use std::borrow::Cow;

use kitbag_base::text::is_ignorable;
use unicode_normalization::UnicodeNormalization as _;

/// Names that no tool may change at any depth: their hooks and configuration run, or control,
/// programs outside the sandbox.
const GUARDED: [&str; 4] = [".git", ".hg", ".jj", ".kitbag"];

/// The entries by which git recognizes a repository: `HEAD` and one of the others.
///
/// Source: `is_git_directory` in git's `setup.c`.
pub(crate) const REPOSITORY: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Folds a name: two names with equal results may be equal on some file system. Folding removes
/// case, the code points that HFS+, APFS and case-folding ext4 ignore, and the trailing characters
/// that NTFS drops, and applies Unicode NFKC, which ZFS may use for comparison. A plain name is
/// returned as it is.
pub fn fold(name: &str) -> Cow<'_, str> {
    let name = name.split_once(':').map_or(name, |(name, _stream)| name);
    if name.is_ascii() {
        let name = without_dropped_end(name);
        return match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(name.to_ascii_lowercase()),
            false => Cow::Borrowed(name),
        };
    }
    let visible = name.chars().filter(|c| !is_ignorable(*c)).nfkc();
    // Both directions: `ſ` has no lower case, and `ı` has no upper case that maps back.
    let folded = visible.collect::<String>().to_uppercase().to_lowercase();
    let folded: String = folded.nfkc().filter(|c| !is_ignorable(*c)).collect();
    Cow::Owned(without_dropped_end(&folded).to_owned())
}

/// Removes the characters that NTFS drops at the end of a name that has others.
fn without_dropped_end(name: &str) -> &str {
    match name.trim_end_matches(['.', ' ']) {
        "" => name,
        trimmed => trimmed,
    }
}

/// Returns true if no tool may change entries with this name or anything in directories with this
/// name.
pub fn is_guarded(name: &str) -> bool {
    // Almost all names are plain, and cannot be another spelling.
    if name.is_ascii() && !name.starts_with('.') && !name.contains('~') {
        return false;
    }
    let folded = fold(name);
    GUARDED.iter().any(|guarded| folded == *guarded || is_short_name(&folded, &guarded[1..]))
}

/// Returns true if an entry with this name makes a directory look more like a repository.
pub fn is_part_of_repository(name: &str) -> bool {
    let folded = fold(name);
    REPOSITORY.iter().any(|part| folded.eq_ignore_ascii_case(part))
}

/// Returns true if a name is the 8.3 name of another name on FAT or NTFS: `GIT~1` for `.git`,
/// shortened to fit the number, or, if that is taken, two letters and a checksum of four digits,
/// `GI7EBA~1`.
pub(crate) fn is_short_name(folded: &str, long: &str) -> bool {
    const LONGEST: usize = 8;
    let Some((base, number)) = folded.split_once('~') else { return false };
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let room = LONGEST.saturating_sub(number.len() + "~".len());
    let is_checksum = |rest: &str| rest.len() == 4 && rest.bytes().all(|b| b.is_ascii_hexdigit());
    let is_start = |length: usize| long.get(..length) == Some(base);
    let checksum = long.get(..2).and_then(|letters| base.strip_prefix(letters));
    is_start(long.len())
        || room > 1 && is_start(room.min(long.len()))
        || checksum.is_some_and(is_checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarded_names_are_known_in_every_spelling() {
        for name in [
            ".git",
            ".GIT",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".git. .",
            ".git::$INDEX_ALLOCATION",
            "GIT~1",
            "git~23",
            ".\u{212a}itbag",
            "KITBAG~1",
            ".hg",
            ".Jj",
            "\u{ff0e}git",
            // Circled, superscript and mathematical letters, and a one-dot leader.
            ".\u{24d6}it",
            ".g\u{2071}t",
            ".\u{1d420}it",
            "\u{2024}git",
            "GI7EBA~1",
            "kia1b2~12",
            "JJ0000~1",
            "KITBA~10",
            "KITB~100",
        ] {
            assert!(is_guarded(name), "{name:?}");
        }
        for name in [
            "git",
            ".gitignore",
            "git~",
            "git~x",
            "git~1x",
            "gi7eb~1",
            "gi7ebax~1",
            "ab7eba~1",
            "gi7eba",
            "kit~1",
            "..",
            ".",
            "...",
            "",
            ".g",
        ] {
            assert!(!is_guarded(name), "{name:?}");
        }
    }

    #[test]
    fn plain_names_are_folded_without_allocation() {
        for (name, plain) in [("main.rs", "main.rs"), ("a~1. .", "a~1"), ("x:stream", "x")] {
            assert!(matches!(fold(name), Cow::Borrowed(folded) if folded == plain), "{name}");
        }
        for (name, folded) in [("Main.RS", "main.rs"), ("\u{ff21}", "a"), ("..", ".."), ("", "")] {
            assert_eq!(fold(name), folded);
        }
    }

    #[test]
    fn repository_parts_are_known_in_every_spelling() {
        for name in ["HEAD", "head", "Objects", "REFS", "ref\u{17f}", "commondir", "refs."] {
            assert!(is_part_of_repository(name), "{name:?}");
        }
        for name in ["HEADER", "ref", "config", "hooks"] {
            assert!(!is_part_of_repository(name), "{name:?}");
        }
    }
}
