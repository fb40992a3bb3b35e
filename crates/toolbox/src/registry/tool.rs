//! One tool, with all that is known of it.

use std::collections::BTreeMap;

use kitbag_base::json::{self, JsonBudget};
use kitbag_config::{
    Audience, Config, ConfiguredGrants, Diagnostic, DiagnosticKind, Disabled, EffectiveLimits,
    Origin, Sourced, ToolApproval, ToolRate, ToolSource, set_secret_command,
};
use kitbag_contract::{Annotations, ToolName};
use kitbag_policy::{MissingGrant, Request, RequestedGrants};
use kitbag_schema::{ArgumentProblem, CheckError, Schema, SchemaError};
use serde_json::Value;

use crate::call::deadline::Deadline;
use crate::error::ToolboxError;

/// A tool in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The name it is called by.
    pub name: ToolName,
    /// `built-in`, `native`, `bytes`, or the file as configuration names it.
    pub source: String,
    /// The group of a built-in tool, which `[toolsets]` switches.
    pub toolset: Option<String>,
    /// What it may reach, in a few words such as `reads /workspace`. `None` for native
    /// code, which has the rights of its program.
    pub reach: Option<String>,
    /// Why it is not enabled.
    pub disabled: Option<Disabled>,
    /// Why it cannot work, where that is known without loading it: it is not granted what it
    /// cannot do without. It holds the line that would grant that.
    pub unavailable: Option<String>,
    /// What it does, where that is known without loading it. Untrusted text.
    pub description: Option<String>,
}

/// A tool, resolved: what configuration says beats what the tool says.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The name it is called by.
    pub name: ToolName,
    /// What the name stands for.
    pub source: ToolSource,
    /// A display name. Untrusted text.
    pub title: Option<Sourced<String>>,
    /// What it does, for the model. Untrusted text.
    pub description: Option<Sourced<String>>,
    /// The JSON Schema of its arguments. Default: any object.
    pub input_schema: Sourced<Schema>,
    /// The JSON Schema of its content, where that is JSON.
    pub output_schema: Option<Sourced<Schema>>,
    /// Hints for a client, derived from the grants; the tool may add to them
    /// what no grant tells.
    pub annotations: Annotations,
    /// What it may reach. A topic's directory is added for the call.
    pub grants: ConfiguredGrants,
    /// What it says it would like to be granted. It grants nothing.
    pub requested_grants: RequestedGrants,
    /// What one call may use up.
    pub limits: EffectiveLimits,
    /// How often each caller may call it; all have to allow a call. Default: as often as
    /// they like.
    pub rates: Vec<ToolRate>,
    /// Before which calls a person is asked: as configuration says, and the tool itself.
    pub approve: ToolApproval,
    /// Preset answers, by the id of the question.
    pub answers: BTreeMap<String, Sourced<Value>>,
    /// Whether what looks like a key or a token is masked in what it gives.
    pub mask: Sourced<bool>,
    /// What was wrong with the disk cache when the tool was loaded for this.
    pub cache_problems: Vec<kitbag_host::CacheProblem>,
    /// What is wrong with what it says of itself, which then counts for nothing.
    pub description_problem: Option<String>,
    /// Why the output schema that it names cannot be used. It has none then.
    pub output_problem: Option<String>,
    /// Why its component is not run: it is another one than it must be.
    pub refused: Option<String>,
}

/// A tool as far as it is known without being loaded.
#[derive(Clone, Debug)]
pub struct KnownTool {
    /// What is known of it.
    pub tool: Tool,
    /// Whether it may say more of itself when it is loaded.
    pub may_say_more: bool,
}

impl Tool {
    /// Reads both of the tool's schemas, as a call does. Patterns take time to compile.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Schema`] for one that no call can be checked against.
    pub fn check_schemas(&self) -> Result<(), ToolboxError> {
        match &self.output_problem {
            None => self.check_schemas_in_use(),
            Some(reason) => {
                let (tool, reason) = (self.name.to_string(), reason.clone());
                Err(ToolboxError::Schema { tool, kind: "output", reason })
            }
        }
    }

    /// As [`check_schemas`](Self::check_schemas), but an output schema that cannot be used is as
    /// none.
    pub(crate) fn check_schemas_in_use(&self) -> Result<(), ToolboxError> {
        self.check_schema_forms()?;
        self.schemas().try_for_each(|(kind, schema)| {
            schema.check().map_err(|error| self.unusable(kind, error))
        })
    }

    /// Looks whether both of the tool's schemas have the form of one, and the first that
    /// of an object's. Quick, since nothing in them is compiled.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Schema`] for one that has not.
    pub fn check_schema_forms(&self) -> Result<(), ToolboxError> {
        self.schemas().try_for_each(|(kind, schema)| {
            let checked = match kind {
                "input" => schema.check_input_form(),
                _ => schema.check_form(),
            };
            checked.map_err(|error| self.unusable(kind, error))
        })
    }

    fn unusable(&self, kind: &'static str, error: SchemaError) -> ToolboxError {
        ToolboxError::schema(self.name.as_str(), kind, error)
    }

    fn schemas(&self) -> impl Iterator<Item = (&'static str, &Schema)> {
        let output = self.output_schema.as_ref().map(|schema| ("output", &schema.value));
        [("input", &self.input_schema.value)].into_iter().chain(output)
    }

