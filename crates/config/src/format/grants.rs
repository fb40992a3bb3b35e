//! The form of grants in a file: the list of kinds, and the form of each.
//!
//! The modules of `resolve/grants` define the meaning of the values.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;

use kitbag_policy::Access;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::format::span::{AnyValue, BoolOr, StringOr, Table, Written};

/// The access of a tool. Everything else is denied.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Grants")]
pub(crate) struct GrantsConfig {
    /// Directories. Any list, even an empty one, replaces the default. Default for a local tool:
    /// the workspace, read-only, at `/workspace`; for a built-in: the directories that it needs.
    #[schemars(extend("default" = [{ "host": ".", "guest": "/workspace", "mode": "ro" }]))]
    pub(crate) filesystem: Option<Written<Vec<Written<DirectoryGrantConfig>>>>,
    /// HTTP requests: a pattern, which grants `GET` and `HEAD`, or a table. Grants of a workspace
    /// take effect up to `[ceiling.grants]` of your user config.
    #[schemars(extend("default" = [], "examples" = [["https://api.github.com/**"]]))]
    pub(crate) http: Option<Written<HttpConfig>>,
    /// URL patterns that the tool may not request, even if a grant allows them. Patterns have the
    /// form of `http` grants and match broadly. The lists of all files are combined.
    #[schemars(extend("default" = [], "examples" = [["https://internal.example.com"]]))]
    pub(crate) deny: Option<Written<Vec<Written<String>>>>,
    /// Variables of your environment, by exact name, passed to the tool. A variable that is not set
    /// is omitted. `{ name = "GITHUB_TOKEN", secret = "github" }` passes a placeholder of a secret.
    /// Grants of a workspace take effect up to `[ceiling.grants]` of your user config.
    #[schemars(extend("default" = [], "examples" = [["LANG", "CI"]]))]
    pub(crate) env: Option<Written<Vec<Written<VariableConfig>>>>,
    /// Configuration values, by key, which the tool reads through `wasi:config`. They are shown in
    /// plain text, so do not put secrets here.
    #[schemars(extend("default" = {}, "examples" = [{ "api_version": "2022-11-28" }]))]
    pub(crate) config: Option<Written<Table<String>>>,
    /// Your secrets, by name. The host adds them to the tool's requests to their destinations, for
    /// which the tool also needs an `http` grant. Grants of a workspace take effect up to
    /// `[ceiling.grants]` of your user config.
    #[schemars(extend("default" = {}, "examples" = [{ "github": {} }]))]
    pub(crate) secrets: Option<Written<Table<SecretGrantConfig>>>,
    /// Storage between calls, through `wasi:keyvalue`: `true` for 16 MiB and 10,000 keys, or a
    /// table. Larger grants of a workspace take effect up to `[ceiling.grants]` of your user
    /// config.
    #[schemars(extend("default" = false, "examples" = [true, { "quota": "32MiB" }]))]
    pub(crate) storage: Option<Written<StorageConfig>>,
    /// Other tools that the tool may call, by alias: `search = "search_files"`, or a table with
    /// `tool`, `where` and `rate`. `"caller"` grants every tool that the caller may call. Grants of
    /// a workspace take effect up to `[ceiling.grants]` of your user config.
    #[schemars(extend("default" = {}, "examples" = [{ "search": "search_files" }, "caller"]))]
    pub(crate) tools: Option<Written<ToolsConfig>>,
}

/// The widest grants for the files and components of a trusted workspace. A kind that is not listed
/// is not limited.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Ceilings of the grants")]
pub(crate) struct CeilingGrantsConfig {
    /// HTTP requests. A grant of a workspace takes effect if it is within one of these.
    #[schemars(extend("examples" = [["https://api.github.com/**"]]))]
    pub(crate) http: Option<Written<HttpConfig>>,
    /// Variables of your environment, by exact name.
    #[schemars(extend("examples" = [["LANG", "CI"]]))]
    pub(crate) env: Option<Written<Vec<Written<String>>>>,
    /// Your secrets, by name.
    #[schemars(extend("examples" = [["github"]]))]
    pub(crate) secrets: Option<Written<Vec<Written<String>>>>,
    /// Storage between calls: `true` for 16 MiB and 10,000 keys, or a table.
    #[schemars(extend("examples" = [{ "quota": "1GiB" }, false]))]
    pub(crate) storage: Option<Written<StorageConfig>>,
    /// Other tools that a tool may call, by name: a list, or `"caller"`, which lets a workspace
    /// grant every tool that the caller may call.
    #[schemars(extend("examples" = [["search_files"], "caller"]))]
    pub(crate) tools: Option<Written<ToolsCeilingConfig>>,
}

