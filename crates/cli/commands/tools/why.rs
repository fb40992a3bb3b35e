//! `kitbag why`.

use std::path::Path;

use kitbag::base::shell;
use kitbag::base::text::{printable, shown};
use kitbag::config::{
    Config, ConfiguredTool, DiagnosticKind, Disabled, GrantPlace, PathAdvice, PathRefusal,
    ServerTool, ToolSource, address_words,
};
use kitbag::policy::http::{Host, HttpRefusal};
use kitbag::policy::tools::Alias;
use kitbag::policy::{
    Access, Decision, GuestPath, HttpRequest, PathRequest, Request, RequestedTool, SecretRequest,
    ToolGrants, ToolRequest, TypedRequest, decide,
};
use serde_json::{Map, Value, json};

use crate::commands::{Global, GrantArgs, LimitArgs, ToolArg};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag why github GET https://api.github.com/repos/x/y
  kitbag why github https://api.github.com/repos/x/y
  kitbag why fetch 'GET https://example.com/'
  kitbag why word_count docs/README.md
  kitbag why word_count env LANG
  kitbag why github secret github
  kitbag why notes storage 32MiB
  kitbag why digest tool page
  kitbag why digest tool page '{ \"url\": \"https://docs.rs/serde\" }'

The exit code is 0 if the access is allowed, and 6 if it is denied. The command runs no tool and
opens no connection: the addresses of a host are checked when a tool connects. Arguments of a
call are checked as given, without the defaults of the called tool. `fetch` normalizes a URL
before the request, as browsers do; other tools are assumed to request the URL as given.")]
pub(crate) struct Args {
    #[command(flatten)]
    tool: ToolArg,
    /// The access to check: METHOD URL; a URL (for GET); the path of a file, as the tool has it or
    /// in the workspace; env NAME; secret NAME; storage [SIZE]; or tool ALIAS, optionally with the
    /// arguments of the call as JSON. One argument or several
    #[arg(required = true, num_args = 1..=3, value_name = "REQUEST")]
    request: Vec<String>,
    /// Check whether the tool may change the file, not only read it
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    grants: GrantArgs,
}

/// Condition that cannot be checked before a tool connects.
const ADDRESSES: &str = "if the grant allows all addresses of its host and none is denied";

/// The condition if a proxy resolves the name.
const BY_PROXY: &str = "regardless of the addresses of its host, if the request uses your proxy: \
                        `resolve = \"proxy\"` lets the proxy resolve the name";

enum WhyRequest {
    /// An HTTP request. The interpretation of its URL depends on the tool.
    Http {
        method: String,
        url: String,
    },
    Request(Request),
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let asked = asked(&words(&self.request), self.write)?;
        let (kitbag, name) = self.tool.kitbag_with(&global, LimitArgs::default(), self.grants)?;
        let config = kitbag.toolbox().config();
        // `why` also explains tools that are disabled because they have no grants.
        let is_known = |tool: &&ConfiguredTool| {
            tool.is_enabled() || matches!(tool.disabled, Some(Disabled::NotGranted { .. }))
        };
        let Some(tool) = config.tools.get(&*name).filter(is_known) else {
            // The error lists the known names, or the reason why the tool is disabled.
            kitbag.toolbox().tool(&name)?;
            return Err(CliError::Usage(format!("tool `{name}` has no grants")));
        };
        if let ToolSource::Server(of) = &tool.source.value {
            return server_answer(tool, of, &global);
        }
        let tool = &*kitbag.toolbox().settled(tool);
        let answer = match asked {
            WhyRequest::Request(request) => answer(config, tool, &request),
            WhyRequest::Http { method, url } => match request(tool, &method, &url) {
                Ok(request) => answer(config, tool, &Request::Http(request)),
                Err(refusal) => refused_url(&method, &url, &refusal),
            },
        };
        match global.json {
            true => output::json(&answer.json)?,
            false => output::data(&format!("{}\n", printable(&answer.text)))?,
        }
        Ok(if answer.is_allowed { Exit::Done } else { Exit::Denied })
    }
}

/// Explains that a tool of a server has the access of its server, which no grant limits.
fn server_answer(
    tool: &ConfiguredTool,
    of: &ServerTool,
    global: &Global,
) -> Result<Exit, CliError> {
    let (name, server) = (&tool.name, &of.server);
    let words = address_words(&of.address);
    let text = format!(
        "`{name}` is a tool of the server `{server}`, which {words}. kitbag checks its calls, but \
         not what the server reaches: `confine` in `[servers.{server}]` limits that"
    );
    match global.json {
        true => output::json(&json!({ "tool": name, "server": server, "access": words }))?,
        false => output::data(&format!("{}\n", printable(&text)))?,
    }
    Ok(if of.address.has_all_rights() { Exit::Done } else { Exit::Denied })
}

