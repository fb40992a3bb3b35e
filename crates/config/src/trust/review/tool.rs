//! The requests of an edited tool beyond those of the trusted tool with its name.

use kitbag_base::text::shown;
use kitbag_fs_guard::{ProtectedNames, SecretNames};
use kitbag_policy::{Access, ApprovalRule, DirectoryGrant, Grants, Rates, SecretGrant};

use super::server;
use crate::config::{
    BytesTool, CommandTemplate, ComponentCall, ConfiguredGrants, ConfiguredTool, LocalTool,
    LockedTool, Parameters, ScriptTool, ToolApproval, ToolRate, ToolSource,
};
use crate::layers::origin::Sourced;
use crate::report::DiagnosticKind;

#[derive(Debug, Default)]
pub(super) struct ToolChanges {
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
    pub(super) loosened: Vec<String>,
}

/// Compares two tools that are both on. `has_conditions`: a rule compares arguments with patterns,
/// so a path must mean the same file as before. `secrets` are the names of files that only an
/// explicit grant opens.
pub(super) fn between(
    now: &ConfiguredTool,
    then: &ConfiguredTool,
    has_conditions: bool,
    secrets: &SecretNames,
) -> ToolChanges {
    let mut changes = ToolChanges::default();
    // All fields are listed, so that a new field needs a decision.
    let ConfiguredTool {
        name: _,
        source,
        // Both tools are on.
        enable: _,
        toolset: _,
        disabled: _,
        title,
        description,
        grants,
        // The lower ones apply.
        limits: _,
        // Only the user config sets it.
        mask: _,
        rates,
        approve,
        answers,
    } = now;
    of_source(&source.value, &then.source.value, &mut changes);
    // Without a configured text a tool has its own text, which is trusted with its code.
    for (text, trusted, what) in
        [(title, &then.title, "title"), (description, &then.description, "description")]
    {
        let value = |text: &Option<Sourced<String>>| text.as_ref().map(|text| text.value.clone());
        if let Some(text) = value(text)
            && Some(&text) != value(trusted).as_ref()
        {
            changes.added.push(format!("its {what} is `{text}`"));
        }
    }
    for (id, answer) in answers {
        if then.answers.get(id).map(|trusted| &trusted.value) != Some(&answer.value) {
            let text = format!("`{id}` is answered with {} without asking you", answer.value);
            changes.added.push(text);
        }
    }
    for id in then.answers.keys().filter(|id| !answers.contains_key(*id)) {
        changes.removed.push(format!("a preset answer to `{id}`"));
    }
    if grants.is_of_workspace && !then.grants.is_of_workspace {
        changes.added.push("the workspace now defines what it does".to_owned());
    }
    of_grants(&grants.value, &then.grants.value, secrets, &mut changes);
    for secret in missing_secrets(grants) {
        if !asks_for_secret(&then.grants, secret) {
            let text = format!("secret {}, which you do not have yet", shown(secret));
            changes.added.push(text);
        }
    }
    if has_conditions && !same_paths(&grants.value, &then.grants.value) {
        let text = "its paths lead to other files, and a rule matches its paths";
        changes.added.push(text.to_owned());
    }
    of_approval(approve, &then.approve, &mut changes);
    of_rates(rates, &then.rates, &mut changes);
    changes
}

fn of_source(now: &ToolSource, then: &ToolSource, changes: &mut ToolChanges) {
    match (now, then) {
        (ToolSource::Builtin { name: now }, ToolSource::Builtin { name: then })
            if now.value == then.value => {}
        (ToolSource::Local(now), ToolSource::Local(then)) => of_local(now, then, changes),
        (ToolSource::Script(now), ToolSource::Script(then)) => of_script(now, then, changes),
        (ToolSource::Bytes(now), ToolSource::Bytes(then)) => {
            let BytesTool { component, call, parameters } = now;
            if *component != then.component {
                changes.added.push(format!("it runs the component `{component}`"));
            }
            compare_calls(call, &then.call, changes);
            of_parameters(parameters.as_ref(), then.parameters.as_ref(), changes);
        }
        (ToolSource::Native, ToolSource::Native) => {}
        (ToolSource::Server(now), ToolSource::Server(then)) => {
            server::of_tool(now, then, &mut changes.added);
        }
        (now, _) => {
            let text = match now {
                ToolSource::Builtin { name } => format!("it is the built-in `{}`", name.value),
                ToolSource::Local(local) => runs(&local.wasm.value),
                ToolSource::Script(script) => runs(&script.path.value),
                ToolSource::Server(tool) => {
                    format!("it is `{}` of the server `{}`", shown(&tool.tool), tool.server)
                }
                ToolSource::Bytes(_) | ToolSource::Native => {
                    "it is a tool of the embedding program".into()
                }
            };
            changes.added.push(text);
        }
    }
}

