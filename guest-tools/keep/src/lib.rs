//! A tool that stores values with `wasi:keyvalue`. Each call performs the single operation in its
//! arguments, also those that no honest tool would perform.
//!
//! For tests only; not part of kitbag.

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool, json};

use crate::bindings::wasi::keyvalue::store::{self, Bucket};
use crate::bindings::wasi::keyvalue::{atomics, batch};

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Get,
    Set,
    Delete,
    Exists,
    List,
    Increment,
    GetMany,
    SetMany,
    DeleteMany,
    /// Opens the store `count` times and keeps all handles.
    Handles,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    #[serde(default)]
    store: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: String,
    /// Keys for operations on several keys. If empty, `key` is repeated `count` times. When setting
    /// values, a number is appended to each key unless `count` is 1.
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default = "one")]
    delta: u64,
    #[serde(default = "one")]
    count: u64,
    /// Number of times that the value is repeated.
    #[serde(default = "one")]
    repeat: usize,
    /// Number of times that the key is repeated.
    #[serde(default = "one")]
    repeat_key: usize,
    cursor: Option<u64>,
}

fn one<T: From<u8>>() -> T {
    1.into()
}

/// The component.
struct Keep;

impl Tool for Keep {
    type Arguments = Arguments;

    fn describe() -> Description {
        let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
        Description::new("keep").description("Keep values between calls.").arguments(
            json!({
                "action": text, "store": text, "key": text, "value": text,
                "keys": { "type": "array", "items": text },
                "delta": number, "count": number, "repeat": number, "repeat_key": number,
                "cursor": number,
            }),
            &["action"],
        )
    }

    fn run(_: &Call, arguments: Arguments) -> Result<String, Stop> {
        let Arguments { action, store, key, value, mut keys, delta, count, .. } = arguments;
        let key = key.repeat(arguments.repeat_key);
        let value = value.repeat(arguments.repeat);
        let bucket = store::open(&store).map_err(failed)?;
        let shown = |value: Option<Vec<u8>>| match value {
            Some(value) if value.len() > 100 => format!("{} bytes", value.len()),
            Some(value) => String::from_utf8_lossy(&value).into_owned(),
            None => "none".to_owned(),
        };
        if keys.is_empty() {
            keys = (0..count).map(|_| key.clone()).collect();
        }
        Ok(match action {
            Action::Get => {
                for _ in 1..count {
                    bucket.get(&key).map_err(failed)?;
                }
                shown(bucket.get(&key).map_err(failed)?)
            }
            Action::Set => done(bucket.set(&key, value.as_bytes()))?,
            Action::Delete => done(bucket.delete(&key))?,
            Action::Exists => bucket.exists(&key).map_err(failed)?.to_string(),
            Action::List => list(&bucket, arguments.cursor)?,
            Action::Increment => {
                let mut sum = 0;
                for _ in 0..count {
                    sum = atomics::increment(&bucket, &key, delta).map_err(failed)?;
                }
                sum.to_string()
            }
            Action::GetMany => {
                let values = batch::get_many(&bucket, &keys).map_err(failed)?;
                let values = values.into_iter().map(|pair| shown(pair.map(|(_, value)| value)));
                values.collect::<Vec<_>>().join("\n")
            }
            Action::SetMany => {
                let number = |number: usize, key: String| match count {
                    1 => key,
                    _ => format!("{key}{number}"),
                };
                let keys = keys.into_iter().enumerate();
                let keys = keys.map(|(index, key)| number(index, key));
                let pairs: Vec<_> = keys.map(|key| (key, value.clone().into_bytes())).collect();
                done(batch::set_many(&bucket, &pairs))?
            }
            Action::DeleteMany => done(batch::delete_many(&bucket, &keys))?,
            Action::Handles => {
                let mut handles = vec![bucket];
                for _ in 0..count {
                    handles.push(store::open(&store).map_err(failed)?);
                }
                handles.len().to_string()
            }
        })
    }
}

/// Lists all keys page by page, or one page after a cursor.
fn list(bucket: &Bucket, cursor: Option<u64>) -> Result<String, Stop> {
    let (mut keys, mut after) = (Vec::new(), cursor);
    loop {
        let page = bucket.list_keys(after).map_err(failed)?;
        keys.extend(page.keys);
        after = page.cursor;
        if after.is_none() || cursor.is_some() {
            break;
        }
    }
    Ok(match keys.len() {
        0..=20 => keys.join("\n"),
        count => format!("{count} keys"),
    })
}

fn done(result: Result<(), store::Error>) -> Result<String, Stop> {
    result.map(|()| "done".to_owned()).map_err(failed)
}

fn failed(error: store::Error) -> Stop {
    let message = match error {
        store::Error::NoSuchStore => "no such store".to_owned(),
        store::Error::AccessDenied => "access denied".to_owned(),
        store::Error::Other(reason) => reason,
    };
    ErrorInfo::new(message).into()
}

kitbag_sdk::export!(Keep);

mod bindings {
    wit_bindgen::generate!({ world: "imports", path: "wit" });
}
