//! Capability calls: their names, their conditions, and the answers of Butterfly Bot.
//!
//! A tool may call the capabilities that Butterfly Bot allows a tool of its name, or those in the
//! configuration value `capabilities`. Other names are `forbidden`; names that no host has are
//! `internal`. The grants of the tool decide what a capability may reach.

use kitbag_contract::bindings::host::{Host, Level};
use kitbag_contract::bindings::tools;
use kitbag_contract::{ErrorInfo, Outcome};
use serde_json::{Map, Value, json};
use wasmtime::Store;
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::p2::bindings::clocks::wall_clock;

use super::{http_call, read};
use crate::call::state::State;

/// The version of the interface.
const ABI_VERSION: u64 = 1;

/// The configuration value that replaces the list of a tool's capabilities: names separated by
/// commas or spaces.
const ALLOWED: &str = "capabilities";

/// The capabilities that a tool has by its name.
const OF_TOOLS: &[(&str, &[&str])] = &[
    (
        "todo",
        &[
            "kv.sqlite.todo.create",
            "kv.sqlite.todo.create_many",
            "kv.sqlite.todo.list",
            "kv.sqlite.todo.complete",
            "kv.sqlite.todo.reopen",
            "kv.sqlite.todo.delete",
            "kv.sqlite.todo.clear",
            "kv.sqlite.todo.reorder",
        ],
    ),
    (
        "tasks",
        &[
            "kv.sqlite.tasks.schedule",
            "kv.sqlite.tasks.list",
            "kv.sqlite.tasks.enable",
            "kv.sqlite.tasks.disable",
            "kv.sqlite.tasks.delete",
            "kv.sqlite.tasks.clear",
        ],
    ),
    (
        "reminders",
        &[
            "kv.sqlite.reminders.create",
            "kv.sqlite.reminders.list",
            "kv.sqlite.reminders.complete",
            "kv.sqlite.reminders.delete",
            "kv.sqlite.reminders.snooze",
            "kv.sqlite.reminders.clear",
        ],
    ),
    (
        "planning",
        &[
            "kv.sqlite.planning.create",
            "kv.sqlite.planning.list",
            "kv.sqlite.planning.get",
            "kv.sqlite.planning.update",
            "kv.sqlite.planning.delete",
            "kv.sqlite.planning.clear",
        ],
    ),
    (
        "wakeup",
        &[
            "kv.sqlite.wakeup.create",
            "kv.sqlite.wakeup.list",
            "kv.sqlite.wakeup.enable",
            "kv.sqlite.wakeup.disable",
            "kv.sqlite.wakeup.delete",
        ],
    ),
    ("coding", &["coding.generate"]),
    ("mcp", &["mcp.list_tools", "mcp.call"]),
    ("http_call", &["http.request"]),
    ("github", &["github.list_tools", "github.call_tool"]),
    ("zapier", &["zapier.list_tools", "zapier.call_tool"]),
    ("search_internet", &["search.internet"]),
    (
        "solana",
        &[
            "solana.wallet",
            "solana.balance",
            "solana.transfer",
            "solana.simulate_transfer",
            "solana.tx_status",
            "solana.tx_history",
        ],
    ),
];

/// Capabilities of other tools, and the tools that carry them out in Butterfly Bot. They are called
/// with the action and these arguments.
const BY_TOOL: &[(&str, &str, Option<&str>, &[&str])] = &[
    ("coding.generate", "coding", None, &["prompt", "system_prompt"]),
    ("mcp.list_tools", "mcp", Some("list_tools"), &["server"]),
    ("mcp.call", "mcp", Some("call_tool"), &["server", "tool", "arguments"]),
    ("github.list_tools", "github", Some("list_tools"), &[]),
    ("github.call_tool", "github", Some("call_tool"), &["tool", "arguments"]),
    ("zapier.list_tools", "zapier", Some("list_tools"), &[]),
    ("zapier.call_tool", "zapier", Some("call_tool"), &["tool", "arguments"]),
    ("search.internet", "search_internet", None, &["query"]),
];

/// Arguments that a capability of another tool cannot do without.
const REQUIRED: &[(&str, &str)] = &[
    ("coding.generate", "prompt"),
    ("github.call_tool", "tool"),
    ("zapier.call_tool", "tool"),
    ("search.internet", "query"),
];

/// The answer of a module.
pub(super) enum Answer {
    Result(Outcome),
    Call(CapabilityCall),
}

/// A capability call.
#[derive(Debug)]
pub(super) struct CapabilityCall {
    /// The version of the interface, if it is not the known one.
    unknown_version: Option<u64>,
    name: String,
    arguments: Value,
    /// True if the module is called again with the result.
    pub(super) resumes: bool,
}

