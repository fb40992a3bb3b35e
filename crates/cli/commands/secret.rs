//! `kitbag secret`.

mod edit;

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use kitbag::config::{Secret, SecretStoreKind};
use kitbag::contract::text::shown;
use kitbag::policy::{Placement, SecretName, SecretPlace, SecretSource};
use kitbag::secret_store::Store;
use kitbag::secrets::{CallEnd, ReadError, ReadSecret, SecretValue};
use kitbag::{Config, Places, open_store, secret_sources};
use serde_json::{Value, json};

use crate::commands::{Global, Limits};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::output;
use crate::replace::Original;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag secret set github --to 'https://api.github.com/**'
  pass show mail | kitbag secret set mail --to 'https://mail.example.com/**' --basic ada
  kitbag secret set ci --variable CI_TOKEN --to 'https://ci.example.com/**' --header X-Token
  kitbag secret test github")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Keep a value, and say where it may go
    ///
    /// The value is read from the terminal, without showing it, or from standard input. It
    /// has at least 8 bytes; one line end at its end is left out. What options do not say
    /// stays as it is.
    Set(Box<SetArgs>),
    /// List the secrets: where each value comes from and where it may go
    List,
    /// Remove a secret, and its value from the store
    Delete {
        /// The secret
        name: SecretName,
    },
    /// Read a secret as a call would, and say where it may go
    Test {
        /// The secret
        name: SecretName,
    },
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// The secret: letters, digits, `_` and `-`
    name: SecretName,
    /// A URL that it may go to, such as 'https://api.github.com/**'; several times for
    /// more. They take the place of those that it had
    #[arg(long, value_name = "URL")]
    to: Vec<String>,
    /// Allow --to more than one host, such as 'https://*.example.com/**'
    #[arg(long)]
    wildcard: bool,
    #[command(flatten)]
    placement: PlacementArgs,
    /// What stands before the value in the header, such as 'Bot '
    #[arg(long, value_name = "TEXT", requires = "header")]
    prefix: Option<String>,
    /// Replace its placeholder there, too, and not in headers alone
    #[arg(long, value_name = "PART")]
    placeholder: Vec<Part>,
    /// Take the value from this variable of the environment at the moment of use, and keep
    /// nothing
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    variable: Option<String>,
    /// Take the value from what this program writes at the moment of use, and keep nothing;
    /// once for the program and for each of its arguments
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    command: Vec<String>,
    /// How the store is opened. It is chosen with the first value [default: key-file]
    #[arg(long, value_name = "KIND", conflicts_with_all = ["variable", "command"])]
    store: Option<Kind>,
}

// How the host adds it to a request. No doc comment, which clap would take for the command's.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct PlacementArgs {
    /// Add it as `Authorization: Bearer`, which is the default
    #[arg(long)]
    bearer: bool,
    /// Add it as `Authorization: Basic`, as the password of this user; without one the
    /// value is `USER:PASSWORD`
    #[arg(long, value_name = "USER", num_args = 0..=1)]
    basic: Option<Option<String>>,
    /// Add it as this header
    #[arg(long, value_name = "NAME")]
    header: Option<String>,
    /// Add it to the query, under this name
    #[arg(long, value_name = "NAME")]
    query: Option<String>,
    /// Put it into the path in place of this text
    #[arg(long, value_name = "TEXT")]
    path: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Query,
    Body,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// An encrypted file, and its key in another
    KeyFile,
    /// An encrypted file with a passphrase
    Passphrase,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let as_json = global.json;
        let config = global.kitbag(Limits::default())?.toolbox().config();
        match self.command {
            Command::Set(args) => args.run(config, as_json),
            Command::List => list(config, as_json),
            Command::Delete { name } => delete(config, &name, as_json),
            Command::Test { name } => test(config, &name, as_json),
        }
    }
}

