//! One tool, with all known data.

use std::collections::BTreeMap;

use kitbag_base::json::{self, JsonBudget};
use kitbag_config::{
    Audience, Config, ConfiguredGrants, Diagnostic, DiagnosticKind, Disabled, EffectiveLimits,
    Origin, Sourced, ToolApproval, ToolRate, ToolSource, set_secret_command,
};
use kitbag_contract::{Annotations, ToolName};
use kitbag_host::Lane;
use kitbag_policy::{MissingGrant, Request, RequestedGrants};
use kitbag_schema::{ArgumentProblem, CheckError, Schema, SchemaError};
use serde_json::Value;

use crate::call::deadline::Deadline;
use crate::error::ToolboxError;

/// The summary of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The name for calls.
    pub name: ToolName,
    /// `built-in`, `native`, `bytes`, or the file as named in the configuration.
    pub source: String,
    /// The binary interface of a component in a file or in memory. `None`: it is not known.
    pub lane: Option<Lane>,
    /// The group of a built-in tool, which `[toolsets]` enables or disables.
    pub toolset: Option<String>,
    /// The tool's access in a few words, such as `reads /workspace`. `None` for native code, which
    /// has the rights of its program.
    pub reach: Option<String>,
    /// Why the tool is disabled.
    pub disabled: Option<Disabled>,
    /// Why the tool cannot work, if that is known without loading it: a required grant is missing.
    /// Contains the line that would add the grant.
    pub unavailable: Option<String>,
    /// The tool's description, if it is known without loading the tool. Untrusted text.
    pub description: Option<String>,
}

/// A resolved tool. Values of the configuration take precedence over those of the tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The name for calls.
    pub name: ToolName,
    /// The source of the tool.
    pub source: ToolSource,
    /// The binary interface of a component in a file or in memory. `None`: it is not known.
    pub lane: Option<Lane>,
    /// A display name. Untrusted text.
    pub title: Option<Sourced<String>>,
    /// The description for the model. Untrusted text.
    pub description: Option<Sourced<String>>,
    /// The JSON Schema of the arguments. Default: any object.
    pub input_schema: Sourced<Schema>,
    /// The JSON Schema of the content, if the content is JSON.
    pub output_schema: Option<Sourced<Schema>>,
    /// Hints for a client, derived from the grants. The tool may add hints that do not depend on
    /// grants.
    pub annotations: Annotations,
    /// The grants. A topic's directory is added for the call.
    pub grants: ConfiguredGrants,
    /// The grants that the tool requests. They give no access.
    pub requested_grants: RequestedGrants,
    /// The limits of one call.
    pub limits: EffectiveLimits,
    /// The rates for each caller. All rates must allow a call. Default: no rates.
    pub rates: Vec<ToolRate>,
    /// The approval rules of the configuration and of the tool itself.
    pub approve: ToolApproval,
    /// Preset answers, by the id of the question.
    pub answers: BTreeMap<String, Sourced<Value>>,
    /// True if keys and tokens in the output are masked.
    pub mask: Sourced<bool>,
    /// Problems with the disk cache while the tool was loaded for this.
    pub cache_problems: Vec<kitbag_host::CacheProblem>,
    /// The problem with the tool's own description, which is then ignored.
    pub description_problem: Option<String>,
    /// Why the declared output schema cannot be used. The tool then has no output schema.
    pub output_problem: Option<String>,
    /// Why the component is not run: it does not match the lock file.
    pub refused: Option<String>,
}

/// The known data of a tool that is not loaded.
#[derive(Clone, Debug)]
pub struct KnownTool {
    /// The tool, with its known data.
    pub tool: Tool,
    /// True if loading the tool may reveal more data.
    pub may_say_more: bool,
}

impl Tool {
    /// Compiles both schemas of the tool, as a call does. Patterns take time to compile.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Schema`] for a schema that no call can be checked against.
    pub fn check_schemas(&self) -> Result<(), ToolboxError> {
        match &self.output_problem {
            None => self.check_schemas_in_use(),
            Some(reason) => {
                let (tool, reason) = (self.name.to_string(), reason.clone());
                Err(ToolboxError::Schema { tool, kind: "output", reason })
            }
        }
    }

