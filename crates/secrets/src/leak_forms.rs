//! Forms of findings other than a prefix with a run of characters: assignments, URLs with
//! passwords, and blocks.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use memchr::{memchr2, memmem};

use crate::chars::Chars;
use crate::leak_rules::{is_filler, last_example};
use crate::placeholder::PREFIX;

/// Maximum number of backslashes before a quote.
const MOST_ESCAPES: usize = 7;

/// Maximum number of spaces on either side of an operator.
const MOST_SPACE: usize = 32;

/// Maximum number of lines between the first line of a block and its data, and their maximum total
/// length.
const MOST_HEADERS: usize = 6;
const HEADER_BYTES: usize = 120;

/// Maximum length of the last line of a block.
const LAST_LINE_BYTES: usize = 80;

/// Maximum length of the user and of the password in a URL.
const USER_BYTES: usize = 64;
const PASSWORD_BYTES: usize = 128;

/// Values that are not passwords, in lower case.
const NO_PASSWORDS: [&str; 20] = [
    "password",
    "passwort",
    "passwd",
    "passw0rd",
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "none",
    "null",
    "true",
    "false",
    "undefined",
    "string",
    "admin",
    "root",
    "test",
    "user",
    "guest",
];

/// Words in placeholders, in lower case.
const PLACEHOLDERS: [&str; 19] = [
    "example",
    "xxxx",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "changeit",
    "your",
    "redacted",
    "dummy",
    "replace",
    "insert",
    "sample",
    "${",
    "****",
    "....",
    "masked",
    "<",
    "todo",
];

/// Returns the start of the value that is assigned to a name, and whether it is quoted. `after` is
/// the position after the name. If `by_space` is set, a space alone assigns.
pub(crate) fn assigned(bytes: &[u8], after: usize, by_space: bool) -> Option<(usize, bool)> {
    let at = skip_quote(bytes, after);
    let at = at + usize::from(bytes.get(at) == Some(&b']'));
    let spaced = skip_space(bytes, at);
    let value = match bytes.get(spaced..)? {
        [b'=', b'>', ..] | [b':', b'=', ..] => spaced + 2,
        [b'=', b'=', ..] | [b':', b':', ..] => return None,
        [b'=' | b':', ..] => spaced + 1,
        [b'>', ..] if spaced == after => spaced + 1,
        _ if by_space && spaced > at => spaced,
        _ => return None,
    };
    let value = skip_space(bytes, value);
    let start = skip_quote(bytes, value);
    Some((start, start > value))
}

fn skip_space(bytes: &[u8], at: usize) -> usize {
    let space = bytes[at..].iter().take(MOST_SPACE);
    at + space.take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Skips a quote, which may be escaped repeatedly, as in JSON within JSON.
fn skip_quote(bytes: &[u8], at: usize) -> usize {
    let escapes = bytes[at..].iter().take(MOST_ESCAPES).take_while(|byte| **byte == b'\\');
    let quote = at + escapes.count();
    match bytes.get(quote) {
        Some(b'"' | b'\'') => quote + 1,
        Some(b'`') if quote == at => quote + 1,
        _ => at,
    }
}

/// Returns the end of an assigned password if the run of a value is one.
pub(crate) fn password(bytes: &[u8], run: Range<usize>, is_quoted: bool) -> Option<usize> {
    let value = &bytes[run.clone()];
    let next = bytes.get(run.end);
    let is_whole = match is_quoted {
        true => matches!(next, Some(b'"' | b'\'' | b'`' | b'\\')),
        // In code, a call or an index follows.
        false => next.is_none_or(|next| {
            next.is_ascii_whitespace()
                || matches!(
                    next,
                    b'&' | b',' | b';' | b'"' | b'\'' | b'`' | b'\\' | b'<' | b')' | b'}' | b']'
                )
        }),
    };
    let value = if is_quoted { value } else { without_marks(value) };
    (is_whole && is_chosen(value, is_quoted)).then_some(run.start + value.len())
}

/// Removes trailing punctuation.
fn without_marks(value: &[u8]) -> &[u8] {
    let marks = value.iter().rev().take_while(|byte| matches!(byte, b'.' | b':' | b'?')).count();
    &value[..value.len() - marks]
}

/// Returns true if a value looks like a secret that a person or generator chose. An unquoted value
/// might also be an identifier in a program.
fn is_chosen(value: &[u8], is_quoted: bool) -> bool {
    let is_reference =
        matches!(value.first(), None | Some(b'$' | b'%' | b'*' | b'/' | b'.' | b'@' | b'#' | b':'));
    if is_reference || is_filler(value) || is_placeholder(value) {
        return false;
    }
    let has_letter = value.iter().any(u8::is_ascii_alphabetic);
    let is_special = |byte: &u8| {
        matches!(byte, b'!' | b'#' | b'$' | b'%' | b'*' | b'+' | b'?' | b'@' | b'^' | b'~')
    };
    let has_special = value.iter().any(is_special);
    let digits = value.chunk_by(|one, other| one.is_ascii_digit() == other.is_ascii_digit());
    let digits = digits.filter(|group| group[0].is_ascii_digit()).count();
    let is_path =
        memmem::find(value, b"://").is_some() || value.contains(&b'/') && !is_quoted && digits == 0;
    has_letter
        && !is_path
        && match is_quoted {
            true => digits > 0 || has_special,
            false => digits > 1 || digits > 0 && has_special,
        }
}

/// Returns true if a value is a placeholder of documentation.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    let text = value.to_ascii_lowercase();
    let is_word = |word: &&str| text == word.as_bytes();
    let holds = |part: &&str| memmem::find(&text, part.as_bytes()).is_some();
    NO_PASSWORDS.iter().any(is_word) || PLACEHOLDERS.iter().any(holds)
}

