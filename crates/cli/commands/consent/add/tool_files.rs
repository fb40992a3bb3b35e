//! Locations of added tools: the files of a workspace, or of the user.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use kitbag::Config;
use kitbag::base::ContentDigest;
use kitbag::config::{Layer, Lock};
use kitbag::contract::ToolName;
use kitbag::policy::server::ServerName;
use kitbag::trust::digest_of;
use tempfile::NamedTempFile;

use super::table::{self, ToolTable};
use super::workspace_trust::Changed;
use crate::commands::Global;
use crate::console::output;
use crate::error::CliError;
use crate::files::links::refuse_links;
use crate::files::new_file;
use crate::files::replace::Original;

pub(crate) struct ToolFiles {
    root: PathBuf,
    directory: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) lock: PathBuf,
    pub(crate) tools: PathBuf,
    pub(crate) layer: Layer,
    home: Option<PathBuf>,
}

/// The tool files, locked against changes by other commands.
pub(crate) struct LockedToolFiles<'a> {
    place: &'a ToolFiles,
    pub(crate) config: Original,
    lock: Original,
    pub(crate) recorded: Lock,
    is_readable: bool,
    _directory: File,
}

impl ToolFiles {
    /// Returns the files of the workspace, or of the user config.
    pub(crate) fn new(layer: Layer, config: &Config) -> Result<Self, CliError> {
        if layer != Layer::User
            && let Some(ignored) = &config.ignored
        {
            return Err(CliError::Usage(ignored.to_string()));
        }
        let place = Self::at(layer, config.root.value.clone(), config.own_file.clone())?;
        place.check()?;
        Ok(place)
    }

    /// Finds the files that hold a tool or a server: those of the workspace, or of the user. `None`:
    /// neither has it. Files of a workspace without effect are not searched.
    pub(crate) fn find(
        global: &Global,
        config: Option<&Config>,
        holds: impl Fn(&Self) -> Result<bool, CliError>,
    ) -> Result<Option<Self>, CliError> {
        let root = match config {
            Some(config) => config.root.value.clone(),
            None => global.builder().find_workspace()?,
        };
        let own_file = config.and_then(|config| config.own_file.clone()).or_else(Global::own_file);
        for layer in [Layer::Workspace, Layer::User] {
            if layer == Layer::Workspace && config.is_some_and(|config| config.ignored.is_some()) {
                continue;
            }
            let Ok(place) = Self::at(layer, root.clone(), own_file.clone()) else { continue };
            if holds(&place)? {
                // Links are refused only if a file would be written.
                place.check()?;
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Returns the files of the workspace with this root, or those beside the user config, without
    /// reading them.
    pub(crate) fn at(
        layer: Layer,
        root: PathBuf,
        own_file: Option<PathBuf>,
    ) -> Result<Self, CliError> {
        let home = Global::home();
        Ok(match layer {
            Layer::User => {
                let config = own_file.ok_or_else(|| {
                    let why =
                        "the path of your user config is unknown: set `HOME` or `KITBAG_CONFIG`";
                    CliError::Usage(why.to_owned())
                })?;
                let directory = config.parent().unwrap_or(Path::new("/")).to_owned();
                let (lock, tools) = (Lock::path_beside(&config), directory.join("tools"));
                Self { root, directory, config, lock, tools, layer, home }
            }
            Layer::Workspace | Layer::Manifest => {
                let directory = root.join(".kitbag");
                let (config, tools) = (directory.join("config.toml"), directory.join("tools"));
                let lock = Lock::path_in(&root);
                Self { root, directory, config, lock, tools, layer, home }
            }
        })
    }

    /// Refuses links in a workspace, through which files could be written anywhere.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if self.layer == Layer::User {
            return Ok(());
        }
        let mut paths = [&self.config, &self.lock, &self.tools].into_iter();
        paths.try_for_each(|path| refuse_links(&self.root, path))
    }

    pub(crate) fn component(&self, name: &str) -> PathBuf {
        self.tools.join(format!("{name}.wasm"))
    }

    /// Returns a path in the form of the configuration: relative to the workspace, or valid in all
    /// workspaces.
    pub(crate) fn written(&self, path: &Path) -> String {
        let home = || self.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        match (self.layer, path.strip_prefix(&self.root)) {
            (Layer::Workspace | Layer::Manifest, Ok(below)) => below.display().to_string(),
            _ => match home() {
                Some(below) => format!("~/{}", below.display()),
                None => path.display().to_string(),
            },
        }
    }

    /// Returns the origin of a component for the lock file and the comment of its table. The files of
    /// a workspace may be shared, so they have a path in the workspace, or only the file name.
    pub(crate) fn origin(&self, origin: &str) -> String {
        let path = match (origin.strip_prefix("~/"), &self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(origin),
        };
        if self.layer == Layer::User || path.is_relative() {
            return origin.to_owned();
        }
        let name = || Path::new(path.file_name().unwrap_or_default());
        path.strip_prefix(&self.root).unwrap_or_else(|_| name()).display().to_string()
    }

    pub(crate) fn shown(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.root).ok().filter(|below| *below != Path::new(""));
        below.map_or_else(|| self.written(path), |below| below.display().to_string())
    }

