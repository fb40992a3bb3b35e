//! Secrets: the source of each value and its destinations, from the user config.
//!
//! The values themselves are never here. A tool's access to a secret is a grant.

use std::collections::BTreeMap;

use kitbag_policy::{Placement, SecretName, SecretPlace, SecretSource};

use crate::config::{Secret, SecretStore};
use crate::format::span::{At, Written, merge};
use crate::format::{PlaceholderPart, SecretConfig};
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path::{Bases, is_fixed};
use crate::read::sources::Sources;
use crate::report::Report;
use crate::resolve::context::{ConfigFiles, tables, valid};

/// Returns the secrets of the user config. Other files have no such table.
pub(crate) fn secrets(
    configs: &ConfigFiles<'_>,
    report: &mut Report,
) -> BTreeMap<SecretName, Secret> {
    let mut secrets = BTreeMap::new();
    for parts in merge(tables(configs, |config| config.secrets.as_ref())) {
        let Some(part) = parts.last() else { continue };
        match SecretName::new(part.key.value) {
            Ok(name) => {
                let secret = secret(part.at, report);
                secrets.insert(name, secret);
            }
            Err(error) => report.at(part.key, error),
        }
    }
    secrets
}

fn secret(at: At<'_, SecretConfig>, report: &mut Report) -> Secret {
    let wildcard = at.value.wildcard.as_ref().is_some_and(|wildcard| wildcard.value);
    let to = at.inner(|secret| secret.to.as_ref());
    let to = to.map(|to| to.sourced(valid(to, report, |text| SecretPlace::new(text, wildcard))));
    let placement = at.inner(|secret| secret.placement.as_ref());
    let placeholder = at.inner(|secret| secret.placeholder.as_ref()).map(|parts| {
        let has = |part| parts.value.iter().any(|own| own.value == part);
        parts.sourced((has(PlaceholderPart::Query), has(PlaceholderPart::Body)))
    });
    let variable = at.inner(|secret| secret.variable.as_ref());
    let command = at.inner(|secret| secret.command.as_ref());
    let source = match (variable, command) {
        (None, None) => Sourced::default(SecretSource::Store),
        (Some(variable), None) => {
            if variable.value.is_empty() || variable.value.contains(['=', '\0']) {
                report.at(variable, empty("variable"));
            }
            variable.sourced(SecretSource::Variable(variable.value.clone()))
        }
        (None, Some(command)) => {
            command.sourced(SecretSource::Command(words(command, "command", report)))
        }
        (Some(variable), Some(_)) => {
            report.at(variable, "a secret may have `variable` or `command`, not both");
            Sourced::default(SecretSource::Store)
        }
    };
    Secret {
        origin: at.origin(),
        source,
        to: to.unwrap_or(Sourced::default(Vec::new())),
        placement: placement
            .map(|at| at.sourced(at.value.0.clone()))
            .unwrap_or(Sourced::default(Placement::Bearer)),
        placeholder: placeholder.unwrap_or(Sourced::default((false, false))),
    }
}

/// Returns a program and its arguments.
fn words(at: At<'_, Vec<Written<String>>>, key: &'static str, report: &mut Report) -> Vec<String> {
    if at.value.first().is_none_or(|program| program.value.is_empty()) {
        report.at(at, empty(key));
    }
    // A program without a path does not come from the workspace.
    if let Some(program) = at.value.first()
        && program.value.contains('/')
        && !program.value.starts_with('/')
    {
        let problem = "a program must be a name without `/` or an absolute path";
        report.at(program.at(at.file), problem);
    }
    at.value.iter().map(|word| word.value.clone()).collect()
}

pub(crate) fn secret_store(
    configs: &ConfigFiles<'_>,
    sources: &Sources<'_>,
    bases: &Bases<'_>,
    report: &mut Report,
) -> SecretStore {
    let written = tables(configs, |config| config.secret_store.as_ref()).next();
    let beside = sources.own_file().map(|file| file.with_file_name("secrets.key"));
    let file =
        sources.state.as_ref().map(|state| state.clone().map(|state| state.join("secrets.age")));
    let mut store = SecretStore {
        kind: None,
        file: file.map(|file| Sourced { origin: Origin::Default, ..file }),
        key_file: beside.map(Sourced::default),
        passphrase_command: None,
    };
    let Some((file, table)) = written else { return store };
    store.kind = table.kind.as_ref().map(|kind| kind.at(file).sourced(kind.value));
    let mut path = |written: &Option<Written<String>>| {
        let at = written.as_ref()?.at(file);
        if !is_fixed(at.value) {
            let problem = format!("`{}` must be absolute or start with `~/`", at.value);
            report.at(at, problem);
            return None;
        }
        let path = bases.absolute(at.value).map_err(|problem| report.at(at, problem)).ok()?;
        Some(at.sourced(path))
    };
    store.file = path(&table.file).or(store.file);
    store.key_file = path(&table.key_file).or(store.key_file);
    store.passphrase_command = table.passphrase_command.as_ref().map(|command| {
        let at = command.at(file);
        at.sourced(words(at, "passphrase_command", report))
    });
    store
}

fn empty(key: &str) -> String {
    format!("`{key}` is empty")
}
