//! A tool that sends HTTP requests with `wstd`, the client that a program for WASI 0.2 would use.
//!
//! It answers with the response as JSON, `status`, `headers` and `body`, or with `error`, the name
//! and content of the error code, if the host refused or the request failed. If the body was
//! interrupted, the answer has both.
//!
//! For tests only; not part of kitbag.

#![forbid(unsafe_code)]

use std::rc::Rc;

use kitbag_sdk::serde_json::{Value, json};
use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use serde::Deserialize;
use wstd::http::error::ErrorCode;
use wstd::http::{Body, Client, Error, HeaderName, HeaderValue, Method, Request};
use wstd::time::Duration;

/// The component.
struct Requests;

kitbag_sdk::export!(Requests);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
    #[serde(default = "get")]
    method: String,
    /// Header fields, each as `name: value`.
    #[serde(default)]
    headers: Vec<String>,
    #[serde(default)]
    body: String,
    /// Number of times that the body is sent in sequence.
    #[serde(default = "once")]
    repeat: usize,
    /// The number of such requests.
    #[serde(default = "once")]
    times: usize,
    /// True to send them concurrently instead of in sequence.
    #[serde(default)]
    at_once: bool,
    /// A variable whose value is sent as the header `authorization`, as `Bearer`.
    token: Option<String>,
    /// Timeout for the first byte of the response.
    timeout_ms: Option<u64>,
}

fn get() -> String {
    "GET".into()
}

fn once() -> usize {
    1
}

impl Tool for Requests {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::new("request").description("Send requests over HTTP.").arguments(
            json!({
                "url": { "type": "string" },
                "method": { "type": "string", "default": "GET" },
                "headers": { "type": "array", "items": { "type": "string" } },
                "body": { "type": "string" },
                "repeat": { "type": "integer", "minimum": 0 },
                "times": { "type": "integer", "minimum": 1 },
                "at_once": { "type": "boolean" },
                "token": { "type": "string" },
                "timeout_ms": { "type": "integer", "minimum": 1 },
            }),
            &["url"],
        )
    }

    fn run(_: &Call, arguments: Arguments) -> Result<String, Stop> {
        let at_once = arguments.at_once;
        wstd::runtime::block_on(async {
            let arguments = Rc::new(arguments);
            let mut answers = Vec::new();
            let mut sent = Vec::new();
            for _ in 0..arguments.times {
                let arguments = Rc::clone(&arguments);
                let request = async move { send(&arguments).await };
                match at_once {
                    true => sent.push(wstd::runtime::spawn(request)),
                    false => answers.push(request.await?),
                }
            }
            for request in sent {
                answers.push(request.await?);
            }
            Ok(match answers.len() {
                1 => answers.remove(0),
                _ => Value::Array(answers),
            }
            .to_string())
        })
    }
}

/// Sends one request and returns the result.
async fn send(arguments: &Arguments) -> Result<Value, ErrorInfo> {
    let request = match request(arguments) {
        Ok(request) => request,
        // The library refuses some requests before the host receives them.
        Err(error) => return Ok(json!({ "error": format!("{error:#}") })),
    };
    let mut client = Client::new();
    if let Some(timeout) = arguments.timeout_ms {
        client.set_first_byte_timeout(Duration::from_millis(timeout));
    }
    let response = match client.send(request).await {
        Ok(response) => response,
        Err(error) => return Ok(json!({ "error": told(&error) })),
    };
    let headers: Vec<_> = response
        .headers()
        .iter()
        .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]))
        .collect();
    let status = response.status().as_u16();
    let mut answer = json!({ "status": status, "headers": headers });
    let mut body = response.into_body();
    match body.contents().await {
        Ok(bytes) => answer["body"] = String::from_utf8_lossy(bytes).into(),
        Err(error) => answer["error"] = told(&error).into(),
    }
    Ok(answer)
}

fn request(arguments: &Arguments) -> Result<Request<Body>, Error> {
    let mut request = Request::builder()
        .method(Method::from_bytes(arguments.method.as_bytes())?)
        .uri(&arguments.url);
    for header in &arguments.headers {
        let (name, value) = header.split_once(": ").unwrap_or((header, ""));
        let name = HeaderName::from_bytes(name.as_bytes())?;
        request = request.header(name, HeaderValue::from_bytes(value.as_bytes())?);
    }
    if let Some(name) = &arguments.token {
        let token = std::env::var(name)?;
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = arguments.body.repeat(arguments.repeat);
    Ok(request.body(if body.is_empty() { Body::empty() } else { Body::from(body) })?)
}

/// Describes an error: by the host's own code, if it has one.
fn told(error: &Error) -> String {
    match error.downcast_ref::<ErrorCode>() {
        Some(code) => format!("{code:?}"),
        None => format!("{error:#}"),
    }
}
