//! A manifest in kitbag's own terms.

use std::fmt::Write as _;

use kitbag::base::ContentDigest;

use super::note::Note;
use super::requested_grants::{ManifestGrants, quoted};

/// Suffix of the file name of a `capabilities.json`.
const CAPABILITIES: &str = ".capabilities.json";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Format {
    /// `skill.toml`.
    SkillToml,
    /// `manifest.yaml`.
    ManifestYaml,
    /// `capabilities.json` or `NAME.capabilities.json`.
    CapabilitiesJson,
    /// `policy.yaml`.
    PolicyYaml,
    /// `manifest.toml` of IronClaw.
    ExtensionToml,
    /// The section `act:component` of a component, as JSON.
    ActComponent,
    /// `act.toml`, from which the section `act:component` is made.
    ActToml,
    /// A configuration of JP with `[conversation.tools.NAME]`.
    Jp,
    /// A configuration of hyper-mcp with `plugins`.
    HyperMcp,
}

/// A translated manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) format: Format,
    /// The BLAKE3 digest of the source.
    pub(crate) digest: ContentDigest,
    pub(crate) name: Option<String>,
    /// The display name of the tool.
    pub(crate) title: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) description: Option<String>,
    /// The file of the component, relative to the manifest.
    pub(crate) component: Option<String>,
    pub(crate) requested: ManifestGrants,
    /// The names of the tools, if one component serves several.
    pub(crate) tools: Vec<String>,
    /// The component's name of the tool.
    pub(crate) function: Option<String>,
    /// The file with the JSON Schema of the arguments, relative to the manifest.
    pub(crate) schema: Option<String>,
    /// The arguments of the tool, in the form of `parameters` in a kitbag config.
    pub(crate) parameters: Option<toml::Table>,
    /// Limits of one call, as in `limits` of a kitbag config: keys and values in TOML.
    pub(crate) limits: Vec<(&'static str, String)>,
    /// The maximum rate of calls, such as `60/min`.
    pub(crate) rate: Option<String>,
    /// A person must approve each call.
    pub(crate) is_approved_per_call: bool,
    /// Notes on fields that were dropped or that kitbag enforces less strictly.
    pub(crate) notes: Vec<Note>,
}

impl Format {
    /// Detects the format of a file by its name. `None`: the file is not a known manifest.
    pub(crate) fn of_file(name: &str) -> Option<Self> {
        Some(match name {
            "skill.toml" => Self::SkillToml,
            "act.toml" => Self::ActToml,
            "manifest.yaml" | "manifest.yml" => Self::ManifestYaml,
            "manifest.toml" => Self::ExtensionToml,
            "policy.yaml" | "policy.yml" => Self::PolicyYaml,
            "capabilities.json" => Self::CapabilitiesJson,
            name if name.len() > CAPABILITIES.len() && name.ends_with(CAPABILITIES) => {
                Self::CapabilitiesJson
            }
            _ => return None,
        })
    }

    /// Returns the tool that is part of a file name such as `NAME.capabilities.json`.
    pub(crate) fn tool_of_file(name: &str) -> Option<&str> {
        name.strip_suffix(CAPABILITIES).filter(|stem| !stem.is_empty())
    }
}

impl Manifest {
    pub(crate) fn empty(format: Format, source: &[u8]) -> Self {
        Self {
            format,
            digest: ContentDigest(*blake3::hash(source).as_bytes()),
            name: None,
            title: None,
            version: None,
            author: None,
            description: None,
            component: None,
            requested: ManifestGrants::default(),
            tools: Vec::new(),
            function: None,
            schema: None,
            parameters: None,
            limits: Vec::new(),
            rate: None,
            is_approved_per_call: false,
            notes: Vec::new(),
        }
    }

    /// Returns true if one of several tools has this name.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|own| own == name)
    }

    /// Returns the keys of the tool's table without its grants, each with its value in TOML.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = Vec::new();
        let texts = [
            ("function", &self.function),
            ("title", &self.title),
            ("description", &self.description),
        ];
        for (key, text) in texts.into_iter().chain([("rate", &self.rate)]) {
            settings.extend(text.as_ref().map(|text| (key, quoted(text))));
        }
        if self.is_approved_per_call {
            settings.push(("approve", quoted("always")));
        }
        settings
    }

    /// Returns the table of the tool in TOML, in the form of a `NAME.toml` beside a component.
    /// Directories are always among the grants: without a list a tool reads the workspace.
    pub(crate) fn to_toml(&self) -> String {
        let mut text = String::new();
        for (key, value) in self.settings() {
            let _ = writeln!(text, "{key} = {value}");
        }
        text.push_str("\n[grants]\n");
        for (key, value) in self.requested.grants() {
            let _ = writeln!(text, "{key} = {value}");
        }
        if !self.limits.is_empty() {
            text.push_str("\n[limits]\n");
            for (key, value) in &self.limits {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        if let Some(parameters) = &self.parameters {
            let table = toml::Table::from_iter([(
                "parameters".to_owned(),
                toml::Value::Table(parameters.clone()),
            )]);
            let _ = write!(text, "\n{table}");
        }
        text.trim_start().to_owned()
    }
}
