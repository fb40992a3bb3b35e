//! `kitbag import --undo`.

use std::fs;
use std::path::Path;

use kitbag::base::text::{alternatives, shown};
use kitbag::config::Lock;
use kitbag::policy::SecretName;
use kitbag::secrets::CallEnd;
use kitbag::trust::digest_of;
use serde_json::{Value, json};
use toml_edit::DocumentMut;

use super::record::{Before, FileContent, RecordedFile, StoredRecord};
use super::table as tables;
use super::three_way;
use crate::commands::consent::add::table;
use crate::commands::consent::add::workspace_trust::{Changed, TrustBefore};
use crate::commands::data::secret::store;
use crate::commands::server::mcp_config::client::FileFormat;
use crate::commands::server::mcp_config::configured::parse;
use crate::commands::server::mcp_config::merge::as_json;
use crate::commands::{Global, LimitArgs};
use crate::console::{interrupt, output};
use crate::error::CliError;
use crate::exit::Exit;
use crate::files::links::refuse_links;
use crate::files::own_file::OwnFile;
use crate::files::replace::Original;

/// A file, and its content after the import is undone. `None`: the file is removed.
struct Restored<'a> {
    file: &'a RecordedFile,
    original: Original,
    content: Option<String>,
    is_edited: bool,
}

/// Undoes the latest import of a source.
pub(super) fn run(source: &str, global: &Global, is_dry: bool) -> Result<Exit, CliError> {
    let (found, sources) = StoredRecord::latest(source)?;
    let Some(StoredRecord { path: record_path, record }) = found else {
        let known = match &sources[..] {
            [] => "nothing was imported".to_owned(),
            sources => format!("imports of {} can be undone", alternatives(sources)),
        };
        return Err(CliError::Usage(format!(
            "no import of `{}` is recorded; {known}",
            shown(source)
        )));
    };
    // Waits for other commands that change the user config.
    let own = OwnFile::lock()?;
    let restored = record.files.iter().map(|file| restored(file, &record.workspace));
    let restored = restored.collect::<Result<Vec<_>, _>>()?;
    if is_dry {
        report(&restored, &record.stored, true, global.json)?;
        return Ok(Exit::Done);
    }
    // Opened while the configuration still names its kind.
    let end = interrupt::call_end();
    let store = match record.stored.is_empty() {
        true => None,
        false => opened(global, &end)?,
    };
    let trusted = TrustBefore::now_leniently(global);
    for file in &restored {
        file.write()?;
    }
    drop(own);
    let mut changed = Changed::new();
    for file in &restored {
        file.forget(&record.workspace, &mut changed)?;
    }
    if let Some(trusted) = trusted.filter(|_| !changed.is_empty())
        && !matches!(trusted, TrustBefore::None)
    {
        trusted.extend(global, "", &changed)?;
    }
    for name in &record.stored {
        if let (Some(store), Ok(name)) = (&store, SecretName::new(name.as_str())) {
            store.delete(&name, &end)?;
        }
    }
    for file in &restored {
        if let Before::Backup(backup) = &file.file.before {
            // A copy that remains is not an error: everything is restored.
            let _ = fs::remove_file(backup);
        }
    }
    let path = record_path.display().to_string();
    fs::remove_file(&record_path).map_err(|source| CliError::Save { path, source })?;
    report(&restored, &record.stored, false, global.json)?;
    Ok(Exit::Done)
}

fn opened(global: &Global, end: &CallEnd) -> Result<Option<kitbag::secret_store::Store>, CliError> {
    let config = global.kitbag(LimitArgs::default())?.toolbox().config();
    let kind = config.secret_store.kind.as_ref().map(|kind| kind.value);
    kind.map(|kind| store::open(config, kind, false, end)).transpose()
}

