//! `kitbag.lock`: the record of each tool at the time when a person agreed to it.
//!
//! The lock file of a workspace is in `.kitbag`, the user's lock file is beside the user config.
//! `kitbag add` and `kitbag update` write it. This module reads it and formats it.

mod servers;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use kitbag_contract::ToolName;
use kitbag_policy::server::ServerName;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{
    DIRECTORY, LOCK, LockedDownload, LockedManifest, LockedServer, LockedTool, Recorded,
    RecordedServer,
};
use crate::format::invalid_keys::InvalidKeys;
use crate::format::key::KeyPath;
use crate::format::parse::{Form, parse};
use crate::format::schema::schema_of;
use crate::format::span::{Table, Written};
use crate::layers::origin::Origin;
use crate::read::file::{Layer, SourceFile};
use crate::report::text::missing_key;
use crate::report::{ConfigErrors, Piece, Report, Span};
use servers::LockedServerConfig;
pub use servers::check_definitions;

/// The newest format version, with downloads. A file without downloads has a version before.
const VERSION: u64 = 4;

const WITHOUT_DOWNLOADS: u64 = 3;

const WITHOUT_SERVERS: u64 = 2;

/// The oldest format version that this build reads: without manifests.
const OLDEST: u64 = 1;

/// The start of the file.
const HEADER: &str = "\
# Tools recorded by `kitbag add` and `kitbag update`, for a team to review. A tool whose component,
# description or schema differs does not run until `kitbag update NAME` records the new version.
";

/// The records of tools, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lock {
    /// The tools.
    pub tools: BTreeMap<ToolName, LockedTool>,
    /// The MCP servers, by name.
    pub servers: BTreeMap<ServerName, LockedServer>,
    /// The place of each component's digest.
    places: BTreeMap<ToolName, Origin>,
    /// The place of each server.
    server_places: BTreeMap<ServerName, Origin>,
}

/// The form of the file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Lock file of kitbag")]
struct LockFile {
    /// The version of the format. Required.
    version: Option<Written<NonZeroU64>>,
    tools: Option<Table<LockedToolConfig>>,
    servers: Option<Table<LockedServerConfig>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Tool")]
struct LockedToolConfig {
    version: Option<Written<String>>,
    /// The origin of its component.
    origin: Option<Written<String>>,
    /// The BLAKE3 digest of its component.
    component: Written<String>,
    /// The BLAKE3 digest of the tool's own description.
    description: Option<Written<String>>,
    /// The BLAKE3 digest of its schemas.
    schema: Option<Written<String>>,
    /// The requested grants.
    #[serde(alias = "wishes")]
    requested: Option<Written<Vec<Written<String>>>>,
    /// The imports of the component.
    imports: Option<Written<Vec<Written<String>>>>,
    /// The manifest that the tool was added with.
    manifest: Option<LockedManifestConfig>,
    /// The artifact or URL that the component was downloaded from.
    download: Option<LockedDownloadConfig>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Download")]
struct LockedDownloadConfig {
    /// The SHA-256 digest of the artifact's manifest, or of the component at a URL.
    digest: Written<String>,
    /// The signer.
    signer: Option<Written<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Manifest")]
struct LockedManifestConfig {
    /// The name of the manifest's file.
    file: Written<String>,
    /// The BLAKE3 digest of its content.
    digest: Written<String>,
    /// The version of the tool, from the manifest.
    version: Option<Written<String>>,
    /// The author, from the manifest.
    author: Option<Written<String>>,
    /// The requested grants and settings in the manifest.
    requests: Option<Written<Vec<Written<String>>>>,
}

impl Lock {
    /// Returns the path of the lock file of a workspace.
    pub fn path_in(root: &Path) -> PathBuf {
        root.join(DIRECTORY).join(LOCK)
    }

    /// Returns the path of the user's lock file, which is beside the user config.
    pub fn path_beside(user_file: &Path) -> PathBuf {
        user_file.with_file_name(LOCK)
    }

    /// Reads the text of a file. Messages name the file by its path relative to `root` if it is
    /// inside.
    ///
    /// # Errors
    ///
    /// [`ConfigErrors`] holds all mistakes in the file.
    pub fn read(text: &str, path: &Path, root: &Path) -> Result<Self, ConfigErrors> {
        let file = SourceFile::new(path.to_owned(), root, Layer::Workspace, text.to_owned());
        let mut report = Report::default();
        let lock = Self::of_file(&file, &mut report, &mut InvalidKeys::default());
        report.finish()?;
        Ok(lock.unwrap_or_default())
    }

