//! Nested calls: other tools that a tool may call, by alias, and the permitted arguments.
//!
//! A nested call is a complete call with the grants, limits and rate of the called tool. This
//! module decides which calls are permitted.

mod condition;
mod pattern;

pub use condition::{ArgumentPath, ArgumentPathError, Condition, ConditionError, Expected};
pub use pattern::{Misfit, TextPattern, TextPatternError, TextPatternProblem};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kitbag_base::text::{nearest, printable, shown};
use kitbag_contract::ToolName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::consent::{Ability, GrantText, Risk, Surroundings};
use crate::decision::{Decision, MissingGrant};
use crate::kind::{Effects, GrantForm, Kind, KindInfo, KindRequest, RefusalWords, TypedRequest};
use crate::rate::Rates;
use crate::{Grants, Request};

/// The name by which a tool calls another tool. It has the form of a tool name.
pub type Alias = ToolName;

/// The other tools that a tool may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolGrants {
    /// No tools.
    #[default]
    None,
    /// The tools that its caller may call, by their own names.
    Caller,
    /// Tools by alias. Not empty in a configuration, but empty if no entry takes effect.
    Aliases(Arc<BTreeMap<Alias, ToolGrant>>),
}

/// Another tool that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolGrant {
    /// The name of the tool.
    pub tool: ToolName,
    /// Conditions on the arguments of the call. Empty: any arguments.
    pub conditions: BTreeMap<ArgumentPath, Condition>,
    /// The rate of calls by this alias, in addition to the tool's own rate. `None`: unlimited.
    pub rate: Option<Rates>,
}

/// A call of another tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolRequest<'a> {
    /// The alias in the call.
    pub alias: &'a str,
    /// The arguments, with the defaults of the called tool.
    pub arguments: &'a Map<String, Value>,
}

/// A permitted call of another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTool {
    /// The name of the tool.
    pub tool: ToolName,
    /// The rate of calls by this alias.
    pub rate: Option<Rates>,
}

/// A requested nested call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedTool {
    /// All tools that the caller may call.
    Caller,
    /// One tool.
    Alias {
        /// The alias.
        alias: Alias,
        /// The arguments. `None`: not known.
        arguments: Option<Map<String, Value>>,
    },
}

/// The nested calls that a tool requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestedTools {
    /// All tools that the caller may call.
    Caller(CallerWord),
    /// Tools by name.
    Names(Vec<String>),
}

/// The word `caller`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallerWord {
    /// `caller`.
    #[serde(rename = "caller")]
    Caller,
}

/// Why a nested call was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolRefusal {
    /// The tool may not call other tools.
    #[error("no grant of `tools` names `{}`: the tool may not call other tools", shown(alias))]
    NoGrant {
        /// The alias in the call.
        alias: String,
    },
    /// The tool may call other tools, but not this one.
    #[error(
        "no grant of `tools` names `{}`{}",
        shown(alias),
        nearest.as_ref().map(|it| format!("; did you mean `{it}`?")).unwrap_or_default()
    )]
    UnknownAlias {
        /// The alias in the call.
        alias: String,
        /// The most similar alias.
        nearest: Option<Alias>,
    },
    /// An argument does not match.
    #[error(transparent)]
    Condition(Box<UnmetCondition>),
}

/// An argument that does not match its condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the argument `{argument}` of `{alias}` must match `{condition}`{}: {misfit}",
    value.as_ref().map(|value| format!(", but is `{value}`")).unwrap_or_default()
)]
pub struct UnmetCondition {
    /// The alias in the call.
    pub alias: Alias,
    /// The argument.
    pub argument: ArgumentPath,
    /// The condition.
    pub condition: Condition,
    /// The reason.
    pub misfit: Misfit,
    /// The value, shortened; for an array, the element.
    pub value: Option<String>,
    /// The grant that would allow the argument. `None`: no grant can, or it does not fit in one
    /// line.
    pub missing: Option<MissingGrant>,
}

impl ToolRefusal {
    /// Returns the refused part of the call, for programs: `alias` or `argument`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoGrant { .. } | Self::UnknownAlias { .. } => "alias",
            Self::Condition(_) => "argument",
        }
    }

    /// Returns the grant that would allow the call. `None`: no grant can.
    pub fn missing(&self) -> Option<MissingGrant> {
        match self {
            Self::NoGrant { alias } | Self::UnknownAlias { alias, .. } => {
                let alias = Alias::new(alias.as_str()).ok()?;
                Some(missing(&alias, &ToolGrant::new(alias.clone())))
            }
            Self::Condition(unmet) => unmet.missing.clone(),
        }
    }
}

fn missing(alias: &Alias, grant: &ToolGrant) -> MissingGrant {
    let entry = format!("{alias} = {}", grant.as_entry());
    MissingGrant::of_table(ToolGrants::KEY, entry, grant.tool.as_str())
}