impl SetArgs {
    fn run(mut self, config: &Config, as_json: bool) -> Result<Exit, CliError> {
        let old = config.secrets.get(&self.name);
        let usage = |error: &dyn std::fmt::Display| CliError::Usage(error.to_string());
        for text in &self.to {
            if let Err(error) = SecretPlace::new(text, self.wildcard) {
                let error = error.to_string().replace("add `wildcard = true`", "add `--wildcard`");
                return Err(CliError::Usage(error));
            }
        }
        if self.wildcard && self.to.is_empty() {
            return Err(usage(&"`--wildcard` is for `--to`"));
        }
        let placement =
            self.placement.read(self.prefix.as_deref()).map_err(|error| usage(&error))?;
        let (variable, command) = (self.variable.take(), std::mem::take(&mut self.command));
        let source = match (variable, &*command) {
            (Some(variable), _) => SecretSource::Variable(variable),
            (None, []) => SecretSource::Store,
            (None, _) => SecretSource::Command(command),
        };
        if let SecretSource::Variable(name) = &source
            && (name.is_empty() || name.contains(['=', '\0']))
        {
            return Err(usage(&format!("`{}` is not the name of a variable", shown(name))));
        }
        let file = own_file()?;
        let path = file.display().to_string();
        let unreadable = |source| CliError::Read { path: path.clone(), source };
        let original = Original::read(&file).map_err(unreadable)?;
        let text = str::from_utf8(original.content()).map_err(|error| usage(&error))?;
        let mut changes = edit::Changes {
            name: &self.name,
            source: &source,
            to: (!self.to.is_empty()).then_some((&*self.to, self.wildcard)),
            placement: placement.as_ref(),
            placeholder: None,
            store: None,
        };
        let parts: Vec<_> = self.placeholder.iter().map(|part| part.as_str()).collect();
        changes.placeholder = (!parts.is_empty()).then_some(&*parts);
        let mut kept = None;
        if source == SecretSource::Store {
            let kind = chosen(config, self.store)?;
            if config.secret_store.kind.is_none() {
                changes.store = Some(kind.as_str());
            }
            // Before a value is typed in vain.
            changes.apply(text).map_err(|error| usage(&error))?;
            let store = store(config, &self.name, kind, config.secret_store.kind.is_none())?;
            store.set(&self.name, &read_value(&self.name)?)?;
            kept = Some(store.path().to_owned());
        }
        let new = changes.apply(text).map_err(|error| usage(&error))?;
        if new != text {
            let save = |source| CliError::Save { path: path.clone(), source };
            original.replace(new.as_bytes()).map_err(save)?;
        }
        if as_json {
            output::json(&json!({ "name": self.name.as_str(), "file": path, "store": kept }))?;
        } else {
            output::data(&path)?;
        }
        if self.to.is_empty() && old.is_none_or(|old| old.to.value.is_empty()) {
            output::note("it may go nowhere yet; say where with `--to`");
        }
        Ok(Exit::Done)
    }
}

impl PlacementArgs {
    /// What was asked for. `None`: nothing.
    fn read(&self, prefix: Option<&str>) -> Result<Option<Placement>, String> {
        let Self { bearer, basic, header, query, path } = self;
        let placement = match (bearer, basic, header, query, path) {
            (true, ..) => Ok(Placement::Bearer),
            (_, Some(user), ..) => Placement::basic(user.clone()),
            (_, _, Some(name), ..) => Placement::header(name, prefix.unwrap_or_default()),
            (_, _, _, Some(name), _) => Placement::query(name),
            (_, _, _, _, Some(text)) => Placement::path(text),
            _ => return Ok(None),
        };
        placement.map(Some).map_err(|error| error.to_string())
    }
}

impl Part {
    fn as_str(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Body => "body",
        }
    }
}

/// The user's own file, whether it exists or not.
fn own_file() -> Result<PathBuf, CliError> {
    let places = Places::from_environment(std::env::vars_os());
    let usual = places.config_dir.map(|directory| directory.join("config.toml"));
    places.user_file.or(usual).ok_or_else(|| {
        let why = "it is not known where your own config.toml is: set `HOME` or `KITBAG_CONFIG`";
        CliError::Usage(why.into())
    })
}

/// How the store is opened: as was recorded, else as is asked for.
fn chosen(config: &Config, asked: Option<Kind>) -> Result<SecretStoreKind, CliError> {
    let asked = asked.map(|kind| match kind {
        Kind::KeyFile => SecretStoreKind::KeyFile,
        Kind::Passphrase => SecretStoreKind::Passphrase,
    });
    match (&config.secret_store.kind, asked) {
        (None, asked) => Ok(asked.unwrap_or(SecretStoreKind::KeyFile)),
        (Some(kind), Some(asked)) if asked != kind.value => Err(CliError::Usage(format!(
            "the store is `{}` already ({}); what it keeps would be lost",
            kind.value.as_str(),
            kind.origin
        ))),
        (Some(kind), _) => Ok(kind.value),
    }
}

/// The store. A passphrase that nothing has is asked for on a terminal, twice where it is
/// new.
fn store(
    config: &Config,
    name: &SecretName,
    kind: SecretStoreKind,
    is_new: bool,
) -> Result<Store, CliError> {
    let end = interrupt::call_end();
    let ask = || {
        if !io::stderr().is_terminal() {
            return None;
        }
        let ask = |prompt| SecretValue::new(rpassword::prompt_password(prompt).ok()?.into()).ok();
        let passphrase = ask("Passphrase of the store: ")?;
        let again = if is_new { ask("Once more: ")? } else { passphrase.clone() };
        (passphrase.reveal() == again.reveal()).then_some(passphrase)
    };
    let opened = open_store(&config.secret_store, kind, &end, ask);
    opened.map_err(|source| CliError::Secret { name: name.to_string(), source })
}

