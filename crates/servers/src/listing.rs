//! The offer of a server.

use std::collections::HashSet;

use kitbag_policy::server::{Era, ToolDefinition};
use rmcp::RoleClient;
use rmcp::model::PaginatedRequestParams;
use rmcp::service::Peer;

use crate::client::Redaction;

/// The largest number of pages of a list.
const PAGES: usize = 50;

/// The largest number of tools of a server.
const TOOLS: usize = 1000;

/// The largest size of all definitions, as JSON.
const BYTES: usize = 8 << 20;

/// The longest name of a tool, in bytes.
const NAME_BYTES: usize = 256;

/// The description of a server, and its tools. All text is untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The era of the protocol.
    pub era: Era,
    /// The version of the protocol, such as `2025-11-25`.
    pub version: String,
    /// The server's own name.
    pub name: Option<String>,
    /// The server's own version.
    pub server_version: Option<String>,
    /// The server's instructions for models.
    pub instructions: Option<String>,
    /// The tools, in the server's order, without repeated names.
    pub tools: Vec<ToolDefinition>,
}

/// Lists the tools of a server.
///
/// # Errors
///
/// The action of the server, as a verb phrase.
pub(crate) async fn tools(
    peer: &Peer<RoleClient>,
    redaction: &Redaction,
) -> Result<Vec<ToolDefinition>, String> {
    let (mut tools, mut names, mut bytes, mut cursor) = (Vec::new(), HashSet::new(), 0, None);
    for _ in 0..PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(params)).await;
        let page = page.map_err(|error| format!("did not list its tools: {error}"))?;
        for tool in &page.tools {
            if tool.name.len() > NAME_BYTES {
                return Err(format!("has a tool whose name exceeds {NAME_BYTES} bytes"));
            }
            let text = serde_json::to_string(tool).unwrap_or_default();
            bytes += text.len();
            if bytes > BYTES {
                return Err(format!("lists definitions of more than {} MiB", BYTES >> 20));
            }
            let text = redaction.text(text);
            let tool: ToolDefinition = serde_json::from_str(&text)
                .map_err(|error| format!("has a tool with an invalid definition: {error}"))?;
            if !names.insert(tool.name.clone()) {
                continue;
            }
            tools.push(tool);
            if tools.len() > TOOLS {
                return Err(format!("lists more than {TOOLS} tools"));
            }
        }
        match page.next_cursor {
            None => return Ok(tools),
            next => cursor = next,
        }
    }
    Err(format!("lists its tools on more than {PAGES} pages"))
}
