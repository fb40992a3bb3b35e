//! Secrets: where a value comes from and where it may go, as the user's own file says it.
//!
//! A value itself is never here. What a tool gets of a secret is a grant.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use kitbag_policy::{
    Placement, PlacementError, SecretName, SecretNameError, SecretPlace, SecretPlaceError,
    SecretSource,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::resolver::Resolver;
use crate::config::{Secret, SecretStore, SecretStoreKind};
use crate::file::SourceFile;
use crate::format::ConfigFile;
use crate::origin::{Origin, Sourced};
use crate::path::is_fixed;
use crate::problem::Problem;
use crate::sources::Sources;
use crate::written::{At, Written, merge};

/// The key of the secrets, for messages.
const KEY: &str = "secrets";

/// A secret: where its value comes from, and where it may go. Without `variable` and
/// `command` the value is in the store, where `kitbag secret set` puts it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Secret")]
pub(crate) struct SecretConfig {
    /// URLs that it may go to, by `https`, or on this machine.
    #[schemars(extend("default" = [], "examples" = [["https://api.github.com/**"]]))]
    pub(crate) to: Option<Written<Vec<Written<String>>>>,
    /// How the host adds it to a request: `bearer`, `basic` (the value is `USER:PASSWORD`),
    /// `{ basic = "USER" }`, `{ header = "NAME" }`, also with a `prefix`, `{ query = "NAME" }`,
    /// or `{ path = "TEXT" }`, which it takes the place of.
    #[serde(rename = "as")]
    #[schemars(extend("default" = "bearer", "examples" = ["bearer", { "header": "X-Api-Key" }]))]
    pub(crate) placement: Option<Written<PlacementConfig>>,
    /// Whether `to` may have more than one host, such as `https://*.example.com/**`.
    #[schemars(extend("default" = false))]
    pub(crate) wildcard: Option<Written<bool>>,
    /// Where a placeholder is replaced besides headers.
    #[schemars(extend("default" = [], "examples" = [["body"]]))]
    pub(crate) placeholder: Option<Written<Vec<Written<PlaceholderPart>>>>,
    /// The variable of the environment that has the value, read at the moment of use.
    #[schemars(extend("examples" = ["GITHUB_TOKEN"]))]
    pub(crate) variable: Option<Written<String>>,
    /// The program that writes the value, with its arguments, run at the moment of use. No
    /// shell reads it.
    #[schemars(extend("examples" = [["pass", "show", "github"]]))]
    pub(crate) command: Option<Written<Vec<Written<String>>>>,
}

/// A part of a request, besides its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum PlaceholderPart {
    /// In the query.
    Query,
    /// In the body.
    Body,
}

/// What keeps the values of secrets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Store of secrets")]
pub(crate) struct SecretStoreConfig {
    /// What the store is, and how it is opened. It is chosen once.
    pub(crate) kind: Option<Written<SecretStoreKind>>,
    /// The encrypted file. Default: `secrets.age` in the state directory.
    pub(crate) file: Option<Written<String>>,
    /// The file with its key. Default: `secrets.key` beside this file.
    pub(crate) key_file: Option<Written<String>>,
    /// The program that writes its passphrase, with its arguments. Default: the variable
    /// `KITBAG_PASSPHRASE` has it.
    pub(crate) passphrase_command: Option<Written<Vec<Written<String>>>>,
}

/// How a secret is added to a request.
#[derive(Debug)]
pub(crate) struct PlacementConfig(Placement);