fn runs(path: &std::path::Path) -> String {
    format!("it runs `{}`", path.to_string_lossy())
}

fn of_local(now: &LocalTool, then: &LocalTool, changes: &mut ToolChanges) {
    let LocalTool {
        // The record pins its bytes.
        wasm,
        pins: _,
        recorded,
        layer,
        dev,
        replaces,
        call,
        parameters,
    } = now;
    if wasm.value != then.wasm.value {
        changes.added.push(runs(&wasm.value));
    }
    let held = |tool: &LocalTool| {
        let recorded = tool.recorded.as_ref()?;
        // Text for a person.
        Some(LockedTool { version: None, origin: None, download: None, ..recorded.tool.clone() })
    };
    let is_recorded = recorded.is_some();
    if then.recorded.is_some() && (!is_recorded || held(now) != held(then) || *layer != then.layer)
    {
        changes.loosened.push("`kitbag.lock` no longer has its trusted record".to_owned());
    }
    if dev.value && !then.dev.value {
        changes.added.push("every later build of it runs without a review".to_owned());
    }
    of_replaced(replaces.as_ref(), then.replaces.as_ref(), changes);
    compare_calls(call, &then.call, changes);
    of_parameters(parameters.as_ref(), then.parameters.as_ref(), changes);
}

fn compare_calls(now: &ComponentCall, then: &ComponentCall, changes: &mut ToolChanges) {
    let ComponentCall { function, command } = now;
    let name = |function: &Option<Sourced<String>>| function.as_ref().map(|it| it.value.clone());
    if name(function) != name(&then.function) {
        let text = match function {
            Some(function) => format!("it calls `{}` of its component", shown(&function.value)),
            None => "it calls the tool of its component with its own name".to_owned(),
        };
        changes.added.push(text);
    }
    let template = |command: &Option<Sourced<CommandTemplate>>| {
        command.as_ref().map(|command| command.value.clone())
    };
    if template(command) != template(&then.command) {
        changes.added.push("its command line changed".to_owned());
    }
}

fn of_script(now: &ScriptTool, then: &ScriptTool, changes: &mut ToolChanges) {
    let ScriptTool {
        path,
        replaces,
        code,
        parameters,
        output,
        // Grants nothing, and is part of the code.
        asks: _,
    } = now;
    if path.value != then.path.value {
        changes.added.push(runs(&path.value));
    } else if *code != then.code {
        changes.added.push("its script changed".to_owned());
    }
    let schema = |output: &Option<Sourced<serde_json::Value>>| {
        output.as_ref().map(|output| output.value.clone())
    };
    if schema(output) != schema(&then.output) {
        changes.added.push("its output schema changed".to_owned());
    }
    of_replaced(replaces.as_ref(), then.replaces.as_ref(), changes);
    of_parameters(Some(parameters), Some(&then.parameters), changes);
}

fn of_replaced(
    now: Option<&Sourced<String>>,
    then: Option<&Sourced<String>>,
    changes: &mut ToolChanges,
) {
    if let Some(now) = now
        && then.is_none_or(|then| then.value != now.value)
    {
        changes.added.push(format!("it replaces the built-in `{}`", now.value));
    }
}

fn of_parameters(now: Option<&Parameters>, then: Option<&Parameters>, changes: &mut ToolChanges) {
    // Without configured parameters a tool has its own, which are trusted with its code.
    if let Some(now) = now
        && then.is_none_or(|then| then.input_schema() != now.input_schema())
    {
        changes.added.push("its parameters changed".to_owned());
    }
}

