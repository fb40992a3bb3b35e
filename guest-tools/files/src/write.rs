//! `write_file`.

use kitbag_sdk::{Call, Description, Stop, json};
use kitbag_workspace::{Location, decode};
use serde::Deserialize;

use crate::change::{Change, Target, change};
use crate::diff::diff;
use crate::file::{check_expected, digest};
use crate::shown::{count, size};
use crate::text::Text;

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
}

pub(crate) fn describe(name: &str) -> Description {
    crate::writing(
        name,
        "Write a whole file, new or in place of what is there, or append; directories on the way \
         are made. To change a part, use `edit_file`. Answers a diff and the digest. Example: \
         {\"path\":\"notes.md\",\"content\":\"# Notes\\n\"}",
        json!({
            "path": { "type": "string" },
            "content": { "type": "string" },
            "append": { "type": "boolean", "default": false },
            "expect": {
                "type": "string",
                "description": "Digest from `read_file`; another content is not overwritten",
            },
            "dry_run": { "type": "boolean", "default": false },
        }),
        &["path", "content"],
    )
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    let location = Location::new(call, &arguments.path)?;
    change(arguments.dry_run, || {
        let target = Target::read(location.clone())?;
        check_expected(&location, arguments.expect.as_deref(), target.content.as_deref())?;
        let Some(old) = target.content.clone() else {
            let content = arguments.content.clone().into_bytes();
            let lines = count(arguments.content.lines().count() as u64, "line", "lines");
            let answer = format!("[new file, {lines}, digest {}]\n", digest(&content));
            return Ok((vec![Change::new(target, Some(content))], answer));
        };
        let bytes = old.len() as u64;
        let (content, shown) = match decode(old) {
            Ok(decoded) => {
                let old = Text::from(decoded);
                let mut new = old.clone();
                if arguments.append {
                    let end = old.as_str().len();
                    new.replace(&[(end..end, &arguments.content)]);
                } else {
                    new.replace_all(&arguments.content);
                    new.widen();
                }
                (new.to_bytes(&location)?, diff(old.as_str(), new.as_str()))
            }
            Err(binary) if arguments.append => {
                return Err(crate::file::binary(&location, &binary).into());
            }
            Err(_) => {
                let shown = format!("[in place of {} of binary content]\n", size(bytes));
                (arguments.content.clone().into_bytes(), shown)
            }
        };
        let answer = answer(&target, &content, &shown);
        Ok((vec![Change::new(target, Some(content))], answer))
    })
}

/// What is said of a file that was changed: the diff and the digest of what is in it now.
pub(crate) fn answer(target: &Target, content: &[u8], diff: &str) -> String {
    if target.content.as_deref() == Some(content) {
        return format!("[unchanged, digest {}]\n", digest(content));
    }
    format!("{diff}[digest {}]\n", digest(content))
}
