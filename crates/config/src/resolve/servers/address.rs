//! The address of a server: a process, or a URL.

use std::collections::HashSet;
use std::sync::Arc;

use kitbag_base::shell;
use kitbag_base::text::shown;
use kitbag_policy::http::{Host, HttpGrant, HttpGrants, HttpRequest, Scheme};
use kitbag_policy::server::{
    RemoteServer, ServerAddress, ServerName, ServerProcess, ServerValue, ServerVariable,
};
use kitbag_policy::{SecretName, VariableGrant, VariableName};

use super::confinement;
use super::paths::{base, path};
use crate::format::ServerConfig;
use crate::format::span::{At, Part, StringOr, Written};
use crate::report::text::listed_twice;
use crate::report::{Diagnostic, DiagnosticKind, Problem, Report};
use crate::resolve::context::Context;
use crate::resolve::grants::http::blocks;

/// The most words of a command line, and the most bytes of one.
const WORDS: usize = 256;
const WORD_BYTES: usize = 32 << 10;

/// Returns the address that a table defines. `None`: it is invalid, which was reported.
pub(super) fn address(
    context: &Context<'_>,
    name: &ServerName,
    table: Part<'_, ServerConfig>,
    warnings: &mut Vec<Diagnostic>,
    report: &mut Report,
) -> Option<ServerAddress> {
    let at = table.at;
    let command = at.inner(|table| table.command.as_ref());
    let url = at.inner(|table| table.url.as_ref());
    match (command, url) {
        (Some(command), None) => {
            misplaced(name, at, &["secret", "headers", "addresses"], "a process", report);
            let process = process(context, at, command, warnings, report)?;
            Some(ServerAddress::Process(process))
        }
        (None, Some(url)) => {
            misplaced(name, at, &["directory", "env", "confine"], "a remote server", report);
            Some(ServerAddress::Remote(remote(context, at, url, warnings, report)?))
        }
        (Some(_), Some(url)) => {
            report.at(url, "a server has a `command` or a `url`, not both; remove one of them");
            None
        }
        (None, None) => None,
    }
}

/// Refuses keys of the other kind of server.
fn misplaced(
    name: &ServerName,
    at: At<'_, ServerConfig>,
    keys: &[&str],
    is: &str,
    report: &mut Report,
) {
    for (key, span) in at.value.definition_keys().filter(|(key, _)| keys.contains(key)) {
        let problem = format!("server `{name}` may not have `{key}`: it is {is}; remove the key");
        report.span(at.file, span, problem);
    }
}

fn process(
    context: &Context<'_>,
    at: At<'_, ServerConfig>,
    command: At<'_, StringOr<Vec<Written<String>>>>,
    warnings: &mut Vec<Diagnostic>,
    report: &mut Report,
) -> Option<ServerProcess> {
    let directory = match at.inner(|table| table.directory.as_ref()) {
        Some(written) => confinement::directory(context, written, report),
        None => base(context, at.file.layer())
            .map_err(|problem| report.at(at, problem))
            .ok()
            .map(|base| kitbag_fs_guard::canonical(&base)),
    };
    let command = self::command(context, command, warnings, report);
    let environment = at.inner(|table| table.env.as_ref());
    let environment = environment.map(|list| self::environment(list, warnings, report));
    let confine = at.inner(|table| table.confine.as_ref());
    let confine = confine.map(|at| confinement::confinement(context, at, report));
    Some(ServerProcess {
        command: command?,
        directory: directory?,
        environment: environment.unwrap_or(Some(Vec::new()))?,
        confine: match confine {
            // A confinement with a mistake must not become none.
            Some(confine) => Some(confine?),
            None => None,
        },
    })
}

