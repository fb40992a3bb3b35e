//! Validates files before they are written, under the conditions of use: a tool of a workspace runs
//! only if the workspace is trusted.

use kitbag::config::{FILE_BYTES, Layer, LimitFlags, Proposal};
use kitbag::contract::ToolName;
use kitbag::host::Limits;
use kitbag::{Builder, Kitbag};
use toml_edit::{Array, InlineTable, Value};

use super::grants::RequestedSettings;
use crate::commands::Global;
use crate::commands::tools::findings::Findings;
use crate::error::CliError;

/// Maximum number of entries of a kind that are tried individually. It is also the limit on the
/// number of entries.
const MOST_TRIED: usize = 64;

/// Reads the configuration with this text as the file of a layer.
///
/// # Errors
///
/// The text is larger than the maximum size of a configuration file.
pub(crate) fn with_config(
    global: &Global,
    layer: Layer,
    text: String,
) -> Result<Builder, CliError> {
    check_size("config.toml", &text)?;
    let builder = global.builder().single_call().proposal(Proposal { layer, text });
    Ok(match layer {
        Layer::User => builder,
        Layer::Workspace | Layer::Manifest => builder.trust_workspace(true),
    })
}

/// Refuses text that is too large to be read again.
pub(crate) fn check_size(file: &str, text: &str) -> Result<(), CliError> {
    match text.len() as u64 > FILE_BYTES {
        true => Err(CliError::Usage(format!("`{file}` would be larger than 1 MiB"))),
        false => Ok(()),
    }
}

/// Checks a component like `kitbag check`, with the grants and settings of its table. In an
/// untrusted workspace `limits` apply, regardless of its files.
///
/// # Errors
///
/// The first problem that `kitbag check` would report for the tool.
pub(crate) fn check_component(
    builder: Builder,
    limits: Option<Limits>,
    name: &ToolName,
    bytes: &[u8],
    as_json: bool,
) -> Result<(), CliError> {
    let builder = match limits {
        None => builder,
        Some(Limits { memory, time, compile, .. }) => builder.limits(LimitFlags {
            memory: Some(memory),
            time: Some(time),
            compile: Some(compile),
            ..LimitFlags::default()
        }),
    };
    let kitbag = built(builder.component_instead(name.clone(), bytes))?;
    let tool = kitbag.toolbox().config().tools.get(name);
    if !tool.is_some_and(|tool| tool.is_enabled()) {
        return Ok(());
    }
    let findings = Findings::of_tool(kitbag.toolbox(), name, as_json);
    findings.problems.into_iter().next().map_or(Ok(()), |problem| Err(CliError::Faulty(problem)))
}

impl RequestedSettings {
    /// Drops requested grants and settings that are invalid in a configuration, each with a note.
    /// `read` reads the configuration with a request.
    ///
    /// # Errors
    ///
    /// The configuration already has other mistakes, or the request is invalid as a whole.
    pub(crate) fn without_invalid(
        &mut self,
        read: impl Fn(&Self) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        if read(self).is_ok() {
            return Ok(());
        }
        read(&Self::default())?;
        for (key, item) in std::mem::take(&mut self.keys) {
            let only = Self { keys: vec![(key, item)], ..Self::default() };
            match read(&only) {
                Ok(()) => self.keys.extend(only.keys),
                Err(error) => self.drop_with_note(&only.keys[0].0, &error),
            }
        }
        for (key, value) in std::mem::take(&mut self.grants) {
            let tried = |value: Value| {
                let grants = vec![(key.clone(), value)];
                read(&Self { grants, ..Self::default() })
            };
            let Err(error) = tried(value.clone()) else {
                self.grants.push((key, value));
                continue;
            };
            let (kept, refused) = match value {
                Value::Array(list) if list.len() <= MOST_TRIED => {
                    let (list, refused) = valid_entries(list, &tried);
                    (Some(Value::Array(list)), refused)
                }
                Value::InlineTable(table) if table.len() <= MOST_TRIED => {
                    let (table, refused) = valid_keys(table, &tried);
                    (Some(Value::InlineTable(table)), refused)
                }
                _ => (None, vec![error]),
            };
            for error in refused {
                self.drop_with_note(&format!("grants.{key}"), &error);
            }
            self.grants.extend(kept.map(|kept| (key, kept)));
        }
        read(self)
    }

    fn drop_with_note(&mut self, key: &str, error: &CliError) {
        let reason = match error {
            CliError::Configuration(errors) => errors.diagnostics()[0].message.clone(),
            error => error.to_string(),
        };
        self.notes.push(format!("{key}: {reason}; it is dropped"));
    }
}

/// Returns the entries of a list that are valid together with the preceding entries.
fn valid_entries(
    list: Array,
    read: &impl Fn(Value) -> Result<(), CliError>,
) -> (Array, Vec<CliError>) {
    let (mut valid, mut refused) = (Array::new(), Vec::new());
    for entry in list {
        let mut with_it = valid.clone();
        with_it.push_formatted(entry);
        match read(Value::Array(with_it.clone())) {
            Ok(()) => valid = with_it,
            Err(error) => refused.push(error),
        }
    }
    (valid, refused)
}

/// Returns the keys of a table that are valid together with the preceding keys.
fn valid_keys(
    table: InlineTable,
    read: &impl Fn(Value) -> Result<(), CliError>,
) -> (InlineTable, Vec<CliError>) {
    let (mut valid, mut refused) = (InlineTable::new(), Vec::new());
    for (key, value) in table {
        let mut with_it = valid.clone();
        with_it.insert(&key, value);
        match read(Value::InlineTable(with_it.clone())) {
            Ok(()) => valid = with_it,
            Err(error) => refused.push(error),
        }
    }
    (valid, refused)
}

/// Reads the configuration and discards it.
///
/// # Errors
///
/// The first mistake in it.
pub(crate) fn read(builder: Builder) -> Result<(), CliError> {
    built(builder).map(drop)
}

/// Unlike `build`, treats a mistake in a workspace as an error.
pub(crate) fn built(builder: Builder) -> Result<Kitbag, CliError> {
    let (kitbag, errors) = builder.build_faulty();
    match errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(kitbag.expect("a configuration without mistakes is built")),
    }
}
