//! Advice that an error carries besides its cause, worded for its reader.
//!
//! Advice follows the cause. A grant is named only if the host refused an access in this very call.
//! A model is advised to ask its user for a grant or a higher limit, and never how to remove an
//! approval, a rate, screening or the need for trust.

use std::collections::BTreeSet;

use kitbag_base::format_duration;
use kitbag_base::text::{bound_error, printable, shown};
use kitbag_base::{ByteSize, shell};
use kitbag_config::{Audience, Config, DiagnosticKind, Disabled, Origin, Sourced};
use kitbag_contract::{Action, ErrorInfo, LimitKind, Outcome};
use kitbag_host::{CallError, Completion, LoadError, RefusedAccess, SOCKETS_ADVICE};
use kitbag_policy::{
    DirectoryGrant, GrantRefusal, HttpRefusal, MissingGrant, RefusedFile, Request, ToolGrants,
    VariableGrant,
};

use crate::call::outcome::PreparedCall;
use crate::error::{NotApproved, ToolboxError};
use crate::registry::tool::{Tool, missing_line};

/// Adds the accesses that the tool was refused to the error of its run, with the advice on each for
/// this reader. Returns the same advice for a person.
pub(crate) fn add(
    config: &Config,
    call: &PreparedCall,
    completion: &mut Completion,
    audience: Audience,
) -> Vec<String> {
    let has_failed = match &completion.result {
        Ok(Outcome::Error(_)) | Err(CallError::Trap { .. }) => call.call.action == Action::Run,
        Ok(Outcome::Success(_) | Outcome::NeedsInput(_)) | Err(_) => false,
    };
    if !has_failed {
        return Vec::new();
    }
    let refused = Refused { config, tool: &call.tool, completion };
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
    tool: &'a Tool,
    completion: &'a Completion,
}

impl Refused<'_> {
    /// Returns a line for each refusal, with the grant or setting that would allow the access.
    fn lines(&self, audience: Audience) -> Vec<String> {
        let Self { config, tool, completion } = *self;
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
        if completion.tried_sockets {
            lines.push(format!("the tool `{}` {SOCKETS_ADVICE}", tool.name));
        }
        let of_proxy = completion.failed_connections.iter().filter(|failed| failed.is_of_proxy);
        lines.extend(of_proxy.map(|failed| printable(&failed.reason).to_string()));
        if !completion.failed_connections.is_empty() {
            lines.extend(config.ignored_proxy_advice(audience));
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
        let Completion { refused, misses_directories, misses_tools, .. } = self.completion;
        let missed = [(DirectoryGrant::KEY, *misses_directories), (ToolGrants::KEY, *misses_tools)];
        let missed = missed.into_iter().filter(|(_, is_missed)| *is_missed).map(|(key, _)| key);
        refused.iter().map(RefusedAccess::key).chain(missed).collect()
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
                "this call of `{name}` is granted no directory{origin}, so that it finds no file; \
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
            Self::NotAsRecorded { tool, .. } => {
                let action = format!("look at `{}`", shell::command(["kitbag", "update", tool]));
                format!("the tool `{tool}` is not run: it changed; {}", ask(&action))
            }
            Self::Load { tool, source } => {
                format!("the tool `{tool}` cannot be loaded: {}", unloaded(source))
            }
            Self::Call(CallError::Load(error)) => unloaded(error),
            Self::Call(CallError::BeyondMemory { needed, memory }) => format!(
                "the call may take {needed}, its limit `memory` and what the host holds for it, and \
                 the server has {memory} for all calls; {}",
                ask("raise `memory` under `[serve]`")
            ),
            Self::Cut { tool, cut } => format!(
                "the answer of `{tool}` was cut, so that it is no JSON any more: {cut}; request \
                 less, or {}",
                ask("raise the limit")
            ),
            Self::NotApproved { tool, why: NotApproved::NobodyToAsk { .. } } => format!(
                "the call of `{tool}` needs the approval of a person, and there is nobody to ask; \
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
            "`{}` is not run, since another user can change it: `{}` {reason}",
            path(file),
            path(found)
        ),
        LoadError::Pinned { path: file, .. } => format!(
            "`{}` is not run, since it differs from the recorded component; {}",
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
