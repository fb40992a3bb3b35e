//! The records of servers: the definitions of their tools, in a form that a team can review.

use std::collections::BTreeMap;
use std::sync::Arc;

use kitbag_base::ContentDigest;
use kitbag_base::json::{self, JsonBudget};
use kitbag_base::shell;
use kitbag_base::text::shown;
use kitbag_policy::server::{Era, ServerName, ToolDefinition};
use kitbag_state::trust::digest_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::LockedServer;
use crate::format::span::{At, Table, Written};
use crate::report::Report;

/// The most tools of a server, and the longest name of one, in bytes.
pub(crate) const TOOLS: usize = 512;
pub(crate) const NAME_BYTES: usize = 128;

/// The largest schema or annotations of a tool, in bytes of JSON.
pub(crate) const JSON_BYTES: usize = 256 << 10;
const JSON_VALUES: usize = 40_000;

/// The form of a record.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "MCP server")]
pub(super) struct LockedServerConfig {
    /// The name that the server declares.
    name: Option<Written<String>>,
    /// The version that the server declares.
    version: Option<Written<String>>,
    /// The revision of the protocol that it spoke.
    protocol: Option<Written<String>>,
    /// The era of that revision: `initialize` or `stateless`.
    era: Option<Written<String>>,
    /// Its command line or URL.
    origin: Option<Written<String>>,
    /// Its tools, by the server's names.
    tools: Option<Table<DefinitionConfig>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Tool of a server")]
struct DefinitionConfig {
    title: Option<Written<String>>,
    description: Option<Written<String>>,
    /// The JSON Schema of the arguments, as JSON.
    input: Written<String>,
    /// The JSON Schema of the structured content, as JSON.
    output: Option<Written<String>>,
    /// The hints about its behaviour, as JSON.
    annotations: Option<Written<String>>,
    /// The BLAKE3 digest of the definition.
    digest: Written<String>,
}

#[derive(Serialize)]
struct WrittenServer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    era: Option<Era>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a str>,
    tools: BTreeMap<&'a str, WrittenDefinition<'a>>,
}

#[derive(Serialize)]
struct WrittenDefinition<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<String>,
    digest: String,
}

/// Reads a record. Invalid parts are reported.
pub(super) fn locked(
    name: &ServerName,
    at: At<'_, LockedServerConfig>,
    report: &mut Report,
) -> LockedServer {
    let LockedServerConfig { name: declared, version, protocol, era, origin, tools } = at.value;
    let text = |written: &Option<Written<String>>| Some(written.as_ref()?.value.clone());
    let era = era.as_ref().and_then(|written| match written.value.as_str() {
        "initialize" => Some(Era::Initialize),
        "stateless" => Some(Era::Stateless),
        other => {
            let problem =
                format!("`era` takes `initialize` or `stateless`, not `{}`", shown(other));
            report.at(written.at(at.file), problem);
            None
        }
    });
    let mut locked = LockedServer {
        name: text(declared),
        version: text(version),
        protocol: text(protocol),
        era,
        origin: text(origin),
        tools: BTreeMap::new(),
    };
    for (index, part) in tools.iter().flat_map(|tools| tools.parts(at.file)).enumerate() {
        if index == TOOLS {
            report.at(part.key, format!("a server has at most {TOOLS} tools"));
            break;
        }
        match definition(part.key.value, part.at) {
            Ok(definition) => {
                let definition = Arc::new(definition);
                locked.tools.insert(part.key.value.to_owned(), definition);
            }
            Err((at, problem)) => {
                let again = format!(
                    "{problem}; delete `[servers.{name}]` from this file, then run `{}`",
                    shell::command(["kitbag", "update", name.as_str()])
                );
                report.at(at, again);
            }
        }
    }
    locked
}

