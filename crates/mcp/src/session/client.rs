//! The features of a client, derived from its revision and declared capabilities.

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ProtocolVersion};
use rmcp::service::RequestContext;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// Each request is self-contained (2026-07-28 and later): the server cannot send requests to
    /// the client, so a result lists the missing answers.
    pub(crate) is_stateless: bool,
    pub(crate) has_forms: bool,
    /// The revision has structured content and output schemas (2025-06-18 and later).
    pub(crate) has_structured: bool,
}

impl Client {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let version = context.protocol_version();
        let is_stateless = version.as_ref().is_some_and(|version| !version.has_initialize());
        let has_structured = version.is_none_or(|version| version >= ProtocolVersion::V_2025_06_18);
        let has_forms =
            context.client_capabilities().is_some_and(|capabilities| has_forms(&capabilities));
        Self { is_stateless, has_forms, has_structured }
    }
}

/// Returns whether a client has forms. A client that declares neither form nor URL mode has forms,
/// as in the revisions before the two modes existed.
fn has_forms(capabilities: &ClientCapabilities) -> bool {
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|ways| ways.form.is_some() || ways.url.is_none())
}

/// The newest revision with a handshake, which is offered to clients that request an unknown
/// revision.
pub(crate) const HANDSHAKE: ProtocolVersion = ProtocolVersion::V_2025_11_25;
