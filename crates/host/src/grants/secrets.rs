//! Secrets. A call only has placeholders; the client replaces them with values in requests, and
//! the values are masked in the call's output.

use std::sync::Arc;

use kitbag_contract::{Content, ErrorInfo, Outcome, Resource, ResourceBody, ResourceLink};
use kitbag_policy::{Grants, SecretName, VariableName};
use kitbag_secrets::{CallSecrets, Secrets};
use wasmtime_wasi::WasiCtxBuilder;

use crate::call::capture::CapturedOutput;
use crate::error::CallError;

/// The secrets of one call. Also present for a call without secrets, whose requests are scanned
/// for leaks as well.
#[derive(Clone, Default)]
pub(crate) struct HeldSecrets(Arc<CallSecrets>);

impl HeldSecrets {
    /// Creates the placeholders, and sets the variables that contain placeholders.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random bytes.
    pub(crate) fn open(
        grants: &Grants,
        source: &Arc<Secrets>,
        wasi: &mut WasiCtxBuilder,
    ) -> Result<Self, CallError> {
        let secrets = CallSecrets::new(grants.secrets.iter().cloned(), Arc::clone(source));
        let secrets = secrets.map_err(|error| CallError::Internal(error.to_string()))?;
        for (variable, placeholder) in secrets.variables() {
            wasi.env(variable.as_str(), placeholder);
        }
        Ok(Self(Arc::new(secrets)))
    }

    /// Returns the placeholder of the secret with this name or variable, if it is granted.
    pub(crate) fn placeholder(&self, name: &str) -> Option<String> {
        let of_variable = |(variable, _): &(&VariableName, &str)| variable.as_str() == name;
        let variable = self.0.variables().find(of_variable).map(|(_, it)| it.to_owned());
        variable.or_else(|| {
            let name = SecretName::new(name).ok()?;
            self.0.placeholder(&name).map(|placeholder| placeholder.as_str().to_owned())
        })
    }

    /// Returns the secrets for scanning and completing requests.
    pub(crate) fn of_requests(&self) -> Arc<CallSecrets> {
        Arc::clone(&self.0)
    }

    pub(crate) fn mask_outcome(&self, outcome: &mut Outcome) {
        match outcome {
            Outcome::Success(content) => self.mask(content),
            Outcome::Error(ErrorInfo { message, trace, .. }) => {
                self.mask(message);
                trace.iter_mut().for_each(|line| self.mask(line));
            }
            Outcome::NeedsInput(question) => {
                self.mask(&mut question.text);
                question.default.iter_mut().for_each(|text| self.mask(text));
            }
        }
    }

    /// Masks secrets in content that a tool emitted.
    pub(crate) fn mask_content(&self, content: &mut Content) {
        match content {
            Content::Image(media) | Content::Audio(media) => self.0.mask_bytes(&mut media.data),
            Content::Resource(Resource { uri, body, .. }) => {
                self.mask(uri);
                match body {
                    ResourceBody::Text(text) => self.mask(text),
                    ResourceBody::Blob(data) => self.0.mask_bytes(data),
                }
            }
            Content::Link(ResourceLink { uri, name, title, description, .. }) => {
                [uri, name].into_iter().for_each(|text| self.mask(text));
                [title, description].into_iter().flatten().for_each(|text| self.mask(text));
            }
        }
    }

    pub(crate) fn mask_printed(&self, mut printed: CapturedOutput) -> CapturedOutput {
        printed.texts().for_each(|text| self.mask(text));
        printed
    }

    pub(crate) fn mask(&self, text: &mut String) {
        self.0.mask(text);
    }
}
