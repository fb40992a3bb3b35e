//! One server in the configuration of a client.

use std::path::Path;

use kitbag::base::text::shown;
use kitbag::policy::{Placement, SecretPlace, VariableName};
use kitbag::secrets::SecretValue;
use serde_json::{Map, Value};

use super::reference::{Piece, pieces};
use super::secret_signs::SecretSigns;
use crate::commands::server::mcp_config::client::Client;
use crate::commands::server::mcp_config::merge::starts_kitbag;

/// Keys that are read, or that describe only how the client starts the server.
const KNOWN: [&str; 28] = [
    "type",
    "transport",
    "transportType",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "env_vars",
    "disabled",
    "enabled",
    "includeTools",
    "enabled_tools",
    "excludeTools",
    "disabled_tools",
    "disabledTools",
    "name",
    "description",
    "gallery",
    "version",
    "trust",
    "$schema",
];

/// A server as kitbag would configure it, without its name and the names of its secrets.
pub(super) struct Draft {
    pub(super) address: DraftAddress,
    pub(super) is_enabled: bool,
    /// The tools that the client offers. Empty: all.
    pub(super) tools: Vec<String>,
    /// Tools that the client does not offer.
    pub(super) excluded: Vec<String>,
    /// Parts of the entry that kitbag does not have, or has in another form.
    pub(super) notes: Vec<String>,
}

pub(super) enum DraftAddress {
    Process { command: Vec<String>, directory: Option<String>, env: Vec<(String, DraftValue)> },
    Remote { url: String, headers: Vec<(String, String)>, secret: Option<DraftSecret> },
}

/// The value of a variable.
pub(super) enum DraftValue {
    Text(String),
    /// The variable of the same name in the environment of kitbag.
    Inherit,
    Secret(SecretOrigin),
}

/// The secret of a remote server.
pub(super) struct DraftSecret {
    /// The header or the parameter that contains the secret.
    pub(super) part: String,
    pub(super) placement: Placement,
    pub(super) origin: SecretOrigin,
}

/// The origin of a secret's value.
pub(super) enum SecretOrigin {
    Value(SecretValue),
    /// A variable of the environment.
    Variable(String),
    /// The client asks for the value.
    Asked,
}

/// Why a server is not moved.
pub(super) enum Rejection {
    IsKitbag,
    Reason(String),
}

/// The surroundings of an entry.
pub(super) struct Surroundings<'a> {
    pub(super) client: Client,
    pub(super) signs: &'a SecretSigns,
    pub(super) home: Option<&'a Path>,
    /// The client starts the server in the workspace.
    pub(super) is_in_workspace: bool,
    /// Reads a variable of the environment.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

type Read<T> = Result<T, String>;

impl Draft {
    /// Reads an entry.
    ///
    /// # Errors
    ///
    /// [`Rejection`] explains why kitbag cannot run this server. It contains no value that may be
    /// secret.
    pub(super) fn read(entry: &Value, around: &Surroundings<'_>) -> Result<Self, Rejection> {
        if starts_kitbag(entry) {
            return Err(Rejection::IsKitbag);
        }
        let Some(fields) = entry.as_object() else {
            return Err(Rejection::Reason("it is not a table".into()));
        };
        Entry { fields, around }.draft().map_err(Rejection::Reason)
    }
}

struct Entry<'a> {
    fields: &'a Map<String, Value>,
    around: &'a Surroundings<'a>,
}

