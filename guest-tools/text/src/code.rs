//! `encode_text` and `decode_text`.

use data_encoding::{
    BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, DecodeError, Encoding, HEXLOWER,
    HEXLOWER_PERMISSIVE,
};
use kitbag_sdk::{Call, ErrorInfo};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Deserialize;

use crate::input::Source;

/// The encodings, as callers name them.
#[cfg(test)]
pub(crate) const NAMES: [&str; 5] = ["base64", "base64url", "hex", "percent", "html"];

/// The characters that are not encoded in a part of a URL: the unreserved ones of RFC 3986.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    text: Option<String>,
    path: Option<String>,
    encoding: Named,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Named {
    Base64,
    Base64Url,
    Hex,
    Percent,
    Html,
}

/// Encodes a string, or the bytes of a file.
pub(crate) fn encode_text(call: &Call, arguments: Arguments) -> Result<String, ErrorInfo> {
    let Arguments { text, path, encoding } = arguments;
    let bytes = Source::new(text, path).bytes(call)?;
    Ok(match encoding {
        Named::Base64 => BASE64.encode(&bytes),
        // The form in tokens and URLs: without padding.
        Named::Base64Url => BASE64URL_NOPAD.encode(&bytes),
        Named::Hex => HEXLOWER.encode(&bytes),
        Named::Percent => percent_encode(&bytes, UNRESERVED).to_string(),
        Named::Html => html_escape::encode_safe(&utf8(bytes)?).into_owned(),
    })
}

/// Decodes to text.
pub(crate) fn decode_text(call: &Call, arguments: Arguments) -> Result<String, ErrorInfo> {
    let Arguments { text, path, encoding } = arguments;
    let text = Source::new(text, path).text(call, ("text", "path"))?.text;
    match encoding {
        Named::Base64 | Named::Base64Url => utf8(base64(&text)?),
        Named::Hex => {
            // The form of hex dumps: with spaces, colons and a prefix.
            let digits = text.trim().trim_start_matches("0x");
            let digits: String =
                digits.chars().filter(|it| !it.is_whitespace() && *it != ':').collect();
            let decoded = HEXLOWER_PERMISSIVE.decode(digits.as_bytes());
            utf8(decoded.map_err(|error| invalid("hex", &digits, error))?)
        }
        Named::Percent => percent(&text),
        Named::Html => Ok(html_escape::decode_html_entities(&text).into_owned()),
    }
}

/// Decodes both alphabets, with or without padding and line breaks.
fn base64(text: &str) -> Result<Vec<u8>, ErrorInfo> {
    let digits: String = text.chars().filter(|it| !it.is_whitespace()).collect();
    let is_url = digits.contains(['-', '_']);
    let is_padded = digits.ends_with('=');
    let encoding: Encoding = match (is_url, is_padded) {
        (false, true) => BASE64,
        (false, false) => BASE64_NOPAD,
        (true, true) => BASE64URL,
        (true, false) => BASE64URL_NOPAD,
    };
    encoding.decode(digits.as_bytes()).map_err(|error| invalid("base64", &digits, error))
}

fn percent(text: &str) -> Result<String, ErrorInfo> {
    // The crate accepts an incomplete escape; here it is an error.
    let bytes = text.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let broken = bytes
        .iter()
        .enumerate()
        .position(|(at, byte)| *byte == b'%' && !(is_hex(at + 1) && is_hex(at + 2)));
    if let Some(at) = broken {
        let column = String::from_utf8_lossy(&bytes[..at]).chars().count() + 1;
        return Err(ErrorInfo::new(format!(
            "character {column}: `%` must be followed by two hex digits; a percent sign is `%25`"
        )));
    }
    utf8(percent_encoding::percent_decode_str(text).collect())
}

fn invalid(name: &str, digits: &str, error: DecodeError) -> ErrorInfo {
    let at = error.position;
    let shown = match digits.get(at..).and_then(|rest| rest.chars().next()) {
        Some(digit) => format!(", `{}`", digit.escape_debug()),
        None => String::new(),
    };
    let why = match error.kind {
        data_encoding::DecodeKind::Length => "the length is not possible",
        data_encoding::DecodeKind::Symbol => "is not one of its digits",
        data_encoding::DecodeKind::Trailing => "has bits that would be lost",
        data_encoding::DecodeKind::Padding => "is padding in the wrong place",
    };
    let characters = digits.get(..at).map_or(at, |before| before.chars().count()) + 1;
    ErrorInfo::new(format!("this is not {name}: character {characters}{shown}: {why}"))
}

/// Decodes UTF-8. The error describes bytes of another kind.
fn utf8(bytes: Vec<u8>) -> Result<String, ErrorInfo> {
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let shown = HEXLOWER.encode(&bytes[..bytes.len().min(32)]);
        let more = if bytes.len() > 32 { "…" } else { "" };
        ErrorInfo::new(format!(
            "the result is not UTF-8 text: byte {} of {} is invalid; in hex: {shown}{more}",
            error.utf8_error().valid_up_to() + 1,
            bytes.len()
        ))
    })
}
