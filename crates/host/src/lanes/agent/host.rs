//! The interface `near:agent/host`, through the grants of the call.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use kitbag_base::ByteSize;
use kitbag_contract::bindings::{host as reports, tools};
use kitbag_contract::{ErrorInfo, WORKSPACE_GUEST_PATH};
use kitbag_engine::InvalidComponent;
use kitbag_http::{RequestError, RequestTimes, TimePhase};
use kitbag_policy::SecretName;
use kitbag_policy::http::{HttpRefusal, RefusalKind};
use serde_json::{Map, Value};
use wasmtime::StoreContextMut;
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{
    Component, ComponentType, Lift, Linker, LinkerInstance, Lower, Type, Val,
};
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Host as _;

use super::is;
use crate::call::state::State;
use crate::lanes::files;

/// The interface, without a version.
pub(super) const HOST: &str = "near:agent/host";

/// The largest body of a response.
const BODY_BYTES: ByteSize = ByteSize::mib(16);

/// Time limits of a request, in milliseconds: the default and the longest.
const DEFAULT_TIMEOUT: u32 = 30_000;
const LONGEST_TIMEOUT: u32 = 300_000;

/// The functions that a component imports.
pub(super) struct HostImport {
    /// The name of the interface with its version.
    interface: String,
    functions: Vec<Imported>,
}

enum Imported {
    Log,
    NowMillis,
    WorkspaceRead,
    HttpRequest(FailureType),
    ToolInvoke,
    SecretExists,
    /// A function that kitbag does not have, which returns an error.
    Other(String),
}

/// The type of the error of `http-request`.
enum FailureType {
    /// A string, up to version 0.4.0.
    Text,
    Record,
}

impl HostImport {
    /// Finds the import of a component.
    ///
    /// # Errors
    ///
    /// [`InvalidComponent::AgentType`] if a function cannot be provided, nor an error of it.
    pub(super) fn of(component: &Component) -> Result<Option<Self>, InvalidComponent> {
        let engine = component.engine();
        let ty = component.component_type();
        let found = ty.imports(engine).find_map(|(name, import)| match import.ty {
            ComponentItem::ComponentInstance(instance) if is(name, HOST) => {
                Some((name.to_owned(), instance))
            }
            _ => None,
        });
        let Some((interface, instance)) = found else { return Ok(None) };
        let mut functions = Vec::new();
        for (name, export) in instance.exports(engine) {
            let ComponentItem::ComponentFunc(ty) = export.ty else { continue };
            let function = Imported::of(name, &ty);
            functions.push(function.ok_or_else(|| InvalidComponent::AgentType {
                interface: interface.clone(),
                function: name.to_owned(),
            })?);
        }
        Ok(Some(Self { interface, functions }))
    }

    pub(super) fn link(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        let mut instance = linker.instance(&self.interface)?;
        self.functions.iter().try_for_each(|function| function.link(&mut instance))
    }
}

impl Imported {
    fn of(name: &str, ty: &ComponentFunc) -> Option<Self> {
        // wasmtime compares the types of known functions when it links them.
        Some(match name {
            "log" => Self::Log,
            "now-millis" => Self::NowMillis,
            "workspace-read" => Self::WorkspaceRead,
            "http-request" => Self::HttpRequest(match error_type(ty)? {
                Type::String => FailureType::Text,
                _ => FailureType::Record,
            }),
            "tool-invoke" => Self::ToolInvoke,
            "secret-exists" => Self::SecretExists,
            other => match error_type(ty)? {
                Type::String => Self::Other(other.to_owned()),
                _ => return None,
            },
        })
    }

    fn link(&self, instance: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
        match self {
            Self::Log => instance.func_wrap("log", log),
            Self::NowMillis => instance.func_wrap("now-millis", now_millis),
            Self::WorkspaceRead => instance.func_wrap_async("workspace-read", |store, path| {
                Box::new(workspace_read(store, path))
            }),
            Self::HttpRequest(FailureType::Text) => instance
                .func_wrap_async("http-request", |store, request| {
                    Box::new(http_request_or_text(store, request))
                }),
            Self::HttpRequest(FailureType::Record) => instance
                .func_wrap_async("http-request", |store, request| {
                    Box::new(http_request_or_failure(store, request))
                }),
            Self::ToolInvoke => instance.func_wrap_async("tool-invoke", |store, parameters| {
                Box::new(tool_invoke(store, parameters))
            }),
            Self::SecretExists => instance.func_wrap("secret-exists", secret_exists),
            Self::Other(name) => {
                let message = format!("kitbag does not provide `{name}`");
                instance.func_new(name, move |_, _, _, results| {
                    if let [result] = results {
                        let message = Box::new(Val::String(message.clone()));
                        *result = Val::Result(Err(Some(message)));
                    }
                    Ok(())
                })
            }
        }
    }
}

