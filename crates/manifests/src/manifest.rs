//! A manifest in kitbag's own terms.

use std::fmt::Write as _;

use crate::note::Note;
use crate::wishes::{Wishes, quoted};

/// What the name of a file of credentials and grants ends in.
const CAPABILITIES: &str = ".capabilities.json";

/// The format of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// `skill.toml`
    SkillToml,
    /// `manifest.yaml`
    ManifestYaml,
    /// `NAME.capabilities.json`
    CapabilitiesJson,
    /// `policy.yaml`
    PolicyYaml,
}

/// A manifest in kitbag's own terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// What it was written in.
    pub format: Format,
    /// What the tool is called.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// The file of its component, relative to the manifest.
    pub component: Option<String>,
    /// What it would like to be granted.
    pub wishes: Wishes,
    /// What one call may use up, as `limits` has it: keys and values in TOML.
    pub limits: Vec<(&'static str, String)>,
    /// How often it may be called.
    pub rate: Option<String>,
    /// What was left out, and why.
    pub notes: Vec<Note>,
}

impl Format {
    /// The format of a file, by its name. `None`: it is no manifest that is read here.
    pub fn of_file(name: &str) -> Option<Self> {
        Some(match name {
            "skill.toml" => Self::SkillToml,
            "manifest.yaml" | "manifest.yml" => Self::ManifestYaml,
            "policy.yaml" | "policy.yml" => Self::PolicyYaml,
            name if name.len() > CAPABILITIES.len() && name.ends_with(CAPABILITIES) => {
                Self::CapabilitiesJson
            }
            _ => return None,
        })
    }

    /// The tool that the name of such a file names.
    pub fn tool_of_file(name: &str) -> Option<&str> {
        name.strip_suffix(CAPABILITIES).filter(|stem| !stem.is_empty())
    }
}

impl Manifest {
    /// The table of the tool in TOML, as `NAME.toml` beside a component has it. Directories are
    /// among the grants even where there are none: without a list a tool reads the workspace.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        if let Some(description) = &self.description {
            let _ = writeln!(text, "description = {}", quoted(description));
        }
        if let Some(rate) = &self.rate {
            let _ = writeln!(text, "rate = {}", quoted(rate));
        }
        text.push_str("\n[grants]\n");
        for (key, value) in self.wishes.grants() {
            let _ = writeln!(text, "{key} = {value}");
        }
        if !self.limits.is_empty() {
            text.push_str("\n[limits]\n");
            for (key, value) in &self.limits {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        text.trim_start().to_owned()
    }
}
