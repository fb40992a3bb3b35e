//! Grants as a file has them: the list of kinds, and the form of each.
//!
//! What the values of a kind mean is left to its file in `resolve/grants`.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;

use kitbag_policy::Access;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::format::spanned::{AnyValue, BoolOr, StringOr, Table, Written};

/// What a tool may reach. What is not granted is not there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Grants")]
pub(crate) struct GrantsConfig {
    /// Directories. Default for a local tool: the workspace, read-only, at
    /// `/workspace`; a built-in has what it needs. Any list, even an empty one, replaces
    /// that.
    #[schemars(extend("default" = [{ "host": ".", "guest": "/workspace", "mode": "ro" }]))]
    pub(crate) filesystem: Option<Written<Vec<Written<DirectoryGrantConfig>>>>,
    /// Requests over HTTP: a pattern, which is granted for `GET` and `HEAD`, or a table. Those
    /// of a workspace's file count within `[ceiling.grants]` of your own.
    #[schemars(extend("default" = [], "examples" = [["https://api.github.com/**"]]))]
    pub(crate) http: Option<Written<HttpConfig>>,
    /// What the tool must not ask for over HTTP, whatever it is granted: patterns as in `http`,
    /// which are read widely. Those of every file count.
    #[schemars(extend("default" = [], "examples" = [["https://internal.example.com"]]))]
    pub(crate) deny: Option<Written<Vec<Written<String>>>>,
    /// Variables of your environment, by exact name: the tool finds them in its own. One that
    /// is not set is left out. `{ name = "GITHUB_TOKEN", secret = "github" }` holds a
    /// placeholder of a secret. Those of a workspace's file count within `[ceiling.grants]` of
    /// your own.
    #[schemars(extend("default" = [], "examples" = [["LANG", "CI"]]))]
    pub(crate) env: Option<Written<Vec<Written<VariableConfig>>>>,
    /// Configuration values, by key: the tool reads them by `wasi:config`. They are shown
    /// to everyone, so this is no place for secrets.
    #[schemars(extend("default" = {}, "examples" = [{ "api_version": "2022-11-28" }]))]
    pub(crate) config: Option<Written<Table<String>>>,
    /// Your secrets, by name: the host adds them to requests of the tool for their places,
    /// where it has a grant of HTTP, too. Those of a workspace's file count within
    /// `[ceiling.grants]` of your own.
    #[schemars(extend("default" = {}, "examples" = [{ "github": {} }]))]
    pub(crate) secrets: Option<Written<Table<SecretGrantConfig>>>,
    /// What the tool may keep between its calls, by `wasi:keyvalue`: `true` for 16 MiB and
    /// 10,000 keys, or a table. Beyond that, what a workspace's file says counts within
    /// `[ceiling.grants]` of your own.
    #[schemars(extend("default" = false, "examples" = [true, { "quota": "32MiB" }]))]
    pub(crate) storage: Option<Written<StorageConfig>>,
    /// Other tools that the tool may call, by aliases: `search = "search_files"`, or a table
    /// with `tool`, `where` and `rate`. `"caller"` is whatever its caller may call. Those of a
    /// workspace's file count within `[ceiling.grants]` of your own.
    #[schemars(extend("default" = {}, "examples" = [{ "search": "search_files" }, "caller"]))]
    pub(crate) tools: Option<Written<ToolsConfig>>,
}

/// What the files and components of a trusted workspace can be granted, at most. A kind that is
/// not named is not limited.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Ceilings of the grants")]
pub(crate) struct CeilingGrantsConfig {
    /// Requests over HTTP: a grant of a workspace counts where one of these has all of it.
    #[schemars(extend("examples" = [["https://api.github.com/**"]]))]
    pub(crate) http: Option<Written<HttpConfig>>,
    /// Variables of your environment, by exact name.
    #[schemars(extend("examples" = [["LANG", "CI"]]))]
    pub(crate) env: Option<Written<Vec<Written<String>>>>,
    /// Your secrets, by name.
    #[schemars(extend("examples" = [["github"]]))]
    pub(crate) secrets: Option<Written<Vec<Written<String>>>>,
    /// What a tool may keep between its calls: `true` for 16 MiB and 10,000 keys, or a table.
    #[schemars(extend("examples" = [{ "quota": "1GiB" }, false]))]
    pub(crate) storage: Option<Written<StorageConfig>>,
    /// Other tools that a tool may call, by name: a list, or `"caller"`, which lets a
    /// workspace grant what the caller may call.
    #[schemars(extend("examples" = [["search_files"], "caller"]))]
    pub(crate) tools: Option<Written<ToolsCeilingConfig>>,
}