/// Returns the program and its arguments.
fn command(
    context: &Context<'_>,
    at: At<'_, StringOr<Vec<Written<String>>>>,
    warnings: &mut Vec<Diagnostic>,
    report: &mut Report,
) -> Option<Vec<String>> {
    let mut words: Vec<(At<'_, str>, String)> = match at.value {
        StringOr::Short(text) => {
            let Some(words) = shlex::split(text) else {
                report.at(at, "a quote in `command` is not closed; write a list of words");
                return None;
            };
            words.into_iter().map(|word| (at.with(text.as_str()), word)).collect()
        }
        StringOr::Other(list) => {
            let words = list.iter().map(|word| word.at(at.file));
            words.map(|at| (at.with(at.value.as_str()), at.value.clone())).collect()
        }
    };
    let is_valid = |word: &String| word.len() <= WORD_BYTES && !word.contains('\0');
    if words.len() > WORDS || !words.iter().all(|(_, word)| is_valid(word)) {
        let problem = format!(
            "`command` has at most {WORDS} words of at most 32 KiB, without the character NUL"
        );
        report.at(at, problem);
        return None;
    }
    let Some((first, program)) = words.first_mut().filter(|(_, program)| !program.is_empty())
    else {
        report.at(at, "`command` names no program; write the program first");
        return None;
    };
    if program.contains('/') {
        match path(context, first.with(&*program), at.file.layer()) {
            Ok(path) => *program = path.to_string_lossy().into_owned(),
            Err(problem) => {
                report.at(*first, problem);
                return None;
            }
        }
    }
    for (at, word) in words.iter().skip(1).filter(|(_, word)| word.starts_with("~/")) {
        let message = format!(
            "the process receives `{}` unchanged, because no shell expands it; write an absolute \
             path",
            shown(word)
        );
        warnings.push(Problem::from(message).at(at.origin()));
    }
    Some(words.into_iter().map(|(_, word)| word).collect())
}

/// Returns the variables of a process. `None`: one is invalid, which was reported.
fn environment(
    list: At<'_, Vec<Written<StringOr<crate::format::ServerVariableConfig>>>>,
    warnings: &mut Vec<Diagnostic>,
    report: &mut Report,
) -> Option<Vec<ServerVariable>> {
    let (count, most) = (list.value.len(), VariableGrant::MOST);
    if count > most {
        report.at(list, format!("{count} variables are listed; the limit is {most}"));
        return None;
    }
    let (mut variables, mut seen, mut is_valid) = (Vec::new(), HashSet::new(), true);
    for at in list.value.iter().map(|entry| entry.at(list.file)) {
        let read = match at.value {
            StringOr::Short(name) => Ok((at.with(name), ServerValue::Inherit)),
            StringOr::Other(table) => {
                let name = table.name.at(at.file);
                match (&table.value, &table.secret) {
                    (Some(value), None) => Ok((name, ServerValue::Text(value.value.clone()))),
                    (None, Some(secret)) => SecretName::new(secret.value.as_str())
                        .map(|secret| (name, ServerValue::Secret(secret)))
                        .map_err(|error| (secret.at(at.file), Problem::from(error))),
                    (None, None) | (Some(_), Some(_)) => {
                        let problem = format!(
                            "the variable `{name}` has a `value` or a `secret`; to inherit it, \
                             write only `\"{name}\"`",
                            name = shown(name.value)
                        );
                        Err((name, Problem::from(problem)))
                    }
                }
            }
        };
        let read = read.and_then(|(at, value)| {
            let name = VariableName::new(at.value.as_str()).map_err(|error| (at, error.into()))?;
            match seen.insert(name.clone()) {
                true => Ok((at, ServerVariable { name, value })),
                false => Err((at, Problem::from(listed_twice(at.value)))),
            }
        });
        match read {
            Ok((at, variable)) => {
                warnings.extend(plain_secret(&variable).map(|problem| problem.at(at.origin())));
                variables.push(variable);
            }
            Err((at, problem)) => {
                report.at(at, problem);
                is_valid = false;
            }
        }
    }
    is_valid.then_some(variables)
}

