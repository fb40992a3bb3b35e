//! Finding the workspace, and the files in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_contract::{ToolName, ToolNameError};
use kitbag_files::sys::{Entries, Entry, is_link_error};
use kitbag_files::{FileKind, OpenAs, OpenError, Stat};

use crate::config::{DIRECTORY, FILE, IgnoredWorkspace, LOCK, SCRIPTS, TOOLS, Trust};
use crate::content::OwnContent;
use crate::error::Report;
use crate::file::{self, Layer, SourceFile};
use crate::format::{ConfigFile, ScriptConfig, ToolConfig};
use crate::invalid_keys::InvalidKeys;
use crate::key::KeyPath;
use crate::lock::Lock;
use crate::origin::{Origin, Sourced};
use crate::parse::{Form, parse};
use crate::path;
use crate::problem::Problem;
use crate::schema::{OWN_KEYS, json_schema, manifest_schema, script_schema, workspace_schema};
use crate::script;
use crate::sources::{ScriptFile, Sources, TrustSource};
use crate::trust::{self, Examiner, Opened, trust};
use crate::untrusted::{NamedTool, counts_wholly, narrowed};
use crate::workspace_trust::{UntrustedWorkspace, WorkspaceContent, WorkspaceTrust};
use crate::written::{Span, Table, Written};

/// What makes a directory a workspace that holds no `.kitbag`.
const GIT: &str = ".git";

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
    /// The workspace that was found or named and does not count.
    pub(crate) ignored: Option<IgnoredWorkspace>,
    pub(crate) trust: Trust,
    /// Whether the files of the workspace count. Where they do not, what is read of them is
    /// what counts all the same.
    pub(crate) workspace_trust: WorkspaceTrust,
    /// What configures the workspace, where that was asked for.
    pub(crate) content: Option<WorkspaceContent>,
    /// The tools that a file names and that do not run, by index into `files`.
    pub(crate) named: Vec<(usize, NamedTool)>,
    /// The weakest layer first.
    pub(crate) files: Vec<SourceFile>,
    /// By index into `files`, the weakest layer first.
    pub(crate) configs: Vec<(usize, ConfigFile)>,
    /// The tools in `.kitbag/tools`.
    pub(crate) found: BTreeMap<ToolName, FoundTool>,
    /// The scripts in `.kitbag/scripts`.
    pub(crate) scripts: BTreeMap<ToolName, FoundScript>,
    /// The script that the caller names.
    pub(crate) named_script: Option<(ToolName, FoundScript)>,
    /// The links among the entries of `.kitbag/tools` that are named like a part of a tool.
    pub(crate) tool_links: Vec<PathBuf>,
    pub(crate) locks: Locks,
    pub(crate) invalid: InvalidKeys,
}

/// What was recorded of tools.
#[derive(Default)]
pub(crate) struct Locks {
    /// In the workspace.
    pub(crate) workspace: Lock,
    /// Beside the user's own file.
    pub(crate) user: Lock,
}

/// A component in `.kitbag/tools`, and its manifest.
pub(crate) struct FoundTool {
    pub(crate) wasm: PathBuf,
    /// The path of `wasm` as it is shown.
    pub(crate) shown: Arc<Path>,
    /// By index into [`Read::files`].
    pub(crate) manifest: Option<(usize, ToolConfig)>,
}

/// A script, and what it says of itself.
pub(crate) struct FoundScript {
    pub(crate) path: PathBuf,
    /// The same as it is shown.
    pub(crate) shown: Arc<Path>,
    /// Whether the caller names it.
    pub(crate) is_named: bool,
    /// Its text, by index into [`Read::files`].
    pub(crate) file: usize,
    /// What its docstring and then its header say of the tool, by index as above.
    pub(crate) says: Vec<(usize, ToolConfig)>,
    /// What only a header says.
    pub(crate) header: Option<(usize, ScriptConfig)>,
}