/// Returns a file as it was before the import, with the edits since.
///
/// # Errors
///
/// The file was edited since in the parts that the import changed.
fn restored<'a>(file: &'a RecordedFile, workspace: &Path) -> Result<Restored<'a>, CliError> {
    let path = file.path.display().to_string();
    refuse_links(workspace, &file.path)?;
    let read = |path: &Path| {
        let shown = path.display().to_string();
        Original::read(path).map_err(|source| CliError::Read { path: shown, source })
    };
    let original = read(&file.path)?;
    let before = match &file.before {
        Before::Absent => None,
        Before::Text(text) => Some(text.clone()),
        Before::Backup(backup) => {
            let copy = read(backup)?;
            let text = copy.written().and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
            let missing = || {
                CliError::Usage(format!(
                    "nothing was undone: the previous version of `{}` is missing: `{}`",
                    shown(&path),
                    shown(&backup.display().to_string())
                ))
            };
            Some(text.ok_or_else(missing)?)
        }
    };
    let current = original.written().map(String::from_utf8_lossy);
    let current = current.as_deref();
    if current == Some(&*file.after) || current == before.as_deref() {
        return Ok(Restored { file, content: before, original, is_edited: false });
    }
    let text = before.as_deref().unwrap_or_default();
    let merged = current.and_then(|current| {
        let merged = three_way::reverted(text, &file.after, current);
        let merged = merged.filter(|merged| file.content.is_undone(merged, text));
        merged.or_else(|| file.content.removed_from(current, &file.after))
    });
    match merged {
        Some(merged) => {
            let is_left = before.is_some() || !merged.trim().is_empty();
            let content = is_left.then_some(merged);
            Ok(Restored { file, content, original, is_edited: true })
        }
        None => {
            let backup = match &file.before {
                Before::Backup(backup) => {
                    format!(
                        "; the previous version is in `{}`",
                        shown(&backup.display().to_string())
                    )
                }
                Before::Absent | Before::Text(_) => String::new(),
            };
            Err(CliError::Usage(format!(
                "nothing was undone: `{}` was edited since, in the parts that the import changed; \
                 revert these edits, or undo later imports first{backup}",
                shown(&path)
            )))
        }
    }
}

impl FileContent {
    /// Returns whether a merged text has everything that the import removed, without
    /// its additions.
    fn is_undone(&self, merged: &str, before: &str) -> bool {
        match self {
            Self::Client { is_toml, tables } => {
                let format = if *is_toml { FileFormat::Toml } else { FileFormat::Json };
                let (Some(merged), Some(before)) = (parse(merged, format), parse(before, format))
                else {
                    return false;
                };
                tables.iter().all(|(keys, names)| {
                    let table = |whole: &Value| {
                        keys.iter().try_fold(whole, |value, key| value.get(key)).cloned()
                    };
                    let (merged, before) = (table(&merged), table(&before));
                    names.iter().all(|name| {
                        let entry = |table: &Option<Value>| table.as_ref()?.get(name).cloned();
                        entry(&merged) == entry(&before)
                    })
                })
            }
            Self::Config { servers, secrets, tools } => {
                let Ok(merged) = merged.parse::<DocumentMut>() else { return false };
                let is_absent = |kind: &str, names: &[String]| {
                    let table = merged.get(kind);
                    names.iter().all(|name| table.is_none_or(|table| table.get(name).is_none()))
                };
                is_absent("servers", servers)
                    && is_absent("secrets", secrets)
                    && is_absent("tools", tools)
            }
        }
    }

    /// Returns the edited configuration without the tables of the import. `None`: one of them was
    /// edited, or the file belongs to a client.
    fn removed_from(&self, current: &str, after: &str) -> Option<String> {
        let Self::Config { servers, secrets, tools } = self else { return None };
        let parsed = |text: &str| Some(as_json(text.parse::<DocumentMut>().ok()?.as_item()));
        let (now, then) = (parsed(current)?, parsed(after)?);
        let is_unchanged = |kind: &str, names: &[String]| {
            names.iter().all(|name| now[kind][name] == then[kind][name])
        };
        let is_unchanged = is_unchanged("servers", servers)
            && is_unchanged("secrets", secrets)
            && is_unchanged("tools", tools);
        is_unchanged.then(|| tables::without(current, servers, secrets, tools).ok()).flatten()
    }
}

