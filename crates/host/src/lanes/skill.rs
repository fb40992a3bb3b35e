//! Skills for Blufio: core modules with a function `run` and host functions of the module `blufio`.
//!
//! A skill reads the arguments of a call as JSON and returns a text. As in Blufio, the body of a
//! response and the content of a file become the result, unless the skill sets another result; a skill
//! without a result returns its log. A host function that fails ends the call. The grants of the tool
//! decide what a skill may reach.

use ::http::Request;
use bytes::Bytes;
use kitbag_base::ByteSize;
use kitbag_base::text::shown;
use kitbag_contract::bindings::host::{Host, Level};
use kitbag_contract::{ErrorInfo, Outcome, WORKSPACE_GUEST_PATH};
use kitbag_engine::{BLUFIO, InvalidComponent, PREVIEW_1, SKILL_HOST, SKILL_INSTANCE};
use kitbag_http::RequestTimes;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker, LinkerInstance};
use wasmtime::{Store, StoreContextMut};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::cli::environment;

use super::{Failure, Parameters, failure, files, instantiate};
use crate::call::state::State;
use crate::grants::http;

/// Maximum size of a response. The grant may be lower.
const RESPONSE_BYTES: usize = 16 << 20;

/// Maximum size of the log that is kept as the result.
const LOG_BYTES: usize = 1 << 20;

/// The result of a skill that returned nothing, in the words of Blufio.
const NO_OUTPUT: &str = "Skill completed successfully (no output)";

/// A skill.
pub(crate) struct Skill {
    run: ComponentExportIndex,
}

/// The state of a skill's host functions during a call.
#[derive(Default)]
pub(crate) struct Session {
    input: String,
    /// The bytes that are being copied to the memory of the skill.
    buffer: Vec<u8>,
    log: String,
    result: Option<String>,
}

/// Returns the purpose of an import.
pub(super) fn offered(import: &str) -> Option<&'static str> {
    match import {
        BLUFIO => Some("what the grants allow: requests, files, variables, and a log"),
        PREVIEW_1 => Some("WASI preview 1: files and variables by grant"),
        _ => None,
    }
}

impl Skill {
    /// Host memory of a call in addition to what every call needs: the bodies of a request and the
    /// content of a file.
    pub(crate) const HOST_BYTES: ByteSize = ByteSize::bytes(
        http::INTERFACES.bytes.as_u64()
            + files::FILE_BYTES.as_u64()
            + (RESPONSE_BYTES + LOG_BYTES) as u64,
    );

    /// Finds the entry of a translated skill.
    pub(crate) fn of(component: &Component) -> Result<Self, InvalidComponent> {
        let instance = component.get_export_index(None, SKILL_INSTANCE);
        let run = instance.and_then(|instance| component.get_export_index(Some(&instance), "run"));
        let missing = || InvalidComponent::Compile("the skill has no function `run`".into());
        run.map(|run| Self { run }).ok_or_else(missing)
    }

    #[expect(clippy::unused_self, reason = "every lane has the same functions")]
    pub(crate) fn link(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        let mut host = linker.instance(SKILL_HOST)?;
        link_values(&mut host)?;
        link_access(&mut host)
    }

    pub(crate) async fn run(
        &self,
        store: &mut Store<State>,
        pre: &InstancePre<State>,
        parameters: &Parameters<'_>,
    ) -> wasmtime::Result<Outcome> {
        parameters.arguments.clone_into(&mut store.data_mut().skill.input);
        let instance = instantiate(store, pre).await?;
        let run = instance.get_typed_func::<(), ()>(&mut *store, &self.run)?;
        match run.call_async(&mut *store, ()).await {
            Ok(()) => {}
            Err(error) if matches!(error.downcast_ref(), Some(I32Exit(0))) => {}
            Err(error) => {
                let Failure(reason) = error.downcast()?;
                return Ok(Outcome::Error(ErrorInfo::new(reason)));
            }
        }
        let Session { result, log, .. } = std::mem::take(&mut store.data_mut().skill);
        let text = result.unwrap_or_else(|| match log.is_empty() {
            true => NO_OUTPUT.to_owned(),
            false => log,
        });
        Ok(Outcome::Success(text))
    }
}

type Context<'a> = StoreContextMut<'a, State>;

