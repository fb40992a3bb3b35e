//! `kitbag secret`.

mod consent;
pub(crate) mod edit;
mod set;
pub(crate) mod store;

use kitbag::base::text::shown;
use kitbag::config::{Secret, SecretStoreKind, Sourced};
use kitbag::policy::{SecretName, SecretPlace, SecretSource};
use kitbag::secrets::{CallEnd, ReadSecret};
use kitbag::{Config, secret_sources};
use serde_json::{Value, json};

use crate::commands::{Global, LimitArgs};
use crate::console::interrupt;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files::own_file::OwnFile;

use consent::GrantedTools;
use set::SetArgs;
use store::open;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag secret set github --to 'https://api.github.com/**'
  pass show mail | kitbag secret set mail --to 'https://mail.example.com/**' --basic ada
  kitbag secret set github --keep-value --to 'https://api.github.com/repos/**'
  kitbag secret set ci --variable CI_TOKEN --to 'https://ci.example.com/**' --header X-Token
  kitbag secret test github")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Store a value, and set its destinations
    ///
    /// The value is read from the terminal, without echo, or from standard input. It has at least 8
    /// bytes; a line break at its end is removed. Settings without an option keep their value, and
    /// --keep-value keeps the secret's value too. If tools already have a grant for the secret,
    /// they are shown when it first gets a destination, and you are asked.
    Set(Box<SetArgs>),
    /// List the secrets with their sources and destinations
    List,
    /// Remove a secret, and its value from the store
    Delete {
        /// The name of the secret
        name: SecretName,
    },
    /// Read a secret as a call would, and show its destinations
    Test {
        /// The name of the secret
        name: SecretName,
    },
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let as_json = global.json;
        let end = &interrupt::call_end();
        let config = || Ok::<_, CliError>(global.kitbag(LimitArgs::default())?.toolbox().config());
        match self.command {
            Command::Set(args) => {
                args.refuse_value()?;
                // Locked before the configuration is read, which another process may be changing.
                let own = OwnFile::lock()?;
                args.run(own, config()?, end, as_json)
            }
            Command::List => list(config()?, end, as_json),
            Command::Delete { name } => {
                let own = OwnFile::lock()?;
                delete(own, config()?, &name, end, as_json)
            }
            Command::Test { name } => test(config()?, &name, end, as_json),
        }
    }
}

