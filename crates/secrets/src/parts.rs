//! The parts of a request and the forms of a value in them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use memchr::memmem;

use crate::encodings::{Escapes, decode};
use crate::request::{PlainRequest, RequestPart};
use crate::value::SecretValue;

/// The start of an `Authorization` header with a user and password.
const BASIC: &[u8] = b"basic ";

/// Iterates over the parts of a request that contain a guest's data.
pub(crate) fn parts(request: &PlainRequest) -> impl Iterator<Item = (RequestPart, &[u8])> {
    let texts = [
        (RequestPart::Host, Some(request.authority.as_bytes())),
        (RequestPart::Path, Some(request.path.as_bytes())),
        (RequestPart::Query, request.query.as_deref().map(str::as_bytes)),
        (RequestPart::Body, request.body.as_deref()),
    ];
    let texts = texts.into_iter().filter_map(|(part, text)| Some((part, text?)));
    let headers = request.headers.iter().flat_map(|(name, text)| {
        [name.as_bytes(), text].map(|text| (RequestPart::Header(name.clone()), text))
    });
    headers.chain(texts)
}

/// Returns the user and password of a header `Authorization: Basic`.
pub(crate) fn basic(header: &[u8]) -> Option<Vec<u8>> {
    let (start, text) = header.split_at_checked(BASIC.len())?;
    let text = start.eq_ignore_ascii_case(BASIC).then(|| text.trim_ascii())?;
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    STANDARD_NO_PAD.decode(&text[..text.len() - padding]).ok()
}

/// Returns true for a JSON body and false for a form. `None`: neither.
pub(crate) fn is_json(headers: &[(String, Vec<u8>)]) -> Option<bool> {
    let (_, kind) = headers.iter().find(|(name, _)| name == "content-type")?;
    let essence = kind.split(|byte| *byte == b';').next()?.trim_ascii().to_ascii_lowercase();
    match &*essence {
        b"application/json" => Some(true),
        b"application/x-www-form-urlencoded" => Some(false),
        kind => kind.ends_with(b"+json").then_some(true),
    }
}

/// The state of a query parameter.
pub(crate) enum Parameter {
    Absent,
    /// The parameter has exactly this value.
    Same,
    Other,
}

pub(crate) fn has_parameter(query: Option<&str>, name: &str, value: &str) -> Parameter {
    let mut found = Parameter::Absent;
    // Some servers treat `;` as `&`.
    for pair in query.unwrap_or_default().split(['&', ';']) {
        let (own, its) = pair.split_once('=').unwrap_or((pair, ""));
        let own = decode(own.as_bytes(), Escapes::Both).map_or(own.into(), |own| own.bytes);
        if own == name.as_bytes() {
            match found {
                Parameter::Absent if its == value => found = Parameter::Same,
                _ => return Parameter::Other,
            }
        }
    }
    found
}

/// Replaces one text by another.
pub(crate) fn swap(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memmem::find(rest, from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// Encodes a value for a URL or form. Only characters without a meaning in any syntax are not
/// encoded.
pub(crate) fn encoded(value: &SecretValue) -> String {
    let mut text = String::new();
    for byte in value.reveal().bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => text.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => text.push(byte.into()),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Encodes a value for a JSON string.
pub(crate) fn json_text(value: &SecretValue) -> String {
    let quoted = serde_json::Value::from(value.reveal()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
