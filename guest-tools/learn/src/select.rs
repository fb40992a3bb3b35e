//! Selects the subjects that a call requests.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use kitbag_sdk::ErrorInfo;

use crate::arguments::Topic;
use crate::catalog::Catalog;
use crate::files::Files;
use crate::nearest::nearest;
use crate::notes::{quoted, shortened};
use crate::pattern::Pattern;
use crate::skill::Skill;
use crate::subject::Subject;

/// Maximum length of a list of subjects in an error.
const LIST_BYTES: usize = 16 << 10;

/// Maximum length of the list of names without matches.
const UNMATCHED_BYTES: usize = 1 << 10;

/// Maximum number of subjects that an error suggests for a missing one.
const NEAREST: usize = 5;

/// Maximum number of refused names in an error.
const REFUSALS: usize = 20;

/// The subjects that a call requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Distinct positions in the catalog, in order.
    pub(crate) positions: Vec<usize>,
    /// The patterns without matches, in order.
    pub(crate) unmatched: Vec<String>,
    /// The requested directories.
    pub(crate) directories: Vec<String>,
    /// True if one subject was requested by its exact slug.
    pub(crate) is_exact: bool,
}

/// Resolves the patterns of a call.
///
/// # Errors
///
/// A disabled, ambiguous or external subject is an error for the whole call if it is requested by
/// name. So is a call without any matching pattern.
pub(crate) fn select(
    topic: &Topic,
    files: &impl Files,
    catalog: &Catalog,
    patterns: &[String],
) -> Result<Selection, ErrorInfo> {
    let patterns: BTreeSet<&str> = patterns.iter().map(String::as_str).collect();
    let mut is_chosen = vec![false; catalog.subjects.len()];
    let (mut unmatched, mut refusals) = (Vec::new(), Vec::new());
    let mut directories = Vec::new();
    let (asked, mut is_pattern) = (patterns.len(), false);
    for text in patterns {
        // The exact slug has priority: it also finds hidden subjects, and names that contain `[`.
        if let Some(position) = catalog.find(text) {
            if catalog.subjects[position].disabled {
                refusals.push(disabled(text));
            }
            is_chosen[position] = true;
            continue;
        }
        if let Some(refusal) = refusal(catalog, text) {
            refusals.push(refusal);
            continue;
        }
        let pattern = Pattern::new(text);
        if let Some(error) = pattern.error() {
            refusals.push(format!("invalid arguments: {error}"));
            continue;
        }
        let mut is_matched = false;
        for (position, _) in catalog.visible().filter(|(_, subject)| pattern.matches(subject)) {
            is_chosen[position] = true;
            (is_matched, is_pattern) = (true, true);
        }
        if is_matched {
            continue;
        }
        match like(files, catalog, text) {
            Like::Subject(position) => is_chosen[position] = true,
            Like::Several(slugs) => {
                let (shown, slugs) = (shortened(text), quoted(slugs, LIST_BYTES));
                refusals.push(format!("`{shown}` may be any of {slugs}; name one of them"));
            }
            Like::Directory(directory) => directories.push(directory),
            Like::Nothing => unmatched.push(text),
        }
    }
    if !refusals.is_empty() {
        refusals.truncate(REFUSALS);
        return Err(ErrorInfo::new(refusals.join("; ")));
    }
    let positions: Vec<usize> =
        (0..is_chosen.len()).filter(|position| is_chosen[*position]).collect();
    if positions.is_empty() && directories.is_empty() {
        return Err(nothing_matches(topic, catalog, &unmatched));
    }
    let is_exact = asked == 1 && positions.len() == 1 && !is_pattern;
    let unmatched = unmatched.into_iter().map(shortened).collect();
    Ok(Selection { positions, unmatched, directories, is_exact })
}

/// The likely meaning of a name that is neither a slug nor a matching pattern.
enum Like {
    /// This subject.
    Subject(usize),
    /// Any of these.
    Several(Vec<String>),
    /// The directory of this name.
    Directory(String),
    Nothing,
}

fn like(files: &impl Files, catalog: &Catalog, text: &str) -> Like {
    let name = text.trim().trim_start_matches("./").trim_end_matches('/');
    let found: Vec<_> = catalog.find_like(name).collect();
    match found.as_slice() {
        [(position, _)] => return Like::Subject(*position),
        [_, _, ..] => {
            return Like::Several(found.iter().map(|(_, it)| it.slug.clone()).collect());
        }
        [] => {}
    }
    // The directory of a skill usually has the name of the skill, which is meant unless `/` follows.
    let directory = (!name.is_empty() && catalog.has_directory(name)).then(|| name.to_owned());
    if let Some(directory) = directory.clone().filter(|_| text.trim().ends_with('/')) {
        return Like::Directory(directory);
    }
    let is_skill = |subject: &Subject| {
        Skill::read(files, catalog, subject).is_some_and(|skill| skill.name == name)
    };
    let mut skills = catalog.visible().filter(|(_, subject)| is_skill(subject));
    match (skills.next(), directory) {
        (Some((position, _)), _) => Like::Subject(position),
        (None, Some(directory)) => Like::Directory(directory),
        (None, None) => Like::Nothing,
    }
}

/// Returns the reason why a known name cannot be loaded.
fn refusal(catalog: &Catalog, name: &str) -> Option<String> {
    let shown = shortened(name);
    if catalog.disables(name) {
        return Some(disabled(name));
    }
    if catalog.sharing(name).next().is_some() {
        let files = catalog.sharing(name).map(|subject| &subject.slug);
        let files = quoted(files, LIST_BYTES);
        return Some(format!(
            "subject `{shown}` can mean several files: {files}; name one of them"
        ));
    }
    catalog.leaves(name).then(|| {
        format!(
            "subject `{shown}` is, or is behind, a symbolic link that leaves the topic's directory"
        )
    })
}

fn disabled(slug: &str) -> String {
    format!("subject `{}` is disabled", shortened(slug))
}

fn nothing_matches(topic: &Topic, catalog: &Catalog, unmatched: &[&str]) -> ErrorInfo {
    let id = &topic.id;
    let names = quoted(unmatched.iter().map(|name| shortened(name)), UNMATCHED_BYTES);
    let slugs: Vec<_> = catalog.visible().map(|(_, subject)| subject.slug.as_str()).collect();
    ErrorInfo::new(match slugs.len() {
        0 => format!("no subject of topic `{id}` matches {names}; it has no subjects"),
        1..=NEAREST => {
            let slugs = quoted(slugs, LIST_BYTES);
            format!("no subject of topic `{id}` matches {names}; it has {slugs}")
        }
        count => {
            let nearest = nearest(unmatched, &slugs, NEAREST);
            let nearest = quoted(nearest, LIST_BYTES);
            format!(
                "no subject of topic `{id}` matches {names}; the nearest of {count} are {nearest}"
            )
        }
    })
}
