//! What a client can do, by the revision it speaks and what it declared.

use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ProtocolVersion};
use rmcp::service::RequestContext;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// Requests carry everything themselves (2026-07-28 and later): there are no
    /// requests to the client, and what is missing is asked for in the result.
    pub(crate) is_stateless: bool,
    pub(crate) has_forms: bool,
}

impl Client {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let version = context.protocol_version();
        let is_stateless = version.is_some_and(|version| !version.has_initialize());
        let has_forms =
            context.client_capabilities().is_some_and(|capabilities| has_forms(&capabilities));
        Self { is_stateless, has_forms }
    }
}

/// A client that names neither way of asking has forms, as in the revisions
/// before there were two.
fn has_forms(capabilities: &ClientCapabilities) -> bool {
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|ways| ways.form.is_some() || ways.url.is_none())
}

/// The newest revision with a handshake, which is the answer to a client that asks for
/// one that we do not know.
pub(crate) const HANDSHAKE: ProtocolVersion = ProtocolVersion::V_2025_11_25;
