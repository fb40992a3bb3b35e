//! The signed form of every message and record.
//!
//! The first line is `kitbag/VERSION KEY SIGNATURE`, and the rest is JSON. The signature also
//! covers the context, such as the subject of the message, so that a message
//! under another subject is not valid.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kitbag_base::text::shown;

use crate::identity::{Identity, Purpose, is_signed};

/// The version of messages that this program writes.
pub const WIRE_VERSION: u32 = 1;

/// The oldest version of messages that this program reads.
pub const OLDEST_WIRE_VERSION: u32 = 1;

/// An error in a received message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message does not have the form of this or any version.
    #[error("the message is not valid: {0}")]
    Form(String),
    /// This program does not know the version.
    #[error(
        "the message has version {version} of the wire format, and this kitbag reads versions \
         {OLDEST_WIRE_VERSION} to {WIRE_VERSION}; update the older side: workers first, then front \
         ends"
    )]
    Version {
        /// The version of the message.
        version: u32,
    },
    /// The key is not a key of a member.
    #[error("the message is signed by `{}`, which is not a {role} of this workspace", shown(key))]
    Stranger {
        /// The key.
        key: String,
        /// The role that the key does not have.
        role: &'static str,
    },
    /// The signature is not valid for the message in its place.
    #[error("the signature of the message is not valid")]
    Signature,
}

/// An opened message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened<'a> {
    pub(crate) key: &'a str,
    pub(crate) body: &'a [u8],
}

/// Signs a body for a purpose and a place.
pub(crate) fn seal(identity: &Identity, purpose: Purpose, context: &str, body: &[u8]) -> Vec<u8> {
    let signature = identity.sign(purpose, &signed_bytes(WIRE_VERSION, context, body));
    let signature = URL_SAFE_NO_PAD.encode(signature);
    let mut sealed =
        format!("kitbag/{WIRE_VERSION} {} {signature}\n", identity.public()).into_bytes();
    sealed.extend_from_slice(body);
    sealed
}

/// Checks the version and the signature of a message. `role` names the role that `is_member`
/// checks.
///
/// # Errors
///
/// [`WireError`]. The version is checked first, because other versions may be signed otherwise.
pub(crate) fn open<'a>(
    sealed: &'a [u8],
    purpose: Purpose,
    context: &str,
    role: &'static str,
    is_member: impl FnOnce(&str) -> bool,
) -> Result<Opened<'a>, WireError> {
    let form = |reason: &str| WireError::Form(reason.to_owned());
    let end = sealed.iter().position(|byte| *byte == b'\n').unwrap_or(sealed.len());
    let (line, body) = (&sealed[..end], sealed.get(end + 1..).unwrap_or_default());
    let line = std::str::from_utf8(line).map_err(|_| form("its first line is not text"))?;
    let rest = line.strip_prefix("kitbag/").ok_or_else(|| form("it is not of kitbag"))?;
    let (version, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let version: u32 = version.parse().map_err(|_| form("its version is not a number"))?;
    if !(OLDEST_WIRE_VERSION..=WIRE_VERSION).contains(&version) {
        return Err(WireError::Version { version });
    }
    let (key, signature) = rest.split_once(' ').ok_or_else(|| form("it has no signature"))?;
    if !is_member(key) {
        return Err(WireError::Stranger { key: key.to_owned(), role });
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| WireError::Signature)?;
    match is_signed(key, purpose, &signed_bytes(version, context, body), &signature) {
        true => Ok(Opened { key, body }),
        false => Err(WireError::Signature),
    }
}

fn signed_bytes(version: u32, context: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{version} {context}\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sealed: &[u8], context: &str, member: &str) -> Result<Vec<u8>, WireError> {
        let opened = open(sealed, Purpose::Call, context, "front end", |key| key == member);
        opened.map(|opened| opened.body.to_vec())
    }

    #[test]
    fn a_message_is_valid_only_in_its_place() {
        let (one, other) = (Identity::generate(), Identity::generate());
        let sealed = seal(&one, Purpose::Call, "kitbag.call.a", b"{}");
        assert_eq!(read(&sealed, "kitbag.call.a", one.public()), Ok(b"{}".to_vec()));
        assert_eq!(read(&sealed, "kitbag.call.b", one.public()), Err(WireError::Signature));
        let stranger = read(&sealed, "kitbag.call.a", other.public());
        assert!(matches!(stranger, Err(WireError::Stranger { .. })), "{stranger:?}");
        let replies = open(&sealed, Purpose::Reply, "kitbag.call.a", "worker", |_| true);
        assert_eq!(replies, Err(WireError::Signature));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let one = Identity::generate();
        let sealed = seal(&one, Purpose::Call, "place", br#"{"tool":"a"}"#);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(read(&changed, "place", one.public()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_later_version_is_refused_before_its_signature() {
        let error = read(b"kitbag/2 new form", "place", "").unwrap_err();
        assert_eq!(error, WireError::Version { version: 2 });
        assert_eq!(
            error.to_string(),
            "the message has version 2 of the wire format, and this kitbag reads versions 1 to 1; \
             update the older side: workers first, then front ends"
        );
        for text in ["", "kitbag", "kitbag/x a b\n", "kitbag/1\n", "kitbag/1 a\n"] {
            let error = read(text.as_bytes(), "place", "").unwrap_err();
            assert!(matches!(error, WireError::Form(_)), "{text}: {error:?}");
        }
    }
}