/// Finds the workspace: the one that was named, else the nearest directory
/// upwards that holds `.kitbag`, else the nearest that holds `.git`, else where the search
/// starts.
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
            None => match repository(&start, sources.home.as_deref()) {
                Some(value) => {
                    Sourced { value, origin: Origin::Found { path: Path::new(GIT).into() } }
                }
                None => Sourced::default(start),
            },
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

/// The nearest directory upwards that holds `.git`, which is a file in a worktree. It does
/// not count where another user could have put that there, and neither does one that holds
/// the home directory.
fn repository(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let holds_git = |directory: &&Path| directory.join(GIT).symlink_metadata().is_ok();
    let root = start.ancestors().find(holds_git)?;
    let mut examiner = Examiner::new(home);
    let directory = examiner.root(root).ok()?;
    examiner.name(&directory.file, Path::new(GIT), &root.join(GIT)).ok()?;
    let counts = examiner.distrusted.is_none() && !path::holds(root, home);
    counts.then(|| root.to_owned())
}

/// Reads the files. `None` where one of them cannot be understood at all. `untrusted` is why
/// those of the workspace do not count, where that is known already.
pub(crate) fn read(
    mut workspace: Workspace,
    sources: &Sources<'_>,
    untrusted: Option<UntrustedWorkspace>,
    report: &mut Report,
) -> Option<Read> {
    let mut parser = Parser {
        own_file: sources.own_file(),
        invalid: InvalidKeys::default(),
        is_complete: true,
        report,
    };
    let user = sources.user_file.as_ref().and_then(|path| {
        let mut texts = Texts::new(&workspace.root.value);
        let file = texts.user_file(path::clean(path), sources);
        parser.take(texts);
        file
    });
    let user = user.and_then(|file| Some((parser.config(&file)?, file)));
    let trust = match &user {
        Some((config, file)) => trust(file, config, sources.home.as_deref(), parser.report),
        None => Trust::default(),
    };
    let mut own =
        workspace.exists.then(|| OwnFiles::read(&workspace.root.value, sources.home.as_deref()));
    let ignored = own.as_mut().and_then(|own| own.distrusted(&trust, sources));
    if ignored.is_some() {
        own = None;
        workspace.exists = false;
        // A directory of another user above does not decide where the workspace is.
        if matches!(workspace.root.origin, Origin::Found { .. }) {
            let start = path::settled(&sources.start);
            workspace.canonical = kitbag_files::canonical(&start);
            workspace.root = Sourced::default(start);
        }
    }

    let own_content = own.as_ref().map(OwnFiles::content);
    let mut workspace_trust = match (untrusted, &own_content) {
        _ if ignored.is_some() => WorkspaceTrust::Nothing,
        (Some(untrusted), _) => WorkspaceTrust::Untrusted(Box::new(untrusted)),
        (None, Some(content)) => content.trust(&workspace.root.value, &trust, sources),
        (None, None) => {
            let empty = OwnContent::empty(&workspace.canonical);
            empty.trust(&workspace.root.value, &trust, sources)
        }
    };
    let content = own_content.filter(|_| sources.trust == TrustSource::Asked);
    let content = content.map(|content| content.digested());
    let is_untrusted = workspace_trust.untrusted().is_some();

    let (mut files, mut configs, mut found) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (mut tool_links, mut scripts, mut locks) = (Vec::new(), BTreeMap::new(), Locks::default());
    let mut keep = |file| {
        files.push(file);
        files.len() - 1
    };
    let own = own.map(|own| {
        for (name, (wasm, manifest)) in own.tools {
            let manifest = manifest.and_then(|file| {
                let config = if is_untrusted { None } else { parser.manifest(&file, &name) };
                let file = keep(file);
                Some((file, config?))
            });
            let shown = file::relative(&wasm, &own.texts.root);
            found.insert(name, FoundTool { wasm, shown, manifest });
        }
        for (name, file) in own.scripts {
            let script = match is_untrusted {
                true => FoundScript::unread(file, &mut keep),
                false => parser.script(file, &name, false, &mut keep),
            };
            scripts.insert(name, script);
        }
        if let Some(file) = own.lock {
            if !is_untrusted {
                locks.workspace = parser.lock(&file);
            }
            keep(file);
        }
        parser.take(own.texts);
        tool_links = own.tool_links;
        own.config
    });
    let named_script = sources.script.as_ref().and_then(|ScriptFile { name, path }| {
        let path = path::settled(&path::settled(&sources.start).join(path));
        let mut texts = Texts::new(&workspace.root.value);
        let root = workspace.exists.then_some(&*workspace.root.value);
        let opened = trust::open_named(&path, &trust.owners(root, sources.home.as_deref()));
        let file = texts.named(path, Layer::Manifest, opened);
        parser.take(texts);
        Some((name.clone(), parser.script(file?, name, true, &mut keep)))
    });
    let own = own.flatten().and_then(|file| Some((parser.config(&file)?, file)));
    let own = own.map(|(config, file)| match is_untrusted {
        false => (config, file, Vec::new()),
        true => {
            let user = user.as_ref().map(|(user, _)| user);
            let (config, named) = counting(config, user, sources, &mut workspace_trust);
            (config, file, named)
        }
    });
    // Beside a file without a tool of its own there is nothing that was recorded.
    if let Some((config, file)) = &user
        && config.has_components()
        && let path = Lock::path_beside(file.path())
        && path.symlink_metadata().is_ok()
    {
        let mut texts = Texts::new(&workspace.root.value);
        if let Some(file) = texts.user_file(path, sources) {
            locks.user = parser.lock(&file);
            keep(file);
        }
        parser.take(texts);
    }
    if let Some((config, file)) = user {
        configs.push((keep(file), config));
    }
    if !found.is_empty() || !scripts.is_empty() {
        workspace_trust.leave_out();
    }
    let mut named = Vec::new();
    if let Some((config, file, tools)) = own {
        let file = keep(file);
        configs.push((file, config));
        named.extend(tools.into_iter().map(|tool| (file, tool)));
    }
    let Parser { invalid, is_complete, .. } = parser;
    is_complete.then_some(Read {
        workspace,
        ignored,
        trust,
        workspace_trust,
        content,
        named,
        files,
        configs,
        found,
        scripts,
        named_script,
        tool_links,
        locks,
        invalid,
    })
}