fn of_grants(now: &Grants, then: &Grants, secrets: &SecretNames, changes: &mut ToolChanges) {
    changes.added.extend(now.singles().iter().filter_map(|grant| grant.beyond(then)));
    let entered = now.directories.iter().filter(|grant| enters(grant, then, secrets));
    changes.added.extend(entered.map(DirectoryGrant::to_string));
    for grant in then.singles() {
        let Some(line) = grant.beyond(now) else { continue };
        match grant.config.iter().next() {
            // A value can restrict the tool.
            Some(_) => changes.loosened.push(format!("{line} was removed")),
            None => changes.removed.push(line),
        }
    }
    let denied = &now.http.deny.patterns();
    for pattern in then.http.deny.patterns().iter().filter(|pattern| !denied.contains(pattern)) {
        changes.loosened.push(format!("`deny` no longer has `{pattern}`"));
    }
}

/// Returns whether a directory is in a trusted directory, and its grant opens files that the grant
/// of that directory does not open.
fn enters(grant: &DirectoryGrant, then: &Grants, secrets: &SecretNames) -> bool {
    let mut holding = then.directories.iter().filter(|own| own.holds(grant)).peekable();
    holding.peek().is_some()
        && holding.all(|own| {
            let Ok(below) = grant.host.strip_prefix(&own.host) else { return false };
            let protected = ProtectedNames::of_grant(own.protected.as_deref()).unwrap_or_default();
            let protected = (grant.access == Access::ReadWrite).then_some(&protected);
            secrets.need_own_grant(&own.host, below, protected)
        })
}

/// Returns the secrets that a tool is granted once the user has them.
fn missing_secrets(grants: &ConfiguredGrants) -> impl Iterator<Item = &str> {
    grants.warnings.iter().filter_map(|warning| match &warning.kind {
        DiagnosticKind::NoSecret(name) => Some(name.as_str()),
        _ => None,
    })
}

fn asks_for_secret(grants: &ConfiguredGrants, secret: &str) -> bool {
    let is_it = |held: &SecretGrant| held.name.as_str() == secret;
    grants.value.secrets.iter().any(is_it) || missing_secrets(grants).any(|it| it == secret)
}

/// Returns whether each path of the tool means the same file as before, or no file.
fn same_paths(now: &Grants, then: &Grants) -> bool {
    let is_same = |now: &DirectoryGrant| {
        then.directories.iter().any(|then| then.guest == now.guest && then.host == now.host)
    };
    now.root() == then.root() && now.directories.iter().all(is_same)
}

fn of_approval(now: &ToolApproval, then: &ToolApproval, changes: &mut ToolChanges) {
    let ToolApproval { rules, never } = now;
    for trusted in &then.rules {
        if !rules.iter().any(|rule| asks_as_often(&rule.value, &trusted.value)) {
            changes.loosened.push(format!("`approve = {}` was removed", trusted.value));
        }
    }
    if never.is_some() && then.never.is_none() {
        changes.loosened.push("`approve` of the tool itself is ignored".to_owned());
    }
}

/// Returns whether a rule covers every call that another rule covers.
fn asks_as_often(rule: &ApprovalRule, other: &ApprovalRule) -> bool {
    match (rule, other) {
        (ApprovalRule::Always, _) | (_, ApprovalRule::Never) => true,
        (ApprovalRule::OnWrite, ApprovalRule::OnWrite) => true,
        // All conditions must match, so fewer conditions match more often.
        (ApprovalRule::When(rule), ApprovalRule::When(other)) => {
            rule.iter().all(|(argument, condition)| other.get(argument) == Some(condition))
        }
        _ => false,
    }
}

fn of_rates(now: &[ToolRate], then: &[ToolRate], changes: &mut ToolChanges) {
    let holds = |now: &Rates, then: &Rates| now.and(then) == *now;
    for trusted in then {
        let is_held = |rate: &ToolRate| {
            let ToolRate { rates, counted_as } = rate;
            *counted_as == trusted.counted_as && holds(&rates.value, &trusted.rates.value)
        };
        if !now.iter().any(is_held) {
            let rates = &trusted.rates.value;
            changes
                .loosened
                .push(format!("`rate = \"{}\"` was removed", shown(&rates.to_string())));
        }
    }
}
