//! `kitbag add` of an MCP server: `kitbag add NAME URL`, or `kitbag add NAME -- COMMAND…`.

use std::path::Path;

use kitbag::Config;
use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::{ConfiguredServer, Disabled, Layer};
use kitbag::policy::server::ServerName;
use serde_json::json;
use toml_edit::{Array, InlineTable, Item, Value};

use super::difference::{Difference, counted};
use super::{listing, other_tools, start};
use crate::commands::consent::add::table::{ServerTable, value};
use crate::commands::consent::add::tool_files::ToolFiles;
use crate::commands::consent::add::trial;
use crate::commands::{Global, built};
use crate::console::consent;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

// The server to add. No doc comment, which clap would take for the command's.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ServerArgs {
    /// Add the remote MCP server at this URL
    #[arg(value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// Confine the process of a server: no files but those of --read and --write, and no network
    #[arg(long, help_heading = "MCP servers")]
    confine: bool,
    /// Let a confined server read this file or directory
    #[arg(long, value_name = "PATH", help_heading = "MCP servers")]
    read: Vec<String>,
    /// Let a confined server read and write this file or directory
    #[arg(long, value_name = "PATH", help_heading = "MCP servers")]
    write: Vec<String>,
    /// Confine the process of a server, but let it use the network
    #[arg(long, help_heading = "MCP servers")]
    network: bool,
    /// Set a variable of a server, or pass one of yours
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "MCP servers")]
    env: Vec<String>,
    /// Pass a secret: in a variable of a process, or with each request to a remote server
    #[arg(long, value_name = "[VARIABLE=]SECRET", help_heading = "MCP servers")]
    secret: Vec<String>,
    /// Run a server in this directory [default: the workspace, with --user your home directory]
    #[arg(long, value_name = "DIR", help_heading = "MCP servers")]
    directory: Option<String>,
    /// Start the names of the server's tools with this [default: its name]
    #[arg(long, value_name = "PREFIX", help_heading = "MCP servers")]
    prefix: Option<String>,
    /// Offer only these tools of a server: names, or globs such as `read_*` [default: all]
    #[arg(long, value_name = "GLOB", help_heading = "MCP servers")]
    tools: Vec<String>,
    /// Add the MCP server that this command starts
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The options that components and servers share.
pub(crate) struct Shared {
    pub(crate) user: bool,
    pub(crate) yes: bool,
    pub(crate) all: bool,
}

impl ServerArgs {
    /// Returns whether the command line names a server.
    pub(crate) fn is_server(&self) -> bool {
        self.url.is_some() || !self.command.is_empty()
    }