impl Entry<'_> {
    fn draft(&self) -> Read<Draft> {
        for (key, why) in [
            ("envFile", "it reads variables from a file"),
            ("headersHelper", "a program makes its headers"),
            ("oauth", "it signs in with OAuth"),
            ("auth", "it signs in with OAuth"),
        ] {
            if self.fields.get(key).is_some_and(|value| !is_empty(value)) {
                return Err(format!("{why} (`{key}`), which kitbag does not support"));
            }
        }
        let mut notes = Vec::new();
        let urls: Vec<_> = ["httpUrl", "url", "serverUrl"]
            .into_iter()
            .filter(|key| self.fields.get(*key).is_some_and(|value| !is_empty(value)))
            .collect();
        let command = self.fields.get("command").filter(|command| !is_empty(command));
        let address = match (command, &urls[..]) {
            (Some(_), [_, ..]) => return Err("it has both a command and a URL".into()),
            (Some(command), []) => self.process(command, &mut notes)?,
            (None, [key, ..]) => self.remote(key, &mut notes)?,
            (None, []) => return Err("it has neither a command nor a URL".into()),
        };
        let is_enabled =
            !self.flag("disabled")?.unwrap_or(false) && self.flag("enabled")?.unwrap_or(true);
        let tools = self.first_list(&["includeTools", "enabled_tools"])?;
        let excluded = self.first_list(&["excludeTools", "disabled_tools", "disabledTools"])?;
        let unknown: Vec<_> = self
            .fields
            .keys()
            .filter(|key| !KNOWN.contains(&key.as_str()))
            .map(|key| format!("`{}`", shown(key)))
            .collect();
        if !unknown.is_empty() {
            notes.push(format!("not moved: {}", unknown.join(", ")));
        }
        if self.flag("trust")?.unwrap_or(false) {
            notes.push(
                "not moved: `trust`; `approve` in kitbag decides which calls need you".into(),
            );
        }
        Ok(Draft { address, is_enabled, tools, excluded, notes })
    }

    fn process(&self, command: &Value, notes: &mut Vec<String>) -> Read<DraftAddress> {
        self.transport(&["stdio"])?;
        let mut words = match command {
            // opencode has the program and its arguments in a single list.
            Value::Array(_) => strings(command, "command")?,
            _ => vec![scalar(command).ok_or("its `command` is not text")?],
        };
        let arguments = self.list("args")?;
        if let ([whole], []) = (&words[..], &arguments[..])
            && whole.contains(' ')
            && !Path::new(whole).exists()
        {
            let split: Vec<_> = whole.split(' ').filter(|word| !word.is_empty()).collect();
            if whole.contains(['"', '\'', '\\']) {
                return Err("its command is a shell line; write the arguments into `args`".into());
            }
            notes.push("its command is split at spaces".into());
            words = split.into_iter().map(str::to_owned).collect();
        }
        words.extend(arguments);
        if words.iter().any(|word| word.contains('\0')) {
            return Err("its command has a NUL".into());
        }
        let own = self.table("env")?;
        let is_own = |name: &str| own.iter().any(|(own, _)| own == name);
        for (at, word) in words.iter_mut().enumerate() {
            *word = self.expanded(word, is_own).map_err(|why| match at {
                0 => format!("its command {why}"),
                at => format!("its argument {at} {why}"),
            })?;
        }
        if let Some(at) = self.around.signs.argument(&words) {
            return Err(format!(
                "its argument {at} looks like a secret, which other programs can read in the \
                 list of processes; pass it as a variable (`env`), then import it"
            ));
        }
        let directory = match self.fields.get("cwd").filter(|cwd| !is_empty(cwd)) {
            None => None,
            Some(cwd) => {
                let cwd = scalar(cwd).ok_or("its `cwd` is not text")?;
                let cwd =
                    self.expanded(&cwd, |_| false).map_err(|why| format!("its `cwd` {why}"))?;
                (cwd != ".").then_some(cwd)
            }
        };
        let mut env = Vec::new();
        for (name, value) in own {
            check_variable(&name)?;
            let value = self.value(&name, value, notes)?;
            env.push((name, value));
        }
        for name in self.inherited()? {
            check_variable(&name)?;
            if !env.iter().any(|(other, _)| *other == name) {
                env.push((name, DraftValue::Inherit));
            }
        }
        Ok(DraftAddress::Process { command: words, directory, env })
    }

    /// Returns the value of a variable.
    fn value(&self, name: &str, text: String, notes: &mut Vec<String>) -> Read<DraftValue> {
        let in_name = |why: String| format!("its variable `{}` {why}", shown(name));
        match &pieces(&text, self.around.client)[..] {
            [Piece::Variable { name: other, default }] => {
                let is_set = (self.around.variable)(other).is_some();
                match default {
                    Some(default) if !is_set => Ok(DraftValue::Text((*default).to_owned())),
                    _ if *other == name => Ok(DraftValue::Inherit),
                    _ => Ok(DraftValue::Secret(SecretOrigin::Variable((*other).to_owned()))),
                }
            }
            [Piece::Input(_)] => Ok(DraftValue::Secret(SecretOrigin::Asked)),
            _ => {
                let text = self.expanded(&text, |_| false).map_err(in_name)?;
                if !self.around.signs.are_on(name, &text) {
                    return match text.contains('\0') {
                        true => Err(in_name("has a NUL".into())),
                        false => Ok(DraftValue::Text(text)),
                    };
                }
                if text.len() < SecretValue::LEAST_BYTES {
                    notes.push(format!(
                        "`{name}` is too short for the store of secrets ({} bytes) and stays plain \
                         text",
                        text.len()
                    ));
                    return Ok(DraftValue::Text(text));
                }
                let value = SecretValue::new(text.into_bytes());
                let value = value.map_err(|error| in_name(format!("is not stored: {error}")))?;
                Ok(DraftValue::Secret(SecretOrigin::Value(value)))
            }
        }
    }

    fn remote(&self, key: &str, notes: &mut Vec<String>) -> Read<DraftAddress> {
        let url = scalar(&self.fields[key]).ok_or_else(|| format!("its `{key}` is not text"))?;
        let url = self.expanded(&url, |_| false).map_err(|why| format!("its URL {why}"))?;
        let is_old = url
            .split(['?', '#'])
            .next()
            .is_some_and(|url| url.trim_end_matches('/').ends_with("/sse"));
        let transport =
            self.transport(&["http", "streamable-http", "streamableHttp", "streamable_http"])?;
        if transport.is_none() && is_old {
            return Err("its transport is SSE, which kitbag does not support".into());
        }
        if self.fields.get("env").is_some_and(|env| !is_empty(env)) {
            notes.push("not moved: `env`, which a remote server does not get".into());
        }
        let (url, parameters) = self.without_secret_parameters(&url)?;
        let mut secrets: Vec<_> = parameters;
        let mut headers = Vec::new();
        let mut all = self.table("headers")?;
        all.extend(self.table("http_headers")?);
        for (name, text) in all {
            match self.header(&name, &text)? {
                Some(secret) => secrets.push(secret),
                None => headers.push((name, text)),
            }
        }
        for (name, variable) in self.table("env_http_headers")? {
            secrets.push(DraftSecret {
                placement: Placement::header(&name, "").map_err(|error| error.to_string())?,
                part: name,
                origin: SecretOrigin::Variable(variable),
            });
        }
        if let Some(variable) = self.fields.get("bearer_token_env_var").and_then(scalar) {
            secrets.push(DraftSecret {
                part: "authorization".into(),
                placement: Placement::Bearer,
                origin: SecretOrigin::Variable(variable),
            });
        }
        if secrets.len() > 1 {
            let parts: Vec<_> =
                secrets.iter().map(|secret| format!("`{}`", shown(&secret.part))).collect();
            return Err(format!("it has several secrets ({}); kitbag sends one", parts.join(", ")));
        }
        let secret = secrets.pop();
        if secret.is_some() {
            SecretPlace::new(&destination(&url), false).map_err(|error| error.to_string())?;
        }
        if self.around.signs.are_in(&url) {
            return Err("its URL contains a secret; pass it in a header, then import it".into());
        }
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err("its URL is not one of `http` or `https`".into());
        }
        Ok(DraftAddress::Remote { url, headers, secret })
    }

    /// Returns the secret in a header. `None`: the header is plain text.
    fn header(&self, name: &str, text: &str) -> Read<Option<DraftSecret>> {
        let in_name = |why: String| format!("its header `{}` {why}", shown(name));
        let is_authorization = name.eq_ignore_ascii_case("authorization");
        let scheme = text.split_once(' ').filter(|(scheme, _)| {
            is_authorization && scheme.chars().all(|c| c.is_ascii_alphabetic())
        });
        let (prefix, rest) = match scheme {
            Some((scheme, rest)) => (format!("{scheme} "), rest.trim()),
            None => (String::new(), text),
        };
        let origin = match &pieces(rest, self.around.client)[..] {
            [Piece::Variable { name, .. }] => SecretOrigin::Variable((*name).to_owned()),
            [Piece::Input(_)] => SecretOrigin::Asked,
            _ => {
                let text = self.expanded(rest, |_| false).map_err(in_name)?;
                if !is_authorization && !self.around.signs.are_on(name, &text) {
                    return Ok(None);
                }
                let value = SecretValue::new(text.into_bytes());
                let value = value.map_err(|error| in_name(format!("is not stored: {error}")))?;
                SecretOrigin::Value(value)
            }
        };
        let placement = match prefix.eq_ignore_ascii_case("bearer ") {
            true => Placement::Bearer,
            false => {
                Placement::header(name, &prefix).map_err(|error| in_name(error.to_string()))?
            }
        };
        Ok(Some(DraftSecret { part: name.to_ascii_lowercase(), placement, origin }))
    }

    /// Removes the parameters of a URL that look like secrets.
    fn without_secret_parameters(&self, url: &str) -> Read<(String, Vec<DraftSecret>)> {
        let Some((address, query)) = url.split_once('?') else {
            return Ok((url.to_owned(), Vec::new()));
        };
        let (mut left, mut secrets) = (Vec::new(), Vec::new());
        for parameter in query.split('&') {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if !self.around.signs.are_on(name, value) {
                left.push(parameter);
                continue;
            }
            let failed = |why: String| format!("its parameter `{}` {why}", shown(name));
            if value.contains('%') {
                return Err(failed("is a secret with encoded characters".into()));
            }
            let value = SecretValue::new(value.as_bytes().to_vec());
            secrets.push(DraftSecret {
                part: name.to_owned(),
                placement: Placement::query(name).map_err(|error| failed(error.to_string()))?,
                origin: SecretOrigin::Value(value.map_err(|error| failed(error.to_string()))?),
            });
        }
        let url = match left.is_empty() {
            true => address.to_owned(),
            false => format!("{address}?{}", left.join("&")),
        };
        Ok((url, secrets))
    }

    /// Checks the transport that an entry names, if it does.
    fn transport(&self, allowed: &[&str]) -> Read<Option<String>> {
        let named = ["type", "transport", "transportType"].into_iter().find_map(|key| {
            self.fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
        });
        match named {
            Some("sse") => Err("its transport is SSE, which kitbag does not support".into()),
            Some(named) if !allowed.contains(&named) => {
                Err(format!("its transport is `{}`", shown(named)))
            }
            named => Ok(named.map(str::to_owned)),
        }
    }

    /// Replaces the references that have the same value for every start of the server. `is_passed`:
    /// a variable of the server, which the server itself may expand.
    fn expanded(&self, text: &str, is_passed: impl Fn(&str) -> bool) -> Read<String> {
        let mut expanded = String::new();
        for piece in pieces(text, self.around.client) {
            match piece {
                Piece::Text(text) => expanded.push_str(text),
                Piece::Home => expanded.push_str(&self.home()?),
                Piece::Variable { name: "HOME", .. } => expanded.push_str(&self.home()?),
                Piece::Separator => expanded.push('/'),
                Piece::Workspace if self.around.is_in_workspace => expanded.push('.'),
                Piece::Workspace => {
                    return Err(
                        "names the workspace of the client, but is for all workspaces".into()
                    );
                }
                Piece::Variable { name, .. } if is_passed(name) => {
                    expanded.push_str(&format!("${{{name}}}"));
                }
                Piece::Variable { name, default: Some(default) }
                    if (self.around.variable)(name).is_none() =>
                {
                    expanded.push_str(default);
                }
                Piece::Variable { name, .. } => {
                    return Err(format!(
                        "refers to the variable `{name}`, which kitbag does not expand there"
                    ));
                }
                Piece::Input(_) => {
                    return Err("has a value that the client asks for".into());
                }
            }
        }
        Ok(expanded)
    }

    fn home(&self) -> Read<String> {
        let home = self.around.home.and_then(Path::to_str);
        home.map(str::to_owned)
            .ok_or_else(|| "refers to the home directory, which is unknown".into())
    }

    /// Returns the names of variables that the server inherits (Codex).
    fn inherited(&self) -> Read<Vec<String>> {
        let Some(names) = self.fields.get("env_vars").filter(|names| !is_empty(names)) else {
            return Ok(Vec::new());
        };
        let name = |value: &Value| match value {
            Value::Object(fields) => fields.get("name").and_then(scalar),
            value => scalar(value),
        };
        let names = names.as_array().map(|names| names.iter().map(name).collect::<Option<_>>());
        names.flatten().ok_or_else(|| "its `env_vars` is not a list of names".into())
    }

    fn flag(&self, key: &str) -> Read<Option<bool>> {
        match self.fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(format!("its `{key}` is neither true nor false")),
        }
    }

    fn list(&self, key: &str) -> Read<Vec<String>> {
        self.fields.get(key).map_or(Ok(Vec::new()), |value| strings(value, key))
    }

    fn first_list(&self, keys: &[&str]) -> Read<Vec<String>> {
        let lists = keys.iter().map(|key| self.list(key)).collect::<Read<Vec<_>>>()?;
        Ok(lists.into_iter().find(|list| !list.is_empty()).unwrap_or_default())
    }

    fn table(&self, key: &str) -> Read<Vec<(String, String)>> {
        let fields = match self.fields.get(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err(format!("its `{key}` is not a table")),
        };
        let present = fields.iter().filter(|(_, value)| !value.is_null());
        let pair = |(name, value): (&String, &Value)| match scalar(value) {
            Some(text) => Ok((name.clone(), text)),
            None => Err(format!("`{}` in its `{key}` is not text", shown(name))),
        };
        present.map(pair).collect()
    }
}

/// Returns the destination of the secret of a remote server.
pub(super) fn destination(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

fn check_variable(name: &str) -> Read<()> {
    VariableName::new(name).map(drop).map_err(|error| error.to_string())
}

/// Returns a text, a number or a switch as text. Clients write all of them in lists and tables.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn strings(value: &Value, key: &str) -> Read<Vec<String>> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let texts = value.as_array().map(|items| items.iter().map(scalar).collect::<Option<_>>());
    texts.flatten().ok_or_else(|| format!("its `{key}` is not a list of strings"))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