/// Returns true if a value looks like one that a server issued: it has letters and digits and is
/// not a placeholder.
pub(crate) fn is_opaque(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_alphabetic)
        && value.iter().any(u8::is_ascii_digit)
        && !value.starts_with(PREFIX.as_bytes())
        && !is_placeholder(value)
}

/// Returns true if a value is a user and password in base64.
pub(crate) fn is_basic(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let padding = value.iter().rev().take_while(|byte| **byte == b'=').count();
    let Ok(pair) = STANDARD_NO_PAD.decode(&value[..value.len() - padding]) else { return false };
    let is_text = pair.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    let colon = pair.iter().position(|byte| *byte == b':');
    // The example of the specification.
    let is_known = pair == b"Aladdin:open sesame";
    is_text
        && !is_known
        && memmem::find(&pair, PREFIX.as_bytes()).is_none()
        && colon.is_some_and(|colon| {
            let (user, password) = (&pair[..colon], &pair[colon + 1..]);
            password.len() >= 4 && user != password && !is_placeholder(password)
        })
}

/// Returns the password of a URL whose user starts at `start`.
pub(crate) fn url_password(bytes: &[u8], scheme_end: usize, start: usize) -> Option<Range<usize>> {
    let is_scheme = scheme_end
        .checked_sub(2)
        .is_some_and(|two| bytes[two..scheme_end].iter().all(u8::is_ascii_alphanumeric));
    let user = bytes[start..].iter().take(USER_BYTES);
    let user =
        user.take_while(|byte| Chars::Tilde.has(**byte) || matches!(byte, b'%' | b'+')).count();
    let user = start..start + user;
    if !is_scheme || bytes.get(user.end) != Some(&b':') {
        return None;
    }
    let password = user.end + 1;
    let ends = |byte: &&u8| {
        byte.is_ascii_graphic()
            && !matches!(
                byte,
                b'/' | b'@' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'{' | b'}' | b'(' | b')'
            )
    };
    let length = bytes[password..].iter().take(PASSWORD_BYTES).take_while(ends).count();
    let password = password..password + length;
    let value = &bytes[password.clone()];
    let is_host = bytes
        .get(password.end + 1)
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'[');
    let is_one = length >= 5
        && bytes.get(password.end) == Some(&b'@')
        && is_host
        && *value != bytes[user]
        && !matches!(value[0], b'$' | b'%' | b'*' | b':')
        && value.iter().any(u8::is_ascii_alphanumeric)
        && !is_placeholder(value);
    is_one.then_some(password)
}

/// Returns the position after the headers that a block may have before its data. `start` is the
/// position after its first line.
pub(crate) fn after_headers(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    for _ in 0..MOST_HEADERS {
        let line = skip_line_end(bytes, at);
        let rest = &bytes[line..bytes.len().min(line + HEADER_BYTES)];
        let name =
            rest.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
        let is_header = (3..=24).contains(&name)
            && (rest[name..].starts_with(b": ") || rest[name..].starts_with(b"%3A"));
        if !is_header {
            return line;
        }
        let Some(end) = line_end(rest) else { return line };
        at = line + end;
    }
    at
}

