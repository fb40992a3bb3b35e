//! Secrets: what a call holds of them is their placeholders. Their values are put into
//! requests by the client, and masked in what the call gives.

use std::sync::Arc;

use kitbag_contract::{Content, ErrorInfo, Outcome, Resource, ResourceBody, ResourceLink};
use kitbag_policy::Grants;
use kitbag_secrets::{CallSecrets, Secrets};
use wasmtime_wasi::WasiCtxBuilder;

use crate::capture::Captured;
use crate::error::CallError;

/// How many findings of one call are logged.
const MOST_FINDINGS: usize = 20;

/// The secrets of one call. `None` inside: it sends no requests and has no secrets, so that
/// nothing of it is looked through.
#[derive(Clone, Default)]
pub(crate) struct HeldSecrets(Option<Arc<CallSecrets>>);

impl HeldSecrets {
    /// Makes the placeholders, and puts those into the environment that stand in a variable.
    ///
    /// # Errors
    ///
    /// Where the system gives no random bytes.
    pub(crate) fn open(
        grants: &Grants,
        source: &Arc<Secrets>,
        wasi: &mut WasiCtxBuilder,
    ) -> Result<Self, CallError> {
        if grants.secrets.is_empty() && grants.http.grants.is_empty() {
            return Ok(Self::default());
        }
        let secrets = CallSecrets::new(grants.secrets.iter().cloned(), Arc::clone(source));
        let secrets = secrets.map_err(|error| CallError::Internal(error.to_string()))?;
        for (variable, placeholder) in secrets.variables() {
            wasi.env(variable.as_str(), placeholder);
        }
        Ok(Self(Some(Arc::new(secrets))))
    }

    /// What requests are looked through for, and what is added to them.
    pub(crate) fn of_requests(&self) -> Option<Arc<CallSecrets>> {
        self.0.clone()
    }

    /// Masks an outcome. Returns what is to be logged of it.
    pub(crate) fn mask_outcome(&self, outcome: &mut Outcome) -> Vec<String> {
        let mut findings = Vec::new();
        let mut mask = |text: &mut String| findings.extend(self.mask(text));
        match outcome {
            Outcome::Success(content) => mask(content),
            Outcome::Error(ErrorInfo { message, trace, .. }) => {
                mask(message);
                trace.iter_mut().for_each(mask);
            }
            Outcome::NeedsInput(question) => {
                mask(&mut question.text);
                question.default.iter_mut().for_each(mask);
            }
        }
        findings.truncate(MOST_FINDINGS);
        findings
    }

    /// Masks what a tool gives besides its text.
    pub(crate) fn mask_content(&self, content: &mut Content) {
        let Some(secrets) = &self.0 else { return };
        let mut mask = |text: &mut String| drop(secrets.mask(text));
        match content {
            Content::Image(media) | Content::Audio(media) => secrets.mask_bytes(&mut media.data),
            Content::Resource(Resource { uri, body, .. }) => {
                mask(uri);
                match body {
                    ResourceBody::Text(text) => mask(text),
                    ResourceBody::Blob(data) => secrets.mask_bytes(data),
                }
            }
            Content::Link(ResourceLink { uri, name, title, description, .. }) => {
                [uri, name].into_iter().for_each(&mut mask);
                [title, description].into_iter().flatten().for_each(mask);
            }
        }
    }

    /// Masks what a tool printed.
    pub(crate) fn mask_printed(&self, mut printed: Captured) -> Captured {
        printed.texts().for_each(|text| drop(self.mask(text)));
        printed
    }

    /// Masks a text. Returns what is to be logged of it.
    pub(crate) fn mask(&self, text: &mut String) -> Vec<String> {
        self.0.as_ref().map(|secrets| secrets.mask(text)).unwrap_or_default()
    }
}
