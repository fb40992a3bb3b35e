//! Other tools that a tool may call, each by an alias, and with which arguments.
//!
//! The call itself is a whole call, with the grants, limits and rate of the tool that is
//! called: nothing of that is decided here.

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

use crate::decision::{Decision, MissingGrant};
use crate::kind::{Effects, Kind, KindRequest, Reach};
use crate::rate::Rates;

/// The name by which a tool calls another one. It has the form of a tool's.
pub type Alias = ToolName;

/// Which other tools a tool may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolGrants {
    /// None.
    #[default]
    None,
    /// Those that its caller may call, by their own names.
    Caller,
    /// Those that are named, by their aliases. Not empty where a configuration was read, but
    /// none of them may have counted.
    Aliases(Arc<BTreeMap<Alias, ToolGrant>>),
}

/// A tool that another one may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolGrant {
    /// The tool.
    pub tool: ToolName,
    /// What arguments of the call have to be. Empty: what they like.
    pub conditions: BTreeMap<ArgumentPath, Condition>,
    /// How often it may be called by this alias, besides the tool's own rate. `None`: as
    /// often as they like.
    pub rate: Option<Rates>,
}

/// A call of another tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolRequest<'a> {
    /// By which name.
    pub alias: &'a str,
    /// The arguments, with the defaults of the tool that is called.
    pub arguments: &'a Map<String, Value>,
}

/// A call of another tool that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTool {
    /// The tool.
    pub tool: ToolName,
    /// How often it may be called by this alias.
    pub rate: Option<Rates>,
}

/// What a tool wants to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedTool {
    /// Whatever its caller may call.
    Caller,
    /// One tool.
    Alias {
        /// By this name.
        alias: Alias,
        /// With these arguments. `None`: with some.
        arguments: Option<Map<String, Value>>,
    },
}

/// Tools that a tool would like to call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestedTools {
    /// Whatever its caller may call.
    Caller(CallerWord),
    /// Those of these names.
    Names(Vec<String>),
}

/// The word `caller`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallerWord {
    /// `caller`.
    #[serde(rename = "caller")]
    Caller,
}

/// Why a call of another tool was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolRefusal {
    /// The tool may call none.
    #[error("no grant of `tools` names `{}`: the tool may call no other one", shown(alias))]
    NoGrant {
        /// The name that was called.
        alias: String,
    },
    /// The tool may call others.
    #[error(
        "no grant of `tools` names `{}`{}",
        shown(alias),
        nearest.as_ref().map(|it| format!("; did you mean `{it}`?")).unwrap_or_default()
    )]
    UnknownAlias {
        /// The name that was called.
        alias: String,
        /// The alias that was most likely meant.
        nearest: Option<Alias>,
    },
    /// The arguments do not fit.
    #[error(transparent)]
    Condition(Box<UnmetCondition>),
}

/// An argument that does not fit its condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the argument `{argument}` of `{alias}` has to fit `{condition}`{}: {misfit}",
    value.as_ref().map(|value| format!(", and is `{value}`")).unwrap_or_default()
)]
pub struct UnmetCondition {
    /// The name that was called.
    pub alias: Alias,
    /// Which argument.
    pub argument: ArgumentPath,
    /// What it has to be.
    pub condition: Condition,
    /// Why it is not.
    pub misfit: Misfit,
    /// What it is, shortened; of an array the element.
    pub value: Option<String>,
    /// What would allow it. `None`: nothing can, or it cannot be written in a line.
    pub missing: Option<MissingGrant>,
}

