//! Manifests that were written for other hosts of tools, in kitbag's own terms.
//!
//! Each format is a file of its own: it knows the fields of that format and what they meant to
//! the host that it was made for. What comes of it is a [`Manifest`]: wishes, which grant nothing,
//! limits, and notes of all that has no meaning here. A manifest never asks for more than its
//! source says; what cannot be expressed is left out and noted.
//!
//! This crate reads texts and does no I/O.

mod capabilities_json;
mod fields;
mod json;
mod manifest_yaml;
mod node;
mod policy_yaml;
mod skill_toml;
mod toml_tree;
mod wishes;
mod yaml;

use std::path::Path;

pub use wishes::{DirectoryWish, HttpWish, SecretWish, Wishes};

use crate::fields::Notes;
use crate::node::{Node, Problem};

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

/// Something of a manifest that was left out or means less here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it stands: dotted keys. Empty: the whole file.
    pub key: String,
    /// What is to be said of it.
    pub text: String,
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

    fn read(self, text: &str) -> Result<Node, Problem> {
        match self {
            Self::SkillToml => toml_tree::read(text),
            Self::CapabilitiesJson => json::read(text),
            Self::ManifestYaml | Self::PolicyYaml => yaml::read(text),
        }
    }
}

impl Manifest {
    /// Translates a manifest. `directory` is the absolute path of where it lies, which its
    /// relative paths may be relative to.
    ///
    /// It never fails: what cannot be read wishes nothing, and a note says why.
    pub fn translate(format: Format, text: &str, directory: &Path) -> Self {
        let mut manifest = Self {
            format,
            name: None,
            version: None,
            description: None,
            component: None,
            wishes: Wishes::default(),
            limits: Vec::new(),
            rate: None,
            notes: Vec::new(),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = match format.read(text) {
            Ok(root @ Node::Table(_)) => root,
            Ok(other) => {
                let text = format!("it is {}, and no table: it wishes nothing", other.kind());
                manifest.notes.push(Note { key: String::new(), text });
                return manifest;
            }
            Err(problem) => {
                let text = format!("it cannot be read, and wishes nothing: {problem}");
                manifest.notes.push(Note { key: String::new(), text });
                return manifest;
            }
        };
        let mut notes = Notes::default();
        match format {
            Format::SkillToml => skill_toml::translate(&root, &mut manifest, &mut notes),
            Format::ManifestYaml => {
                manifest_yaml::translate(&root, directory, &mut manifest, &mut notes);
            }
            Format::CapabilitiesJson => {
                capabilities_json::translate(&root, &mut manifest, &mut notes);
            }
            Format::PolicyYaml => policy_yaml::translate(&root, &mut manifest, &mut notes),
        }
        if notes.has_zero_limit {
            manifest.wishes = Wishes::default();
        }
        manifest.wishes.without_denied(&mut notes);
        manifest.notes = notes.into_list();
        manifest
    }
}
