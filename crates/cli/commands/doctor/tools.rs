//! The configuration, trust, secrets, and a call.

use std::path::Path;

use kitbag::base::ByteSize;
use kitbag::config::SecretStoreKind;
use kitbag::contract::LEAST_SERVER_MEMORY;
use kitbag::host::DiskCache;
use kitbag::policy::SecretSource;
use kitbag::toolbox::NoAnswers;
use kitbag::{CallContext, CallOutcome, Caller, Config, Invocation, Kitbag, Outcome};
use serde_json::json;

use super::check::{Check, Status};
use crate::commands::data::secret;
use crate::commands::tools::check::Examination;
use crate::console::interrupt;

/// The tool that is called, which every usual build has.
const TOOL: &str = "calculate";

/// Returns whether `kitbag check` finds problems. The problems themselves may quote files.
pub(super) fn configuration(examined: &Examination) -> Check {
    let Examination { problems, warnings, tools, topics, .. } = examined;
    let plural = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    let (status, text) = match (problems.len(), warnings.len()) {
        (0, 0) => {
            (Status::Ok, format!("{} and {}", plural(*tools, "tool"), plural(*topics, "topic")))
        }
        (0, warnings) => {
            (Status::Warning, format!("{}; `kitbag check` shows them", plural(warnings, "warning")))
        }
        (errors, _) => {
            (Status::Error, format!("{}; `kitbag check` shows them", plural(errors, "mistake")))
        }
    };
    Check::new("configuration", status, text)
}

/// Returns whether the configured tools could be loaded from the cache, and whether its other
/// entries are intact.
pub(super) fn cached(examined: &Examination, cache: Option<&Path>) -> Check {
    let cache = cache.map(|path| DiskCache::new(path.to_owned()));
    let damaged = cache.map_or(Ok(Vec::new()), |cache| cache.damaged());
    let (status, text) = match (&*examined.cache_problems, damaged.as_deref()) {
        ([first, ..], _) => (Status::Warning, first.to_string()),
        ([], Err(error)) => (Status::Warning, format!("{error}: {}", error.source)),
        ([], Ok([])) => (Status::Ok, "compiled tools can be loaded".to_owned()),
        ([], Ok([first, ..])) => (
            Status::Warning,
            format!(
                "the entry `{}` is damaged: it is compiled again at its next use; \
                 `kitbag cache --clear` removes all entries",
                first.name
            ),
        ),
    };
    Check::new("cache", status, text)
}

/// Compares the memory that a server may use with the memory of the machine.
pub(super) fn server_memory(config: &Config, available: Option<u64>) -> Check {
    let memory = &config.server_memory.value;
    let (status, text) = match available {
        Some(available) if available < memory.as_u64() => (
            Status::Warning,
            format!(
                "`kitbag serve` may use {memory}, but this machine or container has only {}: \
                 lower `[serve] memory`, at least to {LEAST_SERVER_MEMORY}",
                ByteSize::bytes(available >> 20 << 20)
            ),
        ),
        _ => (Status::Ok, format!("`kitbag serve` may use {memory}")),
    };
    Check::new("server memory", status, text)
}

pub(super) fn trust(config: &Config) -> Check {
    let root = config.root.value.display();
    let (status, text) = match (&config.ignored, config.trust_notice()) {
        (Some(_), _) => (
            Status::Error,
            format!("{root} can be changed by another user; `kitbag check` shows the way out"),
        ),
        (None, Some(_)) => (
            Status::Warning,
            format!("{root} is not trusted, so its tools are off; review it with `kitbag trust`"),
        ),
        (None, None) if config.has_workspace => (Status::Ok, format!("{root} is trusted")),
        (None, None) => (Status::Ok, format!("{root} has no `.kitbag`")),
    };
    Check::new("workspace", status, text)
}

/// Opens the store of secrets, if secrets use it and it needs no passphrase.
pub(super) fn secrets(config: &Config) -> Check {
    let uses_store = config.secrets.values().any(|it| it.source.value == SecretSource::Store);
    let (status, text) = match &config.secret_store.kind {
        _ if config.secrets.is_empty() => (Status::Ok, "none".to_owned()),
        _ if !uses_store => (Status::Ok, "from variables and commands".to_owned()),
        None => (
            Status::Warning,
            "no value is stored yet; store each with `kitbag secret set NAME`".to_owned(),
        ),
        Some(kind) if kind.value == SecretStoreKind::Passphrase => {
            (Status::Ok, "in a store with a passphrase, which was not opened".to_owned())
        }
        Some(kind) => {
            let end = interrupt::call_end();
            let opened = secret::open_store(config, kind.value, &end);
            match opened.map(|names| names.len()) {
                Ok(1) => (Status::Ok, "the store can be opened: 1 value".to_owned()),
                Ok(count) => (Status::Ok, format!("the store can be opened: {count} values")),
                Err(error) => {
                    (Status::Error, format!("{error}; `kitbag secret list` shows the cause"))
                }
            }
        }
    };
    Check::new("secrets", status, text)
}

/// Calls a built-in tool in this process, without any configuration.
pub(super) fn call() -> Check {
    let (status, text) = match called() {
        _ if !Kitbag::builtin_names().contains(&TOOL) => {
            (Status::Warning, format!("this build has no `{TOOL}`, so no tool was called"))
        }
        Ok(answer) if answer.contains("\"42\"") => {
            (Status::Ok, format!("`{TOOL}` runs in its sandbox"))
        }
        Ok(_) => (Status::Error, format!("`{TOOL}` answered wrongly; reinstall kitbag")),
        Err(error) => (
            Status::Error,
            format!("`{TOOL}` does not run: {error}; look for limits of memory and processes"),
        ),
    };
    Check::new("tool call", status, text)
}

fn called() -> Result<String, String> {
    let kitbag = Kitbag::builder().workspace("/").single_call().build();
    let kitbag = kitbag.map_err(|error| error.to_string())?;
    let invocation = Invocation::tool(TOOL, json!({ "expression": "6 * 7" }));
    let context = CallContext::new(Caller::this_user());
    match kitbag.toolbox().call_blocking(invocation, context, &mut NoAnswers) {
        Ok(CallOutcome::Completed(completed)) => match completed.completion.result {
            Ok(Outcome::Success(text)) => Ok(text),
            Ok(_) => Ok(String::new()),
            Err(error) => Err(error.to_string()),
        },
        Ok(_) => Ok(String::new()),
        Err(error) => Err(error.to_string()),
    }
}