impl ToolGrants {
    /// The key of these grants.
    pub const KEY: &'static str = "tools";

    /// The setting that lets a tool call the tools that its caller may call.
    pub(crate) const CALLER_SETTING: &'static str = "tools = \"caller\"";

    /// The value that replaces the aliases to permit the caller's tools.
    pub const CALLER: &'static str = "caller";

    /// Maximum number of aliases of one tool.
    pub const MOST: usize = 64;

    /// Grants these aliases.
    pub fn aliases(grants: impl IntoIterator<Item = (Alias, ToolGrant)>) -> Self {
        Self::Aliases(Arc::new(grants.into_iter().collect()))
    }

    /// Iterates over the aliases and their grants.
    pub fn iter(&self) -> impl Iterator<Item = (&Alias, &ToolGrant)> {
        let aliases = match self {
            Self::None | Self::Caller => None,
            Self::Aliases(grants) => Some(grants.iter()),
        };
        aliases.into_iter().flatten()
    }

    /// Decides on a call. If the tool may call its caller's tools, the call itself must check the
    /// caller's grants.
    ///
    /// # Errors
    ///
    /// [`ToolRefusal`].
    pub fn decide(&self, request: &ToolRequest<'_>) -> Result<AllowedTool, ToolRefusal> {
        let (tool, rate) = match self.find(request.alias)? {
            Found::Caller(tool) => (tool, None),
            Found::Alias(alias, grant) => {
                grant.check(alias, request.arguments)?;
                (grant.tool.clone(), grant.rate.clone())
            }
        };
        Ok(AllowedTool { tool, rate })
    }

    fn find(&self, alias: &str) -> Result<Found<'_>, ToolRefusal> {
        let unknown = |nearest| ToolRefusal::UnknownAlias { alias: alias.to_owned(), nearest };
        match self {
            Self::None => Err(ToolRefusal::NoGrant { alias: alias.to_owned() }),
            Self::Caller => match ToolName::new(alias) {
                Ok(tool) => Ok(Found::Caller(tool)),
                Err(_) => Err(unknown(None)),
            },
            Self::Aliases(grants) => match grants.get_key_value(alias) {
                Some((alias, grant)) => Ok(Found::Alias(alias, grant)),
                None => {
                    let nearest = nearest(alias, grants.keys().map(ToolName::as_str));
                    let nearest = nearest.and_then(|nearest| grants.get_key_value(nearest));
                    Err(unknown(nearest.map(|(alias, _)| alias.clone())))
                }
            },
        }
    }

    /// Returns true if these grants allow everything that `other` allows.
    ///
    /// [`Self::Caller`] does not contain aliases: an alias reaches a tool even if the caller may
    /// not call it.
    pub fn contains(&self, other: &Self) -> bool {
        other.beyond(self).is_none()
    }

    /// Returns the first of these grants that `own` does not cover, in one line.
    pub fn beyond(&self, own: &Self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Caller => (*own != Self::Caller).then(|| CALLER_LINE.to_owned()),
            Self::Aliases(grants) => grants
                .iter()
                .find(|(alias, grant)| !own.holds(alias, grant))
                .map(|(alias, grant)| grant.line(alias)),
        }
    }

    /// Returns true if one of these grants allows every call of another grant. A rate belongs to
    /// one alias and is not shared.
    fn holds(&self, alias: &Alias, grant: &ToolGrant) -> bool {
        self.iter()
            .any(|(own_alias, own)| own.holds(grant) && (own.rate.is_none() || own_alias == alias))
    }
}

/// The target of an alias.
enum Found<'a> {
    /// The caller's tool with this name.
    Caller(ToolName),
    Alias(&'a Alias, &'a ToolGrant),
}

const CALLER_LINE: &str = "tools → every tool that its caller may call";

impl ToolGrant {
    /// Maximum number of conditions of an alias.
    pub const MOST_CONDITIONS: usize = 32;

    /// Grants a tool with any arguments.
    pub fn new(tool: ToolName) -> Self {
        Self { tool, conditions: BTreeMap::new(), rate: None }
    }

    fn check(&self, alias: &Alias, arguments: &Map<String, Value>) -> Result<(), ToolRefusal> {
        for (argument, condition) in &self.conditions {
            let Err((misfit, value)) = condition.check(argument, arguments) else { continue };
            return Err(ToolRefusal::Condition(Box::new(UnmetCondition {
                alias: alias.clone(),
                argument: argument.clone(),
                condition: condition.clone(),
                misfit,
                value: value.map(|value| match value {
                    Value::String(text) => shown(text).to_string(),
                    value => shown(&value.to_string()).to_string(),
                }),
                missing: self.allowing(arguments).map(|grant| missing(alias, &grant)),
            })));
        }
        Ok(())
    }

