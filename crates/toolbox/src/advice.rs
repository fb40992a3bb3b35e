//! Advice that an error carries besides its cause, worded for its reader.
//!
//! Advice follows the cause. A grant is named only if the host refused an access in this very call.
//! A model is advised to ask its user for a grant or a higher limit, and never how to remove an
//! approval, a rate, screening or the need for trust.

use std::collections::BTreeSet;

use kitbag_base::format_duration;
use kitbag_base::text::{bound_error, printable, shown};
use kitbag_base::{ByteSize, shell};
use kitbag_config::{Audience, Config, DiagnosticKind, Disabled, Origin, Sourced, ToolSource};
use kitbag_contract::{Action, ErrorInfo, LimitKind, Outcome};
use kitbag_host::{CallError, Completion, LoadError, RefusedAccess, SOCKETS_ADVICE};
use kitbag_policy::tools::Alias;
use kitbag_policy::{
    Access, DirectoryGrant, GrantRefusal, GuestPath, HttpRefusal, MissingGrant, RefusedFile,
    Request, RequestedTool, ToolGrants, VariableGrant,
};
use serde_json::{Map, Value};

use crate::call::outcome::PreparedCall;
use crate::error::{NotApproved, ToolboxError};
use crate::pipeline::host_paths;
use crate::registry::tool::{Tool, missing_line};

/// Adds the accesses that the tool was refused to the error of its run, with the advice on each for
/// this reader. Returns the same advice for a person.
pub(crate) fn add(
    config: &Config,
    call: &PreparedCall,
    completion: &mut Completion,
    audience: Audience,
    is_of_person: bool,
) -> Vec<String> {
    let has_failed = match &completion.result {
        Ok(Outcome::Error(_)) | Err(CallError::Trap { .. }) => call.call.action == Action::Run,
        Ok(Outcome::Success(_) | Outcome::NeedsInput(_)) | Err(_) => false,
    };
    if !has_failed {
        return Vec::new();
    }
    let refused = Refused { config, call, tool: &call.tool, completion, is_of_person };
    let (lines, advice) = match audience {
        Audience::Person => (refused.lines(audience), None),
        Audience::Model => (refused.lines(audience), Some(refused.lines(Audience::Person))),
    };
    if let Ok(Outcome::Error(ErrorInfo { message, .. })) | Err(CallError::Trap { message }) =
        &mut completion.result
    {
        for line in &lines {
            message.push('\n');
            message.push_str(line);
        }
    }
    advice.unwrap_or(lines)
}

struct Refused<'a> {
    config: &'a Config,
    call: &'a PreparedCall,
    tool: &'a Tool,
    completion: &'a Completion,
    is_of_person: bool,
}