    /// What it says it would like and is not granted, each with what would grant it. A
    /// tool may do without.
    pub fn missing_grants<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = String> + 'a {
        self.missing_requests().map(|(_, missing)| {
            missing_line(config, &self.name, &self.grants, &missing, Audience::Person)
        })
    }

    pub(crate) fn missing_requests(&self) -> impl Iterator<Item = (Request, MissingGrant)> + '_ {
        let is_builtin = self.is_builtin();
        let has_http = !self.grants.value.http.grants.is_empty();
        let missing = self.requested_grants.missing(&self.grants.value);
        missing.filter(move |(request, _)| match request {
            // Of what it was refused each request is told.
            Request::HttpPattern(_) => !has_http,
            request => !(is_builtin && request.is_given_by_call()),
        })
    }

    /// Looks whether the secrets exist that the tool is granted.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::NoSecret`] for the first that does not, with the command that sets it.
    pub(crate) fn check_secrets(&self) -> Result<(), ToolboxError> {
        let missing = self.grants.warnings.iter().find_map(|warning| match &warning.kind {
            DiagnosticKind::NoSecret(name) => Some(name),
            _ => None,
        });
        let Some(name) = missing else { return Ok(()) };
        Err(ToolboxError::NoSecret {
            tool: self.name.to_string(),
            secret: name.clone(),
            command: set_secret_command(name, &self.grants.value),
        })
    }

    /// Why it cannot work: its component is another one than it must be, or it is not granted
    /// what it cannot do without, with the line that would grant that.
    pub fn unavailable(&self, config: &Config) -> Option<String> {
        self.unavailable_for(config, Audience::Person)
    }

    /// The same, put for this reader.
    pub(crate) fn unavailable_for(&self, config: &Config, audience: Audience) -> Option<String> {
        let Self { name, source, grants, requested_grants, refused, .. } = self;
        let lacks_required =
            || unavailable(config, name, source, grants, requested_grants, audience);
        refused.clone().or_else(lacks_required)
    }

    /// What is most likely not as it was meant of its grants: one that does not count, or
    /// that gives nothing.
    pub fn grant_warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.grants.warnings.iter().map(|warning| self.grant_warning(warning))
    }

    pub(crate) fn grant_warning(&self, warning: &Diagnostic) -> String {
        format!("tool `{}`, {}: {}", self.name, warning.place, warning.message)
    }

    pub(crate) fn is_builtin(&self) -> bool {
        matches!(self.source, ToolSource::Builtin { .. })
    }

    /// Reads content as the JSON that the tool's output schema promises; nothing,
    /// where it has none.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Output`] names what does not fit, and
    /// [`ToolboxError::Schema`] says that the schema is none.
    pub fn structured(&self, content: &str) -> Result<Option<Value>, ToolboxError> {
        self.structured_until(content, &Deadline::NONE)
    }

    pub(crate) fn structured_until(
        &self,
        content: &str,
        deadline: &Deadline<'_>,
    ) -> Result<Option<Value>, ToolboxError> {
        let Some(schema) = &self.output_schema else { return Ok(None) };
        let tool = self.name.to_string();
        let value = json::parse(content.as_bytes(), JsonBudget::OUTPUT).map_err(|error| {
            let message = format!("it is not JSON: {error}");
            let problems = vec![ArgumentProblem { pointer: String::new(), message }];
            ToolboxError::Output { tool: tool.clone(), problems }
        })?;
        let problems =
            schema.value.misfits(&value, &|| deadline.check()).map_err(|error| match error {
                CheckError::Schema(error) => self.unusable("output", error),
                error => ToolboxError::arguments(&tool, error),
            })?;
        match problems.is_empty() {
            true => Ok(Some(value)),
            false => Err(ToolboxError::Output { tool, problems }),
        }
    }
}

/// As [`Tool::unavailable`], of what it is not granted.
pub(crate) fn unavailable(
    config: &Config,
    name: &ToolName,
    source: &ToolSource,
    grants: &ConfiguredGrants,
    requested: &RequestedGrants,
    audience: Audience,
) -> Option<String> {
    let is_builtin = matches!(source, ToolSource::Builtin { .. });
    let mut missing = requested.missing_required(&grants.value);
    let (_, missing) = missing.find(|(request, _)| !(is_builtin && request.is_given_by_call()))?;
    // Some of the kind was granted by a workspace, where that does not count.
    let kind = DiagnosticKind::BeyondGrantCeiling(missing.key);
    Some(match grants.warnings.iter().find(|warning| warning.kind == kind) {
        Some(warning) => format!("tool `{name}`, {}: {}", warning.place, warning.message),
        None => missing_line(config, name, grants, &missing, audience),
    })
}

/// What is said of a grant that a tool asks for, with the line that would give it.
pub(crate) fn missing_line(
    config: &Config,
    tool: &ToolName,
    grants: &ConfiguredGrants,
    missing: &MissingGrant,
    audience: Audience,
) -> String {
    let key = missing.key;
    // A list replaces the default, which a tool would lose by it.
    let kept = grants.value.kinds().into_iter().find(|kind| kind.key() == key);
    let replaces =
        kept.is_some_and(|kind| !kind.is_empty()) && *grants.origin_of(key) == Origin::Default;
    let besides = if replaces { ", which replaces the default" } else { "" };
    let action = config.advice(tool, grants, missing).action(audience);
    let action = match audience {
        Audience::Person => format!("to give it, {action}"),
        Audience::Model => audience.instruct(&action),
    };
    format!("tool `{tool}` asks for a grant that it does not have; {action}{besides}")
}
