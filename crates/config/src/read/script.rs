//! Python scripts: the header, which is TOML in comments, and the docstring.
//!
//! The header is a block in the form of PEP 723 (metadata in scripts): a line `# /// kitbag`,
//! comments, and a line `# ///`. The rest of the file is not parsed.

use std::ops::Range;

/// The first line of a header.
const OPEN: &str = "# /// kitbag";

/// The last line of a header.
const CLOSE: &str = "# ///";

const UNCLOSED_HEADER: &str =
    "this header does not end: all its lines start with `# ` or are `#`, and the last is `# ///`";
const SECOND_HEADER: &str = "a script may have one header; remove this one";
const HEADER_FORM: &str =
    "this line looks like the start of a header, which must be exactly `# /// kitbag`";

/// The TOML of a header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The lines without their comment marks.
    pub(crate) text: String,
    /// The number of lines of the file before the first of these lines.
    pub(crate) lines_before: u32,
}

/// Finds the header of a script.
///
/// # Errors
///
/// The problem with the first or last line of the header, and its bytes in the file.
pub(crate) fn header(text: &str) -> Result<Option<Header>, (Range<usize>, &'static str)> {
    let mut found = None;
    let mut open: Option<(Range<usize>, Header)> = None;
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let content = content.strip_suffix('\r').unwrap_or(content);
        let range = start..start + content.len();
        start += line.len();
        match &mut open {
            None if content.trim_end() == OPEN => {
                if found.is_some() {
                    return Err((range, SECOND_HEADER));
                }
                let lines_before = u32::try_from(number + 1).unwrap_or(u32::MAX);
                open = Some((range, Header { text: String::new(), lines_before }));
            }
            None if is_almost_open(content) => return Err((range, HEADER_FORM)),
            None => {}
            Some(_) if content.trim_end() == CLOSE => found = open.take().map(|(_, header)| header),
            Some((opened, header)) => {
                let inner = match content.strip_prefix('#') {
                    Some("") => "",
                    Some(rest) if rest.starts_with(' ') => &rest[1..],
                    _ => return Err((opened.clone(), UNCLOSED_HEADER)),
                };
                header.text.push_str(inner);
                header.text.push('\n');
            }
        }
    }
    match open {
        Some((opened, _)) => Err((opened, UNCLOSED_HEADER)),
        None => Ok(found),
    }
}

fn is_almost_open(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix('#') else { return false };
    let Some(kind) = comment.trim_start().strip_prefix("///") else { return false };
    kind.trim().eq_ignore_ascii_case("kitbag")
}

/// Returns the docstring of a script, without its indentation, and its place.
pub(crate) fn docstring(text: &str) -> Option<(Range<usize>, String)> {
    let mut start = 0;
    let mut lines = text.split_inclusive('\n');
    let is_before = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    for line in lines.by_ref().take_while(is_before) {
        start += line.len();
    }
    let rest = &text[start..];
    let unprefixed = rest.strip_prefix(['r', 'R', 'u', 'U']).unwrap_or(rest);
    let is_raw = rest.starts_with(['r', 'R']);
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|it| unprefixed.starts_with(it))?;
    let (literal, length) = literal(&unprefixed[quote.len()..], quote, is_raw)?;
    let end = rest.len() - unprefixed.len() + 2 * quote.len() + length;
    // The string is a whole statement, not a part of a statement.
    let after = rest[end..].lines().next().unwrap_or_default().trim_start();
    if !after.is_empty() && !after.starts_with(['#', ';']) {
        return None;
    }
    let clean = without_indentation(&literal);
    (!clean.is_empty()).then_some((start..start + end, clean))
}

/// Reads a string literal after its opening quotes. Returns its value, and the length of its text
/// without the closing quotes.
fn literal(text: &str, quote: &str, is_raw: bool) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if text[at..].starts_with(quote) {
            return Some((value, at));
        }
        match c {
            '\n' if quote.len() == 1 => return None,
            '\\' => {
                let (_, escaped) = chars.next()?;
                match escaped {
                    _ if is_raw => value.extend(['\\', escaped]),
                    '\n' => {}
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    '\\' | '\'' | '"' => value.push(escaped),
                    // Other escapes stay as they are written.
                    _ => value.extend(['\\', escaped]),
                }
            }
            c => value.push(c),
        }
    }
    None
}

