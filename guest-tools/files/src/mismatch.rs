//! Describes why a text was not found: the nearest passage and its differences, or the positions of
//! several matches.

use std::collections::HashMap;

use kitbag_workspace::cut;

use crate::lookalikes;
use crate::numbers::count;

/// Maximum number of displayed lines of a passage.
const SHOWN_LINES: usize = 12;

/// Maximum number of lines whose differences are described.
const COMPARED_LINES: usize = 5;

/// Maximum number of bytes of a line that are shown and compared.
const LINE_BYTES: usize = 200;

/// Maximum number of lines of a file that are compared by letters.
const LETTERS_LINES: usize = 20_000;

/// Maximum number of equal lines that vote for a position.
const SAME_LINES: usize = 50;

/// Minimum length of a line that is searched for in other lines, in characters: shorter ones occur
/// too often.
const SHORTEST: usize = 4;

/// Minimum similarity of a displayed line, from 0 to 1.
const SIMILAR: f64 = 0.5;

/// Explains why a text is not in a file. `what` is the caller's name for the text.
pub(crate) fn mismatch(what: &str, content: &str, old: &str, new: &str) -> String {
    let missing = format!("{what} is not in the file");
    if let Some(why) = miswritten(content, old) {
        return format!("{missing}: {why}");
    }
    if let Some(at) = content.find(new)
        && new.trim().len() > 3
    {
        let line = line_of(content, at);
        return format!("{missing}, but the new text is already in line {line}");
    }
    let lines: Vec<&str> = content.lines().collect();
    let wanted: Vec<&str> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
    let Some(start) = nearest(&lines, &wanted) else {
        return format!("{missing}, nor is similar text; read the file again");
    };
    let end = (start + wanted.len()).min(lines.len());
    let passage = passage(&lines, start, end);
    let range = match end - start {
        1 => format!("line {}", start + 1),
        _ => format!("lines {}-{end}", start + 1),
    };
    let found = lines[start..end].iter().map(Some).chain(std::iter::repeat(None));
    let mut differences: Vec<String> = Vec::new();
    let mut left = 0;
    for (number, (wanted, found)) in (start + 1..).zip(wanted.iter().zip(found)) {
        // A passage may start within a line.
        let is_within = number == start + 1 && wanted.trim_start().len() == wanted.len();
        let found = found.map(|found| if is_within { found.trim_start() } else { found });
        let Some(difference) = difference(wanted, found, number) else { continue };
        match differences.len() < COMPARED_LINES {
            true => differences.push(format!("line {number}: {difference}")),
            false => left += 1,
        }
    }
    if left > 0 {
        differences.push(format!("and {}", count(left, "more line", "more lines")));
    }
    if differences.is_empty() {
        differences.push("the end of the last line".into());
    }
    format!("{missing}. Nearest, {range}:\n{passage}Different: {}", differences.join("\n"))
}

/// Lists the positions of a text with several matches.
pub(crate) fn several_places(content: &str, old: &str, places: &[usize]) -> String {
    let all = content.matches(old).count().max(places.len());
    let lines: Vec<&str> = content.lines().collect();
    let shown = places.iter().take(2).map(|at| {
        let start = line_of(content, *at) - 1;
        let end = start + old.trim_end_matches('\n').matches('\n').count() + 1;
        passage(&lines, start.saturating_sub(1), (end + 1).min(lines.len()))
    });
    let shown: Vec<_> = shown.collect();
    format!(
        "`old_text` is in the file {all} times; give more lines around it, or set `all`. The first \
         two:\n{}",
        shown.join("…\n")
    )
}

/// Returns the line of a position, from 1.
pub(crate) fn line_of(content: &str, at: usize) -> usize {
    content[..at].matches('\n').count() + 1
}

/// Formats lines with their numbers.
fn passage(lines: &[&str], start: usize, end: usize) -> String {
    let mut shown = String::new();
    for (number, line) in (start + 1..).zip(&lines[start..end]).take(SHOWN_LINES) {
        shown.push_str(&format!("{number}\t{}\n", short(line)));
    }
    if end - start > SHOWN_LINES {
        shown.push_str("…\n");
    }
    shown
}

fn short(line: &str) -> String {
    let part = cut(line, LINE_BYTES);
    if part.len() < line.len() { format!("{part}…") } else { line.to_owned() }
}

/// Describes a model's mistake: without it, the text would be in the file.
fn miswritten(content: &str, old: &str) -> Option<String> {
    let numbered = |line: &&str| {
        let rest = line.trim_start().trim_start_matches(|it: char| it.is_ascii_digit());
        rest.len() < line.trim_start().len() && rest.starts_with(['\t', ':', '|'])
    };
    if old.lines().all(|line| numbered(&line)) && old.contains(['\t', ':', '|']) {
        let bare = |line: &str| {
            let rest = line.trim_start().trim_start_matches(|it: char| it.is_ascii_digit());
            rest[1..].to_owned()
        };
        let bare: Vec<_> = old.lines().map(bare).collect();
        if content.contains(&bare.join("\n")) {
            return Some("omit the line numbers".into());
        }
    }
    let unescaped = old.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
    if unescaped != old && content.contains(&unescaped) {
        return Some("it matches without the backslashes; escape once".into());
    }
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    let decoded = entities.iter().fold(old.to_owned(), |text, (from, to)| text.replace(from, to));
    (decoded != old && content.contains(&decoded))
        .then(|| "it matches without the HTML entities (`&lt;`)".into())
}