impl Refused<'_> {
    /// Returns a line for each refusal, with the grant or setting that would allow the access.
    fn lines(&self, audience: Audience) -> Vec<String> {
        let Self { config, tool, completion, .. } = *self;
        let kinds = self.kinds();
        let requested: Vec<_> = tool
            .missing_requests()
            .filter(|(request, _)| kinds.contains(request.key()) && self.is_missed(request))
            .map(|(_, missing)| missing)
            .collect();
        let mut lines: Vec<_> = requested
            .iter()
            .map(|missing| missing_line(config, &tool.name, &tool.grants, missing, audience))
            .collect();
        if lines.is_empty() && completion.misses_directories {
            lines.extend(self.no_directories(audience));
        }
        let warnings = tool.grants.warnings.iter().filter(|it| is_cause(&it.kind, &kinds));
        lines.extend(warnings.map(|warning| tool.grant_warning(warning)));
        lines.extend(completion.refused.iter().filter_map(|refused| match refused {
            RefusedAccess::File(file) => Some(self.file(file, audience)),
            RefusedAccess::Request(HttpRefusal { reason, missing, .. }) => {
                Some(self.request(reason, missing.as_ref(), audience))
            }
            RefusedAccess::Grant(_) => None,
        }));
        lines.extend(self.disabled_tools(audience));
        lines.extend(self.outside_path(audience));
        if completion.tried_sockets {
            lines.push(format!("the tool `{}` {SOCKETS_ADVICE}", tool.name));
        }
        let of_proxy = completion.failed_connections.iter().filter(|failed| failed.is_of_proxy);
        lines.extend(of_proxy.map(|failed| printable(&failed.reason).to_string()));
        if !completion.failed_connections.is_empty() {
            lines.extend(config.ignored_proxy_advice(audience));
        }
        if completion.failed_connections.iter().any(|failed| failed.is_of_name) {
            lines.extend(config.proxy_resolution_advice(audience));
        }
        for refused in &completion.refused {
            // If the tool requests it, a line above has the same advice.
            if let RefusedAccess::Grant(GrantRefusal { reason, missing, .. }) = refused
                && !missing.as_ref().is_some_and(|missing| requested.contains(missing))
            {
                lines.push(self.request(reason, missing.as_ref(), audience));
            }
        }
        lines
    }

    /// The kinds of grants for which an access was refused.
    fn kinds(&self) -> BTreeSet<&'static str> {
        let Completion { refused, misses_directories, misses_tools, sought_tools, .. } =
            self.completion;
        let is_left_out = |alias: &String| self.is_left_out(alias);
        let misses_tools = *misses_tools || sought_tools.iter().any(is_left_out);
        let missed = [(DirectoryGrant::KEY, *misses_directories), (ToolGrants::KEY, misses_tools)];
        let missed = missed.into_iter().filter(|(_, is_missed)| *is_missed).map(|(key, _)| key);
        refused.iter().map(RefusedAccess::key).chain(missed).collect()
    }

    /// Returns true if a grant of the tool for this alias does not take effect.
    fn is_left_out(&self, alias: &str) -> bool {
        let request = Alias::new(alias)
            .map(|alias| Request::Tool(RequestedTool::Alias { alias, arguments: None }));
        request.is_ok_and(|request| self.tool.grants.left_out(&request).is_some())
    }

    /// Returns a line for each disabled tool that the tool sought by its name, if its error has the
    /// name.
    fn disabled_tools(&self, audience: Audience) -> Vec<String> {
        let Self { config, call, completion, .. } = *self;
        let Some(callable) = &call.callable else { return Vec::new() };
        let sought =
            completion.sought_tools.iter().filter(|alias| self.error().contains(&***alias));
        let disabled = sought.filter_map(|alias| {
            let name = callable.find(alias)?;
            let reason = config.tools.get(&name)?.disabled.as_ref()?;
            let reason = match audience {
                Audience::Person => reason.to_string(),
                Audience::Model => disabled(reason),
            };
            Some(format!("the tool `{name}` is {reason}"))
        });
        disabled.collect()
    }

    /// Returns the line for an absolute path that a person gave to a built-in, and that is outside
    /// its directories. The line does not depend on whether the path exists.
    fn outside_path(&self, audience: Audience) -> Option<String> {
        let Self { call, tool, .. } = *self;
        let ToolSource::Builtin { name } = &tool.source else { return None };
        if audience == Audience::Model || !self.is_of_person {
            return None;
        }
        let arguments: Map<String, Value> = serde_json::from_str(&call.call.arguments).ok()?;
        let directories = &tool.grants.value.directories;
        let is_outside = |path: &&str| {
            GuestPath::new(*path)
                .is_ok_and(|path| directories.iter().all(|grant| !grant.guest.contains(&path)))
        };
        let mut paths = host_paths::named(&name.value, &arguments).into_iter();
        let path = paths.find(|path| self.error().contains(path) && is_outside(path))?;
        let is_writer = directories.iter().any(|grant| grant.access == Access::ReadWrite);
        let words = ["kitbag", "why", tool.name.as_str(), path];
        let command = shell::command(words.into_iter().chain(is_writer.then_some("--write")));
        Some(format!("`{command}` shows the line that allows it"))
    }

    fn error(&self) -> &str {
        match &self.completion.result {
            Ok(Outcome::Error(ErrorInfo { message, .. })) | Err(CallError::Trap { message }) => {
                message
            }
            Ok(Outcome::Success(_) | Outcome::NeedsInput(_)) | Err(_) => "",
        }
    }

    /// Returns true if a grant that the tool requests would have allowed a refused access.
    fn is_missed(&self, request: &Request) -> bool {
        match request {
            Request::Path(_) => self.completion.misses_directories,
            _ => true,
        }
    }

    /// Returns the line for a tool that looked for directories in a call that had none. A built-in
    /// has a line of its own.
    fn no_directories(&self, audience: Audience) -> Option<String> {
        let Self { config, tool, .. } = *self;
        let name = &tool.name;
        let origin = match tool.grants.origin_of(DirectoryGrant::KEY) {
            Origin::Default => String::new(),
            origin => format!(" ({origin})"),
        };
        let place = config.place_of_grants(name, &tool.grants, DirectoryGrant::KEY);
        let action = format!(
            "add `{{ host = \".\", guest = \"/workspace\", mode = \"ro\" }}` to {}",
            place.named(audience)
        );
        let action = match audience {
            Audience::Person => format!("to grant the workspace, {action}"),
            Audience::Model => audience.instruct(&action),
        };
        (!tool.is_builtin()).then(|| {
            format!(
                "this call of `{name}` has no directory grant{origin}, so it finds no files; \
                 {action}"
            )
        })
    }

    /// Returns the line for a file that the tool was refused.
    fn file(&self, refused: &RefusedFile, audience: Audience) -> String {
        match self.config.file_advice(&self.tool.name, &self.tool.grants, refused) {
            Some(advice) => {
                format!("{refused}; {}", printable(&audience.allow(&advice.action(audience))))
            }
            None => refused.to_string(),
        }
    }

    /// Returns the line for an HTTP request or a use of storage that the tool was refused.
    fn request(&self, reason: &str, missing: Option<&MissingGrant>, audience: Audience) -> String {
        let Self { config, tool, .. } = *self;
        // If the configuration has such a grant without effect, a warning has the advice.
        let missing = missing.filter(|missing| !tool.grants.is_left_out(missing));
        let advice = missing.map(|missing| {
            let advice = config.advice(&tool.name, &tool.grants, missing);
            format!("; {}", audience.allow(&advice.action(audience)))
        });
        format!("{}{}", printable(&reason.replace('\n', " ")), advice.unwrap_or_default())
    }
}