/// Reads a value from the terminal, or from standard input.
fn read_value(name: &SecretName) -> Result<SecretValue, CliError> {
    let failed = |source| CliError::Read { path: "standard input".into(), source };
    let bytes = if io::stdin().is_terminal() {
        rpassword::prompt_password(format!("Value of `{name}`: ")).map_err(failed)?.into_bytes()
    } else {
        let most = SecretValue::MOST_BYTES + 3;
        let mut bytes = Vec::with_capacity(most);
        io::stdin().lock().take(most as u64).read_to_end(&mut bytes).map_err(failed)?;
        bytes
    };
    SecretValue::new(bytes).map_err(|error| CliError::Usage(error.to_string()))
}

fn unknown(config: &Config, name: &SecretName) -> CliError {
    let names: Vec<_> = config.secrets.keys().map(SecretName::as_str).collect();
    let known = match &*names {
        [] => "there are none".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    CliError::Usage(format!("there is no secret `{name}`; {known}"))
}

fn list(config: &Config, as_json: bool) -> Result<Exit, CliError> {
    let uses_store = |secret: &Secret| secret.source.value == SecretSource::Store;
    let in_store = config.secrets.iter().find(|(_, secret)| uses_store(secret));
    let kept = match (&config.secret_store.kind, in_store) {
        (Some(kind), Some((name, _))) => store(config, name, kind.value, false)?.names()?,
        _ => Vec::new(),
    };
    let is_set =
        |name: &SecretName, secret: &Secret| uses_store(secret).then(|| kept.contains(name));
    if as_json {
        let secret = |(name, secret): (&SecretName, &Secret)| {
            let mut value = described(name, secret);
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
                _ => source(secret),
            };
            let to: Vec<_> = secret.to.value.iter().map(SecretPlace::to_string).collect();
            let to = if to.is_empty() { "goes nowhere".to_owned() } else { to.join(", ") };
            vec![name.to_string(), source, secret.placement.value.to_string(), to]
        })
        .collect();
    if rows.is_empty() {
        output::note("there are no secrets; `kitbag secret set` keeps one");
    }
    output::data(&output::aligned(&rows))?;
    Ok(Exit::Done)
}

fn source(secret: &Secret) -> String {
    match &secret.source.value {
        SecretSource::Store => "store".to_owned(),
        SecretSource::Variable(name) => format!("variable {}", shown(name)),
        SecretSource::Command(words) => {
            format!("command {}", shown(words.first().map_or("", String::as_str)))
        }
    }
}

fn described(name: &SecretName, secret: &Secret) -> Value {
    let to: Vec<_> = secret.to.value.iter().map(SecretPlace::to_string).collect();
    json!({
        "name": name.as_str(),
        "source": source(secret),
        "as": secret.placement.value.to_string(),
        "to": to,
        "origin": secret.origin.to_string(),
    })
}

fn delete(config: &Config, name: &SecretName, as_json: bool) -> Result<Exit, CliError> {
    let file = own_file()?;
    let path = file.display().to_string();
    let unreadable = |source| CliError::Read { path: path.clone(), source };
    let original = Original::read(&file).map_err(unreadable)?;
    let text = str::from_utf8(original.content());
    let text = text.map_err(|error| CliError::Usage(error.to_string()))?;
    let new = edit::without(text, name).map_err(|error| CliError::Usage(error.to_string()))?;
    let had_value = match &config.secret_store.kind {
        Some(kind) => store(config, name, kind.value, false)?.delete(name)?,
        None => false,
    };
    if new.is_none() && !had_value {
        return Err(unknown(config, name));
    }
    if let Some(new) = new {
        let save = |source| CliError::Save { path: path.clone(), source };
        original.replace(new.as_bytes()).map_err(save)?;
    }
    if as_json {
        output::json(&json!({ "name": name.as_str(), "file": path, "had_value": had_value }))?;
    } else {
        output::data(&path)?;
    }
    Ok(Exit::Done)
}

fn test(config: &Config, name: &SecretName, as_json: bool) -> Result<Exit, CliError> {
    let secret = config.secrets.get(name).ok_or_else(|| unknown(config, name))?;
    let read = match (&secret.source.value, &config.secret_store.kind) {
        (SecretSource::Store, Some(kind)) => {
            store(config, name, kind.value, false)?.read(name, &CallEnd::default())
        }
        _ => secret_sources(config).read(name, &interrupt::call_end()),
    };
    read.map_err(|source: ReadError| CliError::Secret { name: name.to_string(), source })?;
    if as_json {
        output::json(&described(name, secret))?;
        return Ok(Exit::Done);
    }
    let mut lines = vec![format!("`{name}` can be read ({})", source(secret))];
    match &*secret.to.value {
        [] => lines.push("it may go nowhere; say where with `kitbag secret set --to`".to_owned()),
        places => lines.extend(places.iter().map(|place| format!("goes to {place}"))),
    }
    lines.push(format!("as {} ({})", secret.placement.value, secret.origin));
    output::data(&lines.join("\n"))?;
    Ok(Exit::Done)
}