/// The capabilities of one tool.
pub(super) struct Capabilities {
    tool: String,
    allowed: Vec<String>,
}

impl Answer {
    /// Reads the result of a module.
    ///
    /// # Errors
    ///
    /// The reason, if Butterfly Bot would refuse the result.
    pub(super) fn read(output: &[u8], tool: &str) -> Result<Self, String> {
        let value = read(output)?;
        if value["stub"] == json!(true) {
            return Err(format!(
                "the module of `{tool}` is a placeholder without a tool; build or download the \
                 real one"
            ));
        }
        match value["status"].as_str() {
            Some("capability_call") => {
                let call = value
                    .get("capability_call")
                    .ok_or("the module made a capability call without `capability_call`")?;
                let name = call["name"]
                    .as_str()
                    .ok_or("the module made a capability call without `name`")?;
                let version = value["abi_version"].as_u64().unwrap_or(ABI_VERSION);
                Ok(Self::Call(CapabilityCall {
                    unknown_version: Some(version).filter(|version| *version != ABI_VERSION),
                    name: name.to_owned(),
                    arguments: call.get("args").cloned().unwrap_or(json!({})),
                    resumes: call["resume"] == json!(true),
                }))
            }
            Some("host_call") => Err(format!(
                "the module of `{tool}` made a `host_call`, which Butterfly Bot no longer offers; \
                 rebuild it with capability calls"
            )),
            _ => {
                let text = String::from_utf8_lossy(output);
                let text = if text.is_empty() { "{}".into() } else { text };
                Ok(Self::Result(outcome(&value, text.into_owned())))
            }
        }
    }
}

/// Returns the outcome of a call with this JSON: an error if its status is `error`.
pub(super) fn outcome(value: &Value, text: String) -> Outcome {
    match value["status"].as_str() {
        Some("error") => Outcome::Error(ErrorInfo::new(text)),
        _ => Outcome::Success(text),
    }
}

impl Capabilities {
    /// Finds the capabilities of a tool.
    pub(super) fn of(state: &mut State, tool: &str) -> Self {
        let allowed = match state.granted().config_value(ALLOWED) {
            Some(names) => {
                let names = names.split([',', ' ', '\n']).filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }
            None => {
                let own = OF_TOOLS.iter().find(|(name, _)| *name == tool);
                own.into_iter().flat_map(|(_, names)| *names).map(|&name| name.to_owned()).collect()
            }
        };
        Self { tool: tool.to_owned(), allowed }
    }

    fn forbidden(&self, name: &str) -> Value {
        let reason = format!("Capability '{name}' is not allowed for tool '{}'", self.tool);
        error("forbidden", &reason)
    }

