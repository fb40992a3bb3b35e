//! The functions of `extism:host/env`, and those of `extism:host/user` that hyper-mcp defines.
//!
//! All of them exchange blocks of the [`Kernel`](super::Kernel) by their offsets, which the guest
//! controls. As in Extism, a function that is given a block frees it.

use std::collections::BTreeMap;

use ::http::{HeaderName, HeaderValue, Method};
use bytes::Bytes;
use kitbag_contract::bindings::host::{Host, Level};
use kitbag_engine::{PLUGIN_KERNEL, PLUGIN_USER};
use kitbag_http::RequestTimes;
use serde::Deserialize;
use serde_json::{Value, json};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance};

use super::kernel::OutOfBounds;
use super::{Session, VARIABLES_BYTES, elicitation};
use crate::call::state::State;
use crate::lanes::failure;
use crate::limits::HOST_DATA;
use crate::schedule::limiter::Limiter;

/// Maximum size of a response. The grant and the memory limit may be lower.
pub(super) const RESPONSE_BYTES: usize = 16 << 20;

/// The function for HTTP requests.
pub(super) const HTTP_REQUEST: &str = "http-request";

/// Memory that one variable takes besides its name and value, as Extism counts it.
const VARIABLE_BYTES: usize = 48;

/// Links the functions that a plugin may import.
pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut env = linker.instance(PLUGIN_KERNEL)?;
    link_memory(&mut env)?;
    link_values(&mut env)?;
    link_http(&mut env)?;
    link_log(&mut env)?;
    link_user(&mut linker.instance(PLUGIN_USER)?)
}

type Context<'a> = StoreContextMut<'a, State>;

fn parts<'a>(store: &'a mut Context<'_>) -> (&'a mut Session, &'a mut Limiter) {
    let State { plugin, limiter, .. } = store.data_mut();
    (plugin, limiter)
}

/// The functions of the kernel.
fn link_memory(env: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    env.func_wrap("alloc", |mut store: Context<'_>, (size,): (u64,)| {
        let (session, limiter) = parts(&mut store);
        Ok((session.kernel.alloc(size, limiter),))
    })?;
    env.func_wrap("free", |mut store: Context<'_>, (offset,): (u64,)| {
        parts(&mut store).0.kernel.free(offset);
        Ok(())
    })?;
    for name in ["length", "length-unsafe"] {
        env.func_wrap(name, |store: Context<'_>, (offset,): (u64,)| {
            Ok((store.data().plugin.kernel.length(offset),))
        })?;
    }
    env.func_wrap("load-u8", |store: Context<'_>, (offset,): (u64,)| {
        let [byte] = store.data().plugin.kernel.load(offset).map_err(trap)?;
        Ok((byte,))
    })?;
    env.func_wrap("load-u64", |store: Context<'_>, (offset,): (u64,)| {
        let bytes = store.data().plugin.kernel.load(offset).map_err(trap)?;
        Ok((u64::from_le_bytes(bytes),))
    })?;
    env.func_wrap("store-u8", |mut store: Context<'_>, (offset, value): (u64, u32)| {
        let (session, limiter) = parts(&mut store);
        let [byte, ..] = value.to_le_bytes();
        session.kernel.store(offset, &[byte], limiter).map_err(trap)
    })?;
    env.func_wrap("store-u64", |mut store: Context<'_>, (offset, value): (u64, u64)| {
        let (session, limiter) = parts(&mut store);
        session.kernel.store(offset, &value.to_le_bytes(), limiter).map_err(trap)
    })?;
    env.func_wrap("input-set", |mut store: Context<'_>, (offset, length): (u64, u64)| {
        parts(&mut store).0.kernel.input_set(offset, length);
        Ok(())
    })?;
    env.func_wrap("input-length", |store: Context<'_>, (): ()| {
        Ok((store.data().plugin.kernel.input_length(),))
    })?;
    env.func_wrap("input-offset", |store: Context<'_>, (): ()| {
        Ok((store.data().plugin.kernel.input_offset(),))
    })?;
    env.func_wrap("input-load-u8", |store: Context<'_>, (offset,): (u64,)| {
        let [byte] = store.data().plugin.kernel.input_load(offset);
        Ok((byte,))
    })?;
    env.func_wrap("input-load-u64", |store: Context<'_>, (offset,): (u64,)| {
        Ok((u64::from_le_bytes(store.data().plugin.kernel.input_load(offset)),))
    })?;
    env.func_wrap("output-set", |mut store: Context<'_>, (offset, length): (u64, u64)| {
        parts(&mut store).0.kernel.output_set(offset, length);
        Ok(())
    })?;
    env.func_wrap("output-length", |store: Context<'_>, (): ()| {
        Ok((store.data().plugin.kernel.output_length(),))
    })?;
    env.func_wrap("output-offset", |store: Context<'_>, (): ()| {
        Ok((store.data().plugin.kernel.output_offset(),))
    })?;
    env.func_wrap("error-set", |mut store: Context<'_>, (offset,): (u64,)| {
        parts(&mut store).0.kernel.error_set(offset);
        Ok(())
    })?;
    env.func_wrap("error-get", |store: Context<'_>, (): ()| {
        Ok((store.data().plugin.kernel.error_get(),))
    })?;
    env.func_wrap("reset", |mut store: Context<'_>, (): ()| {
        parts(&mut store).0.kernel.reset();
        Ok(())
    })?;
    env.func_wrap("memory-bytes", |store: Context<'_>, (): ()| {
        Ok((store.data().plugin.kernel.memory_bytes(),))
    })
}

