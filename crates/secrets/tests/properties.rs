//! Values in every spelling, in random text that is cut at random: no value is released, and
//! other text is unchanged.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use kitbag_policy::{SecretGrant, SecretName, SecretRelation};
use kitbag_secrets::{
    CallEnd, CallSecrets, MASK, PlainRequest, ReadError, ReadSecret, Redactor, SecretRefusal,
    SecretValue, Secrets,
};
use proptest::prelude::*;
use proptest::sample::Index;

fn value(text: &str) -> SecretValue {
    SecretValue::new(text.as_bytes().to_vec()).unwrap()
}

/// The encoding of a text.
#[derive(Clone, Debug)]
enum Spelling {
    Plain,
    Hex {
        upper: bool,
    },
    /// `plain` is not encoded: letters and digits, or nothing.
    Percent {
        upper: bool,
        plain: bool,
    },
    /// Quotes and backslashes and, with `all`, every character other than letters and digits.
    Json {
        upper: bool,
        all: bool,
        slash: bool,
    },
    /// With other bytes before and after.
    Base64 {
        before: Vec<u8>,
        after: Vec<u8>,
        url: bool,
        padded: bool,
    },
}

fn spelling() -> impl Strategy<Value = Spelling> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..7);
    prop_oneof![
        Just(Spelling::Plain),
        any::<bool>().prop_map(|upper| Spelling::Hex { upper }),
        any::<(bool, bool)>().prop_map(|(upper, plain)| Spelling::Percent { upper, plain }),
        any::<(bool, bool, bool)>().prop_map(|(upper, all, slash)| Spelling::Json {
            upper,
            all,
            slash
        }),
        (bytes(), bytes(), any::<(bool, bool)>()).prop_map(|(before, after, (url, padded))| {
            Spelling::Base64 { before, after, url, padded }
        }),
    ]
}

impl Spelling {
    /// Encodes a text, and returns the range that contains only the text.
    fn of(&self, text: &str) -> (String, Range<usize>) {
        let spelled: String = match self {
            Self::Plain => text.to_owned(),
            Self::Hex { upper } => text.bytes().map(|byte| two(byte, *upper)).collect(),
            Self::Percent { upper, plain } => text
                .bytes()
                .map(|byte| match byte.is_ascii_alphanumeric() && *plain {
                    true => char::from(byte).to_string(),
                    false => format!("%{}", two(byte, *upper)),
                })
                .collect(),
            Self::Json { upper, all, slash } => text
                .chars()
                .map(|c| match c {
                    '"' | '\\' => format!("\\{c}"),
                    '/' if *slash => "\\/".to_owned(),
                    _ if c.is_ascii_alphanumeric() || !all => c.to_string(),
                    _ => units(c, *upper),
                })
                .collect(),
            Self::Base64 { before, after, url, padded } => {
                let bytes = [before, text.as_bytes(), after].concat();
                let spelled = match (url, padded) {
                    (false, true) => STANDARD.encode(bytes),
                    (false, false) => STANDARD_NO_PAD.encode(bytes),
                    (true, true) => URL_SAFE.encode(bytes),
                    (true, false) => URL_SAFE_NO_PAD.encode(bytes),
                };
                let end = before.len() + text.len();
                return (spelled, (before.len() * 8).div_ceil(6)..end * 8 / 6);
            }
        };
        let whole = 0..spelled.len();
        (spelled, whole)
    }
}

fn two(byte: u8, upper: bool) -> String {
    if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }
}

fn units(c: char, upper: bool) -> String {
    let unit = |unit: &u16| match upper {
        true => format!("\\u{unit:04X}"),
        false => format!("\\u{unit:04x}"),
    };
    c.encode_utf16(&mut [0; 2]).iter().map(unit).collect()
}

/// Filters a text in pieces of these lengths.
fn filtered(redactor: &Arc<Redactor>, text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut filter = redactor.filter();
    let (mut rest, mut out) = (text, Vec::new());
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(rest.len().min(*cut));
        out.extend(filter.push(piece));
        rest = after;
    }
    out.extend(filter.finish());
    out
}

/// Provides one secret for every call, which may be used in query and body as well.
struct One(String);

impl ReadSecret for One {
    fn read(&self, _: &SecretName, _: &CallEnd) -> Result<SecretValue, ReadError> {
        Ok(value(&self.0))
    }
}

fn call(value: &str) -> (CallSecrets, String) {
    let name = SecretName::new("one").unwrap();
    let grant = SecretGrant {
        name: name.clone(),
        to: Vec::new(),
        within: None,
        added: None,
        variables: Vec::new(),
        in_query: true,
        in_body: true,
    };
    let secrets = Secrets::new(One(value.to_owned()), Vec::new());
    let call = CallSecrets::new([grant], Arc::new(secrets)).unwrap();
    let placeholder = call.placeholder(&name).unwrap().as_str().to_owned();
    (call, placeholder)
}

/// Creates a request with a text in one of its parts.
fn request(part: Index, text: &str) -> PlainRequest {
    let (mut path, mut query, mut body) = ("/a".to_owned(), None, None);
    let mut headers = vec![("accept".to_owned(), b"text/plain".to_vec())];
    match part.index(4) {
        0 => path = format!("/a/{text}"),
        1 => query = Some(format!("a={text}")),
        2 => body = Some(format!("a {text} b").into_bytes()),
        _ => headers.push(("x-key".to_owned(), text.as_bytes().to_vec())),
    }
    PlainRequest { authority: "api.example.com".to_owned(), path, query, headers, body }
}