/// Reads the definition of a tool, which must have the recorded digest.
fn definition<'a>(
    name: &str,
    at: At<'a, DefinitionConfig>,
) -> Result<ToolDefinition, (At<'a, String>, String)> {
    let DefinitionConfig { title, description, input, output, annotations, digest } = at.value;
    let digest = digest.at(at.file);
    if name.is_empty() || name.len() > NAME_BYTES {
        let problem = format!("the name of a tool has 1 to {NAME_BYTES} bytes");
        return Err((digest, problem));
    }
    let json = |written: &'a Written<String>| {
        let at = written.at(at.file);
        let budget = JsonBudget { bytes: JSON_BYTES, values: JSON_VALUES };
        json::parse(at.value.as_bytes(), budget)
            .map_err(|error| (at, format!("this is not JSON that kitbag accepts: {error}")))
    };
    let optional = |written: &'a Option<Written<String>>| written.as_ref().map(json).transpose();
    let text = |written: &Option<Written<String>>| Some(written.as_ref()?.value.clone());
    let definition = ToolDefinition {
        name: name.to_owned(),
        title: text(title),
        description: text(description),
        input_schema: json(input)?,
        output_schema: optional(output)?,
        annotations: optional(annotations)?,
    };
    match digest.value.parse::<ContentDigest>() {
        Ok(recorded) if recorded == definition_digest(&definition) => Ok(definition),
        Ok(_) => {
            let name = shown(name);
            let problem = format!(
                "the definition of `{name}` does not have this digest, because it was edited by \
                 hand or merged"
            );
            Err((digest, problem))
        }
        Err(error) => Err((digest, error.to_string())),
    }
}

/// Formats a record as tables.
pub(super) fn written(
    name: &ServerName,
    server: &LockedServer,
) -> Result<String, toml::ser::Error> {
    let tools = server.tools.iter().map(|(own, definition)| {
        let ToolDefinition { title, description, input_schema, output_schema, annotations, .. } =
            &**definition;
        let json = |value: &Option<Value>| value.as_ref().map(Value::to_string);
        let written = WrittenDefinition {
            title: title.as_deref(),
            description: description.as_deref(),
            input: input_schema.to_string(),
            output: json(output_schema),
            annotations: json(annotations),
            digest: definition_digest(definition).to_string(),
        };
        (own.as_str(), written)
    });
    let server = WrittenServer {
        name: server.name.as_deref(),
        version: server.version.as_deref(),
        protocol: server.protocol.as_deref(),
        era: server.era,
        origin: server.origin.as_deref(),
        tools: tools.collect(),
    };
    let servers = BTreeMap::from([(name.as_str(), server)]);
    toml::to_string_pretty(&BTreeMap::from([("servers", servers)]))
}

/// Returns the digest of a definition: of its JSON text.
pub(crate) fn definition_digest(definition: &ToolDefinition) -> ContentDigest {
    let json = serde_json::to_vec(definition).expect("strings and JSON values are JSON");
    digest_of(&json)
}

/// Checks the definitions of a server before they are recorded.
///
/// # Errors
///
/// The first bound that they exceed: the number of tools, the length of a name, or the size of a
/// schema.
pub fn check_definitions(tools: &[ToolDefinition]) -> Result<(), String> {
    if tools.len() > TOOLS {
        return Err(format!("the server has {} tools; the limit is {TOOLS}", tools.len()));
    }
    let mut names = std::collections::BTreeSet::new();
    for tool in tools {
        let ToolDefinition { name, title, description, input_schema, output_schema, annotations } =
            tool;
        if name.is_empty() || name.len() > NAME_BYTES {
            return Err(format!("the name of a tool has 1 to {NAME_BYTES} bytes"));
        }
        if !names.insert(name) {
            return Err(format!("the server has two tools named `{}`", shown(name)));
        }
        let texts = [title, description].into_iter().flatten().map(String::len);
        let values = [Some(input_schema), output_schema.as_ref(), annotations.as_ref()];
        for value in values.into_iter().flatten() {
            let text = value.to_string();
            let budget = JsonBudget { bytes: JSON_BYTES, values: JSON_VALUES };
            json::parse(text.as_bytes(), budget).map_err(|error| {
                format!("a schema of `{}` cannot be recorded: {error}", shown(name))
            })?;
        }
        if texts.sum::<usize>() > JSON_BYTES {
            return Err(format!("the description of `{}` is too long", shown(name)));
        }
    }
    Ok(())
}
