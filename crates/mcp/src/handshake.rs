//! What is kept of a client's `initialize` as long as its session lives.

use rmcp::model::{ClientCapabilities, InitializeRequest, RequestMetaObject};

/// The longest `initialize`, in bytes.
pub(crate) const INITIALIZE_BYTES: usize = 64 << 10;

/// What a session takes: its tasks and its queues in the protocol's library, and what is
/// kept of the client.
pub(crate) const SESSION_BYTES: u64 = 48 << 10;

/// The longest name and the longest version of a client that are kept, in bytes.
const NAME_BYTES: usize = 256;

/// The longest `_meta` that is kept, in bytes: it holds the client's trace.
const META_BYTES: usize = 1 << 10;

/// Leaves of an `initialize` what is used: the client's name and version, and whether it
/// has forms.
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_name_a_version_and_forms_are_left() {
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