/// A directory, and where the tool finds it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Directory")]
pub(crate) struct DirectoryGrantConfig {
    /// The directory: a path, relative to the workspace. It starts with `~/`
    /// where it is in your home directory. `$TEMP` is a directory that each run has for itself,
    /// empty and writable, and that is gone after it.
    #[schemars(extend("examples" = ["."]))]
    pub(crate) host: Written<String>,
    /// Where the tool finds it: an absolute path.
    #[schemars(extend("examples" = ["/workspace"]))]
    pub(crate) guest: Written<String>,
    /// What the tool may do in there.
    #[serde(default)]
    #[schemars(schema_with = "access_schema")]
    pub(crate) mode: Option<Written<Access>>,
    /// Globs of files in there that look like secrets, by their paths: without this the tool
    /// does not open them. In a directory that looks like a secret itself it opens all.
    #[serde(default)]
    #[schemars(extend("default" = [], "examples" = [[".env"]]))]
    pub(crate) include: Option<Written<Vec<Written<String>>>>,
    /// What the tool does not change in there although it may write, as `NAME`,
    /// `DIRECTORY/NAME` or `*.EXTENSION`: without this the files by which another program runs
    /// something, such as `.envrc` and `.vscode/tasks.json`, for which `default` stands among
    /// other names. `[]` protects nothing.
    #[serde(default)]
    #[schemars(extend("examples" = [[], ["default", "AGENTS.md"]]))]
    pub(crate) protected: Option<Written<Vec<Written<String>>>>,
}

/// A list of grants, as a file has it.
pub(crate) type HttpConfig = Vec<Written<StringOr<HttpGrantConfig>>>;

/// What a tool may ask of servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "HTTP")]
pub(crate) struct HttpGrantConfig {
    /// Where: `scheme://host[:port][/path]`. `*.example.com` is every name below; without a
    /// port it is the scheme's; without a path every one. In a path `*` is any characters
    /// within a segment, `**` any number of segments.
    #[schemars(extend("examples" = ["https://api.github.com/repos/**"]))]
    pub(crate) url: Written<String>,
    /// The methods: a list of them, or `*` for every one. `GET` has `HEAD` with it.
    #[schemars(extend("default" = ["GET"], "examples" = [["GET", "POST"], "*"]))]
    pub(crate) methods: Option<Written<StringOr<Vec<Written<String>>>>>,
    /// Addresses that the host may have besides those of the public internet: blocks.
    #[schemars(extend("default" = [], "examples" = [["10.0.0.0/8"]]))]
    pub(crate) addresses: Option<Written<Vec<Written<String>>>>,
    /// How many redirects are followed, each of which has to be granted too: a positive
    /// integer, at most 20. Default: none, the tool gets the redirect.
    pub(crate) follow: Option<Written<NonZeroU64>>,
    /// `true` lets a path hold an encoded slash, `%2F`.
    #[schemars(extend("default" = false))]
    pub(crate) encoded_slash: Option<Written<bool>>,
    /// The header fields that the tool may send, besides those that every client sends.
    /// Default: all but those that make some servers take a request for another one.
    #[schemars(extend("examples" = [["authorization"]]))]
    pub(crate) headers: Option<Written<Vec<Written<String>>>>,
    /// Size of the body of a request: a number and a unit, such as `1MiB`.
    #[schemars(extend("default" = "1MiB"))]
    pub(crate) max_request: Option<Written<String>>,
    /// Size of the body of a response, as it comes and decompressed: a number and a unit,
    /// such as `8MiB`.
    #[schemars(extend("default" = "8MiB"))]
    pub(crate) max_response: Option<Written<String>>,
    /// Time from the start of a request to the end of its response: a number and a unit,
    /// such as `10s`. Default: what is left of the call's.
    pub(crate) time: Option<Written<String>>,
}

