//! The files of a workspace: opening, examining and reading them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_contract::{ToolName, ToolNameError};
use kitbag_files::sys::{Entries, Entry, is_link_error};
use kitbag_files::{FileKind, OpenAs, OpenError, Stat};
use kitbag_trust::{TrustRecord, TrustedTexts};

use super::texts::Texts;
use crate::config::{DIRECTORY, FILE, IgnoredWorkspace, LOCK, SCRIPTS, TOOLS, Trust};
use crate::content::OwnContent;
use crate::file::{self, Layer, SourceFile};
use crate::origin::Origin;
use crate::piece::Piece;
use crate::problem::Problem;
use crate::sources::Sources;
use crate::trust::{Examiner, Opened};

/// The files of a workspace as they stand there, before they are known to count.
pub(super) struct OwnFiles {
    /// The root, once it was opened.
    directory: Option<Opened>,
    pub(super) texts: Texts,
    examiner: Examiner,
    pub(super) config: Option<SourceFile>,
    pub(super) lock: Option<SourceFile>,
    /// Each component with its manifest.
    pub(super) tools: BTreeMap<ToolName, (PathBuf, Option<SourceFile>)>,
    pub(super) scripts: BTreeMap<ToolName, SourceFile>,
    pub(super) tool_links: Vec<PathBuf>,
}

impl OwnFiles {
    /// Opens, examines and reads every file of a workspace.
    pub(super) fn read(root: &Path, home: Option<&Path>) -> Self {
        let mut files = Self::none(root, home);
        let path = root.join(DIRECTORY);
        let directory = match files.examiner.root(root) {
            Ok(directory) => {
                files.texts.real_root = Some(directory.path.clone());
                &*files.directory.insert(directory)
            }
            Err(error) => {
                files.texts.fail(root, file::not_opened(&error), CONFIG_PIECE);
                return files;
            }
        };
        let name = Path::new(DIRECTORY);
        match files.examiner.open(directory, name, &path, OpenAs::Entries) {
            Ok(own) => {
                files.config = files.file(&own, &path, FILE, CONFIG_PIECE);
                files.lock = files.file(&own, &path, LOCK, (Layer::Workspace, Piece::Lock));
                files.read_tools(&own, &path.join(TOOLS));
                files.read_scripts(&own, &path.join(SCRIPTS));
            }
            Err(error) => files.texts.fail(&path, file::not_opened(&error), CONFIG_PIECE),
        }
        files
    }

    /// Takes a text for the configuration, instead of that of the file.
    pub(super) fn propose(&mut self, text: &str) {
        let root = &self.texts.root;
        let path = root.join(DIRECTORY).join(FILE);
        self.config = Some(SourceFile::new(path, root, Layer::Workspace, text.to_owned()));
    }

    /// The files that a person trusted, by the record of that and the texts that are kept.
    pub(super) fn trusted(root: &Path, record: &TrustRecord, texts: &TrustedTexts) -> Self {
        let mut files = Self::none(root, None);
        let (own, layer) = (Path::new(DIRECTORY), Layer::Workspace);
        files.config = files.trusted_file(&own.join(FILE), layer, texts);
        files.lock = files.trusted_file(&own.join(LOCK), layer, texts);
        let named = |path: &Path, directory: &str, extension: &str| {
            let is_in = path.parent() == Some(&*own.join(directory));
            let is_it = is_in && path.extension() == Some(OsStr::new(extension));
            let name = path.file_stem().filter(|_| is_it)?.to_str()?;
            ToolName::new(name).ok()
        };
        let components = record.components.iter().filter(|(_, digest)| digest.is_some());
        for path in components.map(|(path, _)| Path::new(path)) {
            if let Some(name) = named(path, TOOLS, "wasm") {
                let manifest = path.with_extension("toml");
                let manifest = files.trusted_file(&manifest, Layer::Manifest, texts);
                files.tools.insert(name, (root.join(path), manifest));
            }
        }
        for path in texts.keys().map(Path::new) {
            if let Some(name) = named(path, SCRIPTS, "py")
                && let Some(script) = files.trusted_file(path, Layer::Manifest, texts)
            {
                files.scripts.insert(name, script);
            }
        }
        files
    }

    fn trusted_file(
        &mut self,
        path: &Path,
        layer: Layer,
        texts: &TrustedTexts,
    ) -> Option<SourceFile> {
        let text = texts.get(path.to_str()?)?.clone();
        self.texts.text(self.texts.root.join(path), layer, text.into_bytes(), false)
    }

    /// The files of a directory that is not a workspace yet.
    pub(super) fn none(root: &Path, home: Option<&Path>) -> Self {
        Self {
            directory: None,
            texts: Texts::new(root),
            examiner: Examiner::new(home),
            config: None,
            lock: None,
            tools: BTreeMap::new(),
            scripts: BTreeMap::new(),
            tool_links: Vec::new(),
        }
    }