/// Arguments, result, variables and log.
fn link_values(host: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    host.func_wrap("log", |mut store: Context<'_>, (level, message): (i32, Vec<u8>)| {
        // Blufio ignores bytes that are not text.
        let Ok(message) = String::from_utf8(message) else { return Ok(()) };
        let (name, level) = match level {
            0 => ("TRACE", Level::Debug),
            1 => ("DEBUG", Level::Debug),
            3 => ("WARN", Level::Warning),
            4 => ("ERROR", Level::Error),
            _ => ("INFO", Level::Info),
        };
        let log = &mut store.data_mut().skill.log;
        if log.len() + message.len() < LOG_BYTES {
            let separator = if log.is_empty() { "" } else { "\n" };
            log.push_str(&format!("{separator}[{name}] {message}"));
        }
        store.data_mut().reporting().log(level, message);
        Ok(())
    })?;
    host.func_wrap("get-input-len", |store: Context<'_>, (): ()| {
        Ok((length(store.data().skill.input.as_bytes()),))
    })?;
    host.func_wrap("open-input", |mut store: Context<'_>, (): ()| {
        let session = &mut store.data_mut().skill;
        session.buffer = session.input.clone().into_bytes();
        Ok((length(&session.buffer),))
    })?;
    host.func_wrap("open-variable", |mut store: Context<'_>, (name,): (Vec<u8>,)| {
        let value = String::from_utf8(name).ok().map(|name| variable(store.data_mut(), &name));
        let session = &mut store.data_mut().skill;
        session.buffer = match value.transpose()?.flatten() {
            Some(value) => value.into_bytes(),
            None => return Ok((-1,)),
        };
        Ok((length(&session.buffer),))
    })?;
    host.func_wrap("load", |store: Context<'_>, (offset,): (i32,)| {
        let buffer = &store.data().skill.buffer;
        let rest = usize::try_from(offset).ok().and_then(|offset| buffer.get(offset..));
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(rest.unwrap_or_default()).for_each(|(to, from)| *to = *from);
        Ok((i64::from_le_bytes(bytes),))
    })?;
    host.func_wrap("set-output", |mut store: Context<'_>, (data,): (Vec<u8>,)| {
        if let Ok(text) = String::from_utf8(data) {
            store.data_mut().skill.result = Some(text);
        }
        Ok(())
    })
}

/// Returns a variable or a configuration value, if it is granted.
fn variable(state: &mut State, name: &str) -> wasmtime::Result<Option<String>> {
    let variables = environment::Host::get_environment(&mut state.environment())?;
    let found = variables.into_iter().find(|(own, _)| own == name);
    Ok(found.map(|(_, value)| value).or_else(|| state.granted().config_value(name)))
}

/// Requests and files.
fn link_access(host: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    // Blufio ignores the method and the body: each request is a GET.
    type HttpRequest = (Vec<u8>, i32, i32, i32);
    host.func_wrap_async("http-request", |mut store: Context<'_>, (url, ..): HttpRequest| {
        Box::new(async move {
            let url = text(url, "a URL")?;
            let http = &mut store.data_mut().granted().http;
            let (request, times) = (Request::new(Bytes::new()), RequestTimes::default());
            let response = http.exchange(&url, request, times, RESPONSE_BYTES).await;
            let response = response.map_err(failure)?;
            let body = String::from_utf8_lossy(response.body()).into_owned();
            store.data_mut().skill.result = Some(body);
            Ok((i32::from(response.status().as_u16()),))
        })
    })?;
    // Blufio ignores the buffer.
    host.func_wrap_async(
        "read-file",
        |mut store: Context<'_>, (path, ..): (Vec<u8>, i32, i32)| {
            Box::new(async move {
                let path = text(path, "a path")?;
                let content =
                    files::read(&mut store.data_mut().guarded(), &absolute(&path)).await?;
                let content = content.map_err(|error| file_failure("read", &path, &error))?;
                let content = String::from_utf8(content).map_err(|_| {
                    failure(format!("`{}` cannot be read: it is not UTF-8", shown(&path)))
                })?;
                let length = length(content.as_bytes());
                store.data_mut().skill.result = Some(content);
                Ok((length,))
            })
        },
    )?;
    host.func_wrap_async(
        "write-file",
        |mut store: Context<'_>, (path, data): (Vec<u8>, Vec<u8>)| {
            Box::new(async move {
                let path = text(path, "a path")?;
                let mut view = store.data_mut().guarded();
                let written = files::write(&mut view, &absolute(&path), &data).await?;
                written.map_err(|error| file_failure("written", &path, &error))?;
                Ok((0i32,))
            })
        },
    )
}

/// Returns the absolute path of a file. A relative path begins in the workspace.
fn absolute(path: &str) -> String {
    match path.strip_prefix("./").unwrap_or(path) {
        path if path.starts_with('/') => path.to_owned(),
        path => format!("{WORKSPACE_GUEST_PATH}/{path}"),
    }
}

fn file_failure(verb: &str, path: &str, error: &files::FileError) -> wasmtime::Error {
    failure(format!("`{}` cannot be {verb}: {error}", shown(path)))
}

fn text(bytes: Vec<u8>, what: &str) -> wasmtime::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| failure(format!("the skill gave {what} that is not UTF-8")))
}

fn length(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
