//! Parses a URL in the form that a person or a model writes. The tool `fetch` requests the result,
//! and the host uses the same function to explain the requests that `fetch` may make.

pub use url::{ParseError, Position, Url};

/// Parses a URL as browsers do (WHATWG URL): spaces and angle brackets around it are dropped,
/// segments `.` and `..` are resolved, and characters that are invalid in URLs are encoded. The
/// fragment is dropped, since a server never receives it.
///
/// # Errors
///
/// [`ParseError`] if the text is not an absolute URL.
pub fn read(text: &str) -> Result<Url, ParseError> {
    let text = text.trim();
    // The delimiters of Markdown and RFC 3986.
    let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    let mut url = Url::parse(inner.unwrap_or(text).trim())?;
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, ParseError>) {
        assert_eq!(read(text).map(String::from), expected.map(str::to_owned), "{text}");
    }

    #[test]
    fn urls_are_read_as_browsers_do() {
        check("https://a.example", Ok("https://a.example/"));
        check(" HTTPS://A.Example:443/a/../b#c\n", Ok("https://a.example/b"));
        check("https://a.example/a/%2e%2E/./b d", Ok("https://a.example/b%20d"));
        check("https://a.example\\a\\..\\b", Ok("https://a.example/b"));
        check("https://127.1/ä?ö=ü", Ok("https://127.0.0.1/%C3%A4?%C3%B6=%C3%BC"));
        check("<https://a.example/b>", Ok("https://a.example/b"));
        check("<https://a.example/b", Err(ParseError::RelativeUrlWithoutBase));
        check("/a/b", Err(ParseError::RelativeUrlWithoutBase));
    }
}
