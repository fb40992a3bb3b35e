//! The form of secrets in a file: the source of a value and its destinations.

use std::borrow::Cow;
use std::fmt;

use kitbag_policy::{Placement, PlacementError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::config::SecretStoreKind;
use crate::format::span::Written;

/// A secret: the source of its value, and its destinations. Without `variable` and `command` the
/// value is in the store (`kitbag secret set`).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Secret")]
pub(crate) struct SecretConfig {
    /// URL patterns of its destinations, with `https` or on this machine.
    #[schemars(extend("default" = [], "examples" = [["https://api.github.com/**"]]))]
    pub(crate) to: Option<Written<Vec<Written<String>>>>,
    /// How kitbag adds the value to a request: `bearer`, `basic` (the value is `USER:PASSWORD`), `{
    /// basic = "USER" }`, `{ header = "NAME" }`, optionally with a `prefix`, `{ query = "NAME" }`,
    /// or `{ path = "TEXT" }`, which the value replaces.
    #[serde(rename = "as")]
    #[schemars(extend("default" = "bearer", "examples" = ["bearer", { "header": "X-Api-Key" }]))]
    pub(crate) placement: Option<Written<PlacementConfig>>,
    /// `true` allows a pattern in `to` to match several hosts, such as `https://*.example.com/**`.
    #[schemars(extend("default" = false))]
    pub(crate) wildcard: Option<Written<bool>>,
    /// The parts of a request, in addition to headers, in which placeholders are replaced.
    #[schemars(extend("default" = [], "examples" = [["body"]]))]
    pub(crate) placeholder: Option<Written<Vec<Written<PlaceholderPart>>>>,
    /// The environment variable with the value, read at the time of use.
    #[schemars(extend("examples" = ["GITHUB_TOKEN"]))]
    pub(crate) variable: Option<Written<String>>,
    /// The program that prints the value, with its arguments, run without a shell at the time of
    /// use.
    #[schemars(extend("examples" = [["pass", "show", "github"]]))]
    pub(crate) command: Option<Written<Vec<Written<String>>>>,
}

/// A part of a request, besides its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum PlaceholderPart {
    /// The query.
    Query,
    /// The body.
    Body,
}

/// The store of secret values.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Store of secrets")]
pub(crate) struct SecretStoreConfig {
    /// The kind of store. It cannot change while the store has values.
    pub(crate) kind: Option<Written<SecretStoreKind>>,
    /// The encrypted file. Default: `secrets.age` in the state directory.
    pub(crate) file: Option<Written<String>>,
    /// The file with its key. Default: `secrets.key` beside this file.
    pub(crate) key_file: Option<Written<String>>,
    /// The program that prints the passphrase, with its arguments. Default: the variable
    /// `KITBAG_PASSPHRASE`.
    pub(crate) passphrase_command: Option<Written<Vec<Written<String>>>>,
}

/// The way a secret is added to a request.
#[derive(Debug)]
pub(crate) struct PlacementConfig(pub(crate) Placement);

/// The table form of [`PlacementConfig`].
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

/// The reason why a value is not a placement.
#[derive(Debug, thiserror::Error)]
enum PlacementFormError {
    #[error("set one of `basic`, `header`, `query` and `path`")]
    Keys,
    #[error("`prefix` needs `header`")]
    Prefix,
    #[error("`{0}` is not a place for a secret: write `bearer`, `basic`, or a table")]
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