/// Returns a docstring without the common indentation of all lines but the first, and without empty
/// lines around it.
fn without_indentation(text: &str) -> String {
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let others = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let least = others.map(indentation).min().unwrap_or(0);
    let lines = text.lines().enumerate().map(|(number, line)| {
        let start = if number == 0 { indentation(line) } else { least.min(indentation(line)) };
        line[start..].trim_end()
    });
    lines.collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

pub(crate) fn is_variable(name: &str) -> bool {
    const KEYWORDS: [&str; 35] = [
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
        "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global",
        "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
        "try", "while", "with", "yield",
    ];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_word)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !KEYWORDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_header(text: &str, expected: Option<(&str, u32)>) {
        let header = header(text).unwrap();
        let found = header.as_ref().map(|header| (&*header.text, header.lines_before));
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn a_header_is_the_comments_between_its_two_lines() {
        check_header("", None);
        check_header("print(1)\n", None);
        check_header("# /// script\n# dependencies = []\n# ///\n", None);
        let text = "#!/usr/bin/env x\n# /// kitbag\n# a = 1\n#\n#   b = '''\n#  c'''\n# ///\nx\n";
        check_header(text, Some(("a = 1\n\n  b = '''\n c'''\n", 2)));
        check_header("# /// kitbag\r\n# a = 1\r\n# ///  \r\n# b\r\n", Some(("a = 1\n", 1)));
        check_header("# /// kitbag\n# ///", Some(("", 1)));
        let both = "# /// script\n# ///\n# /// kitbag\n# a = 1\n# ///\n";
        check_header(both, Some(("a = 1\n", 3)));
    }

    #[test]
    fn invalid_header_lines_are_reported_at_their_places() {
        let check = |text: &str, expected: (Range<usize>, &'static str)| {
            assert_eq!(header(text), Err(expected), "{text:?}");
        };
        check("# /// kitbag\n# a = 1\n", (0..12, UNCLOSED_HEADER));
        check("\n# /// kitbag\nx = 1\n# ///\n", (1..13, UNCLOSED_HEADER));
        check("# /// kitbag\n#a = 1\n# ///\n", (0..12, UNCLOSED_HEADER));
        check("# /// kitbag\n# ///\n# /// kitbag\n# ///\n", (19..31, SECOND_HEADER));
        check("#/// kitbag\n# ///\n", (0..11, HEADER_FORM));
        check("x\n# ///  Kitbag\n", (2..15, HEADER_FORM));
    }

    #[track_caller]
    fn check_docstring(text: &str, expected: Option<&str>) {
        let found = docstring(text);
        assert_eq!(found.as_ref().map(|(_, docstring)| &**docstring), expected, "{text:?}");
        if let Some((range, _)) = found {
            assert!(text[range].ends_with(['"', '\'']), "{text:?}");
        }
    }

    #[test]
    fn a_docstring_is_a_string_as_first_statement() {
        check_docstring("\"\"\"Count words.\"\"\"\n", Some("Count words."));
        check_docstring("#!x\n# y\n\n'Count \\'em.'  # z\nx = 1\n", Some("Count 'em."));
        check_docstring("r'''a\\nb'''", Some("a\\nb"));
        check_docstring("\"a\\tb\\x41\\\\\"", Some("a\tb\\x41\\"));
        let long = "\"\"\"\n    Count words.\n\n      Deeper ü.\n    \"\"\"\n";
        check_docstring(long, Some("Count words.\n\n  Deeper ü."));
        check_docstring("'''First.\n\tSecond\\\n third.\n'''", Some("First.\nSecond third."));
        for text in [
            "",
            "x = 'a'\n",
            "'a'.join(x)\n",
            "'a' 'b'\n",
            "'a\nb'\n",
            "'''a",
            "f'a'",
            "b'a'",
            "\"\"\"  \n \"\"\"",
            "'a\\",
        ] {
            check_docstring(text, None);
        }
    }

    #[test]
    fn variables_have_valid_python_names() {
        for name in ["a", "_b2", "None_", "path"] {
            assert!(is_variable(name), "{name}");
        }
        for name in ["", "2a", "a-b", "a.b", "class", "None", "ü", "a b"] {
            // The empty name is refused earlier: no parameter can have it.
            assert_eq!(is_variable(name), name.is_empty(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn headers_are_found_in_any_text(
            lines in prop::collection::vec(
                "(# /// kitbag|# ///|#/// kitbag|#|# a = 1|# ü|x = 1|'''|\"a\\\\|r'ü'|[ -~ü]{0,9})\r?",
                0..12,
            ),
        ) {
            let text = lines.join("\n");
            if let Some((range, docstring)) = docstring(&text) {
                prop_assert!(text.get(range).is_some());
                prop_assert!(!docstring.is_empty());
            }
            match header(&text) {
                Ok(None) => {}
                Ok(Some(Header { text: inner, lines_before })) => {
                    for (number, line) in inner.lines().enumerate() {
                        let whole = text.lines().nth(lines_before as usize + number).unwrap();
                        let comment = format!("# {line}");
                        prop_assert_eq!(whole.trim_end(), comment.trim_end());
                    }
                }
                Err((range, _)) => prop_assert!(text.get(range).is_some()),
            }
        }
    }
}
