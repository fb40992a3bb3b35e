//! Adds a server to the text of a client's configuration. Everything else keeps its comments and
//! order.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value, json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

/// Keys that define a server. Other keys belong to the user.
const OWN_KEYS: [&str; 8] =
    ["type", "command", "args", "url", "httpUrl", "serverUrl", "headers", "bearer_token_env_var"];

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A new server: its table in the file, its name, and its fields.
pub(crate) struct ServerEntry<'a> {
    /// The keys that lead to the table of servers.
    pub(crate) table: &'a [&'a str],
    pub(crate) name: &'a str,
    pub(crate) value: &'a Map<String, Value>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Others<'a> {
    /// Keeps the other server, which is an error. An existing kitbag server is updated.
    Keep,
    /// Like [`Keep`](Self::Keep), but also keeps kitbag servers for other workspaces, because the
    /// file applies to all workspaces.
    KeepWorkspaces {
        /// The workspace of the new server, if it names one.
        own: Option<&'a Path>,
    },
    Replace,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MergeError {
    /// The text is not in the client's format.
    #[error("it cannot be read: {0}")]
    Syntax(String),
    /// The type of a value does not match the client's documentation.
    #[error("{0} must be an object or a table")]
    Form(String),
    /// An object has a key more than once.
    #[error("it has `{key}` {count} times, but clients read one; keep one of them")]
    Repeated { key: String, count: usize },
    /// Another server has the name.
    #[error(
        "its server `{name}` is {what}: `{found}`, not `{new}`; `--name` adds this one under \
         another name, `--force` replaces the other"
    )]
    Taken {
        name: String,
        what: &'static str,
        found: String,
        /// The server to add, as JSON.
        new: String,
    },
}

/// Adds a server to JSON text, with comments and trailing commas if the client supports them. Empty
/// text is an empty configuration.
///
/// # Errors
///
/// [`MergeError`], except [`MergeError::Taken`] with [`Others::Replace`].
pub(crate) fn json(
    text: &str,
    entry: &ServerEntry<'_>,
    others: Others<'_>,
) -> Result<String, MergeError> {
    let (mark, root) = parsed_json(text)?;
    let table = json_table(&root, entry.table, true)?.expect("it is created");
    is_once(&table, entry.name)?;
    let written = || format!("{mark}{}", ended(root.to_string()));
    let fields = || entry.value.iter().map(|(key, value)| (key.clone(), input(value))).collect();
    let Some(property) = table.get(entry.name) else {
        table.append(entry.name, CstInputValue::Object(fields()));
        return Ok(written());
    };
    let found = property.to_serde_value().unwrap_or_default();
    match (property.object_value(), keeps(&found, entry, others)?) {
        (Some(server), true) => update_json(&server, &found, entry.value),
        _ => property.set_value(CstInputValue::Object(fields())),
    }
    Ok(written())
}

/// Parses JSON. Returns its byte order mark, which editors on Windows may write.
fn parsed_json(text: &str) -> Result<(&str, CstRootNode), MergeError> {
    let (mark, text) = text.split_at(text.len() - text.trim_start_matches(BYTE_ORDER_MARK).len());
    let root = CstRootNode::parse(text, &ParseOptions::default());
    Ok((mark, root.map_err(|error| MergeError::Syntax(error.to_string()))?))
}

/// Returns a table of servers. `None`: it does not exist, and `creates` is false.
fn json_table(
    root: &CstRootNode,
    keys: &[&str],
    creates: bool,
) -> Result<Option<CstObject>, MergeError> {
    let form = |what: &str| MergeError::Form(what.to_owned());
    let whole = match creates {
        true => root.object_value_or_create(),
        false => root.object_value(),
    };
    let mut table = whole.ok_or_else(|| form("all of it"))?;
    for key in keys {
        is_once(&table, key)?;
        if !creates && table.get(key).is_none() {
            return Ok(None);
        }
        let inner = table.object_value_or_create(key);
        table = inner.ok_or_else(|| form(&format!("`{key}` in it")))?;
    }
    Ok(Some(table))
}

