//! From the text of a manifest to what it means here.

use std::path::Path;

use crate::fields::Notes;
use crate::manifest::{Format, Manifest};
use crate::node::{Node, Problem};
use crate::note::Note;
use crate::wishes::Wishes;
use crate::{capabilities_json, json, manifest_yaml, policy_yaml, skill_toml, toml_tree, yaml};

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
        let root = match read(format, text) {
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

/// Reads a text in the language of its format.
fn read(format: Format, text: &str) -> Result<Node, Problem> {
    match format {
        Format::SkillToml => toml_tree::read(text),
        Format::CapabilitiesJson => json::read(text),
        Format::ManifestYaml | Format::PolicyYaml => yaml::read(text),
    }
}