/// A directory, and its path for the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Directory")]
pub(crate) struct DirectoryGrantConfig {
    /// The directory: a path relative to the workspace, or one that starts with `~/`. `$TEMP` is an
    /// empty, writable directory for each run, removed after the run.
    #[schemars(extend("examples" = ["."]))]
    pub(crate) host: Written<String>,
    /// The path of the directory for the tool; absolute.
    #[schemars(extend("examples" = ["/workspace"]))]
    pub(crate) guest: Written<String>,
    /// The access to the directory.
    #[serde(default)]
    #[schemars(schema_with = "access_schema")]
    pub(crate) mode: Option<Written<Access>>,
    /// Globs, by path, of files in the directory that look like secrets. Other such files are not
    /// opened. In a directory that itself looks like a secret, all files can be opened.
    #[serde(default)]
    #[schemars(extend("default" = [], "examples" = [[".env"]]))]
    pub(crate) include: Option<Written<Vec<Written<String>>>>,
    /// Names that the tool may not change despite write access, as `NAME`, `DIRECTORY/NAME` or
    /// `*.EXTENSION`. Default: files from which other programs run code, such as `.envrc` and
    /// `.vscode/tasks.json`. In a list, `default` includes them; `[]` protects none.
    #[serde(default)]
    #[schemars(extend("examples" = [[], ["default", "AGENTS.md"]]))]
    pub(crate) protected: Option<Written<Vec<Written<String>>>>,
}

/// The form of the `http` grants.
pub(crate) type HttpConfig = Vec<Written<StringOr<HttpGrantConfig>>>;

/// Requests to servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "HTTP")]
pub(crate) struct HttpGrantConfig {
    /// The pattern of URLs: `scheme://host[:port][/path]`. `*.example.com` matches every name below
    /// the host. Without a port it matches the scheme's port; without a path, every path. In a path
    /// `*` matches any characters within a segment, and `**` any number of segments.
    #[schemars(extend("examples" = ["https://api.github.com/repos/**"]))]
    pub(crate) url: Written<String>,
    /// The methods: a list, or `*` for all. `GET` includes `HEAD`.
    #[schemars(extend("default" = ["GET"], "examples" = [["GET", "POST"], "*"]))]
    pub(crate) methods: Option<Written<StringOr<Vec<Written<String>>>>>,
    /// Blocks of IP addresses that the host may have in addition to public ones.
    #[schemars(extend("default" = [], "examples" = [["10.0.0.0/8"]]))]
    pub(crate) addresses: Option<Written<Vec<Written<String>>>>,
    /// The number of redirects to follow: a positive integer, at most 20. Each target needs a
    /// grant. Default: none; the tool receives the redirect.
    pub(crate) follow: Option<Written<NonZeroU64>>,
    /// `true` allows an encoded slash, `%2F`, in a path.
    #[schemars(extend("default" = false))]
    pub(crate) encoded_slash: Option<Written<bool>>,
    /// The header fields that the tool may send, in addition to those that every client sends.
    /// Default: all except fields that make some servers treat the request as a different request.
    #[schemars(extend("examples" = [["authorization"]]))]
    pub(crate) headers: Option<Written<Vec<Written<String>>>>,
    /// The size of the body of a request: a number and a unit, such as `1MiB`.
    #[schemars(extend("default" = "1MiB"))]
    pub(crate) max_request: Option<Written<String>>,
    /// The size of the body of a response, both compressed and decompressed: a number and a unit,
    /// such as `8MiB`.
    #[schemars(extend("default" = "8MiB"))]
    pub(crate) max_response: Option<Written<String>>,
    /// The time from the start of a request to the end of its response: a number and a unit, such
    /// as `10s`. Default: the remaining time of the call.
    pub(crate) time: Option<Written<String>>,
}

/// A variable of a tool: a variable of the user's environment, or a placeholder of a secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VariableConfig {
    pub(crate) name: String,
    /// The secret, for a placeholder.
    pub(crate) secret: Option<String>,
}

/// A secret of the user config, which the host adds to requests of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Secret of a tool")]
pub(crate) struct SecretGrantConfig {
    /// The destinations of the secret for this tool: a subset of those in your user config.
    /// Default: all of them.
    #[schemars(extend("examples" = [["https://api.github.com/repos/**"]]))]
    pub(crate) to: Option<Written<Vec<Written<String>>>>,
}

/// `true`, `false`, or a table with the size.
pub(crate) type StorageConfig = BoolOr<StorageGrantConfig>;