/// What counts of the file of a workspace that is not trusted, and the tools that it names.
fn counting(
    config: ConfigFile,
    user: Option<&ConfigFile>,
    sources: &Sources<'_>,
    trust: &mut WorkspaceTrust,
) -> (ConfigFile, Vec<NamedTool>) {
    let has_tool = |name: &str| {
        let mut tables =
            user.and_then(|config| config.tools.as_ref()).into_iter().flat_map(Table::iter);
        let is_own = tables.any(|entry| entry.key.value == name && entry.value.value.makes_tool());
        let is_of_program = || sources.bytes_tools.iter().any(|tool| tool.as_str() == name);
        is_own || is_of_program() || sources.builtins.iter().any(|builtin| builtin.name == name)
    };
    let has_topic = |id: &str| {
        let tables = user.and_then(|config| config.knowledge.as_ref());
        tables.is_some_and(|tables| tables.has(id))
    };
    if !counts_wholly(&config, has_tool, has_topic) {
        trust.leave_out();
    }
    narrowed(config, has_tool, has_topic)
}

impl FoundScript {
    /// A script of which nothing was read but its text.
    fn unread(file: SourceFile, keep: &mut impl FnMut(SourceFile) -> usize) -> Self {
        let (path, shown) = (file.path().to_owned(), file.shown().clone());
        let file = keep(file);
        Self { path, shown, is_named: false, file, says: Vec::new(), header: None }
    }
}

