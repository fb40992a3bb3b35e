//! The signed state that a client carries between rounds of questions.
//!
//! A tool that asks is run again with all previous answers, and the next run may reach another
//! instance of this server. So the client carries the answers, signed: it can read them, but it
//! cannot change them or use them for another call.

use std::fmt;
use std::time::Duration;

use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Maximum time that a person may take to answer.
pub(crate) const LIFETIME: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallState {
    pub(crate) answers: Map<String, Value>,
    /// Id under which the server keeps the completed nested calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kept: Option<String>,
}

/// Signs and verifies the state of a call.
pub(crate) struct StateCodec(RequestStateCodec);

pub(crate) struct Binding(Vec<u8>);

impl StateCodec {
    /// Minimum length of a key in bytes.
    pub(crate) const KEY_BYTES: usize = RequestStateCodec::MIN_KEY_LENGTH;

    /// Creates a codec from a key of at least [`KEY_BYTES`](Self::KEY_BYTES).
    pub(crate) fn new(key: &[u8]) -> Result<Self, RequestStateError> {
        RequestStateCodec::try_new(key).map(Self)
    }

    pub(crate) fn seal(&self, state: &CallState, binding: &Binding) -> String {
        let options = SealOptions::new().associated_data(&binding.0).ttl(LIFETIME);
        let state = serde_json::to_vec(state).expect("every key is a string");
        self.0.seal_with(&state, &options)
    }

    /// # Errors
    ///
    /// If the state was changed, belongs to another call, or has expired.
    pub(crate) fn open(&self, state: &str, binding: &Binding) -> Result<CallState, String> {
        self.0.open_json_with(state, &binding.0).map_err(|error| match error {
            RequestStateError::Expired => {
                "`requestState` has expired; make the call again without it".to_owned()
            }
            error => format!(
                "this server did not issue this `requestState` for this call ({error}); send it \
                 back unchanged, with the same name and arguments"
            ),
        })
    }
}

impl Binding {
    /// Binds the state to the identity and the request: `parts` in order, each delimited.
    pub(crate) fn new(parts: &[&[u8]]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Self(digest.finalize().to_vec())
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn state_opens_only_unchanged_and_for_the_same_call() {
        let codec = StateCodec::new(&[7; StateCodec::KEY_BYTES]).unwrap();
        let answers = json!({ "confirm": true }).as_object().unwrap().clone();
        let binding = |parts: &[&str]| {
            Binding::new(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
        };
        let call = binding(&["deploy", "{}"]);
        let opened = CallState { answers, kept: Some("id".into()) };
        let state = codec.seal(&opened, &call);
        assert_eq!(codec.open(&state, &call).unwrap(), opened);
        for other in [&["deploy", "{ }"][..], &["deploy{", "}"], &["deploy"], &["erase", "{}"]] {
            codec.open(&state, &binding(other)).unwrap_err();
        }
        for at in 0..state.len() {
            let mut changed = state.clone().into_bytes();
            changed[at] ^= 1;
            let Ok(changed) = String::from_utf8(changed) else { continue };
            codec.open(&changed, &call).unwrap_err();
        }
        let other = StateCodec::new(&[8; StateCodec::KEY_BYTES]).unwrap();
        other.open(&state, &call).unwrap_err();
    }
}
