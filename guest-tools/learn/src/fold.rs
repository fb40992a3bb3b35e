//! A long list of subjects, grouped by directory.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::catalog::Catalog;
use crate::files::Files;
use crate::notes::{one_line, size};
use crate::skill::Skill;
use crate::subject::Subject;

/// Maximum number of subjects that are listed on separate lines.
pub(crate) const UNFOLDED: usize = 100;

/// Number of headings for a directory, and maximum total number of headings that are read.
const HEADINGS: usize = 3;
const ALL_HEADINGS: usize = 300;

/// Number of bytes of a subject that are read for its heading, and number of its displayed
/// characters.
const HEADING_BYTES: usize = 512;
const HEADING_CHARS: usize = 60;

/// Maximum number of subjects whose sizes are read: each is a host call.
const SIZED: usize = 10_000;

/// Writes a line for each directory, and for each subject outside of them. Slugs are in order.
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
    // Slugs are in order, so all of them share the common prefix of the first and last one.
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