/// The files of a workspace as they stand there, before they are known to count.
struct OwnFiles {
    /// The root, once it was opened.
    directory: Option<Opened>,
    texts: Texts,
    examiner: Examiner,
    config: Option<SourceFile>,
    lock: Option<SourceFile>,
    /// Each component with its manifest.
    tools: BTreeMap<ToolName, (PathBuf, Option<SourceFile>)>,
    scripts: BTreeMap<ToolName, SourceFile>,
    tool_links: Vec<PathBuf>,
}

impl OwnFiles {
    /// Opens, examines and reads every file of a workspace.
    fn read(root: &Path, home: Option<&Path>) -> Self {
        let mut files = Self {
            directory: None,
            texts: Texts::new(root),
            examiner: Examiner::new(home),
            config: None,
            lock: None,
            tools: BTreeMap::new(),
            scripts: BTreeMap::new(),
            tool_links: Vec::new(),
        };
        let path = root.join(DIRECTORY);
        let directory = match files.examiner.root(root) {
            Ok(directory) => {
                files.texts.real_root = Some(directory.path.clone());
                &*files.directory.insert(directory)
            }
            Err(error) => {
                files.texts.fail(root, file::not_opened(&error));
                return files;
            }
        };
        let name = Path::new(DIRECTORY);
        match files.examiner.open(directory, name, &path, OpenAs::Entries) {
            Ok(own) => {
                files.config = files.file(&own, &path, FILE, Layer::Workspace);
                files.lock = files.file(&own, &path, LOCK, Layer::Workspace);
                files.read_tools(&own, &path.join(TOOLS));
                files.read_scripts(&own, &path.join(SCRIPTS));
            }
            Err(error) => files.texts.fail(&path, file::not_opened(&error)),
        }
        files
    }