    /// Extends this grant by the values of arguments.
    fn allowing(&self, arguments: &Map<String, Value>) -> Option<Self> {
        let mut grant = self.clone();
        for (argument, condition) in &mut grant.conditions {
            if condition.check(argument, arguments).is_err() {
                *condition = condition.and(argument.find(arguments)?)?;
                // A value that is too long or empty matches nothing.
                condition.check(argument, arguments).ok()?;
            }
        }
        Some(grant)
    }

    /// Returns true if this grant allows every call of another grant, at the same rate or higher.
    fn holds(&self, other: &Self) -> bool {
        // Names every field, so that a new field cannot allow more by accident.
        let Self { tool, conditions, rate } = other;
        let is_held = |(argument, own): (&ArgumentPath, &Condition)| {
            conditions.get(argument).is_some_and(|condition| own.holds(condition))
        };
        let is_as_rare = |own: &Rates| rate.as_ref().is_some_and(|rate| own.and(rate) == *rate);
        self.tool == *tool
            && self.conditions.iter().all(is_held)
            && self.rate.as_ref().is_none_or(is_as_rare)
    }

    /// Formats the value of the alias in TOML: the tool alone if there is nothing else.
    pub fn as_entry(&self) -> String {
        let tool = format!("\"{}\"", self.tool);
        if self.conditions.is_empty() && self.rate.is_none() {
            return tool;
        }
        let mut fields = vec![format!("tool = {tool}")];
        if !self.conditions.is_empty() {
            fields.push(format!("where = {{ {} }}", self.conditions_line()));
        }
        fields.extend(self.rate.as_ref().map(|rate| format!("rate = \"{rate}\"")));
        format!("{{ {} }}", fields.join(", "))
    }

    fn conditions_line(&self) -> String {
        let condition = |(argument, condition): (&ArgumentPath, &Condition)| {
            let argument = argument.as_str();
            let is_bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            match argument.bytes().all(is_bare) {
                true => format!("{argument} = {condition}"),
                false => format!("{} = {condition}", Value::from(argument)),
            }
        };
        let conditions: Vec<_> = self.conditions.iter().map(condition).collect();
        conditions.join(", ")
    }

    /// Formats the grant for people: `tool page → fetch, where url = "https://docs.rs/**"`.
    fn line(&self, alias: &Alias) -> String {
        let mut line = format!("tool {alias} → {}", self.tool);
        if !self.conditions.is_empty() {
            line.push_str(&format!(", where {}", printable(&self.conditions_line())));
        }
        if let Some(rate) = &self.rate {
            line.push_str(&format!(", at most {rate}"));
        }
        line
    }

    fn to_json(&self) -> Value {
        if self.conditions.is_empty() && self.rate.is_none() {
            return self.tool.as_str().into();
        }
        let mut entry = json!({ "tool": self.tool.as_str() });
        if !self.conditions.is_empty() {
            let conditions = self.conditions.iter();
            entry["where"] = conditions
                .map(|(argument, condition)| (argument.to_string(), condition.to_json()))
                .collect();
        }
        if let Some(rate) = &self.rate {
            entry["rate"] = rate.to_string().into();
        }
        entry
    }
}

/// Decides whether these grants allow a requested nested call.
pub(crate) fn decide(grants: &ToolGrants, requested: &RequestedTool) -> Decision {
    let refused = |refusal: &ToolRefusal| Decision::Denied {
        reason: refusal.to_string(),
        missing: refusal.missing(),
    };
    match requested {
        RequestedTool::Caller if *grants == ToolGrants::Caller => {
            Decision::Allowed { by: CALLER_LINE.to_owned() }
        }
        RequestedTool::Caller => Decision::Denied {
            reason: "no grant of `tools` lets it call every tool that its caller may call"
                .to_owned(),
            missing: Some(MissingGrant::setting(
                ToolGrants::KEY,
                ToolGrants::CALLER_SETTING.to_owned(),
            )),
        },
        RequestedTool::Alias { alias, arguments } => match grants.find(alias.as_str()) {
            Ok(Found::Caller(_)) => Decision::Allowed { by: CALLER_LINE.to_owned() },
            Ok(Found::Alias(alias, grant)) => {
                let checked = arguments.as_ref().map(|arguments| grant.check(alias, arguments));
                match checked {
                    Some(Err(refusal)) => refused(&refusal),
                    None | Some(Ok(())) => Decision::Allowed { by: grant.line(alias) },
                }
            }
            Err(refusal) => refused(&refusal),
        },
    }
}

impl RequestedTools {
    /// Returns the requested calls. Invalid names are skipped.
    pub(crate) fn requests(&self) -> Vec<RequestedTool> {
        match self {
            Self::Caller(CallerWord::Caller) => vec![RequestedTool::Caller],
            Self::Names(names) => {
                let names = names.iter().filter_map(|name| Alias::new(name.as_str()).ok());
                names.map(|alias| RequestedTool::Alias { alias, arguments: None }).collect()
            }
        }
    }
}

