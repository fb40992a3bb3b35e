//! The `WWW-Authenticate` header of a server that requires a sign-in.

use http::header::{self, HeaderMap};

/// The longest header that is read, in bytes.
const MOST_BYTES: usize = 8 << 10;

/// A challenge of the scheme `Bearer`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The URL of the metadata of the protected resource.
    pub(crate) resource_metadata: Option<String>,
    /// The required scopes. Names with other characters than those of OAuth are omitted.
    pub(crate) scopes: Vec<String>,
    /// The code of the error, such as `insufficient_scope`.
    pub(crate) error: Option<String>,
}

impl Challenge {
    /// Reads the first challenge of the scheme `Bearer`.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        headers.get_all(header::WWW_AUTHENTICATE).iter().find_map(|value| {
            let text = value.to_str().ok().filter(|text| text.len() <= MOST_BYTES)?;
            Self::parse(text)
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let is_bearer = |text: &str| {
            text.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"))
                && text[6..].chars().next().is_none_or(|next| next == ' ' || next == ',')
        };
        // A scheme begins the header or follows a comma.
        let starts = std::iter::once(0).chain(text.match_indices(',').map(|(at, _)| at + 1));
        let mut rest = starts.map(|at| text[at..].trim_start()).find(|rest| is_bearer(rest))?;
        rest = rest[6..].trim_start();
        let mut challenge = Self::default();
        while let Some((name, after)) = rest.split_once('=') {
            let name = name.trim();
            if name.is_empty() || name.contains([' ', ',']) {
                break;
            }
            let (value, after) = value(after)?;
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => challenge.scopes = scopes(&value),
                "error" => challenge.error = Some(value),
                _ => {}
            }
            match after.trim_start().strip_prefix(',') {
                Some(after) => rest = after.trim_start(),
                None => break,
            }
        }
        Some(challenge)
    }
}

/// Reads a token or a quoted string, and returns the rest.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let (mut value, mut chars) = (String::new(), quoted.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// Splits a list of scopes. Others than those of RFC 6749, section 3.3, are omitted.
pub(crate) fn scopes(text: &str) -> Vec<String> {
    const MOST: usize = 50;
    text.split(' ').filter(|scope| is_scope(scope)).take(MOST).map(str::to_owned).collect()
}

pub(crate) fn is_scope(text: &str) -> bool {
    const MOST_BYTES: usize = 200;
    let fits = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5B | 0x5D..=0x7E);
    (1..=MOST_BYTES).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_with_their_parameters() {
        let check = |text: &str, expected: Option<(Option<&str>, &[&str], Option<&str>)>| {
            let found = Challenge::parse(text);
            let found = found.as_ref().map(|it| {
                let scopes: Vec<_> = it.scopes.iter().map(String::as_str).collect();
                (it.resource_metadata.as_deref(), scopes, it.error.as_deref())
            });
            let expected = expected.map(|(url, scopes, error)| (url, scopes.to_vec(), error));
            assert_eq!(found, expected, "{text}");
        };
        check("Bearer", Some((None, &[], None)));
        check("bearer realm=\"a, b=c\", scope=\"x y\"", Some((None, &["x", "y"], None)));
        check(
            "Basic realm=\"a\", Bearer resource_metadata=\"https://a.example/m\", error=invalid_token",
            Some((Some("https://a.example/m"), &[], Some("invalid_token"))),
        );
        check("Bearer scope=\"a\\\"b c\u{7f}d e\"", Some((None, &["e"], None)));
        check("Bearer scope=\"open", None);
        check("Bearerx scope=a", None);
        check("Digest realm=a", None);
    }
}
