//! Masks the secrets of a server in everything that it sends.

use std::sync::Arc;

use kitbag_secrets::{Redactor, SecretValue};

/// The values that a server has. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Redaction(Arc<Redactor>);

impl Redaction {
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Self {
        Self(Arc::new(Redactor::new(values)))
    }

    pub(crate) fn text(&self, mut text: String) -> String {
        if !self.0.is_empty() {
            self.0.redact_text(&mut text);
        }
        text
    }

    pub(crate) fn bytes(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if !self.0.is_empty() {
            self.0.redact(&mut bytes);
        }
        bytes
    }
}