/// Returns the start of the nearest passage: the one with the most lines that are equal except for
/// what [`plain`] removes, otherwise the most similar line.
fn nearest(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        let line = plain(line);
        if !line.is_empty() {
            places.entry(line).or_default().push(offset);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        for offset in places.get(&plain(line)).into_iter().flatten().take(SAME_LINES) {
            if let Some(start) = at.checked_sub(*offset) {
                *votes.entry(start).or_default() += 1;
            }
        }
    }
    let best = votes.into_iter().max_by_key(|(start, votes)| (*votes, usize::MAX - start));
    if let Some((start, _)) = best {
        return Some(start);
    }
    let (offset, line) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let asked = plain(cut(line, LINE_BYTES));
    if asked.chars().count() < SHORTEST {
        return None;
    }
    let part = lines.iter().take(LETTERS_LINES).position(|line| plain(line).contains(&asked));
    let similar = || {
        let all = lines.iter().take(LETTERS_LINES).enumerate();
        let all = all
            .map(|(at, line)| (strsim::sorensen_dice(&asked, &plain(cut(line, LINE_BYTES))), at));
        let best = all.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        (best.0 >= SIMILAR).then_some(best.1)
    };
    Some(part.or_else(similar)?.saturating_sub(offset))
}

/// Normalizes whitespace, quotes, dashes and case, which are easily written differently.
fn plain(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    words.join(" ").chars().map(straight).flat_map(char::to_lowercase).collect()
}

/// Replaces typographic quotes and dashes by ASCII characters.
fn straight(char: char) -> char {
    match char {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        char => char,
    }
}

/// Describes the difference between a given line and the file's line.
fn difference(wanted: &str, found: Option<&str>, line: usize) -> Option<String> {
    let Some(found) = found else { return Some("the file ends before".into()) };
    if wanted == found {
        return None;
    }
    let mut kinds = Vec::new();
    let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let end = |line: &str| line.trim_end().len() < line.len();
    let (wanted_indent, found_indent) = (indent(wanted), indent(found));
    if wanted_indent != found_indent {
        let [file, given] = [&found_indent, &wanted_indent].map(|it| blanks(it));
        kinds.push(format!("indentation (file: {file}; given: {given})"));
    }
    if end(wanted) != end(found) {
        let whose = if end(found) { "file" } else { "given text" };
        kinds.push(format!("trailing whitespace in the {whose}"));
    }
    let [wanted_inner, found_inner] = [wanted.trim(), found.trim()];
    let column = found_indent.chars().count() + 1;
    if wanted_inner != found_inner
        && lookalikes::look(wanted_inner) == lookalikes::look(found_inner)
    {
        let differences = lookalikes::differences(found_inner, wanted_inner, line, column);
        kinds.push(format!("similar-looking characters ({differences})"));
        return Some(kinds.join(", "));
    }
    let straightened = |text: &str| text.chars().map(straight).collect::<String>();
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain(wanted) != plain(found) {
        let [file, given] = [found_inner, wanted_inner].map(short);
        kinds.push(format!("text (file: `{file}`; given: `{given}`)"));
        if let Some(hidden) = lookalikes::hidden(cut(found, LINE_BYTES)) {
            kinds.push(format!("the file has {hidden}"));
        }
        return Some(kinds.join(", "));
    }
    let [wanted_straight, found_straight] = [wanted_inner, found_inner].map(straightened);
    if (wanted_straight == found_straight) != (wanted_inner == found_inner)
        || wanted_inner.chars().filter(|it| straight(*it) != *it).count()
            != found_inner.chars().filter(|it| straight(*it) != *it).count()
    {
        let odd = |text: &str| {
            text.chars()
                .filter(|it| straight(*it) != *it || "'\"-".contains(*it))
                .collect::<String>()
        };
        let [file, given] = [found_inner, wanted_inner].map(odd);
        kinds.push(format!("quotes or dashes (file: {file}; given: {given})"));
    }
    let [wanted_spaced, found_spaced] = [&wanted_straight, &found_straight].map(|it| spaced(it));
    if (wanted_spaced == found_spaced) != (wanted_straight == found_straight) {
        kinds.push("whitespace within the line".into());
    }
    if wanted_spaced != found_spaced {
        kinds.push("upper and lower case".into());
    }
    if kinds.is_empty() {
        kinds.push("trailing whitespace".into());
    }
    Some(kinds.join(", "))
}

/// Describes whitespace in words.
fn blanks(text: &str) -> String {
    let tabs = text.chars().filter(|it| *it == '\t').count() as u64;
    let spaces = text.chars().filter(|it| *it == ' ').count() as u64;
    let parts = [(tabs, "tab", "tabs"), (spaces, "space", "spaces")];
    let parts: Vec<_> =
        parts.into_iter().filter(|it| it.0 > 0).map(|(n, one, many)| count(n, one, many)).collect();
    if parts.is_empty() { "none".into() } else { parts.join(" and ") }
}