    /// What a person trusts as a whole.
    fn content(&self) -> OwnContent<'_> {
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
    fn distrusted(&mut self, trust: &Trust, sources: &Sources<'_>) -> Option<IgnoredWorkspace> {
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
                        Err(error) => self.texts.unreadable(path, &error),
                    }
                }
            }
            Err(error) => self.texts.unreadable(path, &error),
        }
        for (name, wasm) in components {
            let manifest = manifests.remove(&name).and_then(|manifest: PathBuf| {
                let file_name = manifest.file_name()?.to_str()?.to_owned();
                self.file(&directory, path, &file_name, Layer::Manifest)
            });
            self.tools.insert(name, (wasm, manifest));
        }
        for path in manifests.into_values() {
            let missing =
                file::relative(&path.with_extension("wasm"), &self.texts.root).to_path_buf();
            let origin = Origin::Found { path: file::relative(&path, &self.texts.root) };
            self.texts.report.origin(origin, Problem::NoComponent { missing }, None);
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
                        Err(error) => self.texts.unreadable(path, &error),
                    }
                }
            }
            Err(error) => self.texts.unreadable(path, &error),
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
                self.texts.fail(&script, Problem::LinkedScript);
            } else if let Some(file) = self.texts.read(script, Layer::Manifest, opened) {
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
                Some(io::ErrorKind::NotADirectory) => self.texts.fail(path, Problem::NotADirectory),
                _ => self.texts.fail(path, file::not_opened(&error)),
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
            Ok(FileKind::Directory) => self.texts.fail(&path, Problem::Directory),
            Ok(_) => self.texts.fail(&path, Problem::NotAFile),
            // A file that was just removed, or a link that leads nowhere.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && entry.kind() != FileKind::Link => {}
            Err(error) if leads_nowhere(&error) => {
                self.texts.fail(&path, Problem::LinkedScript);
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
                    self.texts.fail(&path, problem);
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
        layer: Layer,
    ) -> Option<SourceFile> {
        let path = path.join(name);
        let opened = self.examiner.open(directory, Path::new(name), &path, OpenAs::File);
        // A link that leads nowhere is a mistake, not an absent file.
        let is_absent =
            opened.as_ref().is_err_and(|error| kind(error) == Some(io::ErrorKind::NotFound))
                && Stat::at(&directory.file, name).is_err();
        if is_absent && layer == Layer::Workspace {
            return None;
        }
        self.texts.read(path, layer, opened)
    }

    fn name(&mut self, path: PathBuf, files: &mut BTreeMap<ToolName, PathBuf>) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match ToolName::new(stem) {
            Ok(name) => {
                files.insert(name, path);
            }
            Err(ToolNameError { name }) => {
                let origin = Origin::Found { path: file::relative(&path, &self.texts.root) };
                self.texts.report.origin(origin, ToolNameError { name }, None);
            }
        }
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

/// Reads the text of files, and keeps what is wrong with them.
struct Texts {
    root: PathBuf,
    /// The root without links, once it was opened.
    real_root: Option<PathBuf>,
    /// Whether every file could be read.
    is_complete: bool,
    report: Report,
}

impl Texts {
    fn new(root: &Path) -> Self {
        let root = root.to_owned();
        Self { root, real_root: None, is_complete: true, report: Report::default() }
    }

    /// Reads the user's own file, which was named by the caller and must be there.
    fn user_file(&mut self, path: PathBuf, sources: &Sources<'_>) -> Option<SourceFile> {
        const VARIABLE: &str = "KITBAG_CONFIG";
        match trust::open_own(&path, sources.home.as_deref()) {
            Ok(file) => {
                let opened = Opened { file, path: path.clone() };
                self.read(path, Layer::User, Ok(opened))
            }
            Err(problem) => {
                let is_named = sources.environment.iter().any(|(name, _)| name == VARIABLE);
                let hint = (is_named && !path.exists()).then(|| {
                    format!(
                        "`{VARIABLE}` names it: correct that, make the file, or unset the variable"
                    )
                });
                self.fail_with(&path, problem, hint);
                None
            }
        }
    }

    /// Reads a file that the caller has named.
    fn named(
        &mut self,
        path: PathBuf,
        layer: Layer,
        opened: Result<File, Problem>,
    ) -> Option<SourceFile> {
        match opened.and_then(file::read) {
            Ok(bytes) => self.text(path, layer, bytes, false),
            Err(problem) => {
                self.fail(&path, problem);
                None
            }
        }
    }

    /// Reads a file that was opened.
    fn read(
        &mut self,
        path: PathBuf,
        layer: Layer,
        opened: Result<Opened, OpenError>,
    ) -> Option<SourceFile> {
        let opened = opened.map_err(|error| file::not_opened(&error));
        let read = opened.and_then(|Opened { file, path }| Ok((file::read(file)?, path)));
        let (bytes, real) = match read {
            Ok(read) => read,
            Err(problem) => {
                self.fail(&path, problem);
                return None;
            }
        };
        // Where what was read lies: a link led there from the workspace.
        let is_inside = self.real_root.as_ref().is_some_and(|root| real.starts_with(root));
        let is_outside = layer != Layer::User && !is_inside;
        self.text(path, layer, bytes, is_outside)
    }

    /// What was read as a text. Nothing is shown of what lies outside.
    fn text(
        &mut self,
        path: PathBuf,
        layer: Layer,
        mut bytes: Vec<u8>,
        is_outside: bool,
    ) -> Option<SourceFile> {
        let has_mark = file::take_mark(&mut bytes);
        let source = |text: String| {
            let file = SourceFile::new(path, &self.root, layer, text);
            let file = if has_mark { file.marked() } else { file };
            if is_outside { file.unquoted() } else { file }
        };
        match String::from_utf8(bytes) {
            Ok(text) => Some(source(text)),
            Err(error) => {
                // Only the part that is text can be shown, and counted.
                let end = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned();
                let file = source(text);
                self.report.span(&file, Span::from(end..end), Problem::NotUtf8, None);
                self.is_complete = false;
                None
            }
        }
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        self.fail(path, file::unreadable(error));
    }

    fn fail(&mut self, path: &Path, problem: Problem) {
        self.fail_with(path, problem, None);
    }

    fn fail_with(&mut self, path: &Path, problem: Problem, hint: Option<String>) {
        self.is_complete = false;
        let origin = Origin::Found { path: file::relative(path, &self.root) };
        self.report.origin(origin, problem, hint);
    }
}

/// Understands the text of files.
struct Parser<'a> {
    /// The person's own file, for messages.
    own_file: Option<&'a Path>,
    invalid: InvalidKeys,
    /// Whether every file could be understood.
    is_complete: bool,
    report: &'a mut Report,
}

