//! The tool `fetch`: one request, GET or HEAD, and its response as a model reads it.
//!
//! `request` is what is asked, `response` what came back, and `content` makes text or an
//! image of it. `network` sends the request over `wasi:http`; where it may go is the host's to
//! decide.

#![forbid(unsafe_code)]

mod content;
#[cfg(target_family = "wasm")]
mod network;
mod request;
mod response;
#[cfg(test)]
mod tests;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool, json};
use serde::Deserialize;

use crate::request::Request;
use crate::response::Response;

/// The component.
struct Fetch;

kitbag_sdk::export!(Fetch);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
    #[serde(default)]
    method: Method,
    #[serde(default)]
    format: Format,
    #[serde(default = "max_bytes")]
    max_bytes: usize,
    #[serde(default)]
    offset: usize,
}

/// The methods that read.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    #[default]
    Get,
    Head,
}

/// What is made of an HTML page.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// Its main content as Markdown.
    #[default]
    Markdown,
    /// All of it as Markdown.
    Full,
    /// Nothing: the page as it came.
    Raw,
}

fn max_bytes() -> usize {
    kitbag_page::MAX_BYTES
}

impl Method {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
        }
    }
}

impl Tool for Fetch {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::new("fetch")
            .description(
                "Read a web page as Markdown, or text, JSON or an image by URL. Redirects are shown. \
                 Example: {\"url\":\"https://docs.rs/serde\"}",
            )
            .arguments(
                json!({
                    "url": { "type": "string" },
                    "method": { "enum": ["GET", "HEAD"], "default": "GET" },
                    "format": {
                        "enum": ["markdown", "full", "raw"],
                        "default": "markdown",
                        "description": "full: with navigation; raw: HTML",
                    },
                    "max_bytes": { "type": "integer", "minimum": 1, "default": max_bytes() },
                    "offset": { "type": "integer", "minimum": 0, "default": 0 },
                }),
                &["url"],
            )
            .annotations(json!({
                "readOnlyHint": true,
                "idempotentHint": true,
                "openWorldHint": true,
            }))
            .grants(json!({ "http": ["https://docs.rs/**"], "required": ["http"] }))
    }

    fn run(call: &Call, _: Arguments) -> Result<String, Stop> {
        Ok(run(call, send)?)
    }

    fn format_arguments(_: &Call, arguments: Arguments) -> String {
        format!("{} {}", arguments.method.as_str(), kitbag_workspace::quoted(&arguments.url))
    }
}

/// Serves a call. `send` is the way to the network.
fn run(
    call: &Call,
    send: impl Fn(&Request) -> Result<Response, ErrorInfo>,
) -> Result<String, ErrorInfo> {
    let arguments: Arguments = call.arguments()?;
    let request = Request::new(&arguments.url, arguments.method, arguments.format)?;
    let response = send(&request)?;
    content::show(&request, response, &arguments)
}

#[cfg(target_family = "wasm")]
use network::send;

/// There is no network in a tool's own tests.
#[cfg(not(target_family = "wasm"))]
fn send(request: &Request) -> Result<Response, ErrorInfo> {
    let Request { accept, .. } = request;
    Err(ErrorInfo::new(format!("there is no network for `{}` ({accept})", request.shown())))
}
