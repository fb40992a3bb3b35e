//! Tables of the user config, changed without affecting the rest.

use toml_edit::{Array, Item, Table, TableLike, Value};

#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    #[error("your user config was not changed: {0}")]
    Syntax(#[from] toml_edit::TomlError),
    /// The file has another kind of value in place of a table.
    #[error("your user config was not changed: its `{0}` is not a table")]
    Form(String),
}

/// Returns a nested table, which is created if missing. `is_implicit`: it needs no heading.
pub(crate) fn table<'a>(
    within: &'a mut dyn TableLike,
    key: &str,
    is_implicit: bool,
) -> Result<&'a mut dyn TableLike, EditError> {
    let form = || EditError::Form(key.to_owned());
    let item = within.entry(key).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(is_implicit);
        Item::Table(table)
    });
    item.as_table_like_mut().ok_or_else(form)
}

/// Sets a key, and keeps the comments beside it.
pub(crate) fn set(table: &mut dyn TableLike, key: &str, value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

pub(crate) fn list<S: AsRef<str>>(texts: &[S]) -> Value {
    texts.iter().map(S::as_ref).collect::<Array>().into()
}
