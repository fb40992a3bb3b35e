//! The part of a client's `initialize` that is kept for the lifetime of its session.

use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ClientJsonRpcMessage, ClientRequest, GetMeta, InitializeRequest,
    InitializeRequestParams, ProtocolVersion, RequestMetaObject, ServerJsonRpcMessage,
};
use serde_json::Value;

use crate::session::client::HANDSHAKE;

/// Maximum size of an `initialize` in bytes.
pub(crate) const INITIALIZE_BYTES: usize = 64 << 10;

/// Memory of a session: its tasks and queues in the protocol library, and the kept client data.
pub(crate) const SESSION_BYTES: u64 = 48 << 10;

/// Maximum length of a client's name and version that are kept, in bytes.
pub(crate) const NAME_BYTES: usize = 256;

/// Maximum size of the `_meta` that is kept, in bytes. It holds the client's trace context.
const META_BYTES: usize = 1 << 10;

/// Reduces an `initialize` to the client's name and version, and its support for forms.
pub(crate) fn reduce(request: &mut InitializeRequest) {
    let is_long = |meta: &RequestMetaObject| {
        serde_json::to_vec(meta).is_ok_and(|meta| meta.len() > META_BYTES)
    };
    if request.extensions.get().is_some_and(is_long) {
        request.extensions.remove::<RequestMetaObject>();
    }
    let params = &mut request.params;
    params.meta = None;
    let client = &mut params.client_info;
    for text in [&mut client.name, &mut client.version] {
        text.truncate(text.floor_char_boundary(NAME_BYTES));
        text.shrink_to_fit();
    }
    (client.title, client.description, client.icons, client.website_url) = Default::default();
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = params.capabilities.elicitation.take();
    params.capabilities = capabilities;
}

/// Checks the parameters of an `initialize`. Clients of a revision without it are left to the
/// protocol library.
pub(crate) fn check(params: Option<&Value>) -> Result<(), ErrorData> {
    const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    if params.is_some_and(|params| params["_meta"].get(VERSION).is_some()) {
        return Ok(());
    }
    let params = params.cloned().unwrap_or_default();
    match serde_json::from_value::<InitializeRequestParams>(params) {
        Ok(_) => Ok(()),
        Err(error) => {
            let newest = HANDSHAKE.as_str();
            let message = format!(
                "the parameters of `initialize` are not valid: {error}; send, for example, \
                 {{\"protocolVersion\": \"{newest}\", \"capabilities\": {{}}, \"clientInfo\": \
                 {{\"name\": \"…\", \"version\": \"…\"}}}}"
            );
            Err(ErrorData::invalid_params(message, None))
        }
    }
}

/// Returns the answer to a request outside of a session that does not carry its own version and
/// capabilities. `then` describes the additional part of a request in a session.
pub(crate) fn before_session(
    message: &ClientJsonRpcMessage,
    then: &str,
) -> Option<ServerJsonRpcMessage> {
    let ClientJsonRpcMessage::Request(message) = message else { return None };
    let request = &message.request;
    if matches!(request, ClientRequest::InitializeRequest(_) | ClientRequest::PingRequest(_)) {
        return None;
    }
    let (method, stateless) = (request.method(), ProtocolVersion::V_2026_07_28);
    let missing = request.get_meta().missing_required_keys(&stateless);
    let text = match (request.get_meta().protocol_version(), &*missing) {
        (Some(_), []) => return None,
        (Some(_), missing) => {
            let missing = missing.join("`, `");
            format!("`_meta` of `{method}` has no valid `{missing}`")
        }
        (None, missing) => {
            let missing = missing.join("` and `");
            format!(
                "`{method}` needs a session; send `initialize` first{then}, or, with {stateless}, \
                 send `{missing}` in `_meta` of each request"
            )
        }
    };
    let error = ErrorData::invalid_params(text, None);
    Some(ServerJsonRpcMessage::error(error, Some(message.id.clone())))
}

/// Lists the supported protocol versions, for messages.
pub(crate) fn versions() -> String {
    let versions = ProtocolVersion::KNOWN_VERSIONS.iter();
    versions.map(|version| format!("`{version}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn initialize_is_reduced_to_name_version_and_forms() {
        let long = "ä".repeat(1_000);
        let request = json!({
            "method": "initialize",
            "params": {
                "_meta": { "a": long },
                "protocolVersion": "2025-11-25",
                "clientInfo": { "name": long, "version": "1", "title": long, "websiteUrl": "https://a.example" },
                "capabilities": {
                    "elicitation": { "form": {} },
                    "experimental": { "a": { "b": [[], []] } },
                    "extensions": { "a/b": {} },
                    "roots": {},
                    "sampling": {},
                },
            },
        });
        let mut request: InitializeRequest = serde_json::from_value(request).unwrap();
        reduce(&mut request);
        assert_eq!(
            serde_json::to_value(&request).unwrap()["params"],
            json!({
                "protocolVersion": "2025-11-25",
                "clientInfo": { "name": "ä".repeat(NAME_BYTES / 2), "version": "1" },
                "capabilities": { "elicitation": { "form": {} } },
            }),
        );
        assert_eq!(request.params.meta.map(|meta| json!(meta)), None::<Value>);
    }
}