/// Splits a request, which may be a single argument: `'GET https://a.example/'`.
fn words(given: &[String]) -> Vec<String> {
    let [one] = given else { return given.to_vec() };
    let Some((first, rest)) = one.trim().split_once(char::is_whitespace) else {
        return given.to_vec();
    };
    let rest = rest.trim_start();
    let is_method = first.bytes().all(|byte| byte.is_ascii_alphabetic()) && is_url(rest);
    let words: Vec<_> = rest.splitn(2, char::is_whitespace).collect();
    let words = match TypedRequest::of_word(first) {
        Some(typed) if typed.words.contains(&words.len()) => words,
        _ if is_method => vec![rest],
        // The path of a file.
        _ => return given.to_vec(),
    };
    [first].into_iter().chain(words).map(str::to_owned).collect()
}

/// Returns whether a word is meant as a URL and not as a file path.
fn is_url(text: &str) -> bool {
    let scheme = text.trim_start().split_once(':').map(|(scheme, _)| scheme);
    let is_http = |scheme: &str| ["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it));
    text.contains("://") || scheme.is_some_and(is_http)
}

fn asked(words: &[String], write: bool) -> Result<WhyRequest, CliError> {
    let http =
        |method: &str, url: &str| WhyRequest::Http { method: method.into(), url: url.into() };
    let usage = |reason: String| CliError::Usage(reason);
    if let [first, rest @ ..] = words
        && let Some(typed) = TypedRequest::of_word(first)
        && typed.words.contains(&rest.len())
    {
        return typed.read(rest).map(WhyRequest::Request).map_err(usage);
    }
    Ok(match words {
        [method, url] => http(method, url),
        [url] if is_url(url) => http("GET", url),
        [path] => {
            let guest = match Path::new(path).is_absolute() {
                true => path.clone(),
                false => format!("/workspace/{}", path.trim_start_matches("./")),
            };
            let guest = GuestPath::new(guest).map_err(|error| usage(error.to_string()))?;
            let access = if write { Access::ReadWrite } else { Access::ReadOnly };
            WhyRequest::Request(Request::Path(PathRequest { guest, access }))
        }
        _ => return Err(usage("write the access to check".into())),
    })
}

struct Answer {
    is_allowed: bool,
    text: String,
    json: Value,
}

fn request(tool: &ConfiguredTool, method: &str, url: &str) -> Result<HttpRequest, HttpRefusal> {
    match &tool.source.value {
        ToolSource::Builtin { name } if name.value == "fetch" => HttpRequest::read(method, url),
        _ => HttpRequest::new(method, url),
    }
}

/// Describes a request that is refused regardless of grants.
fn refused_url(method: &str, url: &str, refusal: &HttpRefusal) -> Answer {
    let (request, HttpRefusal { kind, reason, .. }) = (format!("{method} {url}"), refusal);
    let mut text = format!("denied ({kind}): {}\n  {reason}", shown(&request));
    let mut json = json!({
        "allowed": false, "request": request, "kind": kind.as_str(), "reason": reason,
    });
    if let Ok(resolved) = HttpRequest::read(method, url) {
        let resolved = resolved.to_string();
        text.push_str(&format!("\n  a tool that resolves URLs requests `{resolved}`: check that"));
        json["resolved"] = resolved.into();
    }
    Answer { is_allowed: false, text, json }
}

fn answer(config: &Config, tool: &ConfiguredTool, request: &Request) -> Answer {
    if let Request::Path(path) = request
        && let Some(refusal) = config.path_refusal(tool, path)
    {
        return refused_path(config, tool, request, &refusal);
    }
    match decide(&tool.grants.value, request) {
        Decision::Allowed { by } => {
            let origin = tool.grants.place_of(request.key(), &by);
            let mut text = format!("allowed: {request}\n  by `{by}` ({origin})");
            let mut json = json!({
                "allowed": true, "request": request.to_string(), "by": by,
                "origin": origin.to_string(),
            });
            if let Request::Http(request) = request
                && let Host::Name(_) = request.host()
            {
                let is_of_proxy = config.network.proxy_resolves()
                    && tool.grants.value.http.decide(request).is_ok_and(|mut it| it.unresolved());
                let condition = if is_of_proxy { BY_PROXY } else { ADDRESSES };
                text.push_str(&format!("\n  {condition}"));
                json["condition"] = condition.into();
            }
            if let Request::Tool(RequestedTool::Alias { alias, arguments }) = request {
                let called = Called::of(&tool.grants.value.tools, alias);
                if called.has_conditions && arguments.is_none() {
                    text.push_str("\n  if its arguments match; give them as JSON to check");
                }
                if let Some(obstacle) = called.obstacle(config) {
                    text.push_str(&format!("\n  but {obstacle}"));
                }
                json["tool"] = called.tool.into();
            }
            Answer { is_allowed: true, text, json }
        }
        Decision::Denied { reason, missing } => {
            let refusal = match request {
                Request::Http(request) => tool.grants.value.http.decide(request).err(),
                _ => None,
            };
            let kind = match request {
                Request::Http(_) => refusal.as_ref().map(|refusal| refusal.kind.as_str()),
                Request::Tool(RequestedTool::Alias { alias, arguments }) => {
                    let (alias, none) = (alias.as_str(), Map::new());
                    let arguments = arguments.as_ref().unwrap_or(&none);
                    let request = ToolRequest { alias, arguments };
                    tool.grants.value.tools.decide(&request).err().map(|refusal| refusal.kind())
                }
                _ => None,
            };
            let of_kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
            let mut text = format!("denied{of_kind}: {request}\n  {reason}");
            let mut json = json!({
                "allowed": false, "request": request.to_string(), "kind": kind, "reason": reason,
            });
            let flag = missing.as_ref().and_then(|missing| config.grant_flag(missing));
            match (missing, tool.grants.left_out(request)) {
                (Some(_), Some(left_out)) => {
                    let (place, reason) = (&left_out.place, &left_out.message);
                    text.push_str(&format!("\n  granted at {place}, but: {reason}"));
                    json["leftOut"] = json!({ "origin": place.to_string(), "reason": reason });
                    let kind = DiagnosticKind::ReplacesOwnGrants(request.key());
                    for warning in tool.grants.warnings.iter().filter(|it| it.kind == kind) {
                        text.push_str(&format!("\n  {}", warning.message));
                    }
                    json["missing"] = missing_json(&[], flag.as_deref());
                }
                (Some(missing), None) => {
                    let (name, grants) = (&tool.name, &tool.grants);
                    let advice = match request {
                        Request::Path(path) => {
                            let is_directory = Path::new(path.guest.as_str()).is_dir();
                            config.path_advice(name, grants, path, is_directory)
                        }
                        _ => PathAdvice::Grant(config.advice(name, grants, &missing)),
                    };
                    text.push_str(&format!("\n  to allow it, {advice}"));
                    if let Request::Secret(SecretRequest { name }) = request
                        && !config.secrets.contains_key(name)
                    {
                        text.push_str(&format!(
                            "\n  the secret does not exist yet: {} --to 'https://HOST/**'",
                            shell::command(["kitbag", "secret", "set", name.as_str()])
                        ));
                    }
                    json["missing"] = missing_json(&advice.lines(), flag.as_deref());
                }
                (None, _) if request.key() == ToolGrants::KEY => {}
                (None, _) => {
                    let pattern = refusal.and_then(|refusal| refusal.by);
                    let own = pattern.and_then(|pattern| tool.grants.denied_at(&pattern));
                    let origin = own.unwrap_or(&config.deny.origin);
                    text.push_str(&format!("\n  denied in {origin}"));
                    json["origin"] = origin.to_string().into();
                }
            }
            if let Some(flag) = flag {
                text.push_str(&format!("\n  for one call: {flag}"));
            }
            Answer { is_allowed: false, text, json }
        }
    }
}

/// Describes a path that a tool cannot access although a parent directory is granted.
fn refused_path(
    config: &Config,
    tool: &ConfiguredTool,
    request: &Request,
    refusal: &PathRefusal,
) -> Answer {
    let mut text = format!("denied: {request}\n  {refusal}");
    let mut json = json!({
        "allowed": false, "request": request.to_string(), "kind": null,
        "reason": refusal.to_string(),
    });
    let advice = match refusal {
        PathRefusal::File(file) => config.file_advice(&tool.name, &tool.grants, file),
        PathRefusal::Private { .. } | PathRefusal::Guarded { .. } => None,
    };
    if let Some(advice) = advice {
        text.push_str(&format!("\n  to allow it, {advice}"));
        let line = advice.place.as_ref().map(|place| (&*advice.entry, place));
        json["missing"] = missing_json(line.as_slice(), None);
    }
    Answer { is_allowed: false, text, json }
}

struct Called<'a> {
    tool: &'a str,
    has_conditions: bool,
}