/// Returns the length of the line ending at the start of `bytes`: a line break, or one that JSON or
/// a form escapes.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let is_end = |at: usize| {
        matches!(
            bytes[at..],
            [b'\n' | b'\r', ..]
                | [b'\\', b'n' | b'r', ..]
                | [b'%', b'0', b'A' | b'a' | b'D' | b'd', ..]
        )
    };
    (0..bytes.len()).find(|at| is_end(*at))
}

fn skip_line_end(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at += match bytes[at..] {
            [b'\n' | b'\r' | b' ', ..] => 1,
            [b'\\', b'n' | b'r', ..] => 2,
            [b'%', b'0', b'A' | b'a' | b'D' | b'd', ..] => 3,
            _ => return at,
        };
    }
}

/// Returns the end of a block whose data ends at `end`: after its last line, if it has one.
pub(crate) fn block_end(bytes: &[u8], start: usize, end: usize) -> usize {
    let rest = &bytes[end..bytes.len().min(end + LAST_LINE_BYTES)];
    // Dashes, words and dashes.
    let dashes = rest.iter().take_while(|byte| **byte == b'-').count();
    let words = &rest[dashes..];
    if dashes >= 4
        && (words.starts_with(b"END") || words.starts_with(b" END"))
        && let Some(last) = memmem::find(words, b"----")
    {
        let more = words[last..].iter().take_while(|byte| **byte == b'-').count();
        return end + dashes + last + more;
    }
    // A backslash may be part of an escaped quote.
    let is_end = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b'\\';
    end - bytes[start..end].iter().rev().take_while(is_end).count()
}

/// A run of characters of one set, and cached properties.
pub(crate) struct Run {
    pub(crate) range: Range<usize>,
    /// The last example marker, once it was searched for.
    example: Option<Option<usize>>,
    /// True if the run was checked as a password.
    pub(crate) is_judged: bool,
}

impl Run {
    pub(crate) const EMPTY: Self = Self::new(0..0);

    pub(crate) const fn new(range: Range<usize>) -> Self {
        Self { range, example: None, is_judged: false }
    }

    /// Returns true if the run contains a marker of documentation after `start`. Each run is
    /// searched once.
    pub(crate) fn is_example(&mut self, bytes: &[u8], start: usize) -> bool {
        let end = self.range.end;
        let last = self
            .example
            .get_or_insert_with(|| last_example(&bytes[start..end]).map(|at| start + at));
        last.is_some_and(|last| last >= start)
    }
}

/// Decodes form or query encoding. Returns `None` if nothing is encoded.
pub(crate) fn form_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut next = memchr2(b'%', b'+', text)?;
    let (mut decoded, mut at) = (Vec::with_capacity(text.len()), 0);
    loop {
        decoded.extend_from_slice(&text[at..next]);
        let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (text[next], digit(next + 1), digit(next + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high << 4 | low) as u8);
                at = next + 3;
            }
            (b'+', ..) => {
                decoded.push(b' ');
                at = next + 1;
            }
            (byte, ..) => {
                decoded.push(byte);
                at = next + 1;
            }
        }
        match memchr2(b'%', b'+', &text[at..]) {
            Some(offset) => next = at + offset,
            None => break,
        }
    }
    decoded.extend_from_slice(&text[at..]);
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_decoded() {
        let check = |text: &str, expected: Option<&str>| {
            let decoded = form_decoded(text.as_bytes());
            assert_eq!(decoded.as_deref(), expected.map(str::as_bytes), "{text}");
        };
        check("plain", None);
        check("a+b%20c%2Fd", Some("a b c/d"));
        check("100%", Some("100%"));
        check("%zz%4", Some("%zz%4"));
    }

    #[test]
    fn values_are_found_after_operators() {
        let check = |text: &str, by_space: bool, expected: Option<(&str, bool)>| {
            let found = assigned(text.as_bytes(), 1, by_space);
            let found = found.map(|(start, is_quoted)| (&text[start..], is_quoted));
            assert_eq!(found, expected, "{text}");
        };
        check("k=v", false, Some(("v", false)));
        check("k = \"v\"", false, Some(("v\"", true)));
        check("k\": \"v", false, Some(("v", true)));
        check("k\\\":\\\"v", false, Some(("v", true)));
        check("k'] = 'v", false, Some(("v", true)));
        check("k => v", false, Some(("v", false)));
        check("k := v", false, Some(("v", false)));
        check("k>v", false, Some(("v", false)));
        check("k == v", false, None);
        check("k::v", false, None);
        check("k v", false, None);
        check("k v", true, Some(("v", false)));
        check("keys=v", false, None);
        check("k", true, None);
    }
}
