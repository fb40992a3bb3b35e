//! The table of a tool or a server in a configuration, added and removed without changing the rest.

use kitbag::base::shell;
use kitbag::base::text::shown;
use toml_edit::{Array, DocumentMut, Formatted, Item, Table, TableLike, Value};

/// Start of the comment above a table that `kitbag add` wrote.
const MARK: &str = "# Added by `kitbag add`";

/// The tables of tools and of servers.
const TOOLS: &str = "tools";
const SERVERS: &str = "servers";

/// Larger than the position of any existing table: a file has fewer bytes.
const END: isize = 1 << 30;

pub(crate) struct ToolTable {
    pub(crate) name: String,
    pub(crate) origin: String,
    pub(crate) wasm: String,
    /// Further keys: the settings of a manifest without its requested grants.
    pub(crate) keys: Vec<(String, Item)>,
    /// The grants, by their keys in `grants`.
    pub(crate) grants: Vec<(String, Value)>,
}

/// The table of a server.
pub(crate) struct ServerTable {
    pub(crate) name: String,
    /// The origin, for the comment above the table.
    pub(crate) origin: String,
    pub(crate) keys: Vec<(String, Item)>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    #[error("{0}")]
    Syntax(#[from] toml_edit::TomlError),
    /// The document has another kind of value in place of a table.
    #[error("its `{0}` is not a table")]
    Form(String),
    #[error("it already has a table `[{0}]`")]
    Taken(String),
}

impl ToolTable {
    /// Returns the configuration with this table at its end. `replace`: replaces an existing table.
    pub(crate) fn add_to(&self, text: &str, replace: bool) -> Result<String, TableError> {
        let mut table = Table::new();
        table.insert("source", value("local"));
        table.insert("wasm", value(self.wasm.as_str()));
        let (tables, keys): (Vec<_>, Vec<_>) =
            self.keys.iter().cloned().partition(|(_, item)| item.is_table());
        keys.into_iter().for_each(|(key, item)| drop(table.insert(&key, item)));
        let mut grants = Table::new();
        grants.set_position(Some(END + 1));
        for (key, grant) in &self.grants {
            grants.insert(key, Item::Value(grant.clone()));
        }
        table.insert("grants", Item::Table(grants));
        let mut position = END + 2;
        for (key, item) in tables {
            table.insert(&key, placed(item, &mut position));
        }
        insert(text, (TOOLS, &self.name), &self.origin, table, replace)
    }
}

impl ServerTable {
    /// Returns the configuration with this table at its end. `replace`: replaces an existing table.
    pub(crate) fn add_to(&self, text: &str, replace: bool) -> Result<String, TableError> {
        let mut table = Table::new();
        let (tables, keys): (Vec<_>, Vec<_>) =
            self.keys.iter().cloned().partition(|(_, item)| item.is_table());
        keys.into_iter().for_each(|(key, item)| drop(table.insert(&key, item)));
        let mut position = END + 1;
        for (key, item) in tables {
            table.insert(&key, placed(item, &mut position));
        }
        insert(text, (SERVERS, &self.name), &self.origin, table, replace)
    }
}

/// Returns a configuration with a table at its end.
fn insert(
    text: &str,
    (group, name): (&str, &str),
    origin: &str,
    mut table: Table,
    replace: bool,
) -> Result<String, TableError> {
    let text = match replace {
        true => without_table(text, group, name)?.unwrap_or_else(|| text.to_owned()),
        false => text.to_owned(),
    };
    let mut document: DocumentMut = text.parse()?;
    let end = document.trailing().as_str().unwrap_or_default().to_owned();
    let is_empty = document.as_table().is_empty() && end.trim().is_empty();
    // Comments at the end of the file stay above the new table.
    document.set_trailing("");
    let tables = tables(&mut document, group)?;
    if tables.contains_key(name) {
        return Err(TableError::Taken(format!("{group}.{name}")));
    }
    table.set_position(Some(END));
    let gap = if is_empty { "" } else { "\n" };
    table.decor_mut().set_prefix(format!(
        "{end}{gap}{MARK} from {}; change it with `{}` and `{}`.\n",
        shown(origin),
        shell::command(["kitbag", "update", name]),
        shell::command(["kitbag", "remove", name]),
    ));
    tables.insert(name, Item::Table(table));
    Ok(document.to_string())
}

/// Returns the component in the table of a tool. `None` if there is no table, or the text is not
/// TOML.
pub(crate) fn wasm(text: &str, name: &str) -> Option<String> {
    let document: DocumentMut = text.parse().ok()?;
    let table = document.get("tools")?.get(name)?;
    table.get("wasm")?.as_str().map(str::to_owned)
}

/// Returns whether a tool has a table. `None` if the text is not TOML.
pub(crate) fn has(text: &str, name: &str) -> Option<bool> {
    has_table(text, TOOLS, name)
}

/// Returns whether a server has a table. `None` if the text is not TOML.
pub(crate) fn has_server(text: &str, name: &str) -> Option<bool> {
    has_table(text, SERVERS, name)
}

fn has_table(text: &str, group: &str, name: &str) -> Option<bool> {
    let document: DocumentMut = text.parse().ok()?;
    Some(document.get(group).is_some_and(|tables| tables.get(name).is_some()))
}

/// Returns the configuration without the table of a tool. `None` if the tool has no table. Comments
/// above it that `kitbag add` did not write are kept at the end.
pub(crate) fn without(text: &str, name: &str) -> Result<Option<String>, TableError> {
    without_table(text, TOOLS, name)
}

/// Like [`without`], for a server.
pub(crate) fn without_server(text: &str, name: &str) -> Result<Option<String>, TableError> {
    without_table(text, SERVERS, name)
}

fn without_table(text: &str, group: &str, name: &str) -> Result<Option<String>, TableError> {
    let mut document: DocumentMut = text.parse()?;
    if document.get(group).is_none() {
        return Ok(None);
    }
    let tables = tables(&mut document, group)?;
    let Some(removed) = tables.remove(name) else { return Ok(None) };
    let is_left_over = tables.is_empty();
    if is_left_over && document[group].as_table().is_some_and(Table::is_implicit) {
        document.remove(group);
    }
    let prefix = removed.as_table().and_then(|table| table.decor().prefix()?.as_str());
    let lines = prefix.unwrap_or_default().lines();
    let kept: Vec<_> = lines.filter(|line| !line.trim_start().starts_with(MARK)).collect();
    if kept.iter().any(|line| line.trim_start().starts_with('#')) {
        let end = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing(format!("{}\n{end}", kept.join("\n")));
    }
    Ok(Some(document.to_string()))
}

fn tables<'a>(
    document: &'a mut DocumentMut,
    group: &str,
) -> Result<&'a mut dyn TableLike, TableError> {
    let item = document.as_table_mut().entry(group).or_insert_with(|| {
        let mut tools = Table::new();
        tools.set_implicit(true);
        Item::Table(tools)
    });
    match item.as_table_like_mut() {
        // An inline table cannot hold a table with a heading.
        Some(tools) if !tools.is_dotted() => Ok(tools),
        _ => Err(TableError::Form(group.to_owned())),
    }
}