fn list(config: &Config, end: &CallEnd, as_json: bool) -> Result<Exit, CliError> {
    let uses_store = |secret: &Secret| secret.source.value == SecretSource::Store;
    let kept = match &config.secret_store.kind {
        Some(kind) if config.secrets.values().any(uses_store) => {
            open_store(config, kind.value, end)?
        }
        _ => Vec::new(),
    };
    let is_set =
        |name: &SecretName, secret: &Secret| uses_store(secret).then(|| kept.contains(name));
    if as_json {
        let secret = |(name, secret): (&SecretName, &Secret)| {
            let mut value = described(config, name, secret);
            value["set"] = is_set(name, secret).into();
            value
        };
        output::json(&config.secrets.iter().map(secret).collect::<Value>())?;
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = config
        .secrets
        .iter()
        .map(|(name, secret)| {
            let source = match is_set(name, secret) {
                Some(false) => "no value".to_owned(),
                _ => source(config, secret),
            };
            let to: Vec<_> = secret.to.value.iter().map(SecretPlace::to_string).collect();
            let to = if to.is_empty() { "goes nowhere".to_owned() } else { to.join(", ") };
            vec![name.to_string(), source, secret.placement.value.to_string(), to]
        })
        .collect();
    if rows.is_empty() {
        output::note("there are no secrets; `kitbag secret set` stores one");
    }
    output::data(&output::aligned(&rows))?;
    Ok(Exit::Done)
}

/// Opens the store of secrets, and returns the names of its values.
pub(crate) fn open_store(
    config: &Config,
    kind: SecretStoreKind,
    end: &CallEnd,
) -> Result<Vec<SecretName>, CliError> {
    Ok(open(config, kind, false, end)?.names(end)?)
}

fn source(config: &Config, secret: &Secret) -> String {
    match &secret.source.value {
        SecretSource::Store => match config.secret_store.kind {
            Some(Sourced { value: SecretStoreKind::Keyring, .. }) => "keyring".to_owned(),
            _ => "store".to_owned(),
        },
        SecretSource::Variable(name) => format!("variable {}", shown(name)),
        SecretSource::Command(words) => {
            format!("command {}", shown(words.first().map_or("", String::as_str)))
        }
    }
}

fn described(config: &Config, name: &SecretName, secret: &Secret) -> Value {
    let to: Vec<_> = secret.to.value.iter().map(SecretPlace::to_string).collect();
    json!({
        "name": name.as_str(),
        "source": source(config, secret),
        "as": secret.placement.value.to_string(),
        "to": to,
        "origin": secret.origin.to_string(),
    })
}

fn delete(
    mut own: OwnFile,
    config: &Config,
    name: &SecretName,
    end: &CallEnd,
    as_json: bool,
) -> Result<Exit, CliError> {
    let new = edit::without(own.text()?, name);
    let new = new.map_err(|error| CliError::Usage(error.to_string()))?;
    // Before the destinations: a value without a destination is never used.
    let store = match &config.secret_store.kind {
        Some(kind) => {
            let store = open(config, kind.value, false, end)?;
            store.delete(name, end)?.then(|| store.place())
        }
        None => None,
    };
    let had_value = store.is_some();
    if new.is_none() && !had_value {
        return Err(unknown(config, name));
    }
    if let Some(new) = new {
        own.write(&new)?;
    }
    let (path, granted) = (own.path(), GrantedTools::of(config, name));
    if as_json {
        output::json(&json!({
            "name": name.as_str(), "file": path, "had_value": had_value,
            "tools": granted.to_json(),
        }))?;
    } else {
        let value = match store {
            Some(store) => format!("its value is deleted from {}", shown(&store)),
            None => "it had no stored value".to_owned(),
        };
        output::data(&format!("`{name}` is deleted from {}; {value}", shown(path)))?;
    }
    if !granted.is_empty() {
        output::note(&format!(
            "calls of {} fail until it is set again or no longer granted: kitbag secret set {name}",
            granted.names()
        ));
    }
    Ok(Exit::Done)
}

fn test(
    config: &Config,
    name: &SecretName,
    end: &CallEnd,
    as_json: bool,
) -> Result<Exit, CliError> {
    let secret = config.secrets.get(name).ok_or_else(|| unknown(config, name))?;
    let read = match (&secret.source.value, &config.secret_store.kind) {
        (SecretSource::Store, Some(kind)) => open(config, kind.value, false, end)?.read(name, end),
        _ => secret_sources(config).read(name, end),
    };
    let unreadable = |source| CliError::Secret { name: name.to_string(), source };
    let value = read.map_err(unreadable)?;
    value.check_for(&secret.placement.value).map_err(|error| unreadable(error.into()))?;
    if as_json {
        output::json(&described(config, name, secret))?;
        return Ok(Exit::Done);
    }
    let mut lines = vec![format!("`{name}` can be read ({})", source(config, secret))];
    match &*secret.to.value {
        [] => lines.push(format!(
            "it is sent nowhere; to choose where: kitbag secret set {name} --keep-value --to \
             'https://HOST/**'"
        )),
        places => lines.extend(places.iter().map(|place| format!("is sent to {place}"))),
    }
    lines.push(format!("as {} ({})", secret.placement.value, secret.origin));
    output::data(&lines.join("\n"))?;
    Ok(Exit::Done)
}

/// Returns the error for an unknown secret, with the names of the existing ones.
fn unknown(config: &Config, name: &SecretName) -> CliError {
    let names: Vec<_> = config.secrets.keys().map(SecretName::as_str).collect();
    let known = match &*names {
        [] => "there are none".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    CliError::Usage(format!("no secret is named `{name}`; {known}"))
}
