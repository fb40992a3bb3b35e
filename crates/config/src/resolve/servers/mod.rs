//! MCP servers: `[servers.NAME]`.
//!
//! One file defines a server: your user config, otherwise the workspace. The other file can only
//! narrow it. A server has the tools of its record in `kitbag.lock`; without a record it has none.

mod address;
mod ceiling;
mod confinement;
pub(super) mod offers;
mod paths;

use std::collections::BTreeMap;
use std::sync::Arc;

use kitbag_base::shell;
use kitbag_base::text::{nearest, shown};
use kitbag_glob::Glob;
use kitbag_policy::http::HttpRequest;
use kitbag_policy::server::{RemoteServer, ServerAddress, ServerName};
use kitbag_policy::{SecretGrant, SecretName};
use kitbag_state::trust::WorkspaceEdit;

use super::context::{Context, tables};
use super::limits::TIME;
use super::user::approve;
use crate::config::ConfiguredServer;
use crate::format::ServerConfig;
use crate::format::key::KeyPath;
use crate::format::span::{At, Part, all, copied, merge};
use crate::layers::origin::Sourced;
use crate::layers::toolsets::Disabled;
use crate::read::file::Layer;
use crate::report::text::{did_you_mean, not_a_glob};
use crate::report::{Diagnostic, DiagnosticKind, Excerpt, Piece, Problem, Report};
use crate::trust::workspace::UntrustedReason;

/// Returns all servers, including those that are off.
pub(super) fn all_servers(
    context: &Context<'_>,
    report: &mut Report,
) -> BTreeMap<ServerName, ConfiguredServer> {
    let mut servers = BTreeMap::new();
    for parts in merge(tables(context.configs, |config| config.servers.as_ref())) {
        let key = parts[0].key;
        let before = report.enter(Piece::Server(key.value.to_owned()));
        match ServerName::new(key.value) {
            Ok(name) => {
                if let Some(server) = server(context, &name, &parts, report) {
                    servers.insert(name, server);
                }
            }
            Err(error) => report.at(key, error),
        }
        report.enter(before);
    }
    servers
}