impl Restored<'_> {
    fn write(&self) -> Result<(), CliError> {
        let path = self.file.path.display().to_string();
        let failed = |source| CliError::Save { path: path.clone(), source };
        match &self.content {
            Some(text) if Some(text.as_bytes()) == self.original.written() => Ok(()),
            Some(text) => {
                let mut original = Original::read(&self.file.path).map_err(failed)?;
                original.replace(text.as_bytes()).map_err(failed)
            }
            None if self.original.written().is_none() => Ok(()),
            None => fs::remove_file(&self.file.path).map_err(failed),
        }
    }

    /// Removes the records of the servers from the lock file beside a configuration. Adds the
    /// changed files of the workspace.
    fn forget(&self, workspace: &Path, changed: &mut Changed) -> Result<(), CliError> {
        let FileContent::Config { servers, .. } = &self.file.content else { return Ok(()) };
        let path = &self.file.path;
        let is_shared = path.starts_with(workspace.join(".kitbag"));
        let lock = if is_shared { Lock::path_in(workspace) } else { Lock::path_beside(path) };
        let failed = |source| CliError::Save { path: lock.display().to_string(), source };
        let mut original = Original::read(&lock).map_err(failed)?;
        if let Some(text) = original.written().and_then(|bytes| str::from_utf8(bytes).ok()) {
            let mut left = text.to_owned();
            for name in servers {
                // A file with mistakes stays as it is.
                left = table::without_server(&left, name).ok().flatten().unwrap_or(left);
            }
            let has_records = left.parse::<DocumentMut>().ok().is_none_or(|document| {
                ["tools", "servers"].into_iter().any(|kind| document.contains_key(kind))
            });
            match has_records || left == text {
                true => original.replace(left.as_bytes()).map_err(failed)?,
                false => fs::remove_file(&lock).map_err(failed)?,
            }
        }
        if self.content.is_none()
            && let Some(directory) = path.parent()
        {
            // Directories with other files stay.
            let _ = fs::remove_dir(directory.join("tools"));
            let _ = fs::remove_dir(directory);
        }
        if is_shared {
            for path in [path, &lock] {
                let name = path.strip_prefix(workspace).unwrap_or(path).to_string_lossy();
                changed.insert(name.into_owned(), fs::read(path).ok().map(|it| digest_of(&it)));
            }
        }
        Ok(())
    }
}

fn report(
    restored: &[Restored<'_>],
    stored: &[String],
    is_dry: bool,
    as_json: bool,
) -> Result<(), CliError> {
    if as_json {
        let file = |it: &Restored<'_>| json!({ "file": it.file.path, "removed": it.content.is_none(), "edited": it.is_edited });
        return output::json(&json!({
            "undone": !is_dry,
            "files": restored.iter().map(file).collect::<Value>(),
            "secrets": stored,
        }));
    }
    let mut lines = Vec::new();
    for it in restored {
        let path = it.file.path.display().to_string();
        let (what, would_be) = match (&it.content, it.is_edited) {
            (None, _) => ("is removed", "would be removed"),
            (Some(_), false) => ("is as before the import", "would be as before the import"),
            (Some(_), true) => (
                "has its servers back; your later edits are kept",
                "would get its servers back; your later edits would be kept",
            ),
        };
        let (what, would_be) = match (&it.file.content, it.is_edited) {
            (FileContent::Config { .. }, true) => (
                "no longer has the imported servers; your later edits are kept",
                "would lose the imported servers; your later edits would be kept",
            ),
            _ => (what, would_be),
        };
        lines.push(format!("{} {}", shown(&path), if is_dry { would_be } else { what }));
    }
    if !stored.is_empty() {
        let verb = if is_dry { "would be deleted from" } else { "deleted from" };
        lines.push(format!("{verb} the store of secrets: {}", stored.join(", ")));
    }
    output::data(&lines.join("\n"))
}