    /// Checks schemas as [`check_schemas`](Self::check_schemas) does, but drops an output schema
    /// that cannot be used.
    pub(crate) fn check_schemas_in_use(&self) -> Result<(), ToolboxError> {
        self.check_schema_forms()?;
        self.schemas().try_for_each(|(kind, schema)| {
            schema.check().map_err(|error| self.unusable(kind, error))
        })
    }

    /// Checks that both of the tool's schemas have the form of a schema, and that the first is the
    /// schema of an object. This is quick, since no schema is compiled.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Schema`] for a schema with a different form.
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

    /// Returns the requested grants that the tool does not have, each with the line that would add
    /// it. The tool may work without them.
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
            // Each refused HTTP request is reported separately.
            Request::HttpPattern(_) if has_http => false,
            request => {
                let is_given = is_builtin && request.is_given_by_call();
                // A warning has the grant that the configuration already names.
                !is_given && self.grants.left_out(request).is_none()
            }
        })
    }

    /// Checks that the granted secrets exist.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::NoSecret`] for the first that does not exist, with the command that sets it.
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

    /// Returns the reason why the tool cannot work: its component does not match the lock file, or
    /// a required grant is missing. Contains the line that would add the grant.
    pub fn unavailable(&self, config: &Config) -> Option<String> {
        self.unavailable_for(config, Audience::Person)
    }

    /// Returns the reason why the tool cannot work, worded for this reader.
    pub(crate) fn unavailable_for(&self, config: &Config, audience: Audience) -> Option<String> {
        let Self { name, source, grants, requested_grants, refused, .. } = self;
        let lacks_required =
            || unavailable(config, name, source, grants, requested_grants, audience);
        refused.clone().or_else(lacks_required)
    }

    /// Returns the grants that are most likely mistakes: those that have no effect or give no
    /// access.
    pub fn grant_warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.grants.warnings.iter().map(|warning| self.grant_warning(warning))
    }

    pub(crate) fn grant_warning(&self, warning: &Diagnostic) -> String {
        format!("tool `{}`, {}: {}", self.name, warning.place, warning.message)
    }

    pub(crate) fn is_builtin(&self) -> bool {
        matches!(self.source, ToolSource::Builtin { .. })
    }

    /// Parses content as the JSON that the tool's output schema promises. `None` if the tool has no
    /// output schema.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Output`] lists the parts that do not fit. [`ToolboxError::Schema`] reports
    /// an invalid schema.
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

/// Returns the part of [`Tool::unavailable`] about missing grants.
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
    // A workspace granted access of this kind that exceeds the ceiling and has no effect.
    let kinds = [
        DiagnosticKind::BeyondGrantCeiling(missing.key),
        DiagnosticKind::UntrustedGrant(missing.key),
    ];
    Some(match grants.warnings.iter().find(|warning| kinds.contains(&warning.kind)) {
        Some(warning) => format!("tool `{name}`, {}: {}", warning.place, warning.message),
        None => missing_line(config, name, grants, &missing, audience),
    })
}

/// Returns the line about a grant that a tool requests, with the line that would add it.
pub(crate) fn missing_line(
    config: &Config,
    tool: &ToolName,
    grants: &ConfiguredGrants,
    missing: &MissingGrant,
    audience: Audience,
) -> String {
    let key = missing.key;
    // A list replaces the default, so the line keeps the default entries.
    let kept = grants.value.kinds().into_iter().find(|kind| kind.key() == key);
    let replaces =
        kept.is_some_and(|kind| !kind.is_empty()) && *grants.origin_of(key) == Origin::Default;
    let besides = if replaces { ", which replaces the default" } else { "" };
    let action = config.advice(tool, grants, missing).action(audience);
    let action = match audience {
        Audience::Person => format!("to give it, {action}"),
        Audience::Model => audience.instruct(&action),
    };
    format!("tool `{tool}` requests a grant that it does not have; {action}{besides}")
}
