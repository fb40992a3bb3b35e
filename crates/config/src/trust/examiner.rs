//! Owners of files: a workspace's configuration is read only if no user except the caller and root
//! can have written it, or if the caller has named the workspace.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use kitbag_base::text::shown_path;
use kitbag_fs_guard::sys::{is_link_error, open_at, open_following_links_at, read_again};
use kitbag_fs_guard::{
    Distrust, FileKind, OpenAs, OpenError, OwnerError, Owners, Stat, canonical, distrust,
    distrust_owner, distrust_place, is_group_writable, locate, open,
};
use kitbag_glob::Glob;

use crate::config::Trust;
use crate::format::ConfigFile;
use crate::layers::origin::Sourced;
use crate::layers::path::{Bases, is_fixed};
use crate::read::file::{self, SourceFile};
use crate::report::text::{not_a_glob, relative_path};
use crate::report::{Problem, Report};
use crate::trust::workspace::WorkspacePattern;

/// Opens the files of a workspace, and stores the first file that must be ignored.
#[derive(Debug)]
pub(crate) struct Examiner {
    /// The owners, including the root once it was opened.
    owners: Owners,
    /// The file or directory to ignore, with the reason.
    pub(crate) distrusted: Option<(PathBuf, Distrust)>,
}

/// An open file or directory, with its actual path: its name may refer to another file by now.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    /// The path without links.
    pub(crate) path: PathBuf,
}

/// The number of attempts to open a file that is replaced between examining its name and opening
/// it. Editors replace files.
const ATTEMPTS: usize = 16;

impl Examiner {
    pub(crate) fn new(home: Option<&Path>) -> Self {
        Self { owners: Trust::default().owners(None, home), distrusted: None }
    }

    /// Opens and examines the root of a workspace, and the links that lead to it.
    pub(crate) fn root(&mut self, path: &Path) -> Result<Opened, OpenError> {
        let located = locate(path)?;
        self.take(self.owners.check_links(&located.links));
        let root = read_again(&located.handle)?;
        let stat = Stat::of(&root)?;
        self.note(path, distrust_place(&stat, Some(&root)));
        self.owners.root = Some(stat.id());
        Ok(Opened { file: root, path: located.path })
    }

    /// Opens and examines a file or directory by its name in a directory, to read it.
    ///
    /// The opened file is the examined file: a link is resolved beforehand and not followed when
    /// the file is opened, and must lead to the opened file.
    pub(crate) fn open(
        &mut self,
        directory: &Opened,
        name: &Path,
        path: &Path,
        as_what: OpenAs,
    ) -> Result<Opened, OpenError> {
        for _ in 0..ATTEMPTS {
            self.name(&directory.file, name, path)?;
            if let Some(opened) = open_as_found(directory, name, path, as_what)? {
                let stat = Stat::of(&opened.file)?;
                self.note(path, distrust(&stat, Some(&opened.file)));
                return Ok(opened);
            }
        }
        let reason = "it keeps being replaced while kitbag opens it; try again";
        Err(io::Error::other(reason).into())
    }

    /// Examines a file or directory by its name in a directory, and the target if it is a symbolic
    /// link. Returns the kind of the target.
    pub(crate) fn name(
        &mut self,
        directory: &File,
        name: &Path,
        path: &Path,
    ) -> io::Result<FileKind> {
        let mut stat = Stat::at(directory, name)?;
        if stat.kind() == FileKind::Link {
            // A link has no permissions of its own, but an owner, who chose its target.
            self.note(path, distrust_owner(&stat));
            self.links(path);
            stat = Stat::following_links_at(directory, name)?;
        }
        let needs_opening = is_group_writable(&stat);
        let opened = needs_opening.then(|| open_following_links_at(directory, name).ok()).flatten();
        self.note(path, distrust(&stat, opened.as_ref()));
        Ok(stat.kind())
    }

    /// Examines the links from a path, and their targets: another user must not be able to replace
    /// them.
    fn links(&mut self, path: &Path) {
        // A dangling link is not read either.
        let Ok(located) = locate(path) else { return };
        self.take(self.owners.check_located(&located));
    }

    fn take(&mut self, checked: Result<(), OwnerError>) {
        if let Err(OwnerError::Distrusted { path, reason }) = checked {
            self.note(&path, Some(reason));
        }
    }

    fn note(&mut self, path: &Path, reason: Option<Distrust>) {
        if let (None, Some(reason)) = (&self.distrusted, reason) {
            self.distrusted = Some((path.to_owned(), reason));
        }
    }
}