/// Returns one server. `None`: no file defines it, which was reported.
fn server(
    context: &Context<'_>,
    name: &ServerName,
    parts: &[Part<'_, ServerConfig>],
    report: &mut Report,
) -> Option<ConfiguredServer> {
    let mut parts = parts.to_vec();
    let layer = |part: &Part<'_, ServerConfig>| part.at.file.layer();
    let defining = parts.iter().copied().find(|part| part.at.value.makes_server());
    let Some(defining) = defining else {
        return without_definition(context, name, &parts, report);
    };
    if layer(&defining) == Layer::User {
        parts.retain(|part| {
            let is_other = layer(part) != Layer::User && part.at.value.makes_server();
            if is_other {
                let message = format!(
                    "is ignored: your user config has a server `{name}` ({}); rename this one",
                    defining.key.origin()
                );
                let excerpt = Excerpt::new(part.key.file.text(), part.key.span);
                report.warn(Problem::from(message).at(part.key.origin()).quoting(excerpt));
            }
            !is_other
        });
    }
    for part in parts.iter().filter(|part| layer(part) != layer(&defining)) {
        for (key, span) in part.at.value.definition_keys() {
            let problem = format!(
                "`servers.{name}` may not have `{key}` here, because {} defines the server; remove \
                 the key",
                defining.key.origin()
            );
            report.span(part.at.file, span, problem);
        }
    }
    let mut warnings = Vec::new();
    let at = defining.at;
    let address = address::address(context, name, defining, &mut warnings, report);
    let recorded = match layer(&defining) {
        Layer::User => context.locks.user.server(name),
        Layer::Workspace | Layer::Manifest => context.locks.workspace.server(name),
    };
    let mut server = ConfiguredServer {
        name: name.clone(),
        layer: layer(&defining),
        address: address.map(|address| at.sourced(Arc::new(address))),
        secret: None,
        enable: Sourced::default(true),
        disabled: None,
        tools: Vec::new(),
        prefix: prefix(name, at, report),
        approve: Vec::new(),
        idle: idle(at, report),
        recorded: recorded.map(Arc::new),
        warnings,
    };
    narrow(&mut server, &parts, report);
    if let Some(address) = &server.address {
        missing_secrets(context, &at, &address.value, &mut server.warnings);
        if let ServerAddress::Remote(remote) = &*address.value {
            server.secret = secret(context, &at, remote, &mut server.warnings);
        }
        if server.is_enabled()
            && let Some(reason) = ceiling::beyond(context, &server, &address.value)
        {
            server.disabled = Some(Disabled::BeyondCeiling { reason: reason.into() });
        }
    }
    if server.is_enabled() && server.recorded.is_none() {
        server.disabled = Some(Disabled::NotRecorded { server: name.clone() });
    }
    Some(server)
}

/// Returns a server without a definition: of an untrusted workspace, whose definition is not read.
fn without_definition(
    context: &Context<'_>,
    name: &ServerName,
    parts: &[Part<'_, ServerConfig>],
    report: &mut Report,
) -> Option<ConfiguredServer> {
    let last = parts.last()?;
    let is_of_user = last.at.file.layer() == Layer::User;
    let servers = KeyPath::ROOT.key("servers");
    let path = servers.key(name.as_str());
    let is_removed = |key| context.invalid.covers(&path.key(key));
    if is_removed("command") || is_removed("url") {
        return None;
    }
    let mut definition = last.at.value.definition_keys();
    if context.is_untrusted() && !is_of_user {
        let disabled = match context.trust.untrusted().map(|untrusted| &untrusted.reason) {
            Some(UntrustedReason::Changed(edits)) => {
                let cause = edits.first().unwrap_or(&WorkspaceEdit::Places).to_string();
                Disabled::Edited { cause }
            }
            _ => Disabled::Untrusted,
        };
        return Some(ConfiguredServer::off(name.clone(), Layer::Workspace, disabled));
    }
    if is_of_user && definition.next().is_none() {
        // The user config is for all workspaces, and may narrow the server of another workspace.
        let message = format!("no server is named `{name}` here, so its table has no effect");
        let excerpt = Excerpt::new(last.key.file.text(), last.key.span);
        report.warn(Problem::from(message).at(last.key.origin()).quoting(excerpt));
        return None;
    }
    let problem = format!("server `{name}` has no `command` and no `url`; add one of them");
    report.at(last.key, problem);
    None
}

/// Adds the settings of all files that narrow a server.
fn narrow(server: &mut ConfiguredServer, parts: &[Part<'_, ServerConfig>], report: &mut Report) {
    server.enable = copied(parts, |table| table.enable.as_ref()).unwrap_or(Sourced::default(true));
    // A switch that is off in any file takes effect.
    let off = all(parts, |table| table.enable.as_ref()).find(|at| !at.value);
    if let Some(at) = off {
        server.enable = at.sourced(false);
        server.disabled = Some(Disabled::Tool { origin: at.origin() });
    }
    for at in all(parts, |table| table.approve.as_ref()) {
        if let Some(rule) = approve::rule(at, report) {
            server.approve.push((at.file.layer(), at.sourced(rule)));
        }
    }
    for list in all(parts, |table| table.tools.as_ref()) {
        for at in list.value.iter().map(|text| text.at(list.file)) {
            let problem = match Glob::new(at.value) {
                Err(reason) => {
                    report.at(at, not_a_glob(at.value, reason));
                    continue;
                }
                Ok(glob) => {
                    let Some(recorded) = &server.recorded else { continue };
                    let tools = || recorded.server.tools.keys().map(String::as_str);
                    if tools().any(|tool| glob.matches(tool)) {
                        continue;
                    }
                    let hint = did_you_mean(nearest(at.value, tools()));
                    let message = format!("`{}` matches no recorded tool", shown(at.value));
                    Problem::from(message).hint(hint)
                }
            };
            let excerpt = Excerpt::new(at.file.text(), at.span);
            server.warnings.push(problem.at(at.origin()).quoting(excerpt));
        }
        let texts = list.value.iter().map(|text| text.value.clone()).collect();
        server.tools.push(list.sourced(texts));
    }
}

fn prefix(name: &ServerName, at: At<'_, ServerConfig>, report: &mut Report) -> Sourced<String> {
    /// The longest prefix, in bytes.
    const MOST: usize = 32;
    let Some(written) = at.inner(|table| table.prefix.as_ref()) else {
        return Sourced::default(name.to_string());
    };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if written.value.len() > MOST || !written.value.bytes().all(is_part) {
        let problem = format!(
            "`{}` is not a prefix of tool names: it takes letters, digits, `_` and `-`, and has at \
             most {MOST} characters",
            shown(written.value)
        );
        report.at(written, problem);
    }
    written.sourced(written.value.clone())
}

fn idle(at: At<'_, ServerConfig>, report: &mut Report) -> Sourced<std::time::Duration> {
    let written = at.inner(|table| table.idle.as_ref());
    let read = written.and_then(|at| match (TIME.parse)(at.value) {
        Ok(value) => Some(at.sourced(value)),
        Err(error) => {
            report.at(at, error);
            None
        }
    });
    read.unwrap_or(Sourced::default(ConfiguredServer::IDLE))
}

/// Returns the secret that is added to the requests to a remote server.
fn secret(
    context: &Context<'_>,
    at: &At<'_, ServerConfig>,
    remote: &RemoteServer,
    warnings: &mut Vec<Diagnostic>,
) -> Option<SecretGrant> {
    let name = remote.secret.as_ref()?;
    let secret = context.own_secrets.get(name)?;
    let (in_query, in_body) = secret.placeholder.value;
    let grant = SecretGrant {
        name: name.clone(),
        to: secret.to.value.clone(),
        within: None,
        added: Some(secret.placement.value.clone()),
        variables: Vec::new(),
        in_query,
        in_body,
    };
    let request = HttpRequest::read("POST", &remote.url);
    if !request.is_ok_and(|request| grant.goes_to(&request)) {
        let message = format!(
            "the secret `{name}` is not sent to `{}`: its `to` in your user config does not \
             include that",
            shown(&remote.url)
        );
        let kind = DiagnosticKind::Grant(SecretGrant::KEY);
        warnings.push(Problem::new(kind, message).at(at.origin()));
    }
    Some(grant)
}

/// Warns of secrets that the user config does not have.
fn missing_secrets(
    context: &Context<'_>,
    at: &At<'_, ServerConfig>,
    address: &ServerAddress,
    warnings: &mut Vec<Diagnostic>,
) {
    let is_missing = |name: &&SecretName| !context.own_secrets.contains_key(*name);
    for name in address.secrets().filter(is_missing) {
        let to = match address {
            ServerAddress::Process(_) => Vec::new(),
            ServerAddress::Remote(remote) => vec!["--to", remote.url.as_str()],
        };
        let words = ["kitbag", "secret", "set", name.as_str()].into_iter().chain(to);
        let message = format!(
            "the secret `{name}` does not exist; store it with `{}`",
            shell::command(words)
        );
        let kind = DiagnosticKind::NoSecret(name.to_string());
        warnings.push(Problem::new(kind, message).at(at.origin()));
    }
}
