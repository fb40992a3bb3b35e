//! Finds the names that are most similar to a name that does not exist.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Maximum number of requested names that are examined, and maximum number of characters of each.
const ASKED: usize = 5;
const ASKED_CHARS: usize = 64;

/// The distance of a name: a class, the percentage of it to change, and its length.
type Distance = (usize, usize, usize);

/// Returns the names that are most similar to any of the requested names, most similar first.
pub(crate) fn nearest<'a>(asked: &[&str], names: &[&'a str], count: usize) -> Vec<&'a str> {
    let asked: Vec<Vec<char>> = asked.iter().take(ASKED).map(|name| folded(name)).collect();
    let mut found: Vec<(Distance, &str)> = Vec::with_capacity(count + 1);
    for name in names {
        let distances = asked.iter().map(|asked| distance(asked, name));
        let distance = distances.min().unwrap_or_default();
        let position = found.partition_point(|(other, _)| *other <= distance);
        if position < count {
            found.insert(position, (distance, name));
            found.truncate(count);
        }
    }
    found.into_iter().map(|(_, name)| name).collect()
}

/// Converts to lower case and removes wildcards.
fn folded(name: &str) -> Vec<char> {
    let lower = name.chars().flat_map(char::to_lowercase);
    let mut folded: Vec<char> =
        lower.filter(|it| !"*?[]".contains(*it)).take(ASKED_CHARS).collect();
    while folded.last() == Some(&'/') {
        folded.pop();
    }
    folded
}

fn distance(asked: &[char], name: &str) -> Distance {
    let lower: String = name.chars().flat_map(char::to_lowercase).collect();
    let text: String = asked.iter().collect();
    let length = name.len();
    let is_part = || lower.split('/').any(|component| component == text);
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned_chars();
    match () {
        () if is_part() => (0, 0, length),
        () if !text.is_empty() && lower.contains(&text) => (1, 0, length),
        () => {
            let whole = changes(asked, &lower.to_owned_chars());
            let ends = changes(&last(&text), &last(&lower));
            let start = lower.split('/').next().unwrap_or_default();
            let starts = changes(asked, &start.to_owned_chars());
            (2, whole.min(ends).min(starts), length)
        }
    }
}

trait Chars {
    fn to_owned_chars(&self) -> Vec<char>;
}

impl Chars for str {
    fn to_owned_chars(&self) -> Vec<char> {
        self.chars().take(ASKED_CHARS).collect()
    }
}

/// Returns the share of characters that must be inserted, removed or replaced, in percent.
fn changes(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    let mut next = vec![0; other.len() + 1];
    for (position, char) in one.iter().enumerate() {
        next[0] = position + 1;
        for (column, with) in other.iter().enumerate() {
            let replaced = row[column] + usize::from(char != with);
            next[column + 1] = replaced.min(row[column + 1] + 1).min(next[column] + 1);
        }
        core::mem::swap(&mut row, &mut next);
    }
    row[other.len()] * 100 / one.len().max(other.len()).max(1)
}
