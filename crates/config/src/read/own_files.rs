//! The files of a workspace: opening, examining and reading them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::text::{shown, shown_path};
use kitbag_contract::ToolName;
use kitbag_fs_guard::sys::{Entries, Entry, is_link_error};
use kitbag_fs_guard::{FileKind, OpenAs, OpenError, Stat};
use kitbag_state::trust::{TrustRecord, TrustedTexts};

use super::bounds::{self, ENTRIES};
use super::texts::Texts;
use crate::config::{DIRECTORY, FILE, IgnoredWorkspace, LOCK, SCRIPTS, SKILLS, TOOLS, Trust};
use crate::layers::origin::Origin;
use crate::read::file::{self, Layer, SourceFile};
use crate::read::sources::Sources;
use crate::report::Piece;
use crate::trust::content::OwnContent;
use crate::trust::examiner::{Examiner, Opened};

const LINKED_SCRIPT: &str =
    "is behind a symbolic link; put the script itself into `.kitbag/scripts` of the workspace";

/// The files of a workspace as they are on disk, before trust is checked.
pub(super) struct OwnFiles {
    directory: Option<Opened>,
    pub(super) texts: Texts,
    examiner: Examiner,
    pub(super) config: Option<SourceFile>,
    pub(super) lock: Option<SourceFile>,
    pub(super) tools: BTreeMap<ToolName, OwnTool>,
    pub(super) scripts: BTreeMap<ToolName, OwnScript>,
    pub(super) tool_links: Vec<PathBuf>,
    /// The directories of components and of scripts, until their files are read.
    directories: [Option<Opened>; 2],
}

pub(super) struct OwnTool {
    pub(super) wasm: PathBuf,
    manifest_path: Option<PathBuf>,
    pub(super) manifest: Option<SourceFile>,
}

pub(super) struct OwnScript {
    pub(super) path: PathBuf,
    pub(super) file: Option<SourceFile>,
}