/// A variable of a tool: one of the user's environment, or one that holds the placeholder of
/// a secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VariableConfig {
    pub(crate) name: String,
    /// The secret, where it holds a placeholder.
    pub(crate) secret: Option<String>,
}

/// A secret of your own file, which the host adds to requests of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Secret of a tool")]
pub(crate) struct SecretGrantConfig {
    /// URLs that it goes to, of those that your own file has for it. Default: all of them.
    #[schemars(extend("examples" = [["https://api.github.com/repos/**"]]))]
    pub(crate) to: Option<Written<Vec<Written<String>>>>,
}

/// `true`, `false` or how much, as a file has it.
pub(crate) type StorageConfig = BoolOr<StorageGrantConfig>;

/// How much a tool may keep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Storage")]
pub(crate) struct StorageGrantConfig {
    /// The most of all keys and values together: a number and a unit, such as `32MiB`.
    #[schemars(extend("default" = "16MiB"))]
    pub(crate) quota: Option<Written<String>>,
    /// The most keys: a positive integer.
    #[schemars(extend("default" = 10_000, "minimum" = 1))]
    pub(crate) keys: Option<Written<u64>>,
}

/// The other tools of a tool, as a file has them.
pub(crate) type ToolsConfig = StringOr<Table<StringOr<ToolGrantConfig>>>;

/// The tools of a ceiling, as a file has them.
pub(crate) type ToolsCeilingConfig = StringOr<Vec<Written<String>>>;

/// A tool that another one may call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Tool")]
pub(crate) struct ToolGrantConfig {
    /// The name of the tool.
    #[schemars(extend("examples" = ["fetch"]))]
    pub(crate) tool: Written<String>,
    /// What its arguments have to be, by name or JSON pointer: a pattern, in which `*` is any
    /// characters within a segment of `/` and `**` any number of segments, `true`, `false`, a
    /// number, or a list of these. Default: any arguments.
    #[serde(rename = "where")]
    #[schemars(extend("examples" = [{ "url": "https://docs.rs/**" }]))]
    pub(crate) conditions: Option<Written<Table<ConditionConfig>>>,
    /// How often it is called by this name, besides its own rate: `10/min`, or
    /// `10/min, 100/h`. Default: as often as they like.
    #[schemars(extend("examples" = ["10/min"]))]
    pub(crate) rate: Option<Written<String>>,
}

/// What an argument has to be.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct ConditionConfig(AnyValue);

impl GrantsConfig {
    /// What counts of it where it says it of a tool that is there without it, in a workspace
    /// that is not trusted. The rest is narrowed where it is resolved.
    pub(crate) fn narrowed(self) -> Self {
        let Self { filesystem, http, env, config: _, secrets, storage, tools, deny } = self;
        let filesystem = filesystem.map(narrowed_directories);
        // A value of `config` could send a tool of the user's somewhere else.
        Self { filesystem, http, env, config: None, secrets, storage, tools, deny }
    }
}

/// What counts of grants of directories in a workspace that is not trusted: none is for writing,
/// shows what looks like a secret, or lets go of what is protected.
fn narrowed_directories(
    mut list: Written<Vec<Written<DirectoryGrantConfig>>>,
) -> Written<Vec<Written<DirectoryGrantConfig>>> {
    for grant in &mut list.value {
        (grant.value.mode, grant.value.include, grant.value.protected) = (None, None, None);
    }
    list
}

impl ConditionConfig {
    /// As it was written.
    pub(crate) fn any(&self) -> &toml::Value {
        &self.0.0
    }
}

// `Access` belongs to `kitbag-policy`, which knows nothing of schemas.
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