    /// Returns the current text of the configuration. Empty if the file does not exist.
    pub(crate) fn config_text(&self) -> Result<String, CliError> {
        let unreadable =
            |source| CliError::Read { path: self.config.display().to_string(), source };
        let original = Original::read(&self.config).map_err(unreadable)?;
        self.text_of(&original).map(str::to_owned)
    }

    fn text_of<'a>(&self, file: &'a Original) -> Result<&'a str, CliError> {
        str::from_utf8(file.content())
            .map_err(|error| CliError::Usage(format!("`{}`: {error}", self.config.display())))
    }

    /// Returns the configuration with the table of a tool at its end.
    pub(crate) fn with_table(
        &self,
        table: &ToolTable,
        text: &str,
        replace: bool,
    ) -> Result<String, CliError> {
        table.add_to(text, replace).map_err(|error| {
            CliError::Usage(format!(
                "`{}` is unchanged: {error}; write the table of the tool yourself, or make room \
                 for it",
                self.config.display()
            ))
        })
    }

    /// Resolves a path from the configuration. `None` if the home directory is not known.
    pub(crate) fn absolute(&self, text: &str) -> Option<PathBuf> {
        match text.strip_prefix("~/") {
            Some(below) => self.home.as_ref().map(|home| home.join(below)),
            None => Some(self.root.join(text)),
        }
    }

    /// Returns whether a tool was added: it has a record, or a table if the record cannot be read.
    pub(crate) fn has_added(&self, name: &ToolName) -> Result<bool, CliError> {
        let unreadable = |source| CliError::Read { path: self.lock.display().to_string(), source };
        let lock = Original::read(&self.lock).map_err(unreadable)?;
        let lock = String::from_utf8_lossy(lock.content()).into_owned();
        Ok(match table::has(&lock, name.as_str()) {
            Some(is_recorded) => is_recorded,
            None => table::wasm(&self.config_text()?, name.as_str()).is_some(),
        })
    }

    /// Like [`lock`](Self::lock), but accepts an invalid lock file, which then only works with
    /// [`LockedToolFiles::forget`].
    pub(crate) fn lock_leniently(&self) -> Result<LockedToolFiles<'_>, CliError> {
        self.locked(true)
    }

    /// Waits until no other command changes the files, then reads them.
    pub(crate) fn lock(&self) -> Result<LockedToolFiles<'_>, CliError> {
        self.locked(false)
    }

    fn locked(&self, is_lenient: bool) -> Result<LockedToolFiles<'_>, CliError> {
        let failed =
            |path: &Path, source| CliError::Save { path: path.display().to_string(), source };
        fs::create_dir_all(&self.tools).map_err(|source| failed(&self.tools, source))?;
        self.check()?;
        let directory = lock(&self.directory).map_err(|source| failed(&self.directory, source))?;
        let read = |path: &Path| {
            let unreadable = |source| CliError::Read { path: path.display().to_string(), source };
            Original::read(path).map_err(unreadable)
        };
        let (config, lock) = (read(&self.config)?, read(&self.lock)?);
        let recorded = match lock.content() {
            [] => Some(Lock::default()),
            content => {
                let read = Lock::read(&String::from_utf8_lossy(content), &self.lock, &self.root);
                match read {
                    Err(_) if is_lenient => None,
                    read => Some(read?),
                }
            }
        };
        let is_readable = recorded.is_some();
        let recorded = recorded.unwrap_or_default();
        Ok(LockedToolFiles {
            place: self,
            config,
            lock,
            recorded,
            is_readable,
            _directory: directory,
        })
    }
}

