//! The tool `fetch`: sends a GET or HEAD request and formats the response for a model.
//!
//! `arguments` has the arguments of a call, `request` the request, and `response` the response.
//! `redirect` follows redirects within an origin, and `content` converts the response to text or an
//! image. `network` sends requests over `wasi:http`; the host decides which are allowed.

#![forbid(unsafe_code)]

mod arguments;
mod content;
#[cfg(target_family = "wasm")]
mod network;
mod redirect;
mod request;
mod response;
#[cfg(test)]
mod tests;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};

use crate::arguments::Arguments;
use crate::request::Request;
use crate::response::Response;

/// The component.
struct Fetch;

kitbag_sdk::export!(Fetch);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Fetch {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, _: Arguments) -> Result<String, Stop> {
        Ok(run(call, send)?)
    }

    fn format_arguments(_: &Call, arguments: Arguments) -> String {
        format!("{} {}", arguments.method.as_str(), kitbag_workspace::quoted(&arguments.url))
    }
}

/// Serves a call. `send` sends the requests.
fn run(
    call: &Call,
    send: impl Fn(&Request) -> Result<Response, ErrorInfo>,
) -> Result<String, ErrorInfo> {
    let arguments: Arguments = call.arguments()?;
    let request = Request::new(&arguments.url, arguments.method, arguments.format)?;
    let exchange = redirect::follow(request, send)?;
    content::show(exchange, &arguments)
}

#[cfg(target_family = "wasm")]
use network::send;

/// The tool's own tests have no network.
#[cfg(not(target_family = "wasm"))]
fn send(request: &Request) -> Result<Response, ErrorInfo> {
    let Request { accept, .. } = request;
    Err(ErrorInfo::new(format!("no network is available for `{}` ({accept})", request.shown())))
}