/// Why a secret cannot be used like that.
#[derive(Debug, thiserror::Error)]
enum SecretProblem {
    /// Its name is none.
    #[error(transparent)]
    Name(#[from] SecretNameError),
    /// It goes to a place that is none.
    #[error(transparent)]
    Place(#[from] SecretPlaceError),
    /// Its value would come from two places.
    #[error("a secret has `variable` or `command`, not both")]
    TwoSources,
    /// It would come from nothing.
    #[error("`{0}` is empty")]
    Empty(&'static str),
    /// A program whose path depends on the workspace.
    #[error("a program is found by its name alone, or has an absolute path")]
    RelativeProgram,
    /// A path that depends on the workspace.
    #[error("`{0}` is relative; write an absolute path, or one that starts with `~/`")]
    Relative(String),
}

impl Resolver<'_> {
    /// The secrets of the user's own file. Other files have no such table.
    pub(super) fn secrets(
        &mut self,
        layers: &[(&SourceFile, &ConfigFile)],
    ) -> BTreeMap<SecretName, Secret> {
        let tables =
            layers.iter().filter_map(|(file, layer)| Some((*file, layer.secrets.as_ref()?)));
        let mut secrets = BTreeMap::new();
        for parts in merge(tables) {
            let Some(part) = parts.last() else { continue };
            match SecretName::new(part.key.value) {
                Ok(name) => {
                    let secret = self.secret(part.at);
                    secrets.insert(name, secret);
                }
                Err(error) => self.report.at(part.key, SecretProblem::from(error)),
            }
        }
        secrets
    }

    fn secret(&mut self, at: At<'_, SecretConfig>) -> Secret {
        let wildcard = at.value.wildcard.as_ref().is_some_and(|wildcard| wildcard.value);
        let to = at.inner(|secret| secret.to.as_ref()).map(|to| {
            let mut places = Vec::new();
            for text in to.value.iter().map(|text| text.at(to.file)) {
                match SecretPlace::new(text.value, wildcard) {
                    Ok(place) => places.push(place),
                    Err(error) => self.report.at(text, SecretProblem::from(error)),
                }
            }
            to.sourced(places)
        });
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
                    self.report.at(variable, SecretProblem::Empty("variable"));
                }
                variable.sourced(SecretSource::Variable(variable.value.clone()))
            }
            (None, Some(command)) => {
                command.sourced(SecretSource::Command(self.words(command, "command")))
            }
            (Some(variable), Some(_)) => {
                self.report.at(variable, SecretProblem::TwoSources);
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

    /// A program and its arguments.
    fn words(&mut self, at: At<'_, Vec<Written<String>>>, key: &'static str) -> Vec<String> {
        if at.value.first().is_none_or(|program| program.value.is_empty()) {
            self.report.at(at, SecretProblem::Empty(key));
        }
        // One that is found by its name alone is not one of the workspace.
        if let Some(program) = at.value.first()
            && program.value.contains('/')
            && !program.value.starts_with('/')
        {
            self.report.at(program.at(at.file), SecretProblem::RelativeProgram);
        }
        at.value.iter().map(|word| word.value.clone()).collect()
    }

    /// What keeps the values of secrets.
    pub(super) fn secret_store(
        &mut self,
        layers: &[(&SourceFile, &ConfigFile)],
        sources: &Sources<'_>,
    ) -> SecretStore {
        let written =
            layers.iter().find_map(|(file, layer)| Some((*file, layer.secret_store.as_ref()?)));
        let beside = sources.own_file().map(|file| file.with_file_name("secrets.key"));
        let file = sources
            .state
            .as_ref()
            .map(|state| state.clone().map(|state| state.join("secrets.age")));
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
                self.report.at(at, SecretProblem::Relative(at.value.clone()));
                return None;
            }
            Some(at.sourced(self.path(at)?))
        };
        store.file = path(&table.file).or(store.file);
        store.key_file = path(&table.key_file).or(store.key_file);
        store.passphrase_command = table.passphrase_command.as_ref().map(|command| {
            let at = command.at(file);
            at.sourced(self.words(at, "passphrase_command"))
        });
        store
    }
}

impl From<SecretProblem> for Problem {
    fn from(problem: SecretProblem) -> Self {
        Self::Grant { kind: KEY, reason: problem.to_string() }
    }
}

/// How a secret is added, by the keys of a table.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlacementTable {
    basic: Option<String>,
    header: Option<String>,
    prefix: Option<String>,
    query: Option<String>,
    path: Option<String>,
}

impl PlacementTable {
    fn placement(self) -> Result<Placement, PlacementFormError> {
        let Self { basic, header, prefix, query, path } = self;
        let placement = match (basic, header, query, path) {
            (None, Some(header), None, None) => {
                return Ok(Placement::header(&header, prefix.as_deref().unwrap_or_default())?);
            }
            _ if prefix.is_some() => return Err(PlacementFormError::Prefix),
            (Some(user), None, None, None) => Placement::basic(Some(user)),
            (None, None, Some(name), None) => Placement::query(&name),
            (None, None, None, Some(text)) => Placement::path(&text),
            _ => return Err(PlacementFormError::Keys),
        };
        Ok(placement?)
    }
}

/// Why a value does not say how a secret is added.
#[derive(Debug, thiserror::Error)]
enum PlacementFormError {
    #[error("a secret is added by one of `basic`, `header`, `query` and `path`")]
    Keys,
    #[error("`prefix` belongs to `header`")]
    Prefix,
    #[error("`{0}` says nothing of how a secret is added: write `bearer`, `basic`, or a table")]
    Word(String),
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

impl<'de> Deserialize<'de> for PlacementConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = Placement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "`bearer`, `basic`, or a table with `header`, `query`, `path` or `basic`",
                )
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Placement, E> {
                match word {
                    "bearer" => Ok(Placement::Bearer),
                    "basic" => Ok(Placement::Basic { user: None }),
                    _ => Err(E::custom(PlacementFormError::Word(word.to_owned()))),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Placement, A::Error> {
                let deserializer = serde::de::value::MapAccessDeserializer::new(map);
                PlacementTable::deserialize(deserializer)?.placement().map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_any(Form).map(Self)
    }
}

impl JsonSchema for PlacementConfig {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Placement".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = || json_schema!({ "type": "string" });
        let table = |key: &str| {
            json_schema!({
                "type": "object",
                "properties": { key: text() },
                "required": [key],
                "additionalProperties": false,
            })
        };
        let mut header = table("header");
        if let Some(properties) = header.pointer_mut("/properties") {
            properties["prefix"] = text().into();
        }
        json_schema!({
            "anyOf": [
                { "type": "string", "enum": ["bearer", "basic"] },
                table("basic"),
                header,
                table("query"),
                table("path"),
            ],
        })
    }
}
