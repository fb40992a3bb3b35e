//! The content of a topic: its subjects and their names.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use kitbag_sdk::ErrorInfo;

use crate::arguments::Topic;
use crate::files::{Fault, Files, Identity, Kind};
use crate::include::Filter;
use crate::pattern::Pattern;
use crate::subject::{Subject, is_hidden, slug_of, without_dots};

/// Maximum number of entries of a topic: files and directories, counted once per path. Together
/// with [`PATH_BYTES`], it limits the memory for them to about half of the 64 MiB of a tool.
const ENTRIES: usize = 100_000;

/// Maximum total length of all paths in bytes.
const PATH_BYTES: usize = 8 << 20;

/// The subjects of a topic.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Sorted by slug bytes. All slugs are unique.
    pub(crate) subjects: Vec<Subject>,
    /// Symbolic links that lead outside of the topic.
    leaving: Vec<String>,
    /// Directories that could not be listed, without hidden ones.
    pub(crate) unreadable: Vec<(String, Fault)>,
    /// Patterns of subjects that can never be loaded.
    disabled: Vec<Pattern>,
    /// The files that match those patterns, under any name.
    disabled_files: BTreeSet<Identity>,
    /// A directory that could not be listed may contain more disabled files.
    has_more_disabled: bool,
}

impl Catalog {
    /// Walks the topic's directory.
    ///
    /// Links to directories are followed, except to a parent of the link, so that the walk ends. A
    /// target with several paths is listed under each of them. Links that leave the topic are
    /// stored separately; dangling links, devices, FIFOs and sockets are not subjects.
    pub(crate) fn read(files: &impl Files, topic: &Topic) -> Result<Self, ErrorInfo> {
        let mut walk = Walk {
            filter: Filter::new(topic)?,
            entries_left: ENTRIES,
            path_bytes_left: PATH_BYTES,
            ..Walk::default()
        };
        walk.directories.push(String::new());
        while let Some(directory) = walk.directories.pop() {
            let visit = &mut |name: &str, kind| walk.visit(&directory, name, kind);
            match files.list(&directory, visit) {
                Ok(()) => {}
                Err(Fault::NO_ENTRY) if directory.is_empty() => return Err(missing(topic)),
                Err(fault) if directory.is_empty() => return Err(unreadable(topic, fault)),
                // Removed after its parent was listed.
                Err(Fault::NO_ENTRY) => walk.removed.push(directory),
                Err(fault) => walk.unreadable.push((directory, fault)),
            }
            if walk.is_full {
                return Err(ErrorInfo::new(format!(
                    "topic `{}` is too large: it has more than {ENTRIES} files and directories, \
                     or paths of more than {} MiB in all; name a directory with fewer",
                    topic.id,
                    PATH_BYTES >> 20,
                )));
            }
            walk.follow_links(files);
        }
        Self::named(files, walk, topic)
    }

    /// Iterates over the subjects that a pattern can match, in order, with their positions.
    pub(crate) fn visible(&self) -> impl Iterator<Item = (usize, &Subject)> {
        self.subjects.iter().enumerate().filter(|(_, subject)| !subject.hidden && !subject.disabled)
    }

    /// Iterates over the subjects that a listing offers, in order: visible and not learned.
    pub(crate) fn available(&self) -> impl Iterator<Item = &Subject> {
        self.visible().map(|(_, subject)| subject).filter(|subject| !subject.learned)
    }

    /// Iterates over the subjects in the system prompt, in order.
    pub(crate) fn learned(&self) -> impl Iterator<Item = &Subject> {
        self.subjects.iter().filter(|subject| subject.learned && !subject.disabled)
    }

    /// Returns the position of the subject with exactly this slug.
    pub(crate) fn find(&self, slug: &str) -> Option<usize> {
        self.subjects.binary_search_by(|subject| subject.slug.as_str().cmp(slug)).ok()
    }

    /// Returns the subjects that share this slug, if there are several.
    pub(crate) fn sharing(&self, slug: &str) -> impl Iterator<Item = &Subject> {
        self.subjects.iter().filter(move |subject| subject.shared.as_deref() == Some(slug))
    }

