//! Translates the text of a manifest.

use std::path::Path;

use kitbag::base::ContentDigest;
use kitbag::host::act_manifest;

use super::fields::Notes;
use super::manifest::{Format, Manifest};
use super::node::{Node, Problem};
use super::note::Note;
use super::requested_grants::ManifestGrants;
use super::{
    act_component, capabilities_json, extension_toml, json, manifest_yaml, policy_yaml, skill_toml,
    toml_tree, yaml,
};

impl Manifest {
    /// Translates a manifest. `directory` is the absolute path of the manifest's directory: the
    /// base of its relative paths. `tool` selects one of several tools of a component.
    ///
    /// Never fails: a manifest that cannot be read requests nothing, and a note gives the reason.
    /// The configurations of JP and hyper-mcp hold several tools: use [`of_jp`](Self::of_jp) and
    /// [`of_hyper_mcp`](Self::of_hyper_mcp) for those.
    pub(crate) fn translate_tool(
        format: Format,
        source: impl AsRef<[u8]>,
        directory: &Path,
        tool: Option<&str>,
    ) -> Self {
        let source = source.as_ref();
        let mut manifest = Self::empty(format, source);
        let root = match decoded(source).and_then(|text| read(format, text)) {
            Ok(root) => root,
            Err(problem) => return manifest.refused(problem),
        };
        let mut notes = Notes::default();
        match &root {
            Node::Table(entries) if entries.is_empty() => {
                return manifest.refused("it is empty".to_owned());
            }
            Node::Null => return manifest.refused("it is empty".to_owned()),
            Node::Table(_) => {}
            other => return manifest.refused(format!("it is {}, not a table", other.kind())),
        }
        match format {
            Format::SkillToml => skill_toml::translate(&root, &mut manifest, &mut notes),
            Format::ManifestYaml => {
                manifest_yaml::translate(&root, directory, &mut manifest, &mut notes);
            }
            Format::CapabilitiesJson => {
                capabilities_json::translate(&root, &mut manifest, &mut notes);
            }
            Format::PolicyYaml => policy_yaml::translate(&root, &mut manifest, &mut notes),
            Format::ExtensionToml => {
                extension_toml::translate(&root, tool, &mut manifest, &mut notes);
            }
            Format::ActComponent | Format::ActToml => {
                act_component::translate(&root, &mut manifest, &mut notes);
            }
            Format::Jp | Format::HyperMcp => {
                return manifest.refused("it may hold several tools".to_owned());
            }
        }
        manifest.finish(notes);
        manifest
    }

    /// Translates the section `act:component` of a component, which is CBOR.
    pub(crate) fn of_act_section(section: &[u8]) -> Self {
        let manifest = match act_manifest(section) {
            Ok(json) => Self::translate_tool(Format::ActComponent, json, Path::new("/"), None),
            Err(problem) => Self::empty(Format::ActComponent, section).refused(problem),
        };
        let digest = ContentDigest(*blake3::hash(section).as_bytes());
        Self { digest, ..manifest }
    }

    /// Translates a manifest with all of its tools.
    #[cfg(test)]
    pub(crate) fn translate(format: Format, source: impl AsRef<[u8]>, directory: &Path) -> Self {
        Self::translate_tool(format, source, directory, None)
    }

    /// Drops the requests that a zero limit or a denial forbids, and keeps the notes.
    pub(crate) fn finish(&mut self, mut notes: Notes) {
        if notes.has_zero_limit {
            self.requested = ManifestGrants::default();
        }
        self.requested.without_denied(&mut notes);
        self.notes = notes.into_list();
    }

    /// Returns the manifest with a note on the whole file. It requests nothing.
    fn refused(mut self, problem: Problem) -> Self {
        let text = format!("{problem}; it requests nothing");
        self.notes.push(Note { key: String::new(), text });
        self
    }
}

/// Returns the text of a manifest without a byte order mark.
pub(crate) fn decoded(source: &[u8]) -> Result<&str, Problem> {
    let text = str::from_utf8(source).map_err(|error| {
        let before = &source[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("it is not UTF-8: see line {line}")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Parses text in the language of its format.
fn read(format: Format, text: &str) -> Result<Node, Problem> {
    let read = match format {
        Format::SkillToml | Format::ExtensionToml | Format::ActToml | Format::Jp => {
            toml_tree::read(text)
        }
        Format::CapabilitiesJson | Format::HyperMcp | Format::ActComponent => json::read(text),
        Format::ManifestYaml | Format::PolicyYaml => yaml::read(text),
    };
    read.map_err(|problem| format!("it cannot be read: {problem}"))
}