pub(crate) fn value(text: &str) -> Item {
    Item::Value(Value::String(Formatted::new(text.to_owned())))
}

/// Assigns positions to a table of another document and its subtables, in their original order.
fn placed(item: Item, position: &mut isize) -> Item {
    let Item::Table(mut table) = item else { return item };
    table.set_position(Some(*position));
    *position += 1;
    for (_, inner) in table.iter_mut() {
        *inner = placed(std::mem::take(inner), position);
    }
    Item::Table(table)
}

/// Returns a list with one entry per line, or on a single line if it is short.
pub(crate) fn list(entries: Vec<Value>) -> Value {
    let mut list: Array = entries.into_iter().collect();
    if list.len() > 1 {
        for entry in list.iter_mut() {
            entry.decor_mut().set_prefix("\n    ");
            entry.decor_mut().set_suffix("");
        }
        list.set_trailing("\n");
        list.set_trailing_comma(true);
    } else {
        list.fmt();
    }
    Value::Array(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ToolTable {
        ToolTable {
            name: "weather".into(),
            origin: "~/weather.wasm".into(),
            wasm: ".kitbag/tools/weather.wasm".into(),
            keys: vec![("rate".into(), value("60/min"))],
            grants: vec![
                ("filesystem".into(), list(Vec::new())),
                ("http".into(), list(vec!["https://a.example".into(), "https://b.example".into()])),
            ],
        }
    }

    const ADDED: &str = "\
# Added by `kitbag add` from ~/weather.wasm; change it with `kitbag update weather` and `kitbag remove weather`.
[tools.weather]
source = \"local\"
wasm = \".kitbag/tools/weather.wasm\"
rate = \"60/min\"

[tools.weather.grants]
filesystem = []
http = [
    \"https://a.example\",
    \"https://b.example\",
]
";

    #[test]
    fn a_table_is_added_at_the_end_and_removed_again() {
        assert_eq!(table().add_to("", false).unwrap(), ADDED);
        for text in [
            "# mine\n[limits]\ntime = \"5s\" # short\n",
            "[tools.a]\nenable = false\n\n[limits]\nmemory = \"8MiB\"\n# the end\n",
            "[tools]\n# none yet\n",
        ] {
            let added = table().add_to(text, false).unwrap();
            assert_eq!(added, format!("{text}\n{ADDED}"));
            assert_eq!(table().add_to(&added, true).unwrap().matches("[tools.weather]").count(), 1);
            let again = without(&added, "weather").unwrap().unwrap();
            assert_eq!(again.trim_end(), text.trim_end());
        }
        assert_eq!(without("[limits]\n", "weather").unwrap(), None);
        assert_eq!(without("[tools.a]\n", "weather").unwrap(), None);
    }

    #[test]
    fn unchangeable_configuration_is_unchanged() {
        let error = |text: &str| table().add_to(text, false).unwrap_err().to_string();
        assert_eq!(error("tools = 1"), "its `tools` is not a table");
        assert_eq!(error("tools.a.enable = false"), "its `tools` is not a table");
        assert_eq!(error("[tools.weather]\n"), "it already has a table `[tools.weather]`");
        assert!(error("[tools").contains("TOML parse error"));
    }

    #[test]
    fn a_table_of_a_server_is_added_and_removed_again() {
        let table = ServerTable {
            name: "db".into(),
            origin: "mcp-server-sqlite".into(),
            keys: vec![("command".into(), Item::Value(list(vec!["mcp-server-sqlite".into()])))],
        };
        let text = "[limits]\ntime = \"5s\"\n";
        let added = table.add_to(text, false).unwrap();
        assert_eq!(
            added,
            "[limits]\ntime = \"5s\"\n\n# Added by `kitbag add` from mcp-server-sqlite; change it \
             with `kitbag update db` and `kitbag remove db`.\n[servers.db]\ncommand = \
             [\"mcp-server-sqlite\"]\n"
        );
        assert_eq!(has_server(&added, "db"), Some(true));
        assert_eq!(table.add_to(&added, true).unwrap(), added);
        let error = table.add_to(&added, false).unwrap_err().to_string();
        assert_eq!(error, "it already has a table `[servers.db]`");
        assert_eq!(without_server(&added, "db").unwrap().unwrap().trim_end(), text.trim_end());
        assert_eq!(without(&added, "db").unwrap(), None);
    }

    #[test]
    fn user_comments_above_a_table_are_kept() {
        let text = format!("# Ours, for the team.\n\n{ADDED}\n[limits]\ntime = \"5s\"\n");
        let left = without(&text, "weather").unwrap().unwrap();
        assert!(left.contains("# Ours, for the team."), "{left}");
        assert!(!left.contains("kitbag add"), "{left}");
        assert!(left.contains("[limits]\ntime = \"5s\"\n"), "{left}");
    }
}
