//! Finding the workspace.

use std::path::{Path, PathBuf};

use kitbag_base::text::shown_path;
use kitbag_state::trust::TrustStore;

use crate::config::DIRECTORY;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path;
use crate::read::sources::Sources;
use crate::report::Report;
use crate::trust::content::lies_in;
use crate::trust::examiner::Examiner;

/// The directory or file that marks a workspace without `.kitbag`.
const GIT: &str = ".git";

pub(crate) struct Workspace {
    /// The absolute path, as it was found or named.
    pub(crate) root: Sourced<PathBuf>,
    /// The same directory, with symbolic links resolved.
    pub(crate) canonical: PathBuf,
    /// `true` if the directory contains `.kitbag`.
    pub(crate) exists: bool,
}

/// Finds the workspace: the named one, otherwise the nearest directory upwards that contains
/// `.kitbag` or that a person trusted, otherwise the nearest that contains `.git`, otherwise the
/// start of the search.
pub(crate) fn workspace(sources: &Sources<'_>, report: &mut Report) -> Option<Workspace> {
    let holds_kitbag = |directory: &Path| directory.join(DIRECTORY).is_dir();
    let start = path::settled(&sources.start);
    let root = match &sources.workspace {
        Some(named) => named.clone().map(|named| sources.named_path(&named)),
        None => match start.ancestors().find(|directory| holds_kitbag(directory)) {
            above if let Some(root) = trusted_below(&start, above, sources) => {
                let origin = Origin::Found { path: Path::new(DIRECTORY).into() };
                Sourced { value: root.to_owned(), origin }
            }
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
            let problem = format!("workspace `{}` is not a directory", shown_path(&root.value));
            report.origin(root.origin, problem);
            None
        }
    }
}

/// Returns the nearest directory upwards, below `above`, that a person trusted as a workspace. It
/// no longer contains `.kitbag`, but removing `.kitbag` does not lift its restrictions.
fn trusted_below<'a>(
    start: &'a Path,
    above: Option<&Path>,
    sources: &Sources<'_>,
) -> Option<&'a Path> {
    let state = &sources.state.as_ref()?.value;
    let store = TrustStore::new(state);
    let mut below = start.ancestors().take_while(|directory| Some(*directory) != above);
    below.find(|directory| {
        let directory = kitbag_fs_guard::canonical(directory);
        let is_usable = !lies_in(state, &directory, sources.home.as_deref());
        is_usable && !matches!(store.find(&directory), Ok(None))
    })
}

/// Returns the nearest directory upwards that contains `.git`, which is a file in a worktree.
/// Returns `None` if another user could have put it there, or if the directory contains the home
/// directory.
fn repository(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let holds_git = |directory: &&Path| directory.join(GIT).symlink_metadata().is_ok();
    let root = start.ancestors().find(holds_git)?;
    let mut examiner = Examiner::new(home);
    let directory = examiner.root(root).ok()?;
    examiner.name(&directory.file, Path::new(GIT), &root.join(GIT)).ok()?;
    let counts = examiner.distrusted.is_none() && !path::holds(root, home);
    counts.then(|| root.to_owned())
}