/// Returns true if a grant with this problem may be why a run failed in which these kinds were
/// refused. The host cannot see which variables a tool looks for.
fn is_cause(problem: &DiagnosticKind, refused: &BTreeSet<&str>) -> bool {
    match problem {
        // The tool has the variable.
        DiagnosticKind::SecretVariable => false,
        DiagnosticKind::BeyondGrantCeiling(key)
        | DiagnosticKind::UntrustedGrant(key)
        | DiagnosticKind::ReplacesOwnGrants(key)
        | DiagnosticKind::Grant(key) => *key == VariableGrant::KEY || refused.contains(key),
        _ => !refused.is_empty(),
    }
}

impl ToolboxError {
    /// Returns the message with its causes on one line, worded for this reader. If the
    /// configuration and the name of the tool are given, the message also states how to raise a
    /// limit.
    pub fn message_for(&self, audience: Audience, tool: Option<(&Config, &str)>) -> String {
        let mut message = match audience {
            Audience::Person => with_causes(self),
            Audience::Model => self.for_model(),
        };
        bound_error(&mut message);
        let Self::Call(CallError::Limit { kind, .. }) = self else { return message };
        let action = tool.and_then(|(config, tool)| raise(config, tool, *kind, audience));
        match (action, audience) {
            (None, _) => message,
            (Some(action), Audience::Person) => format!("{message}; to allow more, {action}"),
            (Some(action), Audience::Model) => format!("{message}; {}", audience.instruct(&action)),
        }
    }

