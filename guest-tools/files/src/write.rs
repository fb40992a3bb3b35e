//! `write_file`.

use kitbag_sdk::{Call, Stop};
use kitbag_workspace::{Encoding, Location, decode};
use serde::Deserialize;

use crate::change::{Change, Target, change};
use crate::diff::diff;
use crate::file::{check_expected, digest};
use crate::numbers::{count, size};
use crate::text::{Part, Text};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    append: bool,
    expect: Option<String>,
    #[serde(default)]
    dry_run: bool,
    /// Only the host sets this, with read-only grants: callers do not have this argument.
    #[serde(default)]
    preview: bool,
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    let location = Location::of_file(call, &arguments.path)?;
    change(arguments.dry_run || arguments.preview, || {
        let target = Target::read_as(location.clone(), arguments.preview)?;
        check_expected(&location, arguments.expect.as_deref(), target.content.as_deref())?;
        let Some(old) = target.content.clone() else {
            let content = arguments.content.clone().into_bytes();
            let lines = count(arguments.content.lines().count() as u64, "line", "lines");
            let mut answer = format!("[new file, {lines}, digest {}]\n", digest(&content));
            if arguments.preview {
                answer.insert_str(0, &diff("", &arguments.content));
            }
            return Ok((vec![Change::new(target, Some(content))], answer));
        };
        let bytes = old.len() as u64;
        let (content, encoding, shown) = match decode(old) {
            Ok(decoded) => {
                let old = Text::from(decoded);
                let mut new = old.clone();
                if arguments.append {
                    let end = old.as_str().len();
                    let content = &arguments.content;
                    let says_endings = content.contains("\r\n");
                    let part = Part { range: end..end, new: content, says_endings };
                    new.replace(std::iter::once(part));
                } else {
                    new.replace_all(&arguments.content);
                    new.widen();
                }
                let shown = diff(old.as_str(), new.as_str());
                (new.to_bytes(&location)?, new.encoding(), shown)
            }
            Err(binary) if arguments.append => {
                return Err(crate::file::binary(&location, &binary).into());
            }
            Err(_) => {
                let shown = format!("[replaced {} of binary content]\n", size(bytes));
                (arguments.content.clone().into_bytes(), Encoding::UTF_8, shown)
            }
        };
        let answer = answer(&target, &content, encoding, &shown);
        Ok((vec![Change::new(target, Some(content))], answer))
    })
}

/// Describes a changed file: the diff, the encoding unless it is UTF-8, the digest of the new
/// content, and the effect on its other hard links.
pub(crate) fn answer(target: &Target, content: &[u8], encoding: Encoding, diff: &str) -> String {
    let digest = digest(content);
    if target.content.as_deref() == Some(content) {
        return format!("[unchanged, digest {digest}]\n");
    }
    let others = target.other_names_note();
    match encoding {
        Encoding::UTF_8 => format!("{diff}[digest {digest}]\n{others}"),
        encoding => format!("{diff}[{encoding}, digest {digest}]\n{others}"),
    }
}