    /// Reads a file. Returns `None` if it cannot be understood.
    pub(crate) fn of_file(
        file: &SourceFile,
        report: &mut Report,
        invalid: &mut InvalidKeys,
    ) -> Option<Self> {
        let schema = schema_of::<LockFile>;
        let form = Form { base: &KeyPath::ROOT, schema, misplaced: Vec::new() };
        let LockFile { version, tools, servers } = parse(file, &form, report, invalid)?;
        let Some(version) = version else {
            report.span(file, Span::default(), missing_key("version", ""));
            return None;
        };
        if !(OLDEST..=VERSION).contains(&version.value.get()) {
            let problem = format!(
                "this file has version {}, but this kitbag reads version {VERSION}; use a matching \
                 version of kitbag",
                version.value
            );
            report.at(version.at(file), problem);
            return None;
        }
        let mut lock = Self::default();
        let whole = report.at_piece().clone();
        for part in tools.iter().flat_map(|tools| tools.parts(file)) {
            if whole != Piece::Everything {
                report.enter(Piece::Tool(part.key.value.to_owned()));
            }
            let mut digest = |written: &Written<String>| match written.value.parse() {
                Ok(digest) => Some(digest),
                Err(error) => {
                    report.at(written.at(file), error);
                    None
                }
            };
            let LockedToolConfig {
                version,
                origin,
                component,
                description,
                schema,
                requested,
                imports,
                manifest,
                download,
            } = part.at.value;
            let place = component.at(file).origin();
            let component = digest(component);
            let description = description.as_ref().and_then(&mut digest);
            let schema = schema.as_ref().and_then(&mut digest);
            let text = |written: &Option<Written<String>>| Some(written.as_ref()?.value.clone());
            let list = |written: &Option<Written<Vec<Written<String>>>>| {
                let texts = written.iter().flat_map(|list| &list.value);
                texts.map(|text| text.value.clone()).collect()
            };
            let manifest = manifest.as_ref().and_then(|manifest| {
                Some(LockedManifest {
                    file: manifest.file.value.clone(),
                    digest: digest(&manifest.digest)?,
                    version: text(&manifest.version),
                    author: text(&manifest.author),
                    requests: list(&manifest.requests),
                })
            });
            let name = match ToolName::new(part.key.value) {
                Ok(name) => name,
                Err(error) => {
                    report.at(part.key, error);
                    continue;
                }
            };
            let Some(component) = component else { continue };
            let tool = LockedTool {
                version: text(version),
                origin: text(origin),
                component,
                description,
                schema,
                requested: list(requested),
                imports: list(imports),
                manifest,
                download: download.as_ref().map(|download| LockedDownload {
                    digest: download.digest.value.clone(),
                    signer: text(&download.signer),
                }),
            };
            lock.places.insert(name.clone(), place);
            lock.tools.insert(name, tool);
        }
        for part in servers.iter().flat_map(|servers| servers.parts(file)) {
            if whole != Piece::Everything {
                report.enter(Piece::Server(part.key.value.to_owned()));
            }
            let name = match ServerName::new(part.key.value) {
                Ok(name) => name,
                Err(error) => {
                    report.at(part.key, error);
                    continue;
                }
            };
            let server = servers::locked(&name, part.at, report);
            lock.server_places.insert(name.clone(), part.key.origin());
            lock.servers.insert(name, server);
        }
        report.enter(whole);
        Some(lock)
    }

    /// Returns the record of a server, with its place.
    pub fn server(&self, name: &ServerName) -> Option<RecordedServer> {
        let server = self.servers.get(name)?.clone();
        let place = self.server_places.get(name).cloned().unwrap_or_default();
        Some(RecordedServer { server, place })
    }

    fn has_downloads(&self) -> bool {
        self.tools.values().any(|tool| tool.download.is_some())
    }

