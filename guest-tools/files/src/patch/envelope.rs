//! The form that begins with `*** Begin Patch`.

use super::unified::range;
use super::{Action, END, FilePatch, Hunk, Line};

/// Reads what stands between `*** Begin Patch` and `*** End Patch`.
pub(super) fn read(lines: &[&str], start: usize) -> Result<Vec<FilePatch>, String> {
    let mut files: Vec<FilePatch> = Vec::new();
    // Whether `@@` or the file began a hunk that has no line yet.
    let mut is_new = true;
    for (number, line) in lines.iter().enumerate().skip(start) {
        let wrong = |why: &str| Err(format!("line {} of the patch: {why}: `{line}`", number + 1));
        if line.trim_end() == END {
            return Ok(files);
        }
        if let Some((action, path)) = section(line) {
            files.push(FilePatch::new(path.to_owned(), action));
            is_new = true;
            continue;
        }
        let Some(file) = files.last_mut() else {
            return wrong("expected `*** Add File:`, `*** Update File:` or `*** Delete File:`");
        };
        if let Some(path) = line.strip_prefix("*** Move to: ") {
            let from = std::mem::replace(&mut file.path, path.trim().to_owned());
            file.action = Action::MoveFrom(from);
            continue;
        }
        if line.trim_end() == "*** End of File" {
            if let Some(hunk) = file.hunks.last_mut() {
                hunk.is_at_end = true;
            }
            continue;
        }
        if let Some(heading) = line.strip_prefix("@@") {
            let heading = heading.trim();
            if is_new && let Some(hunk) = file.hunks.last_mut().filter(|it| it.lines.is_empty()) {
                hunk.headings.extend((!heading.is_empty()).then(|| heading.to_owned()));
                continue;
            }
            let mut hunk = Hunk::default();
            match range(line) {
                Some((line, _)) => hunk.line = Some(line),
                None if heading.is_empty() => {}
                None => hunk.headings.push(heading.to_owned()),
            }
            file.hunks.push(hunk);
            is_new = true;
            continue;
        }
        let Some(parsed) = Line::parse(line) else {
            return wrong("expected a line that begins with ` `, `+` or `-`");
        };
        if file.action == Action::Create && !matches!(parsed, Line::New(_)) {
            return wrong("every line of a new file begins with `+`");
        }
        if file.action == Action::Remove {
            return wrong("a file that is deleted has no lines");
        }
        if file.hunks.is_empty() {
            file.hunks.push(Hunk::default());
        }
        if let Some(hunk) = file.hunks.last_mut() {
            hunk.lines.push(parsed);
        }
        is_new = false;
    }
    Err(format!("the patch ends without `{END}`: it may be cut"))
}

/// The beginning of a file in that form.
fn section(line: &str) -> Option<(Action, &str)> {
    let sections = [
        ("*** Add File: ", Action::Create),
        ("*** Update File: ", Action::Update),
        ("*** Delete File: ", Action::Remove),
    ];
    let found = |(start, action)| Some((action, line.strip_prefix(start)?.trim()));
    sections.into_iter().find_map(found)
}