    /// What a person trusts as a whole.
    pub(super) fn content(&self) -> OwnContent<'_> {
        let root = &self.texts.root;
        let name = |path: &Path| {
            let inside = path.strip_prefix(root).unwrap_or(path);
            inside.to_string_lossy().into_owned()
        };
        let manifests = self.tools.values().filter_map(|(_, manifest)| manifest.as_ref());
        let own = [&self.config, &self.lock].into_iter().flatten();
        let files = own.chain(manifests).chain(self.scripts.values());
        OwnContent {
            root: self.texts.real_root.as_deref().unwrap_or(root),
            files: files.map(|file| (name(file.path()), file)).collect(),
            components: self.tools.values().map(|(wasm, _)| name(wasm)).collect(),
        }
    }

    /// Why they do not count, unless the user has named the workspace.
    pub(super) fn distrusted(
        &mut self,
        trust: &Trust,
        sources: &Sources<'_>,
    ) -> Option<IgnoredWorkspace> {
        let (path, reason) = self.examiner.distrusted.take()?;
        if self.directory.as_ref().is_some_and(|directory| trust.names(&directory.file)) {
            return None;
        }
        let own_file = sources.own_file().map(Arc::from);
        Some(IgnoredWorkspace { root: self.texts.root.clone(), path, reason, own_file })
    }

    /// Reads the tools in `.kitbag/tools`.
    fn read_tools(&mut self, own: &Opened, path: &Path) {
        let Some(directory) = self.directory(own, TOOLS, path) else { return };
        let (mut components, mut manifests) = (BTreeMap::new(), BTreeMap::new());
        match Entries::read(&directory.file) {
            Ok(entries) => {
                for entry in entries {
                    match entry.and_then(|entry| self.tool_file(&directory.file, path, &entry)) {
                        Ok(Some((path, Extension::Wasm))) => self.name(path, &mut components),
                        Ok(Some((path, Extension::Toml))) => self.name(path, &mut manifests),
                        Ok(None) => {}
                        Err(error) => self.unreadable(path, &error),
                    }
                }
            }
            Err(error) => self.unreadable(path, &error),
        }
        for (name, wasm) in components {
            let manifest = manifests.remove(&name).and_then(|manifest: PathBuf| {
                let file_name = manifest.file_name()?.to_str()?.to_owned();
                self.file(&directory, path, &file_name, of_tool(&manifest))
            });
            self.tools.insert(name, (wasm, manifest));
        }
        for path in manifests.into_values() {
            let missing =
                file::relative(&path.with_extension("wasm"), &self.texts.root).to_path_buf();
            let origin = Origin::Found { path: file::relative(&path, &self.texts.root) };
            let problem = Problem::NoComponent { missing };
            self.texts.report.piece(origin, problem, None, of_tool(&path));
        }
    }

    /// Reads the scripts in `.kitbag/scripts`.
    fn read_scripts(&mut self, own: &Opened, path: &Path) {
        let Some(directory) = self.directory(own, SCRIPTS, path) else { return };
        let mut found = BTreeMap::new();
        match Entries::read(&directory.file) {
            Ok(entries) => {
                for entry in entries {
                    match entry.and_then(|entry| self.script_file(&directory.file, path, &entry)) {
                        Ok(Some(path)) => self.name(path, &mut found),
                        Ok(None) => {}
                        Err(error) => self.unreadable(path, &error),
                    }
                }
            }
            Err(error) => self.unreadable(path, &error),
        }
        for (name, script) in found {
            let file_name = script.file_name().unwrap_or_default();
            let opened =
                self.examiner.open(&directory, Path::new(file_name), &script, OpenAs::File);
            // What a link leads to is no code that a person has put into this directory, and
            // an error of the script would show lines of it to a model.
            let is_linked = |real: &Path| {
                let root = self.texts.real_root.as_deref().unwrap_or(Path::new(""));
                real != [root, DIRECTORY.as_ref(), SCRIPTS.as_ref(), file_name.as_ref()]
                    .iter()
                    .collect::<PathBuf>()
            };
            if opened.as_ref().is_ok_and(|opened| is_linked(&opened.path)) {
                self.texts.fail(&script, Problem::LinkedScript, of_tool(&script));
            } else if let piece = of_tool(&script)
                && let Some(file) = self.texts.read(script, piece, opened)
            {
                self.scripts.insert(name, file);
            }
        }
    }

    /// Opens a directory of `.kitbag`, which need not be there.
    fn directory(&mut self, own: &Opened, name: &str, path: &Path) -> Option<Opened> {
        match self.examiner.open(own, Path::new(name), path, OpenAs::Entries) {
            Ok(directory) => return Some(directory),
            Err(error) => match kind(&error) {
                Some(io::ErrorKind::NotFound) => {}
                Some(io::ErrorKind::NotADirectory) => {
                    self.texts.fail(path, Problem::NotADirectory, TOOLS_PIECE);
                }
                _ => self.texts.fail(path, file::not_opened(&error), TOOLS_PIECE),
            },
        }
        None
    }

    /// Whether a directory entry is a script: by its extension. Anything else than a regular
    /// file with such a name is a mistake.
    fn script_file(
        &mut self,
        directory: &File,
        path: &Path,
        entry: &Entry,
    ) -> io::Result<Option<PathBuf>> {
        let name = Path::new(entry.name());
        // An editor puts what it needs for itself beside a file, under a hidden name.
        let is_hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
        if is_hidden || name.extension() != Some(OsStr::new("py")) {
            return Ok(None);
        }
        let path = path.join(name);
        match self.examiner.name(directory, name, &path) {
            Ok(FileKind::File) => return Ok(Some(path)),
            Ok(FileKind::Directory) => self.texts.fail(&path, Problem::Directory, of_tool(&path)),
            Ok(_) => self.texts.fail(&path, Problem::NotAFile, of_tool(&path)),
            // A file that was just removed, or a link that leads nowhere.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && entry.kind() != FileKind::Link => {}
            Err(error) if leads_nowhere(&error) => {
                self.texts.fail(&path, Problem::LinkedScript, of_tool(&path));
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    /// Whether a directory entry is part of a tool: a regular file, or a symbolic
    /// link to one, with one of the two extensions. Anything else with the name of a
    /// manifest is a mistake.
    fn tool_file(
        &mut self,
        directory: &File,
        path: &Path,
        entry: &Entry,
    ) -> io::Result<Option<(PathBuf, Extension)>> {
        let name = Path::new(entry.name());
        let extension = match name.extension().and_then(OsStr::to_str) {
            Some("wasm") => Extension::Wasm,
            Some("toml") => Extension::Toml,
            _ => return Ok(None),
        };
        let path = path.join(name);
        // Not every file system says of an entry what it is.
        if entry.kind() != FileKind::File {
            self.tool_links.push(path.clone());
        }
        let is_file = match self.examiner.name(directory, name, &path) {
            Ok(FileKind::File) => true,
            Ok(kind) => {
                if matches!(extension, Extension::Toml) {
                    let is_directory = kind == FileKind::Directory;
                    let problem = if is_directory { Problem::Directory } else { Problem::NotAFile };
                    self.texts.fail(&path, problem, of_tool(&path));
                }
                false
            }
            // A link that leads nowhere, or a file that was just removed.
            Err(error) if leads_nowhere(&error) => false,
            Err(error) => return Err(error),
        };
        Ok(is_file.then_some((path, extension)))
    }

    /// Reads a file by its name in a directory. `.kitbag/config.toml` and the lock file need
    /// not be there.
    fn file(
        &mut self,
        directory: &Opened,
        path: &Path,
        name: &str,
        piece: (Layer, Piece),
    ) -> Option<SourceFile> {
        let path = path.join(name);
        let opened = self.examiner.open(directory, Path::new(name), &path, OpenAs::File);
        // A link that leads nowhere is a mistake, not an absent file.
        let is_absent =
            opened.as_ref().is_err_and(|error| kind(error) == Some(io::ErrorKind::NotFound))
                && Stat::at(&directory.file, name).is_err();
        if is_absent && piece.0 == Layer::Workspace {
            return None;
        }
        self.texts.read(path, piece, opened)
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        self.texts.fail(path, file::unreadable(error), TOOLS_PIECE);
    }

    fn name(&mut self, path: PathBuf, files: &mut BTreeMap<ToolName, PathBuf>) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match ToolName::new(stem) {
            Ok(name) => {
                files.insert(name, path);
            }
            Err(ToolNameError { name }) => {
                let origin = Origin::Found { path: file::relative(&path, &self.texts.root) };
                let problem = ToolNameError { name };
                self.texts.report.piece(origin, problem, None, TOOLS_PIECE);
            }
        }
    }
}

enum Extension {
    Wasm,
    Toml,
}

/// What cannot be read where `.kitbag` cannot be, which holds the configuration.
const CONFIG_PIECE: (Layer, Piece) = (Layer::Workspace, Piece::File(None));

/// What is left out with a file in one of its directories that belongs to no tool.
const TOOLS_PIECE: (Layer, Piece) = (Layer::Manifest, Piece::Component);

/// What is left out with a manifest or a script: the tool of its name.
fn of_tool(path: &Path) -> (Layer, Piece) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    match ToolName::new(name) {
        Ok(name) => (Layer::Manifest, Piece::Tool(name.to_string())),
        Err(_) => TOOLS_PIECE,
    }
}

/// The kind of an error of the system.
fn kind(error: &OpenError) -> Option<io::ErrorKind> {
    match error {
        OpenError::Io(error) => Some(error.kind()),
        OpenError::Link { .. } | OpenError::Kernel { .. } => None,
    }
}

/// Whether a path leads to nothing: no file, a file in place of a directory, or links in a circle.
fn leads_nowhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || is_link_error(error)
}