/// Returns the names that several servers in a JSON text have.
///
/// # Errors
///
/// [`MergeError`] if the text is not JSON, or the table of servers is not one object.
pub(crate) fn repeated_json(text: &str, keys: &[&str]) -> Result<Vec<String>, MergeError> {
    let (_, root) = parsed_json(text)?;
    if root.value().is_none() {
        return Ok(Vec::new());
    }
    let Some(table) = json_table(&root, keys, false)? else { return Ok(Vec::new()) };
    let mut names: Vec<_> =
        table.properties().into_iter().filter_map(|property| property.decoded_name()).collect();
    names.sort();
    let repeated = names.windows(2).filter(|pair| pair[0] == pair[1]);
    let mut repeated: Vec<_> = repeated.map(|pair| pair[0].clone()).collect();
    repeated.dedup();
    Ok(repeated)
}

/// Removes servers from JSON text. Everything else keeps its comments and order.
pub(crate) fn without_json(
    text: &str,
    keys: &[&str],
    names: &[&str],
) -> Result<String, MergeError> {
    let (mark, root) = parsed_json(text)?;
    if let Some(table) = json_table(&root, keys, false)? {
        for name in names {
            is_once(&table, name)?;
            if let Some(property) = table.get(name) {
                property.remove();
            }
        }
    }
    Ok(format!("{mark}{root}"))
}

/// Like [`without_json`], for TOML.
pub(crate) fn without_toml(
    text: &str,
    keys: &[&str],
    names: &[&str],
) -> Result<String, MergeError> {
    let mut document = parsed_toml(text)?;
    let table = toml_table(&mut document, keys)?;
    for name in names {
        table.remove(name);
    }
    Ok(document.to_string())
}

fn parsed_toml(text: &str) -> Result<DocumentMut, MergeError> {
    text.parse().map_err(|error: toml_edit::TomlError| MergeError::Syntax(error.to_string()))
}

/// Returns a table of servers, which is created if missing.
fn toml_table<'a>(
    document: &'a mut DocumentMut,
    keys: &[&str],
) -> Result<&'a mut dyn TableLike, MergeError> {
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in keys {
        let item = table.entry(key).or_insert_with(|| {
            let mut table = Table::new();
            // Only its servers need headings.
            table.set_implicit(true);
            Item::Table(table)
        });
        let form = || MergeError::Form(format!("`{key}` in it"));
        table = item.as_table_like_mut().ok_or_else(form)?;
    }
    Ok(table)
}

/// Refuses an object with a repeated key: parsers would read only the last value.
fn is_once(object: &CstObject, key: &str) -> Result<(), MergeError> {
    let names = object.properties().into_iter().filter_map(|property| property.name());
    let same = names.filter_map(|name| name.decoded_value().ok()).filter(|name| name == key);
    match same.count() {
        0 | 1 => Ok(()),
        count => Err(MergeError::Repeated { key: key.to_owned(), count }),
    }
}

fn update_json(server: &CstObject, found: &Value, value: &Map<String, Value>) {
    for (key, value) in value {
        match server.get(key) {
            None => drop(server.append(key, input(value))),
            // Equal values keep their formatting.
            Some(_) if found[key] == *value || !OWN_KEYS.contains(&&**key) => {}
            Some(property) => property.set_value(input(value)),
        }
    }
    for key in OWN_KEYS.into_iter().filter(|key| !value.contains_key(*key)) {
        if let Some(property) = server.get(key) {
            property.remove();
        }
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(fields.collect())
        }
    }
}

/// Like [`json`], for TOML.
pub(crate) fn toml(
    text: &str,
    entry: &ServerEntry<'_>,
    others: Others<'_>,
) -> Result<String, MergeError> {
    let mut document = parsed_toml(text)?;
    let table = toml_table(&mut document, entry.table)?;
    let whole = || {
        let mut table = Table::new();
        entry.value.iter().for_each(|(key, value)| drop(table.insert(key, item(value))));
        Item::Table(table)
    };
    let Some(found) = table.get_mut(entry.name) else {
        table.insert(entry.name, whole());
        return Ok(ended(document.to_string()));
    };
    let value = as_json(found);
    match (found.as_table_like_mut(), keeps(&value, entry, others)?) {
        (Some(server), true) => update_toml(server, &value, entry.value),
        _ => *found = whole(),
    }
    Ok(ended(document.to_string()))
}

