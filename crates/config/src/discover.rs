//! Finding the workspace, and the files in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_contract::{ToolName, ToolNameError};

use crate::error::{Problem, Report};
use crate::file::{self, Layer, SourceFile, reason};
use crate::format::{ConfigFile, ToolConfig};
use crate::key::KeyPath;
use crate::origin::{Origin, Sourced};
use crate::parse::{Damage, Form, parse};
use crate::resolve::path;
use crate::schema::{CEILING, json_schema, manifest_schema, workspace_schema};
use crate::sources::Sources;
use crate::written::Span;

/// The directory that makes its parent a workspace.
pub(crate) const DIRECTORY: &str = ".kitbag";

/// The directory in it whose components are tools without configuration.
const TOOLS: &str = "tools";

/// The workspace.
pub(crate) struct Workspace {
    /// Absolute, as it was found or named.
    pub(crate) root: Sourced<PathBuf>,
    /// The same directory, with symbolic links resolved.
    pub(crate) canonical: PathBuf,
    /// Whether it holds a directory `.kitbag`.
    pub(crate) exists: bool,
}

/// Everything that was found and read, as it was written.
pub(crate) struct Read {
    pub(crate) workspace: Workspace,
    /// The weakest layer first.
    pub(crate) files: Vec<SourceFile>,
    /// By index into `files`, the weakest layer first.
    pub(crate) configs: Vec<(usize, ConfigFile)>,
    /// The tools in `.kitbag/tools`.
    pub(crate) found: BTreeMap<ToolName, FoundTool>,
    pub(crate) damage: Damage,
}

/// A component in `.kitbag/tools`, and its manifest.
pub(crate) struct FoundTool {
    pub(crate) wasm: PathBuf,
    /// The path of `wasm` as it is shown.
    pub(crate) shown: Arc<Path>,
    /// By index into [`Read::files`].
    pub(crate) manifest: Option<(usize, ToolConfig)>,
}

/// Finds the workspace: the one that was named, else the nearest directory
/// upwards that holds `.kitbag`, else where the search starts.
pub(crate) fn workspace(sources: &Sources<'_>, report: &mut Report) -> Option<Workspace> {
    let holds_kitbag = |directory: &Path| directory.join(DIRECTORY).is_dir();
    let start = path::settled(&sources.start);
    let root = match &sources.workspace {
        Some(named) => named.clone().map(|named| path::settled(&start.join(named))),
        None => match start.ancestors().find(|directory| holds_kitbag(directory)) {
            Some(root) => {
                let origin = Origin::Found { path: Path::new(DIRECTORY).into() };
                Sourced { value: root.to_owned(), origin }
            }
            None => Sourced::default(start),
        },
    };
    match root.value.canonicalize() {
        Ok(canonical) if canonical.is_dir() => {
            let exists = holds_kitbag(&root.value);
            Some(Workspace { root, canonical, exists })
        }
        _ => {
            report.origin(root.origin, Problem::NoWorkspace { path: root.value }, None);
            None
        }
    }
}

/// Reads the files. `None` where one of them cannot be understood at all.
pub(crate) fn read(
    workspace: Workspace,
    sources: &Sources<'_>,
    report: &mut Report,
) -> Option<Read> {
    let mut reader = Reader {
        root: workspace.root.value.clone(),
        own_file: sources.own_file(),
        files: Vec::new(),
        damage: Damage::default(),
        is_complete: true,
        report,
    };
    let mut found = BTreeMap::new();
    let mut configs = Vec::new();
    if workspace.exists {
        found = reader.tools();
    }
    if let Some(path) = &sources.user_file {
        configs.extend(reader.config(path::clean(path), Layer::User));
    }
    if workspace.exists {
        let path = workspace.root.value.join(DIRECTORY).join("config.toml");
        configs.extend(reader.config(path, Layer::Workspace));
    }
    let Reader { files, damage, is_complete, .. } = reader;
    is_complete.then_some(Read { workspace, files, configs, found, damage })
}

struct Reader<'a> {
    root: PathBuf,
    /// The person's own file, for messages.
    own_file: Option<&'a Path>,
    files: Vec<SourceFile>,
    damage: Damage,
    /// Whether every file could be understood.
    is_complete: bool,
    report: &'a mut Report,
}