    fn allows(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == name)
    }

    /// Carries out a capability call and returns the answer of Butterfly Bot.
    ///
    /// # Errors
    ///
    /// The reason, if the capability failed. Butterfly Bot then ends the call with an error.
    pub(super) async fn answer(
        &self,
        store: &mut Store<State>,
        call: &CapabilityCall,
    ) -> Result<Value, String> {
        let CapabilityCall { unknown_version, name, arguments, .. } = call;
        if let Some(version) = unknown_version {
            return Ok(error(
                "invalid_args",
                &format!("Unsupported capability ABI version {version} (supported: {ABI_VERSION})"),
            ));
        }
        // A granted secret is allowed by its grant.
        if let Some(secret) = secret_name(name, arguments) {
            return Ok(self.secret(store.data_mut(), name, &secret?));
        }
        let tool = &self.tool;
        if !self.allows(name) {
            return Ok(self.forbidden(name));
        }
        let result = match &**name {
            "clock.now_unix" => json!({ "unix": now(store.data_mut())? }),
            "log.emit" => {
                let text = |key: &str| arguments[key].as_str();
                let event = text("event").unwrap_or("wasm_capability_log_emit");
                let level = level(text("level").unwrap_or("info"));
                store.data_mut().reporting().log(level, event.to_owned());
                json!({ "logged": true })
            }
            "http.request" => http_call::request(store.data_mut(), arguments).await?,
            _ => match self.of_host(store, name, arguments).await? {
                Some(Ok(result)) => result,
                Some(Err(refused)) => return Ok(refused),
                None => {
                    let reason = format!(
                        "Capability '{name}' requested by wasm tool '{tool}' but host bridge for \
                         this capability is not implemented yet"
                    );
                    return Ok(error("internal", &reason));
                }
            },
        };
        Ok(success(name, result))
    }

    /// Carries out a capability of storage or of another tool. `None` if the host has no such
    /// capability.
    async fn of_host(
        &self,
        store: &mut Store<State>,
        name: &str,
        arguments: &Value,
    ) -> Result<Option<Result<Value, Value>>, String> {
        if let Some(owner) = owner(name)
            && owner != self.tool
        {
            let reason = format!("Capability '{name}' is only valid for tool '{owner}'");
            return Ok(Some(Err(error("forbidden", &reason))));
        }
        #[cfg(feature = "storage")]
        if let Some(rest) = name.strip_prefix("kv.sqlite.")
            && let Some((kind, action)) = rest.split_once('.')
        {
            let now = now(store.data_mut())?;
            let storage = &mut store.data_mut().granted().storage;
            return Ok(super::rows::carry_out(storage, kind, action, arguments, now)?.map(Ok));
        }
        let Some((.., alias, action, keys)) = BY_TOOL.iter().find(|(own, ..)| *own == name) else {
            return Ok(None);
        };
        let mut given = Map::new();
        given.extend(action.map(|action| ("action".to_owned(), json!(action))));
        for key in *keys {
            let value = arguments.get(*key).or_else(|| other_name(name, key, arguments));
            let value = value.filter(|value| !value.is_null());
            given.extend(value.map(|value| ((*key).to_owned(), value.clone())));
        }
        for (_, key) in REQUIRED.iter().filter(|(own, _)| *own == name) {
            text(arguments, key)?;
        }
        if name == "mcp.call" && !given.contains_key("tool") {
            return Err("capability args missing tool/method".to_owned());
        }
        let given = Value::Object(given).to_string();
        let answer =
            tools::Host::call(&mut store.data_mut().tools(), (*alias).to_owned(), given).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let tools::Answer { text, structured, .. } = answer.map_err(|error| {
            format!("the capability `{name}` needs the tool `{alias}`: {}", error.message)
        })?;
        let value = structured.as_deref().unwrap_or(&text);
        let value = read(value.as_bytes()).unwrap_or_else(|_| json!({ "text": text }));
        Ok(Some(Ok(value)))
    }

    /// Answers with the placeholder of a secret, never with its value.
    fn secret(&self, state: &mut State, capability: &str, secret: &str) -> Value {
        let scoped = format!("secrets.get.{secret}");
        let placeholder = state.granted().secrets.placeholder(secret);
        if placeholder.is_none() && !self.allows(capability) && !self.allows(&scoped) {
            return self.forbidden(capability);
        }
        let result =
            json!({ "name": secret, "found": placeholder.is_some(), "value": placeholder });
        success(capability, result)
    }
}

/// Returns the tool to which a capability belongs, if no other tool may call it.
fn owner(name: &str) -> Option<&'static str> {
    let scoped = name.starts_with("kv.sqlite.") || name.starts_with("solana.");
    let mut tools = OF_TOOLS.iter().filter(|_| scoped);
    tools.find(|(_, names)| names.contains(&name)).map(|(tool, _)| *tool)
}

/// The other names of arguments of `mcp.call`.
fn other_name<'a>(name: &str, key: &str, arguments: &'a Value) -> Option<&'a Value> {
    match (name, key) {
        ("mcp.call", "tool") => arguments.get("method"),
        ("mcp.call", "arguments") => arguments.get("payload"),
        _ => None,
    }
}

/// Returns the name of the secret that a capability call asks for: `secrets.get` with the name as
/// an argument, or `secrets.get.NAME`.
fn secret_name(capability: &str, arguments: &Value) -> Option<Result<String, String>> {
    let rest = capability.strip_prefix("secrets.get")?;
    match rest.strip_prefix('.') {
        Some(name) => Some(Ok(name.to_owned())),
        None => rest.is_empty().then(|| text(arguments, "name").map(str::to_owned)),
    }
}

/// Returns a required text of a capability call.
pub(super) fn text<'a>(arguments: &'a Value, key: &str) -> Result<&'a str, String> {
    arguments[key].as_str().ok_or_else(|| format!("capability args missing {key}"))
}

/// Returns the time in seconds since 1970, repeated if the call runs again.
fn now(state: &mut State) -> Result<i64, String> {
    let time = wall_clock::Host::now(&mut state.clocks()).map_err(|error| error.to_string())?;
    i64::try_from(time.seconds).map_err(|error| error.to_string())
}

fn level(name: &str) -> Level {
    match name {
        "trace" | "debug" => Level::Debug,
        "warn" | "warning" => Level::Warning,
        "error" => Level::Error,
        _ => Level::Info,
    }
}

fn success(name: &str, result: Value) -> Value {
    json!({
        "status": "ok",
        "abi_version": ABI_VERSION,
        "capability_result": { "name": name, "result": result },
    })
}

fn error(code: &str, reason: &str) -> Value {
    json!({ "status": "error", "code": code, "error": reason })
}