impl Parser<'_> {
    /// Takes over what is wrong with files that count.
    fn take(&mut self, texts: Texts) {
        self.is_complete &= texts.is_complete;
        self.report.append(texts.report);
    }

    fn config(&mut self, file: &SourceFile) -> Option<ConfigFile> {
        let is_own = file.layer() == Layer::User;
        let form = Form {
            base: &KeyPath::ROOT,
            schema: if is_own { json_schema } else { workspace_schema },
            misplaced: if is_own { Vec::new() } else { self.misplaced() },
        };
        let config = parse(file, &form, self.report, &mut self.invalid);
        self.is_complete &= config.is_some();
        config
    }

    /// What was recorded of tools: nothing, where the file cannot be understood.
    fn lock(&mut self, file: &SourceFile) -> Lock {
        let lock = Lock::of_file(file, self.report, &mut InvalidKeys::default());
        self.is_complete &= lock.is_some();
        lock.unwrap_or_default()
    }

    fn manifest(&mut self, file: &SourceFile, name: &ToolName) -> Option<ToolConfig> {
        let base = KeyPath::ROOT.key("tools");
        let base = base.key(name.as_str());
        let mut misplaced = self.misplaced();
        // A tool has one, too.
        misplaced.retain(|(key, _)| *key != "approve");
        let form = Form { base: &base, schema: manifest_schema, misplaced };
        let config = parse(file, &form, self.report, &mut self.invalid);
        self.is_complete &= config.is_some();
        config
    }

    /// What a script says of itself.
    fn script(
        &mut self,
        file: SourceFile,
        name: &ToolName,
        is_named: bool,
        keep: &mut impl FnMut(SourceFile) -> usize,
    ) -> FoundScript {
        let (path, shown) = (file.path().to_owned(), file.shown().clone());
        let header = script::header(file.text()).unwrap_or_else(|(range, problem)| {
            self.report.span(&file, range.into(), problem, None);
            self.is_complete = false;
            None
        });
        let docstring = script::docstring(file.text());
        let header = header.map(|header| file.header(header));
        let (text, mut says) = (keep(file), Vec::new());
        if let Some((range, docstring)) = docstring {
            let description = Some(Written { value: docstring, span: range.into() });
            says.push((text, ToolConfig { description, ..ToolConfig::default() }));
        }
        let header = header.and_then(|file| {
            let base = KeyPath::ROOT.key("tools");
            let base = base.key(name.as_str());
            let form = Form { base: &base, schema: script_schema, misplaced: Vec::new() };
            let config: Option<ScriptConfig> = parse(&file, &form, self.report, &mut self.invalid);
            self.is_complete &= config.is_some();
            let (mut config, file) = (config?, keep(file));
            says.push((file, config.take_said()));
            Some((file, config))
        });
        FoundScript { path, shown, is_named, file: text, says, header }
    }

    /// What a file of the workspace must not have, and what is then wrong.
    fn misplaced(&self) -> Vec<(&'static str, Problem)> {
        let file = || self.own_file.map(Arc::from);
        OWN_KEYS.map(|key| (key, Problem::NotOwnFile { key, file: file() })).into()
    }
}

enum Extension {
    Wasm,
    Toml,
}