fn trap(_: OutOfBounds) -> wasmtime::Error {
    wasmtime::Trap::MemoryOutOfBounds.into()
}

/// Configuration values and variables.
fn link_values(env: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    env.func_wrap("config-get", |mut store: Context<'_>, (key,): (u64,)| {
        let key = take_text(&mut store, key, "a configuration key")?;
        let value = store.data_mut().granted().config_value(&key);
        Ok((give(&mut store, value.as_deref().unwrap_or_default().as_bytes())?,))
    })?;
    env.func_wrap("var-get", |mut store: Context<'_>, (key,): (u64,)| {
        let key = take_text(&mut store, key, "the name of a variable")?;
        let value = parts(&mut store).0.variables.get(&key).cloned().unwrap_or_default();
        Ok((give(&mut store, &value)?,))
    })?;
    env.func_wrap("var-set", |mut store: Context<'_>, (key, value): (u64, u64)| {
        let key = take_text(&mut store, key, "the name of a variable")?;
        if value == 0 {
            parts(&mut store).0.variables.remove(&key);
            return Ok(());
        }
        let size = parts(&mut store).0.kernel.length(value);
        let session = parts(&mut store).0;
        let used: usize = session
            .variables
            .iter()
            .map(|(key, value)| key.len() + value.len() + VARIABLE_BYTES)
            .sum();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if used.saturating_add(size) + key.len() + VARIABLE_BYTES > VARIABLES_BYTES {
            return Err(failure("the variables of the plugin exceed 1 MiB"));
        }
        let value = take(&mut store, value, "the value of a variable")?;
        parts(&mut store).0.variables.insert(key, value);
        Ok(())
    })
}

/// An HTTP request of a plugin.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpRequest {
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    method: Option<String>,
}

/// Requests by the grants of the tool.
fn link_http(env: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    env.func_wrap_async(HTTP_REQUEST, |mut store: Context<'_>, (request, body): (u64, u64)| {
        Box::new(async move {
            let session = parts(&mut store).0;
            session.status = 0;
            session.headers.clear();
            let request = take(&mut store, request, "an HTTP request")?;
            let body = match body {
                0 => Vec::new(),
                body => take(&mut store, body, "the body of an HTTP request")?,
            };
            let (url, request) = http_request(&request, body).map_err(failure)?;
            let times = RequestTimes::default();
            let http = &mut store.data_mut().granted().http;
            let response = http.exchange(&url, request, times, RESPONSE_BYTES);
            let response = response.await.map_err(failure)?;
            let session = parts(&mut store).0;
            session.status = response.status().as_u16();
            let headers = response.headers().iter().filter_map(|(name, value)| {
                Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
            });
            session.headers = headers.collect();
            Ok((give(&mut store, response.body())?,))
        })
    })?;
    env.func_wrap("http-status-code", |store: Context<'_>, (): ()| {
        Ok((u32::from(store.data().plugin.status),))
    })?;
    env.func_wrap("http-headers", |mut store: Context<'_>, (): ()| {
        let headers = serde_json::to_vec(&store.data().plugin.headers)?;
        Ok((give(&mut store, &headers)?,))
    })
}

/// Reads a request. The grants decide about its URL later.
fn http_request(request: &[u8], body: Vec<u8>) -> Result<(String, ::http::Request<Bytes>), String> {
    let HttpRequest { url, headers, method } = serde_json::from_slice(request)
        .map_err(|error| format!("the HTTP request of the plugin is not valid: {error}"))?;
    let method = method.as_deref().unwrap_or("GET").to_uppercase();
    let mut request = ::http::Request::new(Bytes::from(body));
    *request.method_mut() = Method::from_bytes(method.as_bytes())
        .map_err(|_| format!("`{method}` is not an HTTP method"))?;
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(value)) = (header, HeaderValue::from_str(&value)) else {
            return Err(format!("the header field `{name}` is not valid"));
        };
        request.headers_mut().append(name, value);
    }
    Ok((url, request))
}