/// Joins all parts of a request.
fn whole(request: &PlainRequest) -> String {
    let PlainRequest { authority, path, query, headers, body } = request;
    let headers: Vec<_> =
        headers.iter().map(|(name, text)| (name, String::from_utf8_lossy(text))).collect();
    let body = body.as_deref().map(String::from_utf8_lossy);
    format!(
        "{authority}{path}{}{headers:?}{}",
        query.as_deref().unwrap_or(""),
        body.unwrap_or_default()
    )
}

proptest! {
    #[test]
    fn no_value_is_released_in_any_spelling(
        secret in prop_oneof!["[ -~é😀]{8,24}", r#"[%\\"4u0a/ ]{8,16}"#],
        others in proptest::collection::vec("[ -~]{8,12}", 0..3),
        spelling in spelling(),
        // A `%` or backslash before the value could change its meaning.
        before in "[ -$&-\\[\\]-~\n]{0,30}",
        after in "[ -~\n]{0,30}",
        cuts in proptest::collection::vec(1usize..40, 1..20),
    ) {
        let values: Vec<_> = [&secret].into_iter().chain(&others).map(|text| value(text)).collect();
        let redactor = Arc::new(Redactor::new(&values));
        let (spelled, own) = spelling.of(&secret);
        let text = format!("{before}{spelled}{after}");
        let own = before.len() + own.start..before.len() + own.end;
        let out = filtered(&redactor, text.as_bytes(), &cuts);
        prop_assert_eq!(out.len(), text.len());
        prop_assert!(
            out[own.clone()].iter().all(|byte| *byte == MASK),
            "{} becomes {}", text, String::from_utf8_lossy(&out)
        );
        prop_assert!(redactor.finds(text.as_bytes()));
    }

    #[test]
    fn ordinary_text_is_unchanged(
        secret in "[ -~é]{8,24}",
        pieces in proptest::collection::vec(("[ -~é😀]{0,40}", spelling(), any::<Index>()), 0..6),
        cuts in proptest::collection::vec(1usize..40, 1..20),
    ) {
        let redactor = Arc::new(Redactor::new([&value(&secret)]));
        // Other text, and the start or end of the value, in the same spelling.
        let mut text = String::new();
        for (piece, spelling, cut) in pieces {
            let starts: Vec<_> = secret.char_indices().skip(1).map(|(at, _)| at).collect();
            let (start, end) = secret.split_at(*cut.get(&starts));
            // In base64, the last character of a part may equal that of the whole.
            let parts = match spelling {
                Spelling::Base64 { .. } => ["", ""],
                _ => [start, end],
            };
            for piece in [&*piece].into_iter().chain(parts) {
                text.push_str(&spelling.of(piece).0);
                // Values have no line ending.
                text.push('\n');
            }
        }
        let out = filtered(&redactor, text.as_bytes(), &cuts);
        prop_assert_eq!(String::from_utf8_lossy(&out), text.as_str());
        prop_assert!(!redactor.finds(text.as_bytes()));
    }

    #[test]
    fn placeholders_are_replaced_or_refused(
        secret in "[!-~]{8,24}",
        spelling in spelling(),
        part in any::<Index>(),
        is_bound in any::<bool>(),
    ) {
        let (call, placeholder) = call(&secret);
        let relation = match is_bound {
            true => SecretRelation::Bound,
            false => SecretRelation::Elsewhere,
        };
        let (spelled, _) = spelling.of(&placeholder);
        match call.prepare(request(part, &spelled), |_| relation) {
            Ok(prepared) => {
                prop_assert!(is_bound && spelled == placeholder && part.index(4) != 0);
                prop_assert_eq!(prepared.sent.len(), 1);
                prop_assert!(!whole(&prepared.request).contains("kitbag_placeholder_"));
            }
            Err(refusal) => {
                let is_placeholder = matches!(refusal, SecretRefusal::Placeholder { .. });
                prop_assert!(is_placeholder, "{}", refusal);
                prop_assert!(!refusal.to_string().contains(&secret));
            }
        }
    }

    #[test]
    fn requests_without_secrets_are_unchanged(
        secret in "[!-~]{8,24}",
        text in "[a-z0-9%./_-]{0,60}",
        part in any::<Index>(),
        is_bound in any::<bool>(),
    ) {
        let (call, _) = call(&secret);
        let relation = match is_bound {
            true => SecretRelation::Bound,
            false => SecretRelation::Elsewhere,
        };
        let request = request(part, &text);
        let prepared = call.prepare(request.clone(), |_| relation).ok().unwrap();
        prop_assert_eq!(whole(&prepared.request), whole(&request));
        prop_assert!(prepared.sent.is_empty() && prepared.warnings.is_empty());
    }

    #[test]
    fn requests_with_a_known_value_are_refused(
        secret in "[!-~]{8,24}",
        spelling in spelling(),
        part in any::<Index>(),
    ) {
        let (call, _) = call(&secret);
        let empty = PlainRequest { headers: Vec::new(), ..request(part, "") };
        prop_assert!(call.prepare(empty, |_| SecretRelation::Bound).is_ok());
        let (spelled, _) = spelling.of(&secret);
        let refusal = call.prepare(request(part, &spelled), |_| SecretRelation::Elsewhere).err();
        let is_value = matches!(refusal, Some(SecretRefusal::Value { .. }));
        prop_assert!(is_value, "{:?}", refusal);
        prop_assert!(!refusal.unwrap().to_string().contains(&secret));
    }
}