/// Returns the type of the error that a function returns.
fn error_type(ty: &ComponentFunc) -> Option<Type> {
    match ty.results().next() {
        Some(Type::Result(result)) => result.err(),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "the guest creates the values")]
enum LogLevel {
    #[component(name = "trace")]
    Trace,
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
}

fn log(
    mut store: StoreContextMut<'_, State>,
    (level, message): (LogLevel, String),
) -> wasmtime::Result<()> {
    let level = match level {
        LogLevel::Trace | LogLevel::Debug => reports::Level::Debug,
        LogLevel::Info => reports::Level::Info,
        LogLevel::Warn => reports::Level::Warning,
        LogLevel::Error => reports::Level::Error,
    };
    reports::Host::log(store.data_mut().reporting(), level, message);
    Ok(())
}

fn now_millis(mut store: StoreContextMut<'_, State>, (): ()) -> wasmtime::Result<(u64,)> {
    let now = store.data_mut().clocks().now()?;
    Ok((now.seconds.saturating_mul(1_000).saturating_add(u64::from(now.nanoseconds) / 1_000_000),))
}

fn secret_exists(
    mut store: StoreContextMut<'_, State>,
    (name,): (String,),
) -> wasmtime::Result<(bool,)> {
    let secrets = store.data_mut().granted().secrets.of_requests();
    let is_granted = |name: SecretName| secrets.placeholder(&name).is_some();
    Ok((SecretName::new(name).is_ok_and(is_granted),))
}

/// Returns the text of a file. `None` if it does not exist, is not text, is too large, or may not be
/// read. `path` is relative to the workspace.
async fn workspace_read(
    mut store: StoreContextMut<'_, State>,
    (path,): (String,),
) -> wasmtime::Result<(Option<String>,)> {
    let path = format!("{WORKSPACE_GUEST_PATH}/{path}");
    let content = files::read(&mut store.data_mut().guarded(), &path).await?;
    Ok((content.ok().and_then(|content| String::from_utf8(content).ok()),))
}

/// Calls another tool. Its structured result is JSON; a text that is not JSON becomes a string.
async fn tool_invoke(
    mut store: StoreContextMut<'_, State>,
    (alias, arguments): (String, String),
) -> wasmtime::Result<(Result<String, String>,)> {
    let mut view = store.data_mut().tools();
    let answer = tools::Host::call(&mut view, alias, arguments).await?;
    let answer = answer.map_err(|error| ErrorInfo::from(error).message).map(|answer| {
        let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        match answer.structured {
            Some(structured) => structured,
            None if is_json(&answer.text) => answer.text,
            None => Value::from(answer.text).to_string(),
        }
    });
    Ok((answer,))
}

/// Method, URL, headers as a JSON object, body, and time limit in milliseconds.
type HttpRequest = (String, String, String, Option<Vec<u8>>, Option<u32>);

#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
struct HttpResponse {
    status: u16,
    #[component(name = "headers-json")]
    headers_json: String,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lower)]
#[component(enum)]
#[repr(u8)]
enum FailureKind {
    #[component(name = "auth-required")]
    AuthRequired,
    #[component(name = "input")]
    Input,
    #[component(name = "output-too-large")]
    OutputTooLarge,
    #[component(name = "executor")]
    Executor,
    #[component(name = "network-denied")]
    NetworkDenied,
    #[component(name = "client")]
    Client,
    #[component(name = "operation-failed")]
    #[expect(dead_code, reason = "the host returns more exact kinds")]
    OperationFailed,
}

#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lower)]
#[component(record)]
struct HttpFailure {
    kind: FailureKind,
    code: Option<String>,
    message: Option<String>,
    #[component(name = "request-sent")]
    request_sent: bool,
}

impl HttpFailure {
    /// Creates a failure of a request that was not sent.
    fn unsent(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, code: None, message: Some(message.into()), request_sent: false }
    }
}

async fn http_request_or_text(
    store: StoreContextMut<'_, State>,
    request: HttpRequest,
) -> wasmtime::Result<(Result<HttpResponse, String>,)> {
    let response = http_request(store, request).await;
    Ok((response.map_err(|failure| failure.message.unwrap_or_default()),))
}

async fn http_request_or_failure(
    store: StoreContextMut<'_, State>,
    request: HttpRequest,
) -> wasmtime::Result<(Result<HttpResponse, HttpFailure>,)> {
    Ok((http_request(store, request).await,))
}

