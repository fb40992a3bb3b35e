//! A long list of subjects, folded by directory.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::catalog::Catalog;
use crate::files::Files;
use crate::notes::{one_line, size};
use crate::skill::Skill;
use crate::subject::Subject;

/// Up to how many subjects each has a line of its own.
pub(crate) const UNFOLDED: usize = 100;

/// The number of headings for a directory, and the most that are read in all.
const HEADINGS: usize = 3;
const ALL_HEADINGS: usize = 300;

/// The bytes of a subject that are read for its heading, and the shown characters of it.
const HEADING_BYTES: usize = 512;
const HEADING_CHARS: usize = 60;

/// Up to how many subjects their sizes are looked up: each is a call of the host.
const SIZED: usize = 10_000;

/// A line for each directory and each subject beside them. Slugs are in order.
pub(crate) fn folded(files: &impl Files, catalog: &Catalog, subjects: &[&Subject]) -> Vec<String> {
    let above = common_directory(subjects);
    let mut groups: Vec<(&str, Vec<&Subject>)> = Vec::new();
    for &subject in subjects {
        let rest = &subject.slug[above..];
        let end = rest.find('/').map_or(subject.slug.len(), |slash| above + slash + 1);
        let name = &subject.slug[..end];
        match groups.iter_mut().rfind(|(group, _)| *group == name && name.ends_with('/')) {
            Some((_, group)) => group.push(subject),
            None => groups.push((name, [subject].into())),
        }
    }
    // For many subjects without directories, the names are enough.
    let mut headings_left = if groups.len() > UNFOLDED { 0 } else { ALL_HEADINGS };
    let is_sized = subjects.len() <= SIZED && groups.len() <= UNFOLDED;
    let mut heading_of = |subject: &Subject| {
        headings_left = usize::checked_sub(headings_left, 1)?;
        heading(files, catalog, subject)
    };
    let line = |(name, group): (&str, Vec<&Subject>)| {
        let bytes = is_sized.then(|| {
            let sizes = group.iter().filter_map(|subject| files.size(&subject.path).ok());
            size(sizes.sum())
        });
        let count = name.ends_with('/').then(|| match group.len() {
            1 => "1 subject".to_owned(),
            count => format!("{count} subjects"),
        });
        let facts: Vec<String> = count.into_iter().chain(bytes).collect();
        let headings: Vec<String> =
            group.iter().take(HEADINGS).filter_map(|subject| heading_of(subject)).collect();
        let facts =
            if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
        let headings =
            if headings.is_empty() { String::new() } else { format!(": {}", headings.join("; ")) };
        format!("{}{facts}{headings}", one_line(name))
    };
    groups.into_iter().map(line).collect()
}

/// Returns the length of the directory in slugs that all subjects share, including its `/`.
fn common_directory(subjects: &[&Subject]) -> usize {
    let (Some(first), Some(last)) = (subjects.first(), subjects.last()) else { return 0 };
    // In order, so that what these two share all of them do.
    let pairs = first.slug.bytes().zip(last.slug.bytes());
    let shared = pairs.take_while(|(one, other)| one == other).count();
    first.slug.as_bytes()[..shared].iter().rposition(|byte| *byte == b'/').map_or(0, |it| it + 1)
}

/// Returns the first meaningful line of a subject, or the description of a skill.
fn heading(files: &impl Files, catalog: &Catalog, subject: &Subject) -> Option<String> {
    if let Some(skill) = Skill::read(files, catalog, subject) {
        return Some(skill.shown());
    }
    let (file, bytes) = files.read(&subject.path, HEADING_BYTES).ok()?;
    if catalog.disables_file(files, &subject.path, file) || bytes.contains(&0) {
        return None;
    }
    let text = String::from_utf8_lossy(&bytes);
    let says = |line: &&str| line.chars().any(char::is_alphanumeric);
    let line = text.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(says)?;
    let shown: String = line.chars().take(HEADING_CHARS).collect();
    let ellipsis = if shown.len() < line.len() { "…" } else { "" };
    Some(one_line(&format!("{shown}{ellipsis}")).to_string())
}