    /// Returns true if a link that leaves the topic has this slug or is a parent of it.
    pub(crate) fn leaves(&self, slug: &str) -> bool {
        self.leaving.iter().any(|link| {
            let behind = slug.strip_prefix(&*without_dots(link));
            slug == slug_of(link)
                || behind.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns true if a name is disabled.
    pub(crate) fn disables(&self, name: &str) -> bool {
        is_named(&self.disabled, name)
    }

    /// Returns true if an open file is disabled, by any path. The current targets of links are
    /// checked as well: the file may have been absent when its directory was listed. A hard-linked
    /// file may also be disabled if a directory could not be listed.
    pub(crate) fn disables_file(&self, files: &impl Files, path: &str, file: Identity) -> bool {
        self.disabled_files.contains(&file)
            || !self.disabled.is_empty() && leads_to_disabled(files, &self.disabled, path)
            || self.has_more_disabled && files.names(path) != Ok(1)
    }

    /// Finds visible subjects whose slug or path equals a name, ignoring case.
    pub(crate) fn find_like(&self, name: &str) -> impl Iterator<Item = (usize, &Subject)> {
        let name = name.to_lowercase();
        self.visible().filter(move |(_, subject)| {
            subject.slug.to_lowercase() == name || subject.path.to_lowercase() == name
        })
    }

    /// Returns true if a directory contains visible subjects.
    pub(crate) fn has_directory(&self, directory: &str) -> bool {
        self.visible().any(|(_, subject)| is_within(&subject.slug, directory))
    }

    /// Returns true if there are subjects that are not listed but can be loaded.
    pub(crate) fn has_unlisted(&self) -> bool {
        self.subjects.iter().any(|it| it.hidden && !it.disabled && !it.learned)
    }

    /// Assigns names to the files of a walk, and sets which subjects may be loaded.
    fn named(files: &impl Files, walk: Walk, topic: &Topic) -> Result<Self, ErrorInfo> {
        let patterns = |texts: &[String]| -> Vec<Pattern> {
            texts.iter().map(|text| Pattern::new(text)).collect()
        };
        let (disabled, learned) = (patterns(&topic.disabled), patterns(&topic.learned));
        for (key, patterns) in [("disabled", &disabled), ("learned", &learned)] {
            if let Some(error) = patterns.iter().find_map(Pattern::error) {
                // A mistake in the configuration that would not be reported otherwise.
                return Err(ErrorInfo::new(format!("topic `{}`: in `{key}`, {error}", topic.id)));
            }
        }
        let is_disabled = |name: &str| is_named(&disabled, name);

        let mut subjects: Vec<Subject> = walk.files.into_iter().map(Subject::new).collect();
        resolve_shared(&mut subjects);
        for subject in &mut subjects {
            // By any of its names: adding or removing a file next to it changes the slug, and must
            // not enable a disabled subject.
            subject.disabled = is_disabled(&subject.slug)
                || is_disabled(&subject.path)
                || subject.shared.as_deref().is_some_and(is_disabled);
            subject.learned = learned.iter().any(|pattern| pattern.matches(subject));
        }
        let mut has_more_disabled = walk
            .unreadable
            .iter()
            .map(|(directory, _)| directory)
            .chain(&walk.removed)
            .any(|directory| may_disable_below(&disabled, directory));
        let mut disabled_files = BTreeSet::new();
        if !disabled.is_empty() {
            let kept_out = (walk.kept_out, walk.entries_left);
            has_more_disabled |= !disabled_among(files, kept_out, &disabled, &mut disabled_files);
            disable_linked(files, &walk.followed, &disabled, &mut disabled_files, &mut subjects);
        }
        let mut unreadable = walk.unreadable;
        unreadable.retain(|(directory, _)| !is_hidden(directory));
        unreadable.sort_unstable();
        let leaving = walk.leaving;
        Ok(Self { subjects, leaving, unreadable, disabled, disabled_files, has_more_disabled })
    }
}

/// The state of a walk.
#[derive(Default)]
struct Walk {
    filter: Filter,
    /// Directories that are not listed yet. An explicit stack, since a topic can be nested more
    /// deeply than the call stack allows.
    directories: Vec<String>,
    /// Links in the current directory.
    links: Vec<String>,
    files: Vec<String>,
    leaving: Vec<String>,
    /// Links with a target in the topic.
    followed: BTreeSet<String>,
    unreadable: Vec<(String, Fault)>,
    /// Directories that were removed before they could be listed.
    removed: Vec<String>,
    /// Files and directories that the filter excludes.
    kept_out: Vec<(String, Kind)>,
    /// The identities of directories above links, to detect cycles.
    identities: BTreeMap<String, Identity>,
    entries_left: usize,
    path_bytes_left: usize,
    /// The limits of the catalog were reached.
    is_full: bool,
}

impl Walk {
    fn visit(&mut self, directory: &str, name: &str, kind: Kind) -> ControlFlow<()> {
        let length = directory.len() + 1 + name.len();
        if self.entries_left == 0 || self.path_bytes_left < length {
            self.is_full = true;
            return ControlFlow::Break(());
        }
        self.entries_left -= 1;
        self.path_bytes_left -= length;
        let mut path = String::with_capacity(length);
        if !directory.is_empty() {
            path.push_str(directory);
            path.push('/');
        }
        path.push_str(name);
        match kind {
            Kind::File if self.filter.takes_entry(&path, name, false) => self.files.push(path),
            Kind::Directory if self.filter.takes_entry(&path, name, true) => {
                self.directories.push(path);
            }
            Kind::File | Kind::Directory => self.kept_out.push((path, kind)),
            Kind::Link => self.links.push(path),
            Kind::Other => {}
        }
        ControlFlow::Continue(())
    }

    fn follow_links(&mut self, files: &impl Files) {
        for link in core::mem::take(&mut self.links) {
            let takes = |path: &str, kind| self.filter.takes(path, kind == Kind::Directory);
            let target = files.target(&link);
            if let Ok(kind) = target
                && !(takes(&link, kind)
                    && real_path(files, &link).is_some_and(|it| takes(&it, kind)))
            {
                continue;
            }
            match target {
                Ok(Kind::File) => {
                    self.followed.insert(link.clone());
                    self.files.push(link);
                }
                Ok(Kind::Directory) if !self.leads_back(files, &link) => {
                    self.followed.insert(link.clone());
                    self.directories.push(link);
                }
                Ok(_) => {}
                Err(Fault::NOT_PERMITTED) => self.leaving.push(link),
                // A dangling or circular link.
                Err(_) => {}
            }
        }
    }

    /// Returns true if a link leads to one of its parents, or cannot be followed.
    fn leads_back(&mut self, files: &impl Files, link: &str) -> bool {
        let Ok(target) = files.identity(link) else { return true };
        let above = link.match_indices('/').map(|(end, _)| &link[..end]);
        core::iter::once("").chain(above).any(|directory| {
            if let Some(identity) = self.identities.get(directory) {
                return *identity == target;
            }
            let Ok(identity) = files.identity(directory) else { return false };
            self.identities.insert(directory.to_owned(), identity);
            identity == target
        })
    }
}

/// Returns the path within the topic after following all links.
fn real_path(files: &impl Files, path: &str) -> Option<String> {
    /// As in Linux.
    const LINKS: usize = 40;
    let mut ahead: Vec<String> = path.rsplit('/').map(ToOwned::to_owned).collect();
    let (mut real, mut links) = (String::new(), 0);
    while let Some(component) = ahead.pop() {
        let parent = real.len();
        match component.as_str() {
            "" | "." => continue,
            ".." => {
                real.truncate(real.rfind('/').unwrap_or(0));
                continue;
            }
            component if real.is_empty() => real.push_str(component),
            component => {
                real.push('/');
                real.push_str(component);
            }
        }
        if let Some(target) = files.link(&real) {
            links += 1;
            if links > LINKS {
                return None;
            }
            real.truncate(parent);
            ahead.extend(target.rsplit('/').map(ToOwned::to_owned));
        }
    }
    Some(real)
}

fn is_named(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.names(name))
}

/// Returns true if the real path of a path is disabled.
fn leads_to_disabled(files: &impl Files, disabled: &[Pattern], path: &str) -> bool {
    // The target is unknown, so it may be disabled.
    real_path(files, path)
        .is_none_or(|real| is_named(disabled, &real) || is_named(disabled, &slug_of(&real)))
}

/// Returns true if patterns may disable something below a directory, by path or slug.
fn may_disable_below(disabled: &[Pattern], directory: &str) -> bool {
    let slug = without_dots(directory);
    disabled.iter().any(|it| it.may_name_below(directory) || it.may_name_below(&slug))
}

/// Adds disabled files that the filter excluded, and those in excluded directories. `false` if
/// there are too many to examine.
fn disabled_among(
    files: &impl Files,
    (mut kept_out, mut entries_left): (Vec<(String, Kind)>, usize),
    disabled: &[Pattern],
    found: &mut BTreeSet<Identity>,
) -> bool {
    let mut is_complete = true;
    while let Some((path, kind)) = kept_out.pop() {
        if kind == Kind::File {
            if is_named(disabled, &path) || is_named(disabled, &slug_of(&path)) {
                found.extend(files.identity(&path).ok());
            }
            continue;
        }
        if !may_disable_below(disabled, &path) {
            continue;
        }
        let listed = files.list(&path, &mut |name, kind| {
            let Some(left) = entries_left.checked_sub(1) else {
                is_complete = false;
                return ControlFlow::Break(());
            };
            entries_left = left;
            if matches!(kind, Kind::File | Kind::Directory) {
                kept_out.push((format!("{path}/{name}"), kind));
            }
            ControlFlow::Continue(())
        });
        is_complete &= listed.is_ok();
    }
    is_complete
}

/// Disables links to disabled files, and adds files that are disabled under their own names.
fn disable_linked(
    files: &impl Files,
    followed: &BTreeSet<String>,
    patterns: &[Pattern],
    disabled: &mut BTreeSet<Identity>,
    subjects: &mut [Subject],
) {
    let is_linked = |path: &str| {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        above.chain(core::iter::once(path)).any(|part| followed.contains(part))
    };
    let of_their_own = subjects.iter().filter(|it| it.disabled && !is_linked(&it.path));
    disabled.extend(of_their_own.filter_map(|subject| files.identity(&subject.path).ok()));
    for subject in subjects.iter_mut().filter(|it| !it.disabled && is_linked(&it.path)) {
        // A possibly disabled file is treated as disabled.
        subject.disabled = leads_to_disabled(files, patterns, &subject.path)
            || files.identity(&subject.path).map_or(true, |identity| disabled.contains(&identity));
    }
}

/// Returns true if a slug or path is in a directory; everything is in "".
pub(crate) fn is_within(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory);
    rest.is_some_and(|rest| directory.is_empty() || rest.starts_with('/'))
}

/// Gives files that share a slug their full names as slugs, and sorts all by slug.
///
/// A full name may be the slug of another file: `a.md`, `a.toml` and `a.md.txt`. This repeats until
/// all slugs differ, which happens because all paths differ.
fn resolve_shared(subjects: &mut [Subject]) {
    loop {
        subjects.sort_unstable_by(|one, other| one.slug.cmp(&other.slug));
        let mut are_distinct = true;
        let groups = subjects.chunk_by_mut(|one, other| one.slug == other.slug);
        for subject in groups.filter(|group| group.len() > 1).flatten() {
            if subject.shared.is_none() {
                let slug = core::mem::replace(&mut subject.slug, subject.path.clone());
                subject.shared = Some(slug);
                are_distinct = false;
            }
        }
        if are_distinct {
            return;
        }
    }
}

/// Returns the error for a missing topic directory.
pub(crate) fn missing(topic: &Topic) -> ErrorInfo {
    ErrorInfo::new(format!(
        "the directory of topic `{}` is missing: `/subjects` does not exist",
        topic.id
    ))
}

/// Returns the error for a topic directory that exists but cannot be listed.
fn unreadable(topic: &Topic, fault: Fault) -> ErrorInfo {
    ErrorInfo::new(format!("the directory of topic `{}` cannot be read ({fault})", topic.id))
}