/// Sends a request as the grants allow. Secrets are added by the client.
async fn http_request(
    mut store: StoreContextMut<'_, State>,
    request: HttpRequest,
) -> Result<HttpResponse, HttpFailure> {
    let (method, url, headers, body, timeout) = request;
    let request = read_request(&method, &headers, body)
        .map_err(|message| HttpFailure::unsent(FailureKind::Input, message))?;
    let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT).min(LONGEST_TIMEOUT);
    let timeout = Some(Duration::from_millis(timeout.into()));
    let times = RequestTimes { connect: timeout, first_byte: timeout, between_bytes: timeout };
    let http = &mut store.data_mut().granted().http;
    let response = http.exchange(&url, request, times, BODY_BYTES.as_usize());
    match response.await {
        Ok(response) => {
            let (parts, body) = response.into_parts();
            let (status, headers_json) = (parts.status.as_u16(), headers_text(&parts.headers));
            Ok(HttpResponse { status, headers_json, body: body.into() })
        }
        Err(error) => {
            let mut failure = failure(error);
            // The URL may contain the value of a secret.
            let secrets = &store.data_mut().granted().secrets;
            failure.message.iter_mut().for_each(|message| secrets.mask(message));
            Err(failure)
        }
    }
}

fn read_request(
    method: &str,
    headers: &str,
    body: Option<Vec<u8>>,
) -> Result<Request<Bytes>, String> {
    let method = method.trim().to_ascii_uppercase();
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| "the method is not valid")?;
    let mut request = Request::new(Bytes::from(body.unwrap_or_default()));
    *request.method_mut() = method;
    *request.headers_mut() = read_headers(headers)?;
    Ok(request)
}

/// Reads headers: a JSON object of strings, or nothing.
fn read_headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    if text.trim().is_empty() {
        return Ok(headers);
    }
    let object: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| format!("the headers are not a JSON object: {error}"))?;
    for (name, value) in &object {
        let fit = value.as_str().and_then(|value| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        });
        let (name, value) = fit.ok_or_else(|| {
            format!("the header `{}` is not valid", kitbag_base::text::shown(name))
        })?;
        let added = headers.try_append(name, value);
        added.map_err(|_| "there are too many headers".to_owned())?;
    }
    Ok(headers)
}

/// Formats headers as a JSON object; repeated ones are joined.
fn headers_text(headers: &HeaderMap) -> String {
    let mut object = Map::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter();
        let values: Vec<_> =
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        object.insert(name.to_string(), Value::from(values.join(", ")));
    }
    Value::Object(object).to_string()
}

fn failure(error: RequestError) -> HttpFailure {
    use FailureKind::{AuthRequired, Client, Executor, NetworkDenied, OutputTooLarge};
    let (kind, code, request_sent) = match &error {
        RequestError::Refused(HttpRefusal { kind, .. }) => match kind {
            RefusalKind::Unreadable => (AuthRequired, "credential_unavailable", false),
            RefusalKind::Size => (OutputTooLarge, "size_limit", false),
            RefusalKind::Time => (Client, "timeout", true),
            _ => (NetworkDenied, "request_denied", false),
        },
        RequestError::Time(TimePhase::Connect) => (Client, "timeout", false),
        RequestError::Time(_) => (Client, "timeout", true),
        RequestError::Name { .. }
        | RequestError::Connect { .. }
        | RequestError::Tls { .. }
        | RequestError::Proxy { .. } => (Client, "network_error", false),
        RequestError::Protocol(_) | RequestError::Upgrade | RequestError::Encoding(_) => {
            (Client, "network_error", true)
        }
        RequestError::Ended | RequestError::Internal(_) => (Executor, "host_error", false),
    };
    let (code, message) = (Some(code.to_owned()), Some(error.to_string()));
    HttpFailure { kind, code, message, request_sent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_an_object_of_strings() {
        let check = |text: &str, expected: Result<&[(&str, &str)], &str>| {
            let headers = read_headers(text);
            let pairs = headers.as_ref().map(|headers| {
                let pairs =
                    headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
                pairs.collect::<Vec<_>>()
            });
            assert_eq!(pairs.as_ref().map(|pairs| &pairs[..]).map_err(|error| &***error), expected);
        };
        check("", Ok(&[]));
        check("{}", Ok(&[]));
        check(r#"{"Accept":"a/b"}"#, Ok(&[("accept", "a/b")]));
        check(r#"{"a\n":"b"}"#, Err("the header `a\\n` is not valid"));
        check(r#"{"a":"b\n"}"#, Err("the header `a` is not valid"));
        check(r#"{"a":1}"#, Err("the header `a` is not valid"));
        let error = read_headers("[]").unwrap_err();
        assert!(error.starts_with("the headers are not a JSON object: "), "{error}");
    }

    #[test]
    fn repeated_headers_are_joined() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("b", "1"), ("a", "x"), ("b", "2")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers.append("c", HeaderValue::from_bytes(b"\xff").unwrap());
        let object: Value = serde_json::from_str(&headers_text(&headers)).unwrap();
        assert_eq!(object, serde_json::json!({ "a": "x", "b": "1, 2", "c": "\u{fffd}" }));
    }

    #[test]
    fn methods_are_in_upper_case() {
        let request = read_request(" get ", "", None).unwrap();
        assert_eq!(request.method(), Method::GET);
        assert_eq!(read_request("a b", "", None).unwrap_err(), "the method is not valid");
    }
}
