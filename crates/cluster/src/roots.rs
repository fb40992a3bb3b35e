//! The root that a tool needs, and the workers that have it.

use std::collections::BTreeSet;

use kitbag_base::shell::command;
use kitbag_policy::DirectoryGrant;

use crate::names::Root;
use crate::presence::{Presence, Readiness};

/// An error: no worker can run a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootError {
    /// The tool needs the directories of several roots.
    #[error(
        "the tool needs the roots {}, but a worker is chosen by one root: grant it directories of \
         one root", list(.0)
    )]
    Several(BTreeSet<String>),
    /// The name in a grant is not valid.
    #[error(transparent)]
    Name(#[from] crate::NameError),
    /// No worker has the root.
    #[error(
        "no worker has the root `{root}`: start one with `{}`{}", with_root(.root),
        present(.workers)
    )]
    NoWorker {
        /// The name of the root.
        root: String,
        /// The roots of each running worker, by the worker's id.
        workers: Vec<(String, BTreeSet<String>)>,
    },
    /// All workers that could run the tool are stopping.
    #[error("the workers that could run the tool are stopping: {}", list(.0))]
    Draining(BTreeSet<String>),
    /// There are no workers.
    #[error("there is no worker: start one with `kitbag worker`")]
    NoWorkers,
}

/// Returns the root whose workers can run a tool with these grants, on a machine that has no roots.
///
/// # Errors
///
/// [`RootError::Several`].
pub fn root_of(grants: &[DirectoryGrant]) -> Result<Root, RootError> {
    let names: BTreeSet<_> = grants.iter().filter_map(DirectoryGrant::missing_root).collect();
    let mut each = names.iter();
    match (each.next(), each.next()) {
        (None, _) => Ok(Root::Any),
        (Some(name), None) => Ok(Root::named(name)?),
        _ => Err(RootError::Several(names.into_iter().map(str::to_owned).collect())),
    }
}

/// Returns the ids of the workers that can run a call which needs this root.
///
/// # Errors
///
/// [`RootError`] says why there is none, and which roots the workers have.
pub fn serving<'a>(workers: &'a [Presence], root: &Root) -> Result<Vec<&'a str>, RootError> {
    let has = |worker: &&Presence| match root {
        Root::Any => true,
        Root::Named(name) => worker.roots.contains(name),
    };
    let able: Vec<_> = workers.iter().filter(has).collect();
    let ready = able.iter().filter(|worker| worker.readiness == Readiness::Ready);
    let ready: Vec<_> = ready.map(|worker| worker.id.as_str()).collect();
    match root {
        _ if !ready.is_empty() => Ok(ready),
        _ if !able.is_empty() => {
            Err(RootError::Draining(able.into_iter().map(|worker| worker.id.clone()).collect()))
        }
        Root::Any => Err(RootError::NoWorkers),
        Root::Named(name) => {
            let with_roots = |worker: &Presence| (worker.id.clone(), worker.roots.clone());
            let workers = workers.iter().map(with_roots).collect();
            Err(RootError::NoWorker { root: name.clone(), workers })
        }
    }
}

fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Returns the command for a worker with this root.
fn with_root(root: &str) -> String {
    command(["kitbag", "worker", "--root", &format!("{root}=DIR")])
}

/// Returns the workers in words, a few of many.
fn present(workers: &[(String, BTreeSet<String>)]) -> String {
    const SHOWN: usize = 5;
    if workers.is_empty() {
        return "; there is no worker".to_owned();
    }
    let one = |(id, roots): &(String, BTreeSet<String>)| match roots.is_empty() {
        true => format!("`{id}` has no roots"),
        false => format!("`{id}` has {}", list(roots)),
    };
    let shown: Vec<_> = workers.iter().take(SHOWN).map(one).collect();
    let more = match workers.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("; {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use kitbag_policy::{Access, GuestPath};

    use super::*;

    fn grant(host: &str) -> DirectoryGrant {
        DirectoryGrant {
            host: PathBuf::from(host),
            guest: GuestPath::new("/data").unwrap(),
            access: Access::ReadOnly,
            include: Vec::new(),
            protected: None,
            identity: None,
        }
    }

    fn worker(id: &str, roots: &[&str], readiness: Readiness) -> Presence {
        let roots = roots.iter().map(|&root| root.to_owned()).collect();
        Presence { id: id.to_owned(), roots, readiness, ..Presence::default() }
    }

    #[test]
    fn grants_name_the_root_of_a_call() {
        let root =
            |hosts: &[&str]| root_of(&hosts.iter().map(|host| grant(host)).collect::<Vec<_>>());
        assert_eq!(root(&[]), Ok(Root::Any));
        assert_eq!(root(&["/w", "$TEMP"]), Ok(Root::Any));
        let data = Root::named("data").unwrap();
        assert_eq!(root(&["/w", "$ROOT/data/a", "$ROOT/data/b"]), Ok(data));
        let several = root(&["$ROOT/b", "$ROOT/a"]).unwrap_err();
        assert_eq!(
            several.to_string(),
            "the tool needs the roots `a`, `b`, but a worker is chosen by one root: grant it \
             directories of one root"
        );
    }

    #[test]
    fn only_ready_workers_with_the_root_serve() {
        let workers = [
            worker("a", &["data"], Readiness::Ready),
            worker("b", &[], Readiness::Ready),
            worker("c", &["data", "old"], Readiness::Draining),
        ];
        let named = |name: &str| serving(&workers, &Root::named(name).unwrap());
        assert_eq!(serving(&workers, &Root::Any), Ok(vec!["a", "b"]));
        assert_eq!(named("data"), Ok(vec!["a"]));
        assert_eq!(
            named("old").unwrap_err().to_string(),
            "the workers that could run the tool are stopping: `c`"
        );
        assert_eq!(
            named("new").unwrap_err().to_string(),
            "no worker has the root `new`: start one with `kitbag worker --root new=DIR`; `a` has \
             `data`, `b` has no roots, `c` has `data`, `old`"
        );
        assert_eq!(serving(&[], &Root::Any), Err(RootError::NoWorkers));
    }
}