impl ToolRefusal {
    /// What of the call is refused, as programs read it: `alias` or `argument`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoGrant { .. } | Self::UnknownAlias { .. } => "alias",
            Self::Condition(_) => "argument",
        }
    }

    /// What would allow the call. `None`: no grant can.
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

    /// The setting that lets a tool call whatever its caller may.
    pub(crate) const CALLER_SETTING: &'static str = "tools = \"caller\"";

    /// What stands there instead of aliases for whatever the caller may call.
    pub const CALLER: &'static str = "caller";

    /// The most aliases of one tool.
    pub const MOST: usize = 64;

    /// These aliases.
    pub fn aliases(grants: impl IntoIterator<Item = (Alias, ToolGrant)>) -> Self {
        Self::Aliases(Arc::new(grants.into_iter().collect()))
    }

    /// Each alias and what it stands for.
    pub fn iter(&self) -> impl Iterator<Item = (&Alias, &ToolGrant)> {
        let aliases = match self {
            Self::None | Self::Caller => None,
            Self::Aliases(grants) => Some(grants.iter()),
        };
        aliases.into_iter().flatten()
    }

    /// Decides on a call. Where the tool may call whatever its caller may, whether that may
    /// call this one is left to the call.
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

    /// Whether these grants allow all that others do.
    ///
    /// Aliases are not within [`Self::Caller`]: they reach a tool also where the caller may
    /// not call it.
    pub fn contains(&self, other: &Self) -> bool {
        other.beyond(self).is_none()
    }

    /// The first of these grants, in a line, that `own` does not hold.
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

    /// Whether one of these grants allows every call that another one does. A rate is of an
    /// alias, which another one would not share.
    fn holds(&self, alias: &Alias, grant: &ToolGrant) -> bool {
        self.iter()
            .any(|(own_alias, own)| own.holds(grant) && (own.rate.is_none() || own_alias == alias))
    }
}

/// What an alias stands for.
enum Found<'a> {
    /// What the caller calls by this name.
    Caller(ToolName),
    Alias(&'a Alias, &'a ToolGrant),
}

const CALLER_LINE: &str = "tools → whatever its caller may call";

impl ToolGrant {
    /// The most conditions of an alias.
    pub const MOST_CONDITIONS: usize = 32;

    /// A tool with any arguments.
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

    /// This grant, with what arguments are besides what they have to be.
    fn allowing(&self, arguments: &Map<String, Value>) -> Option<Self> {
        let mut grant = self.clone();
        for (argument, condition) in &mut grant.conditions {
            if condition.check(argument, arguments).is_err() {
                *condition = condition.and(argument.find(arguments)?)?;
                // What is too long or empty fits nothing.
                condition.check(argument, arguments).ok()?;
            }
        }
        Some(grant)
    }

    /// Whether this grant allows every call that another one does, and as often.
    fn holds(&self, other: &Self) -> bool {
        // Each field, so that one that is added here gives no more by accident.
        let Self { tool, conditions, rate } = other;
        let is_held = |(argument, own): (&ArgumentPath, &Condition)| {
            conditions.get(argument).is_some_and(|condition| own.holds(condition))
        };
        let is_as_rare = |own: &Rates| rate.as_ref().is_some_and(|rate| own.and(rate) == *rate);
        self.tool == *tool
            && self.conditions.iter().all(is_held)
            && self.rate.as_ref().is_none_or(is_as_rare)
    }

    /// What stands for its alias in TOML: the tool alone where there is nothing else.
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

    /// The grant as a person reads it: `tool page → fetch, where url = "https://docs.rs/**"`.
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

/// Decides whether these grants let a tool call what it wants to.
pub(crate) fn decide(grants: &ToolGrants, wanted: &RequestedTool) -> Decision {
    let refused = |refusal: &ToolRefusal| Decision::Denied {
        reason: refusal.to_string(),
        missing: refusal.missing(),
    };
    match wanted {
        RequestedTool::Caller if *grants == ToolGrants::Caller => {
            Decision::Allowed { by: CALLER_LINE.to_owned() }
        }
        RequestedTool::Caller => Decision::Denied {
            reason: "no grant of `tools` lets it call whatever its caller may".to_owned(),
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
    /// Each of them. A name that no tool has is none.
    pub(crate) fn wanted(&self) -> Vec<RequestedTool> {
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
    fn reach(&self) -> Reach {
        Reach::Tool
    }

    fn brief(&self) -> String {
        match self {
            Self::Caller => CALLER_BRIEF.to_owned(),
            Self::Alias { alias, .. } => format!("calls {alias}"),
        }
    }

    fn is_given_by_call(&self) -> bool {
        false
    }
}

const CALLER_BRIEF: &str = "calls whatever its caller may";

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

impl Kind for ToolGrants {
    fn key(&self) -> &'static str {
        Self::KEY
    }

    fn reach(&self) -> Reach {
        Reach::Tool
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::Caller => false,
            Self::Aliases(grants) => grants.is_empty(),
        }
    }

    fn effects(&self) -> Effects {
        // What the other tools can do depends on their own grants, which may change.
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
}