impl Reader<'_> {
    fn config(&mut self, path: PathBuf, layer: Layer) -> Option<(usize, ConfigFile)> {
        let index = self.file(path, layer)?;
        let is_own = layer == Layer::User;
        let form = Form {
            base: &KeyPath::ROOT,
            schema: if is_own { json_schema } else { workspace_schema },
            misplaced: (!is_own).then(|| self.ceiling()),
        };
        let config = parse(&self.files[index], &form, self.report, &mut self.damage);
        self.is_complete &= config.is_some();
        Some((index, config?))
    }

    fn manifest(&mut self, path: PathBuf, name: &ToolName) -> Option<(usize, ToolConfig)> {
        let index = self.file(path, Layer::Manifest)?;
        let base = KeyPath::ROOT.key("tools");
        let base = base.key(name.as_str());
        let misplaced = Some(self.ceiling());
        let form = Form { base: &base, schema: manifest_schema, misplaced };
        let config = parse(&self.files[index], &form, self.report, &mut self.damage);
        self.is_complete &= config.is_some();
        Some((index, config?))
    }

    /// What a file of the workspace must not have, and what is then wrong.
    fn ceiling(&self) -> (&'static str, Problem) {
        let file = self.own_file.map(Arc::from);
        (CEILING, Problem::NotOwnFile { key: CEILING, file })
    }

    /// Reads a file. The user's own one was named by the caller, so it must be
    /// there; `.kitbag/config.toml` need not.
    fn file(&mut self, path: PathBuf, layer: Layer) -> Option<usize> {
        let bytes = match file::read(&path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) if layer == Layer::Workspace => return None,
            Ok(None) => {
                let reason = "no such file or directory".to_owned();
                self.fail(&path, Problem::Unreadable { reason });
                return None;
            }
            Err(problem) => {
                self.fail(&path, problem);
                return None;
            }
        };
        match String::from_utf8(bytes) {
            Ok(text) => {
                self.files.push(SourceFile::new(path, &self.root, layer, text));
                Some(self.files.len() - 1)
            }
            Err(error) => {
                // Only the part that is text can be shown, and counted.
                let end = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned();
                let file = SourceFile::new(path, &self.root, layer, text);
                self.report.span(&file, Span::from(end..end), Problem::NotUtf8, None);
                self.is_complete = false;
                None
            }
        }
    }

    fn fail(&mut self, path: &Path, problem: Problem) {
        self.is_complete = false;
        let origin = Origin::Found { path: file::relative(path, &self.root) };
        self.report.origin(origin, problem, None);
    }

    /// The tools in `.kitbag/tools`.
    fn tools(&mut self) -> BTreeMap<ToolName, FoundTool> {
        let directory = self.root.join(DIRECTORY).join(TOOLS);
        let (mut components, mut manifests) = (BTreeMap::new(), BTreeMap::new());
        match fs::read_dir(&directory) {
            Ok(entries) => {
                for entry in entries {
                    match entry.and_then(|entry| tool_file(&entry)) {
                        Ok(Some((path, Extension::Wasm))) => self.name(path, &mut components),
                        Ok(Some((path, Extension::Toml))) => self.name(path, &mut manifests),
                        Ok(None) => {}
                        Err(error) => {
                            self.fail(&directory, Problem::Unreadable { reason: reason(&error) });
                        }
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                self.fail(&directory, Problem::NotADirectory);
            }
            Err(error) => self.fail(&directory, Problem::Unreadable { reason: reason(&error) }),
        }
        let mut found = BTreeMap::new();
        for (name, wasm) in components {
            let manifest = manifests.remove(&name).and_then(|path| self.manifest(path, &name));
            let shown = file::relative(&wasm, &self.root);
            found.insert(name, FoundTool { wasm, shown, manifest });
        }
        for path in manifests.into_values() {
            let missing = file::relative(&path.with_extension("wasm"), &self.root).to_path_buf();
            let origin = Origin::Found { path: file::relative(&path, &self.root) };
            self.report.origin(origin, Problem::NoComponent { missing }, None);
        }
        found
    }

    fn name(&mut self, path: PathBuf, files: &mut BTreeMap<ToolName, PathBuf>) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match ToolName::new(stem) {
            Ok(name) => {
                files.insert(name, path);
            }
            Err(ToolNameError { name }) => {
                let origin = Origin::Found { path: file::relative(&path, &self.root) };
                self.report.origin(origin, ToolNameError { name }, None);
            }
        }
    }
}

enum Extension {
    Wasm,
    Toml,
}

/// Whether a directory entry is part of a tool: a regular file, or a symbolic
/// link to one, with one of the two extensions.
fn tool_file(entry: &fs::DirEntry) -> io::Result<Option<(PathBuf, Extension)>> {
    let path = entry.path();
    let extension = match path.extension().and_then(OsStr::to_str) {
        Some("wasm") => Extension::Wasm,
        Some("toml") => Extension::Toml,
        _ => return Ok(None),
    };
    let kind = entry.file_type()?;
    let is_file = kind.is_file() || kind.is_symlink() && path.is_file();
    Ok(is_file.then_some((path, extension)))
}