impl OwnFiles {
    /// Finds the files of a workspace, and reads its configuration and its lock file.
    ///
    /// [`read_tools`](Self::read_tools) reads manifests and scripts, if they are needed.
    pub(super) fn find(root: &Path, home: Option<&Path>) -> Self {
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
                files.find_tools(&own, &path.join(TOOLS));
                files.find_scripts(&own, &path.join(SCRIPTS));
                files.bound_tools();
            }
            Err(error) => files.texts.fail(&path, file::not_opened(&error), CONFIG_PIECE),
        }
        files
    }

    /// Replaces the text of the configuration file with a proposal.
    pub(super) fn propose(&mut self, text: &str) {
        let root = &self.texts.root;
        let path = root.join(DIRECTORY).join(FILE);
        self.config = Some(SourceFile::new(path, root, Layer::Workspace, text.to_owned()));
    }

    /// Returns the trusted version of the files, from the record of trust and the stored content.
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
                let wasm = root.join(path);
                files.tools.insert(name, OwnTool { wasm, manifest_path: None, manifest });
            }
        }
        for path in texts.keys().map(Path::new) {
            if let Some(name) = named(path, SCRIPTS, "py")
                && let Some(script) = files.trusted_file(path, Layer::Manifest, texts)
            {
                let path = root.join(path);
                files.scripts.insert(name, OwnScript { path, file: Some(script) });
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

    /// Returns the files of a directory that is not a workspace yet.
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
            directories: [None, None],
        }
    }

    pub(super) fn content(&self) -> OwnContent<'_> {
        let root = &self.texts.root;
        let name = |path: &Path| {
            let inside = path.strip_prefix(root).unwrap_or(path);
            inside.to_string_lossy().into_owned()
        };
        let manifests = self.tools.values().filter_map(|tool| tool.manifest.as_ref());
        let own = [&self.config, &self.lock].into_iter().flatten();
        let scripts = self.scripts.values().filter_map(|script| script.file.as_ref());
        let files = own.chain(manifests).chain(scripts);
        OwnContent {
            root: self.texts.real_root.as_deref().unwrap_or(root),
            files: files.map(|file| (name(file.path()), file)).collect(),
            components: self.tools.values().map(|tool| name(&tool.wasm)).collect(),
            has_scripts: !self.scripts.is_empty(),
            has_skills: self.directory.is_some() && root.join(DIRECTORY).join(SKILLS).is_dir(),
        }
    }

    /// Returns the reason why the files are ignored. `None` if they are not, or if the user has
    /// named the workspace.
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

    /// Finds the components in `.kitbag/tools`, and the manifests beside them.
    fn find_tools(&mut self, own: &Opened, path: &Path) {
        let Some(directory) = self.directory(own, TOOLS, path) else { return };
        let (mut components, mut manifests) = (BTreeMap::new(), BTreeMap::new());
        self.each_entry(&directory.file, path, |files, entry| {
            match files.tool_file(&directory.file, path, entry)? {
                Some((path, Extension::Wasm)) => files.name(path, &mut components),
                Some((path, Extension::Toml)) => files.name(path, &mut manifests),
                None => {}
            }
            Ok(())
        });
        for (name, wasm) in components {
            let manifest_path = manifests.remove(&name);
            self.tools.insert(name, OwnTool { wasm, manifest_path, manifest: None });
        }
        for path in manifests.into_values() {
            let missing = file::relative(&path.with_extension("wasm"), &self.texts.root);
            let origin = Origin::Found { path: file::relative(&path, &self.texts.root) };
            let missing = shown_path(&missing);
            let problem = format!("describes a missing tool: `{missing}` does not exist");
            self.texts.report.piece(origin, problem, of_tool(&path));
        }
        self.directories[0] = Some(directory);
    }

    fn find_scripts(&mut self, own: &Opened, path: &Path) {
        let Some(directory) = self.directory(own, SCRIPTS, path) else { return };
        let mut found = BTreeMap::new();
        self.each_entry(&directory.file, path, |files, entry| {
            if let Some(path) = files.script_file(&directory.file, path, entry)? {
                files.name(path, &mut found);
            }
            Ok(())
        });
        let scripts = found.into_iter().map(|(name, path)| (name, OwnScript { path, file: None }));
        self.scripts = scripts.collect();
        self.directories[1] = Some(directory);
    }

    /// Visits the entries of a directory, at most [`ENTRIES`] of them.
    fn each_entry(
        &mut self,
        directory: &File,
        path: &Path,
        mut look: impl FnMut(&mut Self, &Entry) -> io::Result<()>,
    ) {
        let entries = match Entries::read(directory) {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(path, &error),
        };
        for (index, entry) in entries.enumerate() {
            if index == ENTRIES {
                let problem = format!("has more than {ENTRIES} entries; the rest is ignored");
                return self.texts.fail(path, problem, TOOLS_PIECE);
            }
            if let Err(error) = entry.and_then(|entry| look(self, &entry)) {
                self.unreadable(path, &error);
            }
        }
    }

    /// Reads the manifests and the scripts that were found.
    pub(super) fn read_tools(&mut self) {
        let [tools, scripts] = std::mem::take(&mut self.directories);
        if let Some(directory) = tools {
            let path = self.texts.root.join(DIRECTORY).join(TOOLS);
            for (name, mut tool) in std::mem::take(&mut self.tools) {
                tool.manifest = tool.manifest_path.take().and_then(|manifest| {
                    let file_name = manifest.file_name()?.to_str()?;
                    self.file(&directory, &path, file_name, of_tool(&manifest))
                });
                self.tools.insert(name, tool);
            }
        }
        if let Some(directory) = scripts {
            for (name, OwnScript { path, .. }) in std::mem::take(&mut self.scripts) {
                if let Some(file) = self.read_script(&directory, &path) {
                    self.scripts.insert(name, OwnScript { path, file: Some(file) });
                }
            }
        }
    }

    fn read_script(&mut self, directory: &Opened, script: &Path) -> Option<SourceFile> {
        let file_name = script.file_name().unwrap_or_default();
        let opened = self.examiner.open(directory, Path::new(file_name), script, OpenAs::File);
        // The target of a link is not code that a person has put into this directory, and an error
        // of the script would show lines of it to a model.
        let is_linked = |real: &Path| {
            let root = self.texts.real_root.as_deref().unwrap_or(Path::new(""));
            real != [root, DIRECTORY.as_ref(), SCRIPTS.as_ref(), file_name.as_ref()]
                .iter()
                .collect::<PathBuf>()
        };
        if opened.as_ref().is_ok_and(|opened| is_linked(&opened.path)) {
            self.texts.fail(script, LINKED_SCRIPT, of_tool(script));
            return None;
        }
        self.texts.read(script.to_owned(), of_tool(script), opened)
    }

    /// Opens a directory of `.kitbag`, which need not exist.
    fn directory(&mut self, own: &Opened, name: &str, path: &Path) -> Option<Opened> {
        match self.examiner.open(own, Path::new(name), path, OpenAs::Entries) {
            Ok(directory) => return Some(directory),
            Err(error) => match kind(&error) {
                Some(io::ErrorKind::NotFound) => {}
                Some(io::ErrorKind::NotADirectory) => {
                    self.texts.fail(path, "is not a directory", TOOLS_PIECE);
                }
                _ => self.texts.fail(path, file::not_opened(&error), TOOLS_PIECE),
            },
        }
        None
    }

    /// Returns whether a directory entry is a script, by its extension. An entry with such a name
    /// that is not a regular file is a mistake.
    fn script_file(
        &mut self,
        directory: &File,
        path: &Path,
        entry: &Entry,
    ) -> io::Result<Option<PathBuf>> {
        let name = Path::new(entry.name());
        // Editors write temporary files with hidden names beside a file.
        let is_hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
        if is_hidden || name.extension() != Some(OsStr::new("py")) {
            return Ok(None);
        }
        let path = path.join(name);
        match self.examiner.name(directory, name, &path) {
            Ok(FileKind::File) => return Ok(Some(path)),
            Ok(FileKind::Directory) => self.texts.fail(&path, file::DIRECTORY_HERE, of_tool(&path)),
            Ok(_) => self.texts.fail(&path, file::NOT_A_FILE, of_tool(&path)),
            // The file was just removed, or is a dangling link.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && entry.kind() != FileKind::Link => {}
            Err(error) if leads_nowhere(&error) => {
                self.texts.fail(&path, LINKED_SCRIPT, of_tool(&path));
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    /// Returns whether a directory entry is part of a tool: a regular file, or a symbolic link to a
    /// file, with one of the two extensions. Any other entry with such a name is a mistake.
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
            Some(other) if other.eq_ignore_ascii_case("wasm") => {
                let file = name.with_extension("wasm").to_string_lossy().into_owned();
                let problem = format!(
                    "is ignored: the name of a component must end in `.wasm`; rename it to `{}`",
                    shown(&file)
                );
                self.texts.fail(&path.join(name), problem, TOOLS_PIECE);
                return Ok(None);
            }
            _ => return Ok(None),
        };
        let path = path.join(name);
        // Some file systems do not return the type of an entry.
        if entry.kind() != FileKind::File {
            self.tool_links.push(path.clone());
        }
        let is_file = match self.examiner.name(directory, name, &path) {
            Ok(FileKind::File) => true,
            Ok(kind) => {
                let is_directory = kind == FileKind::Directory;
                let problem = if is_directory { file::DIRECTORY_HERE } else { file::NOT_A_FILE };
                // An entry that is not a component does not affect another tool of its name.
                let piece = match extension {
                    Extension::Toml => of_tool(&path),
                    Extension::Wasm => TOOLS_PIECE,
                };
                self.texts.fail(&path, problem, piece);
                false
            }
            // A dangling link, or a file that was just removed.
            Err(error) if leads_nowhere(&error) => false,
            Err(error) => return Err(error),
        };
        Ok(is_file.then_some((path, extension)))
    }

    /// Reads a file by its name in a directory. `.kitbag/config.toml` and the lock file need not
    /// exist.
    fn file(
        &mut self,
        directory: &Opened,
        path: &Path,
        name: &str,
        piece: (Layer, Piece),
    ) -> Option<SourceFile> {
        let path = path.join(name);
        let opened = self.examiner.open(directory, Path::new(name), &path, OpenAs::File);
        // A dangling link is a mistake, not an absent file.
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
            Err(error) => {
                let origin = Origin::Found { path: file::relative(&path, &self.texts.root) };
                self.texts.report.piece(origin, error, TOOLS_PIECE);
            }
        }
    }

    /// Omits the components and scripts beyond [`bounds::TOOLS`], the last ones by name.
    pub(super) fn bound_tools(&mut self) {
        let (mut left, mut beyond) = (bounds::TOOLS, BTreeMap::new());
        let mut keep = |name: &ToolName, path: &PathBuf| {
            let is_kept = left > 0;
            left = left.saturating_sub(1);
            if !is_kept {
                beyond.insert(name.clone(), path.clone());
            }
            is_kept
        };
        self.tools.retain(|name, found| keep(name, &found.wasm));
        self.scripts.retain(|name, found| keep(name, &found.path));
        let Some((first, path)) = beyond.first_key_value() else { return };
        let origin = Origin::Found { path: file::relative(path, &self.texts.root) };
        let problem = format!(
            "is ignored, with {} more: `.kitbag` may contain {} components and scripts in \
             total",
            beyond.len() - 1,
            bounds::TOOLS
        );
        let piece = (Layer::Manifest, Piece::Tool(first.to_string()));
        let names = beyond.keys().map(ToString::to_string).collect();
        self.texts.report.piece_of(origin, problem, piece, names);
    }
}

enum Extension {
    Wasm,
    Toml,
}

/// The piece that cannot be read if `.kitbag` cannot be read: the configuration is inside.
const CONFIG_PIECE: (Layer, Piece) = (Layer::Workspace, Piece::File(None));

/// The piece that is omitted with a file in a directory of tools that belongs to no tool.
const TOOLS_PIECE: (Layer, Piece) = (Layer::Manifest, Piece::Component);

/// Returns the piece that is omitted with a manifest or a script: the tool of its name.
fn of_tool(path: &Path) -> (Layer, Piece) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    match ToolName::new(name) {
        Ok(name) => (Layer::Manifest, Piece::Tool(name.to_string())),
        Err(_) => TOOLS_PIECE,
    }
}

fn kind(error: &OpenError) -> Option<io::ErrorKind> {
    match error {
        OpenError::Io(error) => Some(error.kind()),
        OpenError::Link { .. } | OpenError::Kernel { .. } => None,
    }
}

/// Returns whether a path leads to no file: it does not exist, a component of it is a file, or its
/// links form a cycle.
fn leads_nowhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || is_link_error(error)
}