fn update_toml(server: &mut dyn TableLike, found: &Value, value: &Map<String, Value>) {
    for (key, value) in value {
        let is_there = server.contains_key(key);
        if !is_there || (found[key] != *value && OWN_KEYS.contains(&&**key)) {
            server.insert(key, item(value));
        }
    }
    for key in OWN_KEYS.into_iter().filter(|key| !value.contains_key(*key)) {
        server.remove(key);
    }
}

fn item(value: &Value) -> Item {
    Item::Value(toml_value(value))
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        // TOML has no null, and no server needs one.
        Value::Null => String::new().into(),
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<Array>().into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key, toml_value(value)));
            fields.collect::<InlineTable>().into()
        }
    }
}

/// Converts a TOML value to JSON, as far as servers use it.
pub(crate) fn as_json(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return table.iter().map(|(key, item)| (key.to_owned(), as_json(item))).collect();
    }
    match item.as_value() {
        Some(toml_edit::Value::String(text)) => text.value().clone().into(),
        Some(toml_edit::Value::Boolean(value)) => (*value.value()).into(),
        Some(toml_edit::Value::Integer(value)) => (*value.value()).into(),
        Some(toml_edit::Value::Array(items)) => {
            items.iter().map(|value| as_json(&Item::Value(value.clone()))).collect()
        }
        _ => item.to_string().trim().into(),
    }
}

/// Returns whether the user's keys of a server are kept. A different server is replaced only on
/// request.
fn keeps(found: &Value, entry: &ServerEntry<'_>, others: Others<'_>) -> Result<bool, MergeError> {
    let what = match others {
        _ if !is_ours(found, entry.value) => "a different server",
        Others::KeepWorkspaces { own } if !is_for(found, own) => match workspace_of(found) {
            Some(_) => "for another workspace",
            None => "for all workspaces",
        },
        _ => return Ok(true),
    };
    if let Others::Replace = others {
        return Ok(false);
    }
    let (found, new) = (without_secrets(found, entry.value), json!(entry.value).to_string());
    Err(MergeError::Taken { name: entry.name.to_owned(), what, found, new })
}

/// Returns what a server runs, for a message. Variables and headers often hold secrets, as do the
/// arguments of other programs.
fn without_secrets(found: &Value, new: &Map<String, Value>) -> String {
    let is_ours = is_ours(found, new);
    let fields = found.as_object().into_iter().flatten();
    let shown = fields.filter_map(|(key, value)| match (key.as_str(), value) {
        ("command", Value::Array(words)) if !is_ours => Some((key, words.first()?.clone())),
        ("command" | "type", _) => Some((key, value.clone())),
        ("args", _) if is_ours => Some((key, value.clone())),
        ("url", Value::String(url)) => {
            let end = url.find(['?', '#']).unwrap_or(url.len());
            Some((key, url[..end].into()))
        }
        _ => None,
    });
    Value::Object(shown.map(|(key, value)| (key.clone(), value)).collect()).to_string()
}

/// Returns whether a server is kitbag: it starts a program of that name, or has the same URL.
fn is_ours(found: &Value, new: &Map<String, Value>) -> bool {
    let urls = ["url", "httpUrl", "serverUrl"];
    let is_same = |key: &str| new.get(key).is_some_and(|url| found[key] == *url);
    starts_kitbag(found) || urls.into_iter().any(is_same)
}

/// Returns whether a server is a program named `kitbag` that serves.
pub(crate) fn starts_kitbag(found: &Value) -> bool {
    // opencode has the program and its arguments in a single list.
    let (command, first) = match &found["command"] {
        Value::Array(words) => (words.first(), words.get(1)),
        command => (Some(command), found["args"].get(0)),
    };
    let command = command.and_then(Value::as_str).unwrap_or_default();
    command.rsplit(['/', '\\']).next().is_some_and(|name| {
        let name = name.strip_suffix(".exe").unwrap_or(name);
        name == "kitbag" && first.is_some_and(|first| first == "serve")
    })
}