/// Log messages. There is no level for traces.
fn link_log(env: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    for (name, level) in [
        ("log-trace", Level::Debug),
        ("log-debug", Level::Debug),
        ("log-info", Level::Info),
        ("log-warn", Level::Warning),
        ("log-error", Level::Error),
    ] {
        env.func_wrap(name, move |mut store: Context<'_>, (message,): (u64,)| {
            let message = take(&mut store, message, "a log message")?;
            let message = String::from_utf8_lossy(&message).into_owned();
            store.data_mut().reporting().log(level, message);
            Ok(())
        })?;
    }
    // Every level is of interest; kitbag's own limits apply.
    env.func_wrap("get-log-level", |_: Context<'_>, (): ()| Ok((0u32,)))
}

/// The functions of hyper-mcp.
fn link_user(user: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    user.func_wrap("create-elicitation", |mut store: Context<'_>, (request,): (u64,)| {
        let request = take_json(&mut store, request, "a question")?;
        let session = parts(&mut store).0;
        let id = elicitation::id(session.asked);
        session.asked += 1;
        match session.answers.get(&id) {
            Some(answer) => {
                let answer = elicitation::answer(answer).to_string();
                Ok((give(&mut store, answer.as_bytes())?,))
            }
            None => {
                session.question = Some(elicitation::question(id, &request).map_err(failure)?);
                Err(failure("the plugin waits for an answer"))
            }
        }
    })?;
    user.func_wrap("create-message", |_: Context<'_>, (_,): (u64,)| {
        Err::<(u64,), _>(failure("kitbag has no model that a tool could ask"))
    })?;
    user.func_wrap("list-roots", |mut store: Context<'_>, (): ()| {
        Ok((give(&mut store, json!({ "roots": [] }).to_string().as_bytes())?,))
    })?;
    user.func_wrap("notify-logging-message", |mut store: Context<'_>, (message,): (u64,)| {
        let message = take_json(&mut store, message, "a log message")?;
        let level = match message["level"].as_str() {
            Some("debug") => Level::Debug,
            Some("notice") => Level::Notice,
            Some("warning") => Level::Warning,
            Some("error") => Level::Error,
            Some("critical") => Level::Critical,
            Some("alert") => Level::Alert,
            Some("emergency") => Level::Emergency,
            _ => Level::Info,
        };
        let text = match &message["data"] {
            Value::String(text) => text.clone(),
            data => data.to_string(),
        };
        store.data_mut().reporting().log(level, text);
        Ok(())
    })?;
    user.func_wrap("notify-progress", |mut store: Context<'_>, (progress,): (u64,)| {
        let progress = take_json(&mut store, progress, "a progress report")?;
        let message = progress["message"].as_str().map(str::to_owned);
        let (done, total) = (progress["progress"].as_f64(), progress["total"].as_f64());
        store.data_mut().reporting().progress(done.unwrap_or(f64::NAN), total, message);
        Ok(())
    })?;
    user.func_wrap("notify-resource-updated", |mut store: Context<'_>, (resource,): (u64,)| {
        take(&mut store, resource, "a resource")?;
        Ok(())
    })?;
    // The lists of a new instance are the same again, so that nothing changes for a client.
    for name in
        ["notify-prompt-list-changed", "notify-resource-list-changed", "notify-tool-list-changed"]
    {
        user.func_wrap(name, |_: Context<'_>, (): ()| Ok(()))?;
    }
    Ok(())
}

/// Copies a block and frees it. The offset 0 is an empty block.
fn take(store: &mut Context<'_>, offset: u64, what: &str) -> wasmtime::Result<Vec<u8>> {
    if offset == 0 {
        return Ok(Vec::new());
    }
    let kernel = &mut parts(store).0.kernel;
    if kernel.length(offset) > HOST_DATA.as_u64() {
        return Err(failure(format!("the plugin gave {what} with more than {HOST_DATA}")));
    }
    let content = kernel.block(offset);
    kernel.free(offset);
    content
        .ok_or_else(|| failure(format!("the plugin gave {what} at {offset}, which is not a block")))
}

fn take_text(store: &mut Context<'_>, offset: u64, what: &str) -> wasmtime::Result<String> {
    let text = take(store, offset, what)?;
    String::from_utf8(text)
        .map_err(|_| failure(format!("the plugin gave {what} that is not UTF-8")))
}

fn take_json(store: &mut Context<'_>, offset: u64, what: &str) -> wasmtime::Result<Value> {
    use kitbag_base::json::{JsonBudget, parse};

    let text = take(store, offset, what)?;
    parse(&text, JsonBudget::ARGUMENTS)
        .map_err(|error| failure(format!("the plugin gave {what} that is not JSON: {error}")))
}

/// Allocates a block with this content. An empty one is 0.
fn give(store: &mut Context<'_>, content: &[u8]) -> wasmtime::Result<u64> {
    let (session, limiter) = parts(store);
    let offset = session.kernel.insert(content, limiter);
    offset.ok_or_else(|| failure("the plugin is out of memory"))
}