    /// Returns an option that only servers have.
    pub(crate) fn option(&self) -> Option<&'static str> {
        let Self { confine, read, write, network, env, secret, directory, prefix, tools, .. } =
            self;
        let options = [
            ("--confine", *confine),
            ("--read", !read.is_empty()),
            ("--write", !write.is_empty()),
            ("--network", *network),
            ("--env", !env.is_empty()),
            ("--secret", !secret.is_empty()),
            ("--directory", directory.is_some()),
            ("--prefix", prefix.is_some()),
            ("--tools", !tools.is_empty()),
        ];
        options.into_iter().find(|(_, is_set)| *is_set).map(|(option, _)| option)
    }

    /// Adds the server: shows its command line, starts it once the person agrees, shows its tools,
    /// and records them.
    pub(crate) fn add(
        &self,
        name: &str,
        shared: &Shared,
        global: &Global,
    ) -> Result<Exit, CliError> {
        let name = ServerName::new(name).map_err(|error| CliError::Usage(error.to_string()))?;
        // Also reads untrusted settings, because the person is asked before the server starts.
        let kitbag = built(global.builder().ask_trust())?;
        let config = kitbag.toolbox().config();
        check_free(config, &name)?;
        let layer = if shared.user { Layer::User } else { Layer::Workspace };
        let place = ToolFiles::new(layer, config)?;
        let table =
            ServerTable { name: name.to_string(), origin: self.origin(), keys: self.keys(&place)? };
        let text = with_table(&table, &place, &place.config_text()?)?;
        let nothing = |error| {
            let hint = "nothing was added".to_owned();
            CliError::Hinted { error: Box::new(error), hint }
        };
        let tried = trial::with_config(global, layer, text).and_then(trial::built);
        let tried = tried.map_err(nothing)?;
        let tried_config = tried.toolbox().config();
        let server = &tried_config.servers[&name];
        check_usable(server).map_err(nothing)?;
        let address = server.address.as_ref().expect("a usable server has an address");
        let is_interactive = consent::is_interactive(global.json) && !shared.yes;
        if !global.json {
            let consent = start::consent(&name, &address.value, tried_config);
            consent::show(&consent, shared.all, is_interactive)?;
            for warning in &server.warnings {
                output::warn(&warning.to_string());
            }
        }
        if !shared.yes {
            if !is_interactive {
                let error = CliError::NotAgreed(format!(
                    "`{name}` was not added, because there is no terminal to ask on; review its \
                     command line, and add it with `--yes`"
                ));
                if !global.json {
                    return Err(error);
                }
                let items = start::items(&name, &address.value, tried_config);
                let lines: Vec<_> = items.iter().map(|item| &*item.line).collect();
                output::json(&json!({ "server": name, "added": false, "requests": lines }))?;
                output::note(&error.report());
                return Ok(error.exit());
            }
            if !consent::agrees(start::question(&address.value))? {
                return Err(not_added(&name));
            }
        }
        let unlisted = |error: CliError| match &self.url {
            Some(url) if error.to_string().contains("requires a sign-in") => {
                let login = shell::command(["kitbag", "login", name.as_str(), url]);
                let hint = format!("nothing was added; sign in with `{login}`, and add it again");
                CliError::Hinted { error: Box::new(error), hint }
            }
            _ => nothing(error),
        };
        let record = listing::listed(&tried, &name, &table.origin).map_err(unlisted)?;
        let others = other_tools(config, &name);
        let difference = Difference { server, old: None, new: &record, others: &others };
        if !global.json {
            consent::show(&difference.consent(), shared.all, is_interactive)?;
        }
        if !shared.yes && !consent::agrees("Add it with these tools?")? {
            return Err(not_added(&name));
        }
        let locked = place.lock()?;
        let text = with_table(&table, &place, locked.config_text()?)?;
        let count = record.tools.len();
        let mut value = difference.as_value(true);
        super::write(global, locked, (&name, record.clone()), Some(&text))?;
        if global.json {
            value["config"] = json!(place.config);
            value["lock"] = json!(place.lock);
            output::json(&value)?;
            return Ok(Exit::Done);
        }
        output::data(&format!(
            "Added the server {name} with {} in {}.\n`{}` shows them, and `{}` shows what changes \
             later.",
            counted(count, "tool"),
            place.shown(&place.config),
            shell::command(["kitbag", "describe", name.as_str()]),
            shell::command(["kitbag", "update", name.as_str()]),
        ))?;
        Ok(Exit::Done)
    }

    /// Returns the origin of the server: its URL, or its command line.
    fn origin(&self) -> String {
        match &self.url {
            Some(url) => url.clone(),
            None => shell::command(&self.command),
        }
    }

    /// Returns the keys of the table.
    fn keys(&self, place: &ToolFiles) -> Result<Vec<(String, Item)>, CliError> {
        let list = |texts: &[String]| -> Value {
            texts.iter().map(String::as_str).collect::<Array>().into()
        };
        let mut keys: Vec<(&str, Item)> = Vec::new();
        match &self.url {
            Some(url) => keys.push(("url", value(url))),
            None => {
                let mut command = self.command.clone();
                if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
                    *program = written(place, program)?;
                }
                keys.push(("command", Item::Value(list(&command))));
            }
        }
        if let Some(directory) = &self.directory {
            keys.push(("directory", value(&written(place, directory)?)));
        }
        let (environment, secret) = self.environment()?;
        if !environment.is_empty() {
            keys.push(("env", Item::Value(Value::Array(environment))));
        }
        if let Some(secret) = secret {
            keys.push(("secret", value(&secret)));
        }
        if self.confine || self.network || !self.read.is_empty() || !self.write.is_empty() {
            let paths = |paths: &[String]| -> Result<Value, CliError> {
                let paths = paths.iter().map(|path| written(place, path));
                Ok(list(&paths.collect::<Result<Vec<_>, _>>()?))
            };
            let mut confine = InlineTable::new();
            confine.insert("read", paths(&self.read)?);
            confine.insert("write", paths(&self.write)?);
            confine.insert("network", self.network.into());
            keys.push(("confine", Item::Value(Value::InlineTable(confine))));
        }
        if !self.tools.is_empty() {
            keys.push(("tools", Item::Value(list(&self.tools))));
        }
        if let Some(prefix) = &self.prefix {
            keys.push(("prefix", value(prefix)));
        }
        Ok(keys.into_iter().map(|(key, item)| (key.to_owned(), item)).collect())
    }

    /// Returns the variables of a process, and the secret of a remote server.
    fn environment(&self) -> Result<(Array, Option<String>), CliError> {
        let mut list = Array::new();
        let pair = |name: &str, key: &str, text: &str| {
            let mut table = InlineTable::new();
            table.insert("name", name.into());
            table.insert(key, text.into());
            Value::InlineTable(table)
        };
        for variable in &self.env {
            match variable.split_once('=') {
                Some((name, text)) => list.push(pair(name, "value", text)),
                None => list.push(variable.as_str()),
            }
        }
        let mut secret = None;
        for text in &self.secret {
            match (text.split_once('='), &self.url) {
                (Some((name, secret)), None) => list.push(pair(name, "secret", secret)),
                (None, Some(_)) if secret.is_none() => secret = Some(text.clone()),
                (None, None) => {
                    return Err(CliError::Usage(format!(
                        "name the variable that receives the secret: `--secret VARIABLE={}`",
                        shown(text)
                    )));
                }
                (Some(_), Some(_)) | (None, Some(_)) => {
                    return Err(CliError::Usage(
                        "a remote server has one secret: `--secret NAME`".to_owned(),
                    ));
                }
            }
        }
        Ok((list, secret))
    }
}