/// Returns whether a kitbag server is for this workspace. A server over HTTP names none and always
/// matches.
fn is_for(found: &Value, own: Option<&Path>) -> bool {
    let same = |named: &str, own: &Path| {
        let named = Path::new(named);
        named == own
            || named.canonicalize().ok().zip(own.canonicalize().ok()).is_some_and(|(a, b)| a == b)
    };
    match (workspace_of(found), own) {
        (Some(named), Some(own)) => same(named, own),
        (named, own) => named.is_none() && (own.is_none() || !starts_kitbag(found)),
    }
}

/// Returns the workspace argument of a kitbag server.
fn workspace_of(found: &Value) -> Option<&str> {
    let words = found["args"].as_array().or_else(|| found["command"].as_array())?;
    let arguments: Vec<_> = words.iter().flat_map(Value::as_str).collect();
    arguments.iter().enumerate().find_map(|(index, argument)| match *argument {
        "--workspace" | "-w" => arguments.get(index + 1).copied(),
        argument => argument.strip_prefix("--workspace=").or_else(|| argument.strip_prefix("-w")),
    })
}

/// Appends a line break if there is none.
fn ended(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    type Merge = fn(&str, &ServerEntry<'_>, Others<'_>) -> Result<String, MergeError>;

    fn merged(merge: Merge, text: &str, server: &Value, force: bool) -> Result<String, MergeError> {
        merged_with(merge, text, server, if force { Others::Replace } else { Others::Keep })
    }

    fn merged_with(
        merge: Merge,
        text: &str,
        server: &Value,
        others: Others<'_>,
    ) -> Result<String, MergeError> {
        let value = server.as_object().unwrap();
        merge(text, &ServerEntry { table: &["servers"], name: "kitbag", value }, others)
    }

    fn server() -> Value {
        json!({ "command": "/bin/kitbag", "args": ["serve"] })
    }

    #[test]
    fn user_formatting_is_preserved() {
        let text = "// mine\n{\n\t\"a\": 1, // one\n\t\"servers\": {\n\t\t/* other */ \"x\": \
                    {\"command\":\"y\"},\n\t},\n}\n";
        let expected = "// mine\n{\n\t\"a\": 1, // one\n\t\"servers\": {\n\t\t/* other */ \"x\": \
                        {\"command\":\"y\"},\n\t\t\"kitbag\": {\n\t\t\t\"command\": \
                        \"/bin/kitbag\",\n\t\t\t\"args\": [\"serve\"],\n\t\t},\n\t},\n}\n";
        assert_eq!(merged(json, text, &server(), false).as_deref(), Ok(expected));
        // A second merge does not change the text.
        assert_eq!(merged(json, expected, &server(), false).as_deref(), Ok(expected));
        let text = "# mine\nmodel = \"x\"   # one\n\n[servers.x]\ncommand = 'y'\n";
        let expected =
            format!("{text}\n[servers.kitbag]\ncommand = \"/bin/kitbag\"\nargs = [\"serve\"]\n");
        assert_eq!(merged(toml, text, &server(), false).as_deref(), Ok(&*expected));
        assert_eq!(merged(toml, &expected, &server(), false).as_deref(), Ok(&*expected));
    }

    #[test]
    fn byte_order_mark_is_preserved() {
        let text = "\u{feff}{\r\n  \"servers\": {}\r\n}\r\n";
        let new = merged(json, text, &server(), false).unwrap();
        let rest = new.strip_prefix('\u{feff}').unwrap();
        assert!(rest.starts_with("{\r\n") && rest.contains("\"kitbag\""), "{new:?}");
        assert_eq!(merged(json, &new, &server(), false), Ok(new));
    }

    #[test]
    fn a_repeated_key_is_refused() {
        let check = |text: &str, key: &str| {
            let refused = merged(json, text, &server(), true);
            let expected = MergeError::Repeated { key: key.to_owned(), count: 2 };
            assert_eq!(refused, Err(expected), "{text}");
        };
        check(r#"{"servers": {}, "x": 1, "servers": {"a": {}}}"#, "servers");
        check(r#"{"servers": {}, "s\u0065rvers": {}}"#, "servers");
        check(r#"{"servers": {"kitbag": {}, "kitbag": {}}}"#, "kitbag");
        assert!(merged(json, r#"{"servers": {}, "x": {"servers": {}}}"#, &server(), true).is_ok());
    }

    #[test]
    fn own_server_is_updated_and_keeps_added_keys() {
        let over_http = json!({ "url": "http://127.0.0.1:1/mcp" });
        let text = "{\"servers\": {\"kitbag\": {\"command\": \"/old/kitbag\", \"args\": \
                    [\"serve\"], /* ! */ \"env\": {\"A\": \"b\"}}}}\n";
        let new = merged(json, text, &server(), false).unwrap();
        assert_eq!(new, text.replace("/old/", "/bin/"));
        let new = merged(json, text, &over_http, false).unwrap();
        let value = CstRootNode::parse(&new, &ParseOptions::default()).unwrap();
        let value = value.to_serde_value().unwrap();
        let expected = json!({ "env": { "A": "b" }, "url": "http://127.0.0.1:1/mcp" });
        assert_eq!(value["servers"]["kitbag"], expected, "{new}");
        let text = "[servers.kitbag]\ncommand = \"/old/kitbag\" # ours\nargs = [\"serve\"]\nenabled = \
                    true\n";
        let new = merged(toml, text, &over_http, false).unwrap();
        assert_eq!(new, "[servers.kitbag]\nenabled = true\nurl = \"http://127.0.0.1:1/mcp\"\n");
    }

    #[test]
    fn server_of_the_same_name_is_replaced_only_by_force() {
        let taken = |merge: Merge, text: &str| {
            let error = merged(merge, text, &server(), false).unwrap_err();
            assert!(matches!(&error, MergeError::Taken { .. }), "{error}");
            assert!(error.to_string().contains("\"npx\""), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
            merged(merge, text, &server(), true).unwrap()
        };
        let text = "{\"servers\":{\"kitbag\":{\"command\":\"npx\",\"args\":[\"hunter2\"],\"env\":{\"A\":\"hunter2\"}},\
                    \"b\":{}}}";
        let new: Value = serde_json::from_str(&taken(json, text)).unwrap();
        assert_eq!(new, json!({ "servers": { "kitbag": server(), "b": {} } }));
        let new = taken(toml, "[servers.kitbag]\ncommand = \"npx\"\nenabled = true\n");
        assert_eq!(new, "[servers.kitbag]\ncommand = \"/bin/kitbag\"\nargs = [\"serve\"]\n");
    }

    #[test]
    fn shared_file_keeps_servers_of_other_workspaces() {
        let check = |arguments: &[&str], own: Option<&str>, is_kept: bool| {
            let found = json!({ "command": "/bin/kitbag", "args": arguments });
            let text = json!({ "servers": { "kitbag": found } }).to_string();
            let others = Others::KeepWorkspaces { own: own.map(Path::new) };
            let merged = merged_with(json, &text, &server(), others);
            assert_eq!(merged.is_err(), is_kept, "{arguments:?} {own:?} {merged:?}");
            if let Err(error) = merged {
                let (error, found, new) = (error.to_string(), found.to_string(), server());
                assert!(error.contains(&found) && error.contains(&new.to_string()), "{error}");
                assert!(error.contains("`--name`") && error.contains("`--force`"), "{error}");
            }
        };
        check(&["serve", "--workspace", "/a"], Some("/a"), false);
        check(&["serve", "--workspace", "/a"], Some("/b"), true);
        check(&["serve", "--workspace=/a"], Some("/b"), true);
        check(&["serve", "-w", "/a"], Some("/a"), false);
        check(&["serve", "-w/a"], Some("/b"), true);
        check(&["serve", "--workspace", "/a"], None, true);
        check(&["serve"], Some("/b"), true);
        check(&["serve"], None, false);
    }

    #[test]
    fn invalid_configuration_is_an_error() {
        let check = |merge: Merge, text: &str| {
            assert!(merged(merge, text, &server(), true).is_err(), "{text}");
        };
        for text in ["{", "[]", "7", "{\"servers\": []}", "{\"servers\": null}", "{} {}"] {
            check(json, text);
        }
        for text in ["servers", "servers = 1", "[[servers]]"] {
            check(toml, text);
        }
        for merge in [json as Merge, toml] {
            assert!(merged(merge, "", &server(), false).unwrap().contains("/bin/kitbag"));
        }
    }
}