    /// Returns the record of a tool, with its place.
    pub fn recorded(&self, name: &ToolName) -> Option<Recorded> {
        let tool = self.tools.get(name)?.clone();
        let place = self.places.get(name).cloned().unwrap_or_default();
        Some(Recorded { tool, place })
    }
}

/// Formats the file: the tools by name, each with its keys in the same order, then the servers.
impl std::fmt::Display for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = match (self.servers.is_empty(), self.has_downloads()) {
            (_, true) => VERSION,
            (false, false) => WITHOUT_DOWNLOADS,
            (true, false) => WITHOUT_SERVERS,
        };
        writeln!(f, "{HEADER}version = {version}")?;
        for (name, tool) in &self.tools {
            let keys = toml::to_string_pretty(tool).map_err(|_| std::fmt::Error)?;
            write!(f, "\n[tools.{name}]\n{keys}")?;
            if let Some(manifest) = &tool.manifest {
                let keys = toml::to_string_pretty(manifest).map_err(|_| std::fmt::Error)?;
                write!(f, "\n[tools.{name}.manifest]\n{keys}")?;
            }
            if let Some(download) = &tool.download {
                let keys = toml::to_string_pretty(download).map_err(|_| std::fmt::Error)?;
                write!(f, "\n[tools.{name}.download]\n{keys}")?;
            }
        }
        for (name, server) in &self.servers {
            write!(f, "\n{}", servers::written(name, server).map_err(|_| std::fmt::Error)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kitbag_base::ContentDigest;

    use super::*;

    fn digest(byte: u8) -> ContentDigest {
        ContentDigest([byte; 32])
    }

    fn read(text: &str) -> Result<Lock, String> {
        let read = Lock::read(text, Path::new("/w/.kitbag/kitbag.lock"), Path::new("/w"));
        read.map_err(|errors| errors.to_string())
    }

    #[test]
    fn written_lock_files_can_be_read() {
        let bare = LockedTool {
            version: None,
            origin: None,
            component: digest(1),
            description: None,
            schema: None,
            requested: Vec::new(),
            imports: Vec::new(),
            manifest: None,
            download: None,
        };
        let whole = LockedTool {
            version: Some("1.2.0".into()),
            origin: Some("~/Downloads/\"weather\".wasm".into()),
            description: Some(digest(2)),
            schema: Some(digest(3)),
            requested: vec!["http GET https://a.example/**".into()],
            imports: vec!["wasi:cli/environment@0.2.6".into(), "wasi:io/streams@0.2.6".into()],
            manifest: Some(LockedManifest {
                file: "skill.toml".into(),
                digest: digest(4),
                version: Some("1.2.0".into()),
                author: Some("Ada".into()),
                requests: vec!["http: \"https://a.example\"".into()],
            }),
            download: Some(LockedDownload {
                digest: format!("sha256:{}", digest(5)),
                signer: Some("key 0123456789abcdef".into()),
            }),
            ..bare.clone()
        };
        let tools = [("z-tool", bare), ("a_tool", whole)];
        let tools = tools.map(|(name, tool)| (ToolName::new(name).unwrap(), tool));
        let lock = Lock { tools: tools.into_iter().collect(), ..Lock::default() };
        let text = lock.to_string();
        let again = read(&text).unwrap();
        assert_eq!(again.tools, lock.tools);
        assert_eq!(again.to_string(), text);
        assert!(text.find("a_tool").unwrap() < text.find("z-tool").unwrap(), "{text}");
        let recorded = again.recorded(&ToolName::new("z-tool").unwrap()).unwrap();
        assert_eq!(recorded.place.to_string(), ".kitbag/kitbag.lock:29:13");
        assert_eq!(read("version = 1\n").unwrap().tools, BTreeMap::new());
    }

    #[test]
    fn a_file_of_version_1_is_read_and_written_as_version_2() {
        let tool = |version: u64, key: &str| {
            let digest = digest(1);
            format!(
                "version = {version}\n\n[tools.a]\nversion = \"0.1.0\"\ncomponent = \"{digest}\"\n\
                 {key} = [\"env LANG\"]\n"
            )
        };
        let lock = read(&tool(1, "wishes")).unwrap();
        assert_eq!(lock.tools["a"].version.as_deref(), Some("0.1.0"));
        assert_eq!(lock.to_string(), format!("{HEADER}{}", tool(2, "requested")));
    }

    #[test]
    fn mistakes_are_reported_with_their_places() {
        let check = |text: &str, expected: &str| {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("", "kitbag.lock:1:1: missing key `version`");
        check("version = 5\n", "kitbag.lock:1:11: this file has version 5, but this kitbag reads");
        check("version = 1\n[tools.a]\n", "missing key `component` in `tools.a`");
        let component = "version = 1\n[tools.a]\ncomponent = ";
        check(
            &format!("{component}\"ab\"\n"),
            "kitbag.lock:3:13: a digest must have 64 hexadecimal",
        );
        check(&format!("{component}1\n"), "`tools.a.component`");
        check(&format!("version = 1\n[tools.\"a b\"]\ncomponent = \"{}\"\n", digest(1)), "`a b`");
        check("version = 1\nnews = 1\n", "unknown key `news`");
        check("version = 1\nversion = 1\n", "duplicate key");
    }
}
