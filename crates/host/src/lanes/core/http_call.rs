//! `http.request`: requests by the grants of the tool, in the form of Butterfly Bot's `http_call`.

use std::time::Duration;

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderName, HeaderValue, Method, Request};
use bytes::Bytes;
use kitbag_base::json::{JsonBudget, parse};
use kitbag_http::RequestTimes;
use serde_json::{Map, Value, json};

use super::capabilities::text;
use crate::call::state::State;

/// Maximum size of a response. The grant may be lower.
pub(super) const RESPONSE_BYTES: usize = 4 << 20;

/// How long a tool waits for a response by default.
const TIMEOUT_SECONDS: u64 = 60;

/// The configuration value with the server for an `endpoint`.
const BASE_URL: &str = "base_url";

/// Sends a request and returns its response.
pub(super) async fn request(state: &mut State, arguments: &Value) -> Result<Value, String> {
    let base = state.granted().config_value(BASE_URL);
    let (url, request) = read(arguments, base.as_deref())?;
    let seconds = arguments["timeout_seconds"].as_u64().unwrap_or(TIMEOUT_SECONDS);
    let time = Some(Duration::from_secs(seconds));
    let times = RequestTimes { connect: time, first_byte: time, between_bytes: time };
    let response = state.granted().http.exchange(&url, request, times, RESPONSE_BYTES);
    let response = response.await.map_err(|error| error.to_string())?;
    let headers = response.headers().iter().map(|(name, value)| {
        (name.as_str().to_owned(), Value::from(value.to_str().unwrap_or_default()))
    });
    let headers: Map<_, _> = headers.collect();
    let text = String::from_utf8_lossy(response.body());
    Ok(json!({
        "status": "ok",
        "server": null,
        "http_status": response.status().as_u16(),
        "headers": headers,
        "json": parse(text.as_bytes(), JsonBudget::OUTPUT).ok(),
        "text": text,
    }))
}

/// Reads a request. `base` is the server for an endpoint without one.
fn read(arguments: &Value, base: Option<&str>) -> Result<(String, Request<Bytes>), String> {
    let method = text(arguments, "method")?.to_uppercase();
    let mut url = url(arguments, base)?;
    if let Some(query) = arguments["query"].as_object().filter(|query| !query.is_empty()) {
        let pairs = query.iter().map(|(key, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{}={}", form_encoded(key), form_encoded(&value))
        });
        let separator = if url.contains('?') { '&' } else { '?' };
        url = format!("{url}{separator}{}", pairs.collect::<Vec<_>>().join("&"));
    }
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = Method::from_bytes(method.as_bytes())
        .map_err(|_| format!("`{method}` is not an HTTP method"))?;
    for (name, value) in arguments["headers"].as_object().into_iter().flatten() {
        let Some(value) = value.as_str() else { continue };
        let header = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(value)) = (header, HeaderValue::from_str(value)) else {
            return Err(format!("the header field `{name}` is not valid"));
        };
        request.headers_mut().insert(name, value);
    }
    let body = arguments["body"].as_str();
    // A body that is JSON is sent as such, unless the tool names another type.
    let is_untyped = !request.headers().contains_key(CONTENT_TYPE);
    let inferred = body.filter(|_| is_untyped).and_then(|body| serde_json::from_str(body).ok());
    let value: Option<Value> =
        Some(&arguments["json"]).filter(|json| json.is_object()).cloned().or(inferred);
    let body = match (value, body) {
        (Some(value), _) => {
            let is_json = HeaderValue::from_static("application/json");
            request.headers_mut().entry(CONTENT_TYPE).or_insert(is_json);
            value.to_string()
        }
        (None, body) => body.unwrap_or_default().to_owned(),
    };
    *request.body_mut() = Bytes::from(body);
    Ok((url, request))
}

fn url(arguments: &Value, base: Option<&str>) -> Result<String, String> {
    let given = |key: &str| arguments[key].as_str().map(str::trim).filter(|it| !it.is_empty());
    if let Some(url) = given("url") {
        return Ok(url.to_owned());
    }
    let endpoint = given("endpoint").ok_or("Missing url or endpoint")?;
    if ["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme)) {
        return Ok(endpoint.to_owned());
    }
    let base = base.map(|base| base.trim().trim_end_matches('/')).filter(|base| !base.is_empty());
    let base = base.ok_or_else(|| {
        format!("Missing server for endpoint; set the configuration value `{BASE_URL}` of the tool")
    })?;
    Ok(format!("{base}/{}", endpoint.trim_start_matches('/')))
}

/// Encodes text as a part of a form.
fn form_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: Value, expected: &str) {
        let sent = read(&arguments, Some("https://base.test/v1/")).map(|(url, request)| {
            let (parts, body) = request.into_parts();
            let headers = parts.headers.iter().map(|(name, value)| format!(" {name}={value:?}"));
            let headers = headers.collect::<String>();
            format!("{} {url}{headers} {}", parts.method, String::from_utf8_lossy(&body))
        });
        assert_eq!(sent.unwrap_or_else(|error| error), expected);
    }

    #[test]
    fn requests_are_those_of_http_call() {
        check(json!({ "method": "get", "url": " https://a.test " }), "GET https://a.test ");
        check(json!({ "method": "GET", "endpoint": "/x" }), "GET https://base.test/v1/x ");
        check(json!({ "method": "GET", "endpoint": "http://a.test" }), "GET http://a.test ");
        check(
            json!({ "method": "GET", "url": "https://a.test?x=1", "query": { "a b": "ä&", "n": 1 } }),
            "GET https://a.test?x=1&a+b=%C3%A4%26&n=1 ",
        );
        let json_type = r#" content-type="application/json""#;
        check(
            json!({ "method": "POST", "url": "https://a.test", "json": { "a": 1 }, "body": "x" }),
            &format!("POST https://a.test{json_type} {{\"a\":1}}"),
        );
        check(
            json!({ "method": "POST", "url": "https://a.test", "body": "[1, 2]" }),
            &format!("POST https://a.test{json_type} [1,2]"),
        );
        check(
            json!({
                "method": "POST", "url": "https://a.test", "body": "[1, 2]",
                "headers": { "Content-Type": "text/plain", "x": 1 },
            }),
            r#"POST https://a.test content-type="text/plain" [1, 2]"#,
        );
    }

    #[test]
    fn incomplete_requests_are_errors() {
        check(json!({ "url": "https://a.test" }), "capability args missing method");
        check(json!({ "method": "GET" }), "Missing url or endpoint");
        check(json!({ "method": "a b", "url": "https://a.test" }), "`A B` is not an HTTP method");
        check(
            json!({ "method": "GET", "url": "https://a.test", "headers": { "a b": "c" } }),
            "the header field `a b` is not valid",
        );
    }
}