impl<'a> Called<'a> {
    /// Returns the target of an allowed alias: the alias itself for the caller's own tools.
    fn of(grants: &'a ToolGrants, alias: &'a Alias) -> Self {
        match grants.iter().find(|(own, _)| *own == alias) {
            Some((_, grant)) => {
                Self { tool: grant.tool.as_str(), has_conditions: !grant.conditions.is_empty() }
            }
            None => Self { tool: alias.as_str(), has_conditions: false },
        }
    }

    fn obstacle(&self, config: &Config) -> Option<String> {
        let tool = self.tool;
        match config.tools.get(tool) {
            None => Some(format!("no tool is named `{tool}`")),
            Some(called) => {
                called.disabled.as_ref().map(|disabled| format!("`{tool}` is {disabled}"))
            }
        }
    }
}

/// Returns the grants that would allow a request as JSON: all entries with their locations, and the
/// option that grants the request for one call.
fn missing_json(lines: &[(&str, &GrantPlace)], flag: Option<&str>) -> Value {
    let lines = lines.iter().map(|(entry, place)| {
        let file = place.file().map(|file| file.to_string_lossy());
        json!({ "entry": entry, "key": place.key, "file": file })
    });
    json!({ "lines": lines.collect::<Vec<_>>(), "flag": flag })
}