    /// Returns the message for a model. The match lists each kind, so that a new kind needs a
    /// decision here.
    fn for_model(&self) -> String {
        let ask = |action: &str| Audience::Model.instruct(action);
        match self {
            Self::UnknownTool { nearest: Some(near), .. } => {
                let disabled = near.disabled.as_ref().map(|reason| disabled(reason));
                let disabled = disabled.map(|text| format!(" It is {text}")).unwrap_or_default();
                format!("{self}; did you mean `{}`?{disabled}", near.name)
            }
            Self::Disabled { name, reason } => {
                format!("the tool `{name}` is {}", disabled(reason))
            }
            Self::NotAsRecorded { tool, update, .. } => {
                let action = format!("look at `{}`", shell::command(["kitbag", "update", update]));
                format!("kitbag does not run the tool `{tool}`: it changed; {}", ask(&action))
            }
            Self::Load { tool, source } => {
                format!("the tool `{tool}` cannot be loaded: {}", unloaded(source))
            }
            Self::Call(CallError::Load(error)) => unloaded(error),
            Self::Call(CallError::BeyondMemory { needed, memory }) => format!(
                "the call may need {needed} (its limit `memory` and memory of the host), but the \
                 server has {memory} for all calls; {}",
                ask("raise `memory` under `[serve]`")
            ),
            Self::Cut { tool, cut } => format!(
                "the output of `{tool}` was truncated, so it is no longer valid JSON: {cut}; \
                 request less, or {}",
                ask("raise the limit")
            ),
            Self::NotApproved { tool, why: NotApproved::NobodyToAsk { .. } } => format!(
                "the call of `{tool}` needs the approval of a person, but no person can be asked; \
                 nothing was done"
            ),
            Self::NotGranted { caller, alias, reason, advice: Some(advice) } => format!(
                "`{caller}` may not make this call of `{}`: {reason}; {}",
                shown(alias),
                ask(&advice.action(Audience::Model))
            ),
            Self::NoSecret { tool, secret, command } => format!(
                "`{tool}` is granted the secret `{secret}`, which does not exist; {}",
                ask(&format!("run `{command}`"))
            ),
            // These messages name a cause but no way to weaken a protection.
            Self::UnknownTool { nearest: None, .. }
            | Self::MissingComponent { .. }
            | Self::NotCallable { .. }
            | Self::Arguments { .. }
            | Self::Masked { .. }
            | Self::Output { .. }
            | Self::Schema { .. }
            | Self::Answer { .. }
            | Self::Declined { .. }
            | Self::NotApproved { .. }
            | Self::ReservedQuestion { .. }
            | Self::QuestionFlaw { .. }
            | Self::Random(_)
            | Self::TooDeep { .. }
            | Self::Rate { .. }
            | Self::AliasRate { .. }
            | Self::Counts(_)
            | Self::Remote { .. }
            | Self::Audit(_)
            | Self::Register { .. }
            | Self::State(_)
            | Self::AskedAgain { .. }
            | Self::TooManyQuestions { .. }
            | Self::Diverged { .. }
            | Self::TooMuchToKeep { .. }
            | Self::NotGranted { advice: None, .. }
            | Self::MoreGranted { .. }
            | Self::HigherLimit { .. }
            | Self::Call(
                CallError::Limit { .. }
                | CallError::Denied(_)
                | CallError::Trap { .. }
                | CallError::Contract(_)
                | CallError::Cancelled
                | CallError::Busy { .. }
                | CallError::MemoryBusy { .. }
                | CallError::Internal(_),
            ) => with_causes(self),
        }
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn disabled(reason: &Disabled) -> String {
    match reason {
        Disabled::Untrusted => {
            let action = Audience::Model.instruct("review it with `kitbag trust`");
            format!("disabled: its workspace is not trusted; {action}")
        }
        Disabled::UntrustedSwitch { setting, origin } => {
            let action = Audience::Model.instruct("review it with `kitbag trust`");
            format!(
                "disabled: `{setting}` ({origin}) takes effect only in a trusted workspace; {action}"
            )
        }
        Disabled::Edited { cause } => {
            let action = Audience::Model.instruct("review it with `kitbag trust`");
            format!("off because {cause}; {action}")
        }
        Disabled::Toolset { .. }
        | Disabled::OffByDefault { .. }
        | Disabled::Write { .. }
        | Disabled::NoWorkspace { .. }
        | Disabled::NotGranted { .. } => {
            format!("{reason}; {}", Audience::Model.instruct("do that"))
        }
        Disabled::Alias { other, reason } => {
            format!("disabled: it is another name for `{other}`, which is {}", disabled(reason))
        }
        reason => reason.to_string(),
    }
}

fn unloaded(error: &LoadError) -> String {
    let path = |path: &std::path::Path| shown(&path.to_string_lossy()).to_string();
    match error {
        LoadError::Distrusted { path: file, found, reason } => format!(
            "kitbag does not run `{}`, because another user can change it: `{}` {reason}",
            path(file),
            path(found)
        ),
        LoadError::Pinned { path: file, .. } => format!(
            "kitbag does not run `{}`, because it differs from the recorded component; {}",
            path(file),
            Audience::Model.instruct("look at it")
        ),
        error => with_causes(error),
    }
}

/// Returns how to raise a limit of a tool: at the place that sets the limit, or else in the user
/// config. `None` if the limit is fixed.
fn raise(config: &Config, tool: &str, kind: LimitKind, audience: Audience) -> Option<String> {
    let tool = config.tools.get(tool)?;
    let limits = &tool.limits;
    let twice = |size: ByteSize| ByteSize::bytes(size.as_u64().saturating_mul(2)).to_string();
    let (origin, value) = match kind {
        LimitKind::Memory => (&limits.memory.origin, twice(limits.memory.value)),
        LimitKind::Written => (&limits.written.origin, twice(limits.written.value)),
        LimitKind::Time => {
            let time = limits.time.value.saturating_mul(2);
            (&limits.time.origin, format_duration(time).to_string())
        }
        LimitKind::Fuel => {
            let Sourced { value, origin } = limits.fuel.as_ref()?;
            (origin, value.saturating_mul(2).to_string())
        }
        LimitKind::Arguments
        | LimitKind::Stack
        | LimitKind::Table
        | LimitKind::Handles
        | LimitKind::Random
        | LimitKind::HostData
        | LimitKind::Instances => return None,
    };
    Some(match origin {
        Origin::File { .. } => format!("raise `{kind}` at {origin}"),
        Origin::Environment { name } => format!("raise the variable `{name}`"),
        Origin::Flag { name } => format!("raise `{name}`"),
        _ => {
            let value = if kind == LimitKind::Fuel { value } else { format!("\"{value}\"") };
            let place = config.place_of_limits(&tool.name).named(audience);
            format!("add `{kind} = {value}` to {place}")
        }
    })
}

#[cfg(test)]
mod tests;