impl KindRequest for RequestedTool {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn decide(&self, grants: &Grants) -> Decision {
        decide(&grants.tools, self)
    }

    fn brief(&self) -> String {
        match self {
            Self::Caller => CALLER_BRIEF.to_owned(),
            Self::Alias { alias, .. } => format!("calls {alias}"),
        }
    }

    fn consent(&self, _: bool) -> (Option<Ability>, Vec<Risk>) {
        let risk = matches!(self, Self::Caller).then_some(Risk::CallerTools);
        (Some(Ability::CallTools), risk.into_iter().collect())
    }
}

const CALLER_BRIEF: &str = "calls every tool that its caller may call";

impl fmt::Display for RequestedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller => f.write_str(CALLER_LINE),
            Self::Alias { alias, arguments: None } => write!(f, "tool {alias}"),
            Self::Alias { alias, arguments: Some(arguments) } => {
                let arguments = serde_json::to_string(arguments).unwrap_or_default();
                write!(f, "tool {alias} {}", shown(&arguments))
            }
        }
    }
}

/// The kind of these grants. The other tools have grants of their own.
pub(crate) const KIND: KindInfo = KindInfo {
    imports: Some("kitbag:tool/tools"),
    typed: Some(TypedRequest::new("tool", 1..=2, |words| {
        let alias = Alias::new(&*words[0]).map_err(|error| error.to_string())?;
        let object = |text: &String| serde_json::from_str::<Map<String, Value>>(text);
        let arguments = words.get(1).map(object).transpose().map_err(|error| {
            format!("the arguments of `{alias}` are not a JSON object: {error}")
        })?;
        Ok(Request::Tool(RequestedTool::Alias { alias, arguments }))
    })),
    refusals: Some(RefusalWords {
        kind: "tool",
        access: "call `{}`",
        reasons: &[
            ("grant", "not granted"),
            ("limit", "the limit `tool_calls` is reached"),
            ("depth", "nested calls are too deep"),
            ("arguments", "the arguments are not valid"),
            ("unknown", "the tool does not exist"),
            ("trust", "the workspace is not trusted"),
            ("disabled", "it is disabled"),
        ],
    }),
    ..KindInfo::new(ToolGrants::KEY, "other tools", GrantForm::Table)
};

impl Kind for ToolGrants {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::Caller => false,
            Self::Aliases(grants) => grants.is_empty(),
        }
    }

    fn effects(&self) -> Effects {
        // The effects of the other tools depend on their own grants, which may change.
        let calls = !Kind::is_empty(self);
        Effects { changes: calls, open_world: calls }
    }

    fn lines(&self) -> Vec<String> {
        match self {
            Self::Caller => vec![CALLER_LINE.to_owned()],
            _ => self.iter().map(|(alias, grant)| grant.line(alias)).collect(),
        }
    }

    fn brief(&self) -> Vec<String> {
        let mut brief: Vec<_> = match self {
            Self::Caller => vec![CALLER_BRIEF.to_owned()],
            _ => self.iter().map(|(_, grant)| format!("calls {}", grant.tool)).collect(),
        };
        brief.sort();
        brief.dedup();
        brief
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Caller => Self::CALLER.into(),
            _ => self.iter().map(|(alias, grant)| (alias.to_string(), grant.to_json())).collect(),
        }
    }

    fn uncovered(&self, own: &Grants) -> Option<String> {
        self.beyond(&own.tools)
    }

    fn singles(&self) -> Vec<Grants> {
        let single = |tools| Grants { tools, ..Grants::default() };
        match self {
            Self::Caller => vec![single(Self::Caller)],
            _ => self
                .iter()
                .map(|(alias, grant)| single(Self::aliases([(alias.clone(), grant.clone())])))
                .collect(),
        }
    }

    fn as_ceiling(&self) -> Option<String> {
        let value = match self {
            Self::Caller => format!("\"{}\"", Self::CALLER),
            _ => {
                let names = self.iter().map(|(_, grant)| format!("\"{}\"", grant.tool));
                format!("[{}]", names.collect::<Vec<_>>().join(", "))
            }
        };
        Some(format!("{} = {value}", Self::KEY))
    }

    fn texts(&self, _: &Surroundings<'_>) -> Vec<GrantText> {
        let risk = (*self == Self::Caller).then_some(Risk::CallerTools);
        let text = |line: String| {
            let called = ["tools → ", "tool "].iter().find_map(|word| line.strip_prefix(word));
            let line = format!("calls {}", called.unwrap_or(&line));
            GrantText::new(line, Some(Ability::CallTools), risk.into_iter().collect())
        };
        self.lines().into_iter().map(text).collect()
    }
}