/// Returns a path of the command line in the form of the configuration.
fn written(place: &ToolFiles, path: &str) -> Result<String, CliError> {
    // A shell leaves `~/` as it is in some words.
    if path.starts_with("~/") || path == "~" {
        return Ok(path.to_owned());
    }
    let absolute = std::path::absolute(path)
        .map_err(|source| CliError::Read { path: path.to_owned(), source })?;
    let written = place.written(&absolute);
    Ok(match written.as_str() {
        "" => ".".to_owned(),
        text if Path::new(text).is_absolute() || text.starts_with("~/") => written,
        text if text.contains('/') => written,
        text => format!("./{text}"),
    })
}

fn with_table(table: &ServerTable, place: &ToolFiles, text: &str) -> Result<String, CliError> {
    table.add_to(text, false).map_err(|error| {
        CliError::Usage(format!("`{}` is unchanged: {error}", place.config.display()))
    })
}

fn check_free(config: &Config, name: &ServerName) -> Result<(), CliError> {
    let Some(server) = config.servers.get(name) else { return Ok(()) };
    let place = server.address.as_ref().map(|address| format!(" ({})", address.origin));
    Err(CliError::Usage(format!(
        "a server is named `{name}` already{}; record its tools with `{}`, or remove it with `{}`",
        place.unwrap_or_default(),
        shell::command(["kitbag", "update", name.as_str()]),
        shell::command(["kitbag", "remove", name.as_str()]),
    )))
}

fn check_usable(server: &ConfiguredServer) -> Result<(), CliError> {
    match &server.disabled {
        Some(reason @ (Disabled::BeyondCeiling { .. } | Disabled::Broken { .. })) => {
            Err(CliError::Usage(format!("the server `{}` is {reason}", server.name)))
        }
        _ if server.address.is_none() => {
            Err(CliError::Usage(format!("the server `{}` has no address", server.name)))
        }
        _ => Ok(()),
    }
}

fn not_added(name: &ServerName) -> CliError {
    CliError::NotAgreed(format!("`{name}` was not added"))
}
