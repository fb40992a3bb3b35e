//! Characters that a person does not see in a terminal or an editor, but that a model reads.

/// Returns the first invisible character of a text and its byte offset.
///
/// Line breaks and tabs are visible. So are joiners and variation selectors that follow a visible
/// character which they change.
pub(crate) fn first_invisible(text: &str) -> Option<(usize, char)> {
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, character)) = chars.next() {
        let after = chars.peek().map(|(_, it)| *it);
        let is_seen = match character {
            '\n' | '\t' => true,
            '\u{200c}' | '\u{200d}' => {
                before.is_some_and(|it| joins(it) || is_selector(it)) && after.is_some_and(joins)
            }
            '\u{fe00}'..='\u{fe0f}' => before.is_some_and(|it| takes_selector(it, after)),
            '\u{180b}'..='\u{180d}' | '\u{180f}' => before.is_some_and(is_mongolian),
            _ => !is_invisible(character),
        };
        if !is_seen {
            return Some((at, character));
        }
        before = Some(character);
    }
    None
}

/// Returns true if a character is always invisible.
///
/// Source: `Default_Ignorable_Code_Point` of Unicode 16, control characters, separators of lines,
/// format characters of annotations and hieroglyphs, and the Braille pattern without dots.
pub(crate) fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns true if a joiner can be next to a character: a letter, mark or pictograph of a script
/// with joiners. Latin, Greek and Cyrillic have none.
fn joins(character: char) -> bool {
    character >= '\u{590}' && !character.is_whitespace() && !is_invisible(character)
}

fn is_selector(character: char) -> bool {
    matches!(character, '\u{fe0e}' | '\u{fe0f}')
}

/// Returns true if a variation selector can change a character: a pictograph, symbol or ideograph,
/// or a digit that becomes a keycap.
fn takes_selector(character: char, after: Option<char>) -> bool {
    match character {
        '0'..='9' | '#' | '*' => after == Some('\u{20e3}'),
        '\u{a9}' | '\u{ae}' => true,
        _ => {
            let is_symbol = matches!(character, '\u{2010}'..='\u{2bff}' | '\u{3030}'..='\u{33ff}'
                | '\u{4e00}'..='\u{9fff}' | '\u{1f000}'..='\u{1faff}');
            is_symbol && !is_invisible(character)
        }
    }
}

fn is_mongolian(character: char) -> bool {
    matches!(character, '\u{1820}'..='\u{1842}' | '\u{1843}'..='\u{18aa}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_all_scripts_is_visible() {
        for text in [
            "plain text,\n\twith lines",
            "Größe, naïve, Ελληνικά, русский",
            "👩‍🚀 ✔️ 1️⃣ #️⃣ ©️ 🏳️‍🌈 👨‍👩‍👧‍👦 👍🏽",
            "می‌خواهم",
            "क्‍ष ශ්‍රී",
            "עברית العربية",
            "漢字、かな　한국어",
            "㊗︎ ⛄︎",
            "ᠮᠣᠩᠭ᠋ᠣᠯ",
            "a\u{a0}b\u{2009}c",
        ] {
            assert_eq!(first_invisible(text), None, "{text}");
        }
    }

    #[test]
    fn every_invisible_character_is_found() {
        // The first and last character of each range in the list.
        let hidden = [
            0x00, 0x08, 0x0b, 0x0d, 0x1b, 0x7f, 0x80, 0x9f, 0xad, 0x34f, 0x61c, 0x115f, 0x1160,
            0x17b4, 0x17b5, 0x180b, 0x180e, 0x180f, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028,
            0x2029, 0x202a, 0x202e, 0x2060, 0x2064, 0x2066, 0x206f, 0x2800, 0x3164, 0xfe00, 0xfe0f,
            0xfeff, 0xffa0, 0xfff0, 0xfff8, 0xfff9, 0xfffb, 0x13430, 0x1343f, 0x1bca0, 0x1bca3,
            0x1d173, 0x1d17a, 0xe0000, 0xe0001, 0xe0020, 0xe0041, 0xe007f, 0xe0100, 0xe01ef,
            0xe0fff,
        ];
        for code in hidden {
            let character = char::from_u32(code).unwrap();
            for text in [format!("a{character}b"), format!("{character}"), format!("b {character}")]
            {
                let at = text.find(character).unwrap();
                assert_eq!(first_invisible(&text), Some((at, character)), "{code:x} in {text:?}");
            }
        }
    }

    #[test]
    fn joiners_and_selectors_need_a_base_character() {
        let check = |text: &str, at: usize| {
            assert_eq!(first_invisible(text).map(|(at, _)| at), Some(at), "{text:?}");
        };
        // Bytes hidden in variation selectors after a pictograph.
        check("😀\u{fe0f}\u{fe01}", 7);
        check("😀\u{e0141}", 4);
        check("a\u{fe0f}", 1);
        check("1\u{fe0f}2", 1);
        check(" \u{fe0f}", 1);
        check("\u{2800}\u{fe0f}", 0);
        // Bits hidden in joiners.
        check("a\u{200c}b", 1);
        check("a\u{200d}b", 1);
        check("😀\u{200d}", 4);
        check("😀\u{200d}\u{200c}😀", 4);
        check("\u{200d}😀", 0);
        check("می\u{200c} x", 4);
        check("a\u{180b}", 1);
    }
}
