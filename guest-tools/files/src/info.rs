//! `file_info`.

use std::fs;
use std::ops::ControlFlow;

use kitbag_sdk::serde_json::{Map, Value};
use kitbag_sdk::{Call, Stop, json};
use kitbag_workspace::{Kind, Location, decode, explain, list, stat, stat_link};
use serde::Deserialize;

use crate::file::{Opened, digest};
use crate::read::oddities;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    let location = Location::new(call, &arguments.path)?;
    let mut info = Map::new();
    let mut put = |key: &str, value: Value| {
        info.insert(key.to_owned(), value);
    };
    let itself = stat_link(&location.path).map_err(|it| explain(&location, "looked at", &it))?;
    let mut found = itself;
    if itself.kind == Kind::Link {
        if let Ok(target) = fs::read_link(&location.path) {
            put("link", json!(target.to_string_lossy()));
        }
        // A link that leads nowhere, or out of what is granted, is no more than a link.
        found = stat(&location.path).unwrap_or(itself);
    }
    let kind = match found.kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Link => "link",
        Kind::Secret => "secret",
        Kind::Other => "other",
    };
    put("type", json!(kind));
    if let Some(time) = found.modified {
        put("modified", json!(humantime::format_rfc3339_seconds(time).to_string()));
    }
    match found.kind {
        Kind::File => {
            put("size", json!(found.size));
            describe_content(&location, &mut put)?;
        }
        Kind::Directory => {
            let mut entries = 0_u64;
            let visit = |_: &str, _| {
                entries += 1;
                ControlFlow::Continue(())
            };
            let listed = list(&location.path, visit);
            if let Ok(listed) = listed {
                put("entries", json!(entries + listed.unnamed));
            }
        }
        Kind::Link | Kind::Secret | Kind::Other => {}
    }
    Ok(Value::Object(info).to_string())
}

/// Describes the content of a file. A file that cannot be opened still has a size.
fn describe_content(location: &Location, put: &mut impl FnMut(&str, Value)) -> Result<(), Stop> {
    /// The number of bytes that are examined for the type of a file.
    const SAMPLE_BYTES: u64 = 8 << 10;
    let mut opened = match Opened::at(location.clone()) {
        Ok(opened) => opened,
        Err(_) => return Ok(()),
    };
    let Some(content) = opened.read_whole()? else {
        let sample = opened.read(0, SAMPLE_BYTES)?;
        if let Some(kind) = infer::get(&sample) {
            put("media_type", json!(kind.mime_type()));
        }
        return Ok(());
    };
    put("digest", json!(digest(&content)));
    if let Some(kind) = infer::get(&content) {
        put("media_type", json!(kind.mime_type()));
    }
    if let Ok(decoded) = decode(content) {
        put("lines", json!(decoded.text.split_inclusive('\n').count()));
        let oddities = oddities(&decoded);
        if !oddities.is_empty() {
            put("text", json!(oddities));
        }
    }
    Ok(())
}
