//! Characters that look alike, such as a no-break space and a space, and invisible characters.
//!
//! Models write the common character in place of any that looks like it. So a passage of a file
//! that differs only in such characters is a match.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};
use unicode_normalization::char::decompose_canonical;

use crate::numbers::count;

/// Maximum number of differences that are named.
const NAMED: usize = 3;

/// Maximum number of characters that are compared after common ends are removed.
const COMPARED: usize = 2_000;

/// Letters of other scripts, with the similar ASCII letters below.
const LETTERS: &str = "АВЕЅІЈКМНОРСТХУаеѕіјорсухһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧο";
const THEIR_LOOKS: &str = "ABESIJKMHOPCTXYaesijopcyxhdqwABEZHIKMNOPTYXo";

/// A passage of a file that looks like a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) range: Range<usize>,
    /// The line, from 1.
    pub(crate) line: usize,
}

/// Returns a text as it looks: without invisible characters, and with one character for all
/// look-alikes. Strings that look alike are then equal.
pub(crate) fn look(text: &str) -> String {
    let mut looks = String::with_capacity(text.len());
    text.chars().for_each(|char| look_of(char, &mut |char| looks.push(char)));
    looks
}

/// Returns the passages of a file that look like a text: at most two.
pub(crate) fn places(content: &str, text: &str) -> Vec<Passage> {
    let (file, text) = (look(content), look(text));
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(found) = file[from..].find(&text) {
        let start = from + found;
        places.extend(range(content, &file, start..start + text.len()));
        if places.len() == 2 {
            break;
        }
        from = start + file[start..].chars().next().map_or(1, char::len_utf8);
    }
    places
}

/// Returns the range in the file for a range of its look. `None` if it contains part of a
/// character.
fn range(content: &str, file: &str, part: Range<usize>) -> Option<Passage> {
    let line = file[..part.start].matches('\n').count();
    let line_start = match line {
        0 => 0,
        line => content.match_indices('\n').nth(line - 1)?.0 + 1,
    };
    let mut at = file[..part.start].rfind('\n').map_or(0, |end| end + 1);
    let (mut start, mut end) = (None, None);
    for (index, char) in content[line_start..].char_indices() {
        // Invisible characters before the range are excluded; those inside are included.
        let length = length(char);
        if at == part.start && length > 0 && start.is_none() {
            start = Some(line_start + index);
        }
        if at == part.end && length > 0 && start.is_some() {
            end = Some(line_start + index);
            break;
        }
        if at > part.end {
            break;
        }
        at += length;
    }
    if end.is_none() && at == part.end {
        end = Some(content.len());
    }
    Some(Passage { range: start?..end?, line: line + 1 })
}

/// Returns the number of bytes that a character adds to the look of a text.
fn length(char: char) -> usize {
    let mut length = 0;
    look_of(char, &mut |char| length += char.len_utf8());
    length
}

/// Applies the change from `old` to `new` to a passage that looks like `old`. Text common to both
/// keeps the spelling of the file.
pub(crate) fn changed(passage: &str, old: &str, new: &str) -> String {
    let groups = groups(passage, old);
    let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    let kept = |range: Range<usize>| kept(&groups, &old, range);
    let pairs = old.iter().zip(&new);
    let start = pairs.take_while(|(one, other)| one == other).count();
    let [old_rest, new_rest] = [&old[start..], &new[start..]];
    let pairs = old_rest.iter().rev().zip(new_rest.iter().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    let old_middle = &old_rest[..old_rest.len() - end];
    let new_middle = &new_rest[..new_rest.len() - end];
    let mut written = kept(0..start);
    match old_middle.len().max(new_middle.len()) <= COMPARED {
        true => {
            for change in capture_diff_slices(Algorithm::Myers, old_middle, new_middle) {
                match change {
                    DiffOp::Equal { old_index, len, .. } => {
                        written.push_str(&kept(start + old_index..start + old_index + len));
                    }
                    DiffOp::Delete { .. } => {}
                    DiffOp::Insert { new_index, new_len, .. }
                    | DiffOp::Replace { new_index, new_len, .. } => {
                        written.extend(&new_middle[new_index..new_index + new_len]);
                    }
                }
            }
        }
        false => written.extend(new_middle),
    }
    written.push_str(&kept(old.len() - end..old.len()));
    written
}

/// Characters of a passage and the similar ones of a text: `…` and three dots.
struct Group<'a> {
    passage: &'a str,
    /// Range in the text, in characters.
    text: Range<usize>,
}