/// The size of a tool's storage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Storage")]
pub(crate) struct StorageGrantConfig {
    /// The total size of all keys and values: a number and a unit, such as `32MiB`.
    #[schemars(extend("default" = "16MiB"))]
    pub(crate) quota: Option<Written<String>>,
    /// The number of keys: a positive integer.
    #[schemars(extend("default" = 10_000, "minimum" = 1))]
    pub(crate) keys: Option<Written<u64>>,
}

/// The form of the `tools` grants: `"caller"`, or a table.
pub(crate) type ToolsConfig = StringOr<Table<StringOr<ToolGrantConfig>>>;

/// The form of the `tools` ceiling: `"caller"`, or a list of names.
pub(crate) type ToolsCeilingConfig = StringOr<Vec<Written<String>>>;

/// A tool that another tool may call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Tool")]
pub(crate) struct ToolGrantConfig {
    /// The name of the tool.
    #[schemars(extend("examples" = ["fetch"]))]
    pub(crate) tool: Written<String>,
    /// Conditions on the arguments, by name or JSON pointer: a pattern, in which `*` matches any
    /// characters within a segment of `/` and `**` any number of segments; `true`, `false`, a
    /// number, or a list of these. Default: any arguments.
    #[serde(rename = "where")]
    #[schemars(extend("examples" = [{ "url": "https://docs.rs/**" }]))]
    pub(crate) conditions: Option<Written<Table<ConditionConfig>>>,
    /// The number of calls by this alias, in addition to the tool's own rate: `10/min`, or `10/min,
    /// 100/h`. Default: unlimited.
    #[schemars(extend("examples" = ["10/min"]))]
    pub(crate) rate: Option<Written<String>>,
}

/// A condition on an argument.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct ConditionConfig(AnyValue);

impl GrantsConfig {
    /// Returns the part that takes effect for a tool that exists without this table, in an
    /// untrusted workspace. The rest is narrowed when it is resolved.
    pub(crate) fn narrowed(self) -> Self {
        let Self { filesystem, http, env, config: _, secrets, storage, tools, deny } = self;
        let filesystem = filesystem.map(narrowed_directories);
        // A value of `config` could send a tool of the user to another destination.
        Self { filesystem, http, env, config: None, secrets, storage, tools, deny }
    }
}

/// Returns whether a list of directory grants gives write access.
pub(crate) fn grants_writing(grants: &[Written<DirectoryGrantConfig>]) -> bool {
    let mut modes = grants.iter().filter_map(|grant| grant.value.mode.as_ref());
    modes.any(|mode| mode.value == Access::ReadWrite)
}

/// Returns the directory grants that take effect in an untrusted workspace: without write access,
/// without files that look like secrets, and with the default protection.
fn narrowed_directories(
    mut list: Written<Vec<Written<DirectoryGrantConfig>>>,
) -> Written<Vec<Written<DirectoryGrantConfig>>> {
    for grant in &mut list.value {
        (grant.value.mode, grant.value.include, grant.value.protected) = (None, None, None);
    }
    list
}

impl ConditionConfig {
    /// Returns the value as it was written.
    pub(crate) fn any(&self) -> &toml::Value {
        &self.0.0
    }
}

// `Access` belongs to `kitbag-policy`, which does not depend on schemars.
fn access_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "oneOf": [
            { "type": "string", "const": "ro", "description": "Read files and list directories." },
            {
                "type": "string",
                "const": "rw",
                "description": "Read and change. `.git`, `.hg`, `.jj` and `.kitbag` stay read-only at any depth.",
            },
        ],
        "default": "ro",
    })
}

impl<'de> Deserialize<'de> for VariableConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The table of a variable that holds a placeholder.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Form {
            name: String,
            secret: String,
        }

        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = VariableConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a variable, or a table with `name` and `secret`")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<VariableConfig, E> {
                Ok(VariableConfig { name: name.to_owned(), secret: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<VariableConfig, A::Error> {
                let deserializer = serde::de::value::MapAccessDeserializer::new(map);
                let Form { name, secret } = Form::deserialize(deserializer)?;
                Ok(VariableConfig { name, secret: Some(secret) })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for VariableConfig {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Variable".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "description": "A variable of your environment." },
                {
                    "type": "object",
                    "description": "A variable that holds the placeholder of a secret.",
                    "properties": {
                        "name": { "type": "string" },
                        "secret": { "type": "string" },
                    },
                    "required": ["name", "secret"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

impl JsonSchema for ConditionConfig {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Condition".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = json_schema!({ "type": ["string", "boolean", "number"] });
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}