impl LockedToolFiles<'_> {
    pub(crate) fn config_text(&self) -> Result<&str, CliError> {
        self.place.text_of(&self.config)
    }

    /// Returns the files of the workspace that were written, by their relative paths. Empty for the
    /// user config.
    pub(crate) fn changed(&self, component: Option<(&Path, Option<ContentDigest>)>) -> Changed {
        let place = self.place;
        if place.layer == Layer::User {
            return Changed::new();
        }
        let name = |path: &Path| {
            let inside = path.strip_prefix(&place.root).unwrap_or(path);
            inside.to_string_lossy().into_owned()
        };
        let files = [(&place.config, &self.config), (&place.lock, &self.lock)];
        let files = files
            .into_iter()
            .filter_map(|(path, file)| Some((name(path), Some(digest_of(file.written()?)))));
        files.chain(component.map(|(path, digest)| (name(path), digest))).collect()
    }

    pub(crate) fn write_config(&mut self, text: &str) -> Result<(), CliError> {
        if text.as_bytes() == self.config.content() {
            return Ok(());
        }
        self.config.replace(text.as_bytes()).map_err(|source| CliError::Save {
            path: self.place.config.display().to_string(),
            source,
        })
    }

    /// Writes the lock file.
    pub(crate) fn write_lock(&mut self) -> Result<(), CliError> {
        let text = self.recorded.to_string();
        if text.as_bytes() == self.lock.content() {
            return Ok(());
        }
        self.lock.replace(text.as_bytes()).map_err(|source| CliError::Save {
            path: self.place.lock.display().to_string(),
            source,
        })
    }

    /// Removes the record of a tool. Returns whether the record remains because the lock file is
    /// not valid TOML.
    pub(crate) fn forget(&mut self, name: &ToolName) -> Result<bool, CliError> {
        if self.is_readable {
            self.recorded.tools.remove(name);
            return self.write_lock().map(|()| false);
        }
        let text = String::from_utf8_lossy(self.lock.content()).into_owned();
        let Ok(left) = table::without(&text, name.as_str()) else { return Ok(true) };
        if let Some(left) = left {
            let failed =
                |source| CliError::Save { path: self.place.lock.display().to_string(), source };
            self.lock.replace(left.as_bytes()).map_err(failed)?;
        }
        Ok(false)
    }

    /// Returns the layer of the files.
    pub(crate) fn layer(&self) -> Layer {
        self.place.layer
    }

    /// Removes the record of a server. Returns whether the record remains because the lock file is
    /// not valid TOML.
    pub(crate) fn forget_server(&mut self, name: &ServerName) -> Result<bool, CliError> {
        if self.is_readable {
            self.recorded.servers.remove(name);
            return self.write_lock().map(|()| false);
        }
        let text = String::from_utf8_lossy(self.lock.content()).into_owned();
        let Ok(left) = table::without_server(&text, name.as_str()) else { return Ok(true) };
        if let Some(left) = left {
            let failed =
                |source| CliError::Save { path: self.place.lock.display().to_string(), source };
            self.lock.replace(left.as_bytes()).map_err(failed)?;
        }
        Ok(false)
    }

    /// Writes a component beside its final path, under a name that no tool has.
    pub(crate) fn stage(&self, path: &Path, bytes: &[u8]) -> Result<NamedTempFile, CliError> {
        let failed = |source| CliError::Save { path: path.display().to_string(), source };
        let directory = path.parent().unwrap_or(Path::new("/"));
        new_file::write(directory, bytes, None).map_err(failed)
    }

    /// Moves a component to its final path. `is_new`: fails if a file exists there.
    pub(crate) fn put(
        &self,
        file: NamedTempFile,
        path: &Path,
        is_new: bool,
    ) -> Result<(), CliError> {
        let failed = |source| CliError::Save { path: path.display().to_string(), source };
        if is_new {
            return match new_file::persist(file, [path.to_owned()]).map_err(failed)? {
                Some(_) => Ok(()),
                None => Err(CliError::Usage(format!("`{}` exists already", path.display()))),
            };
        }
        file.persist(path).map(drop).map_err(|error| failed(error.error))
    }
}

fn lock(directory: &Path) -> io::Result<File> {
    let directory = File::open(fs::canonicalize(directory)?)?;
    match directory.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            output::note("waiting for another command that changes the configuration");
            directory.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(directory)
}