/// Splits a passage and a text that look alike into the smallest matching groups.
fn groups<'a>(passage: &'a str, text: &str) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    let mut found = passage.char_indices().peekable();
    let mut given = text.chars().map(length).enumerate().peekable();
    let (mut start, mut first) = (0, 0);
    while given.peek().is_some() {
        let (mut in_passage, mut in_text) = (0, 0);
        let mut behind = first;
        while let Some((position, bytes)) = given.next_if(|_| in_text <= in_passage) {
            in_text += bytes;
            behind = position + 1;
            while let Some((_, found)) = found.next_if(|_| in_passage < in_text) {
                in_passage += length(found);
            }
            if in_passage == in_text {
                break;
            }
        }
        // An invisible character belongs to the character before it.
        while found.next_if(|(_, found)| length(*found) == 0).is_some() {}
        let end = found.peek().map_or(passage.len(), |(index, _)| *index);
        groups.push(Group { passage: &passage[start..end], text: first..behind });
        (start, first) = (end, behind);
    }
    groups
}

/// Returns a range of a text in the spelling of the file. A partially covered group has the
/// spelling of the text.
fn kept(groups: &[Group<'_>], text: &[char], range: Range<usize>) -> String {
    let mut kept = String::new();
    for Group { passage, text: group } in groups {
        match range.start <= group.start && group.end <= range.end {
            true => kept.push_str(passage),
            false => {
                let part = group.start.max(range.start)..group.end.min(range.end);
                kept.extend(text.get(part).unwrap_or_default());
            }
        }
    }
    kept
}

/// Names the differences between a passage of a file and a text that looks like it. The passage
/// starts in `line` at `column`, both from 1.
pub(crate) fn differences(passage: &str, text: &str, line: usize, column: usize) -> String {
    let (mut line, mut column) = (line, column);
    let mut named = Vec::new();
    let mut all = 0u64;
    let mut given = text.chars().peekable();
    let mut found = passage.chars().peekable();
    while found.peek().is_some() || given.peek().is_some() {
        let (mut in_file, mut in_text) = (String::new(), String::new());
        let at = (line, column);
        // Adds characters of both until they look alike.
        loop {
            let [file_looks, text_looks] = [look(&in_file), look(&in_text)];
            if file_looks == text_looks && !(in_file.is_empty() && in_text.is_empty()) {
                break;
            }
            let next = match file_looks.len() <= text_looks.len() {
                true => found.next().map(|char| {
                    match char {
                        '\n' => (line, column) = (line + 1, 1),
                        _ => column += 1,
                    }
                    in_file.push(char);
                }),
                false => given.next().map(|char| in_text.push(char)),
            };
            if next.is_none() {
                in_file.extend(found.by_ref());
                in_text.extend(given.by_ref());
                break;
            }
        }
        if in_file != in_text {
            all += 1;
            if named.len() < NAMED {
                let [file, text] = [in_file, in_text].map(|chars| points(&chars));
                let (line, column) = at;
                named.push(format!("line {line} column {column}: {file} for {text}"));
            }
        }
    }
    let more = all - named.len() as u64;
    if more > 0 {
        named.push(format!("and {}", count(more, "more place", "more places")));
    }
    named.join(", ")
}

/// Returns the characters of a line that are invisible, or look like a space but are not.
pub(crate) fn hidden(line: &str) -> Option<String> {
    let is_hidden = |char: char| {
        let mut looks = String::new();
        look_of(char, &mut |char| looks.push(char));
        looks.is_empty() || looks == " " && char != ' '
    };
    let places = line.chars().zip(1..).filter(|(char, _)| is_hidden(*char));
    let named: Vec<_> = places
        .take(NAMED)
        .map(|(char, column)| format!("{} at column {column}", points(&char.to_string())))
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Formats the code points of characters.
fn points(chars: &str) -> String {
    let points: Vec<_> = chars.chars().map(|char| format!("U+{:04X}", u32::from(char))).collect();
    if points.is_empty() { "nothing".into() } else { points.join(" ") }
}

/// Passes the characters that a character looks like to `give`: none for an invisible one.
fn look_of(char: char, give: &mut impl FnMut(char)) {
    if char.is_ascii() {
        return give(char);
    }
    match char {
        // Soft hyphen, joiners, direction marks, byte order mark, variation selectors.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' => {}
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => give(' '),
        '\u{b4}' | '\u{2bc}' | '\u{2018}'..='\u{201b}' | '\u{2032}' => give('\''),
        '\u{201c}'..='\u{201f}' | '\u{2033}' => give('"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => give('-'),
        '\u{2044}' | '\u{2215}' => give('/'),
        '\u{2024}' => give('.'),
        '\u{2026}' => "...".chars().for_each(give),
        '\u{fb00}' => "ff".chars().for_each(give),
        '\u{fb01}' => "fi".chars().for_each(give),
        '\u{fb02}' => "fl".chars().for_each(give),
        // Full-width forms.
        '\u{ff01}'..='\u{ff5e}' => give(char::from_u32(u32::from(char) - 0xfee0).unwrap_or(char)),
        _ => decompose_canonical(char, |part| {
            let letter = LETTERS.chars().position(|letter| letter == part);
            give(letter.and_then(|at| THEIR_LOOKS.chars().nth(at)).unwrap_or(part));
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_have_looks() {
        assert_eq!(LETTERS.chars().count(), THEIR_LOOKS.chars().count());
    }

    #[test]
    fn look_alike_text_is_equal() {
        for (one, other) in [
            ("in\u{a0}order", "in order"),
            ("in\u{202f}order\u{3000}x", "in order x"),
            ("a\u{200b}b\u{feff}", "ab"),
            ("\u{201c}it\u{2019}s\u{201d}", "\"it's\""),
            ("1\u{2013}2 \u{2014} 3\u{2212}4", "1-2 - 3-4"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("wait\u{2026}", "wait..."),
            ("\u{ff08}a\u{ff09}\u{ff1a}", "(a):"),
            ("\u{441}\u{43e}py", "copy"),
            ("\u{2714}\u{fe0f}", "\u{2714}"),
        ] {
            assert_eq!(look(one), look(other), "{one}");
        }
        for (one, other) in [("x\u{b2}", "x2"), ("a\tb", "a b"), ("\u{e9}", "e"), ("a\nb", "a b")] {
            assert_ne!(look(one), look(other), "{one}");
        }
    }

    #[test]
    fn passages_are_found_by_their_looks() {
        let check = |content: &str, text: &str, expected: &[(usize, &str)]| {
            let found = places(content, text);
            let found: Vec<_> = found.into_iter().map(|it| (it.line, &content[it.range])).collect();
            assert_eq!(found, expected);
        };
        check("x\nin\u{a0}order.\n", "in order", &[(2, "in\u{a0}order")]);
        check("a\u{200b}b", "ab", &[(1, "a\u{200b}b")]);
        check("\u{feff}ab\u{200b}\u{200b} c", "ab", &[(1, "ab\u{200b}\u{200b}")]);
        check("a\u{a0}b\na b\na\u{2009}b", "a b", &[(1, "a\u{a0}b"), (2, "a b")]);
        check("wait\u{2026} now", "wait...", &[(1, "wait\u{2026}")]);
        check("wait\u{2026} now", "wait..", &[]);
        check("caf\u{e9}", "cafe", &[]);
        check("a\u{a0}\nb\u{a0}c", " \nb c", &[(1, "\u{a0}\nb\u{a0}c")]);
        check("a b", "\u{200b}", &[]);
    }

    #[test]
    fn changes_keep_common_text() {
        let check = |passage: &str, old: &str, new: &str, expected: &str| {
            assert_eq!(changed(passage, old, new), expected);
        };
        check("in\u{a0}current order", "in current order", "in final order", "in\u{a0}final order");
        check("\u{201c}a\u{201d}", "\"a\"", "\"b\"", "\u{201c}b\u{201d}");
        check("a\u{200b}b c", "ab c", "ab d", "a\u{200b}b d");
        check("cafe\u{301} x", "caf\u{e9} x", "caf\u{e9} y", "cafe\u{301} y");
        check("a\u{2026}b", "a...b", "a..b", "a..b");
        check("\u{201c}a\u{2026}\u{201d}", "\"a...\"", "\"b...\"", "\u{201c}b\u{2026}\u{201d}");
        check("a...\u{a0}b", "a\u{2026} b", "a\u{2026} c", "a...\u{a0}c");
        check("a\u{a0}b", "a b", "", "");
    }

    #[test]
    fn differences_are_named_by_code_point_and_position() {
        assert_eq!(
            differences("in\u{a0}order\u{200b}\n\u{2026}", "in order\n...", 3, 21),
            "line 3 column 23: U+00A0 for U+0020, line 3 column 29: U+200B for nothing, \
             line 4 column 1: U+2026 for U+002E U+002E U+002E"
        );
        assert_eq!(
            hidden("a\u{a0}b\u{200b} \u{e9}").unwrap(),
            "U+00A0 at column 2, U+200B at column 4"
        );
        assert_eq!(hidden("a b\tc \u{e9}\u{201c}"), None);
    }

    proptest! {
        #[test]
        fn a_change_looks_like_the_new_text(
            passage in "[ab\u{a0}\u{2009}\u{200b}\u{201c}\u{e9}\n]{1,12}",
            new in "[ab \"\n]{0,12}",
        ) {
            let old = look(&passage);
            prop_assert_eq!(look(&changed(&passage, &old, &new)), look(&new));
            prop_assert_eq!(look(&changed(&passage, &old, &old)), old);
        }

        #[test]
        fn every_passage_is_found(
            before in "[ab\u{a0}\u{200b}\n]{0,8}",
            passage in "[ab\u{a0}\u{2026}\n]{0,4}x",
            after in "[ab\u{a0}\n]{0,8}",
        ) {
            let content = format!("{before}{passage}{after}");
            let found = places(&content, &look(&passage));
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(look(&content[found[0].range.clone()]), look(&passage));
            prop_assert_eq!(found[0].line, content[..found[0].range.start].matches('\n').count() + 1);
        }
    }
}