/// Opens the file that a name in a directory refers to. Returns `None` if it is replaced meanwhile.
fn open_as_found(
    directory: &Opened,
    name: &Path,
    path: &Path,
    as_what: OpenAs,
) -> Result<Option<Opened>, OpenError> {
    let is_replaced = |error: &OpenError| match error {
        OpenError::Link { .. } => true,
        OpenError::Kernel { .. } => false,
        OpenError::Io(error) => error.kind() == io::ErrorKind::NotFound || is_link_error(error),
    };
    let found = match Stat::at(&directory.file, name).map_err(OpenError::from) {
        Err(error) if is_replaced(&error) => return Ok(None),
        found => found?,
    };
    let (opened, id, path) = if found.kind() == FileKind::Link {
        let located = locate(path)?;
        let opened = match as_what {
            OpenAs::File => open(&located.path, as_what).map(|(file, _)| file),
            _ => open_at(&located.handle, ".", as_what).map_err(OpenError::from),
        };
        (opened, located.id(), located.path)
    } else {
        let opened = open_at(&directory.file, name, as_what).map_err(OpenError::from);
        (opened, found.id(), directory.path.join(name))
    };
    let file = match opened {
        Err(error) if is_replaced(&error) => return Ok(None),
        opened => opened?,
    };
    let is_same = Stat::of(&file)?.id() == id;
    Ok(is_same.then_some(Opened { file, path }))
}

/// Reads the table `[trust]` of the user config.
pub(crate) fn trust(
    file: &SourceFile,
    config: &ConfigFile,
    home: Option<&Path>,
    report: &mut Report,
) -> Trust {
    let mut trust = Trust::default();
    let Some(table) = &config.trust else { return trust };
    for at in table.workspaces.iter().flat_map(|list| &list.value).map(|text| text.at(file)) {
        match pattern(at.value, home) {
            Ok(glob) => trust.workspaces.push(WorkspacePattern { glob, origin: at.origin() }),
            Err(problem) => report.at(at, problem),
        }
    }
    let Some(written) = &table.directories else { return trust };
    // Relative paths are refused before they are resolved against this base.
    let bases = Bases { root: Path::new("/"), home };
    let at = written.at(file);
    let directories = at.value.iter().map(|directory| directory.at(file)).filter_map(|at| {
        let path = match is_fixed(at.value) {
            true => bases.absolute(at.value),
            false => Err(relative_path(at.value).into()),
        };
        path.map_err(|problem| report.at(at, problem)).ok()
    });
    trust.directories = Sourced { value: directories.collect(), origin: at.origin() };
    trust
}

/// Returns a glob of canonical paths: links in the part without wildcards are resolved.
fn pattern(text: &str, home: Option<&Path>) -> Result<String, Problem> {
    if !is_fixed(text) {
        return Err(relative_path(text).into());
    }
    let is_wild = |part: &str| part.contains(['*', '?', '[']);
    let parts: Vec<&str> = text.split('/').collect();
    let fixed = parts.iter().position(|part| is_wild(part)).unwrap_or(parts.len());
    let directory = match parts[..fixed].join("/") {
        root if root.is_empty() => "/".to_owned(),
        directory => directory,
    };
    let directory = canonical(&Bases { root: Path::new("/"), home }.absolute(&directory)?);
    let directory = directory.to_str().ok_or_else(|| not_a_glob(text, "its path is not UTF-8"))?;
    // Special characters in the name of the directory are literal.
    let escaped: String = directory
        .trim_end_matches('/')
        .chars()
        .map(|char| match char {
            '*' | '?' | '[' => format!("[{char}]"),
            char => char.to_string(),
        })
        .collect();
    let rest = parts[fixed..].iter().map(|part| format!("/{part}"));
    let glob = escaped + &rest.collect::<String>();
    let glob = if glob.is_empty() { "/".to_owned() } else { glob };
    match Glob::new(&glob) {
        Ok(_) => Ok(glob),
        Err(reason) => Err(not_a_glob(text, reason).into()),
    }
}

/// Opens the user config.
///
/// # Errors
///
/// The reason why it cannot be read, or which other user can write or replace it, with the remedy.
pub(crate) fn open_own(path: &Path, home: Option<&Path>) -> Result<File, Problem> {
    open_named(path, &Trust::default().owners(None, home))
}

/// Opens a file that the caller has named.
///
/// # Errors
///
/// The same as for [`open_own`].
pub(crate) fn open_named(path: &Path, owners: &Owners) -> Result<File, Problem> {
    let opened = owners.open_following_links(path);
    opened.map(|(file, _)| file).map_err(|error| match error {
        OwnerError::Distrusted { path: found, reason } => {
            let what = match &*found {
                found if found == path => "it".to_owned(),
                found if Some(found) == path.parent() => "its directory".to_owned(),
                found => format!("`{}`", shown_path(found)),
            };
            file::cannot_be_read(format_args!("{what} {reason}; {}", reason.remedy()))
        }
        OwnerError::Open(error) => file::not_opened(&error),
    })
}