/// Returns the warning for a value in plain text whose name suggests a secret.
fn plain_secret(variable: &ServerVariable) -> Option<Problem> {
    let ServerVariable { name, value } = variable;
    if !name.looks_like_secret() || !matches!(value, ServerValue::Text(text) if !text.is_empty()) {
        return None;
    }
    let secret = name.as_str().to_ascii_lowercase();
    let command = shell::command(["kitbag", "secret", "set", &secret]);
    let message = format!(
        "`{name}` looks like a secret, but its value is in plain text; store it with `{command}`, \
         and write `{{ name = \"{name}\", secret = \"{secret}\" }}`"
    );
    Some(Problem::new(DiagnosticKind::SecretVariable, message))
}

fn remote(
    context: &Context<'_>,
    at: At<'_, ServerConfig>,
    url: At<'_, String>,
    warnings: &mut Vec<Diagnostic>,
    report: &mut Report,
) -> Option<RemoteServer> {
    let secret = at.inner(|table| table.secret.as_ref());
    let name = secret.map(|at| SecretName::new(at.value.as_str()).map_err(|error| (at, error)));
    let name = name.transpose().map_err(|(at, error)| report.at(at, error)).ok()?;
    let request = match HttpRequest::read("POST", url.value) {
        Ok(request) => request,
        Err(refusal) => {
            report.at(url, format!("this is not the URL of a server: {}", refusal.reason));
            return None;
        }
    };
    let is_here = match request.host() {
        Host::Address(address) => address.to_canonical().is_loopback(),
        host @ Host::Name(_) => host.is_localhost(),
    };
    if request.scheme() != Scheme::Https && !is_here {
        let problem = "a remote server needs `https`, because its answers are instructions for a \
                       model; only a server on this machine may have `http`";
        report.at(url, problem);
        return None;
    }
    let grants = HttpGrants {
        grants: vec![Arc::new(HttpGrant::allowing(&request))],
        deny: Arc::clone(&context.deny.value),
    };
    if let Err(refusal) = grants.decide(&request)
        && let Some(pattern) = refusal.by
    {
        let problem = format!(
            "your user config denies requests to this server: `deny` has `{pattern}` ({})",
            context.deny.origin
        );
        report.at(url, problem);
        return None;
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    for entry in at.value.headers.iter().flat_map(|headers| headers.iter()) {
        let (key, value) = (entry.key.at(at.file), &entry.value.value);
        if let Err(problem) = header(key.value, value) {
            report.at(key, problem);
            return None;
        }
        let is_secret = ["authorization", "token", "secret", "key", "cookie"]
            .iter()
            .any(|word| key.value.to_ascii_lowercase().contains(word));
        if is_secret {
            let message = format!(
                "the header `{}` looks like a secret, but its value is in plain text; store it \
                 with `kitbag secret set`, and name it in `secret`",
                shown(key.value)
            );
            warnings.push(Problem::new(DiagnosticKind::SecretVariable, message).at(key.origin()));
        }
        headers.push((key.value.clone(), value.clone()));
    }
    let addresses = at.inner(|table| table.addresses.as_ref());
    let addresses = addresses.map_or(Some(Vec::new()), |at| blocks(at, report))?;
    Some(RemoteServer { url: url.value.clone(), secret: name, headers, addresses })
}

/// Refuses a header that a request cannot have, or that belongs to the protocol.
fn header(name: &str, value: &str) -> Result<(), String> {
    const OWN: [&str; 10] = [
        "accept",
        "connection",
        "content-length",
        "content-type",
        "host",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "te",
        "transfer-encoding",
    ];
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_name = (1..=256).contains(&name.len()) && name.bytes().all(is_part);
    let is_value =
        value.len() <= 8 << 10 && value.bytes().all(|b| b == b'\t' || (b >= 32 && b != 127));
    if !is_name || !is_value {
        return Err(format!("`{}` is not a header that a request can have", shown(name)));
    }
    match OWN.contains(&name.to_ascii_lowercase().as_str()) {
        true => Err(format!("kitbag sets the header `{}` itself; remove it", shown(name))),
        false => Ok(()),
    }
}
