//! Names that mean something to other programs, in every spelling that some
//! file system takes for them.

use kitbag_base::text::is_ignorable;
use unicode_normalization::UnicodeNormalization as _;

/// Names that no tool changes at any depth: the hooks and the configuration in
/// there are run by, or steer, what runs outside the sandbox.
const GUARDED: [&str; 4] = [".git", ".hg", ".jj", ".kitbag"];

/// What a directory holds that git takes for a repository: `HEAD`, and one of
/// the others.
///
/// Source: `is_git_directory` in git's `setup.c`.
pub(crate) const REPOSITORY: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// The form of a name in which two names are equal if some file system takes
/// one for the other: without case, without the code points that HFS+, APFS and
/// case-folding ext4 ignore, in the form NFKC of Unicode, which ZFS may compare, and
/// without what NTFS drops at the end.
pub fn fold(name: &str) -> String {
    let name = name.split_once(':').map_or(name, |(name, _stream)| name);
    let folded = match name.is_ascii() {
        true => name.to_ascii_lowercase(),
        false => {
            let visible = name.chars().filter(|c| !is_ignorable(*c)).nfkc();
            // Both ways: `ſ` has no lower case and `ı` no upper one that comes back.
            let folded = visible.collect::<String>().to_uppercase().to_lowercase();
            folded.nfkc().filter(|c| !is_ignorable(*c)).collect()
        }
    };
    match folded.trim_end_matches(['.', ' ']) {
        "" => folded,
        trimmed => trimmed.to_owned(),
    }
}

/// Whether no tool changes what has this name, or lies in a directory that has.
pub fn is_guarded(name: &str) -> bool {
    let folded = fold(name);
    GUARDED.iter().any(|guarded| folded == *guarded || is_short_name(&folded, &guarded[1..]))
}

/// Whether a directory looks more like a repository with an entry of this name.
pub fn is_part_of_repository(name: &str) -> bool {
    let folded = fold(name);
    REPOSITORY.iter().any(|part| folded == part.to_lowercase())
}

/// Whether a name is what FAT and NTFS call another one in eight characters and
/// three: `GIT~1` for `.git`, with as much of the name as the number leaves room for; and,
/// where that is taken, two letters and four digits of a checksum, `GI7EBA~1`.
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
    fn a_guarded_name_is_known_in_every_spelling() {
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
            // Circled, superscript and mathematical letters, and a leader of one dot.
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
    fn the_parts_of_a_repository_are_known_in_every_spelling() {
        for name in ["HEAD", "head", "Objects", "REFS", "ref\u{17f}", "commondir", "refs."] {
            assert!(is_part_of_repository(name), "{name:?}");
        }
        for name in ["HEADER", "ref", "config", "hooks"] {
            assert!(!is_part_of_repository(name), "{name:?}");
        }
    }
}
