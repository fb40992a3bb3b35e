//! `kitbag secret set`.
//!
//! The command changes the user config and the store, which are separate. If it is interrupted in
//! between, a new value may have no destination yet, which `kitbag secret list` shows. In no state
//! is a value sent to a destination that is in neither the old nor the new table.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};

use kitbag::Config;
use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::{Secret, SecretStoreKind};
use kitbag::policy::{Placement, SecretName, SecretPlace, SecretSource};
use kitbag::secrets::{CallEnd, Leaks, SecretValue};
use serde_json::json;

use super::consent::GrantedTools;
use super::edit::Changes;
use super::store::open;
use super::unknown;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files::own_file::OwnFile;
use crate::{output, sys};

#[derive(Debug, clap::Args)]
pub(super) struct SetArgs {
    /// The name of the secret: letters, digits, `_` and `-`
    name: SecretName,
    // An argument that looks like a value, so that messages can avoid repeating it.
    #[arg(hide = true)]
    value: Vec<OsString>,
    /// A URL pattern of a destination, such as 'https://api.github.com/**'. Repeat it for several.
    /// Replaces the previous destinations
    #[arg(long, value_name = "URL")]
    to: Vec<String>,
    /// Allow --to to match several hosts, such as 'https://*.example.com/**'
    #[arg(long)]
    wildcard: bool,
    #[command(flatten)]
    placement: PlacementArgs,
    /// The text before the value in the header, such as 'Bot '
    #[arg(long, value_name = "TEXT", requires = "header")]
    prefix: Option<String>,
    /// Replace placeholders in this part of a request too, in addition to headers
    #[arg(long, value_name = "PART")]
    placeholder: Vec<Part>,
    /// Read the value from this environment variable when it is needed, and store no value
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    variable: Option<String>,
    /// Read the value from the output of this program when it is needed, and store no value. Repeat
    /// it for each argument of the program
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    command: Vec<String>,
    /// Change the destinations or the placement only, and keep the value or its source
    #[arg(long, conflicts_with_all = ["variable", "command", "store"])]
    keep_value: bool,
    /// The kind of store. It is chosen with the first value, and can change while the store is
    /// empty [default: key-file]
    #[arg(long, value_name = "KIND", conflicts_with_all = ["variable", "command"])]
    store: Option<Kind>,
    /// Let the tools with a grant for the secret use it, without asking
    #[arg(long)]
    yes: bool,
}

// Placement of the secret in a request. No doc comment: clap would use it as the command's help.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct PlacementArgs {
    /// Add the value as `Authorization: Bearer` (the default)
    #[arg(long)]
    bearer: bool,
    /// Add the value as `Authorization: Basic`, as the password of USER; without USER the value is
    /// `USER:PASSWORD`
    #[arg(long, value_name = "USER", num_args = 0..=1)]
    basic: Option<Option<String>>,
    /// Add the value as this header
    #[arg(long, value_name = "NAME")]
    header: Option<String>,
    /// Add the value to the query under this name
    #[arg(long, value_name = "NAME")]
    query: Option<String>,
    /// Replace this text in the path with the value
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
    /// An encrypted file, with the key in another file
    KeyFile,
    /// An encrypted file, with a passphrase
    Passphrase,
    /// The system's keyring: the Secret Service of a desktop, or the macOS keychain
    Keyring,
}

impl SetArgs {
    /// Refuses a value that is an argument, without repeating it.
    ///
    /// # Errors
    ///
    /// [`CliError::Usage`] explains how to pass a value.
    pub(super) fn refuse_value(&self) -> Result<(), CliError> {
        let leaks = Leaks::new(Vec::new());
        // If the name is missing, the value takes its position.
        let is_name = leaks.find(self.name.as_str().as_bytes()).next().is_none();
        if self.value.is_empty() && is_name {
            return Ok(());
        }
        let name = if is_name { self.name.as_str() } else { "NAME" };
        let command = shell::command(["kitbag", "secret", "set", name]);
        Err(CliError::Usage(format!(
            "a value must not be an argument, because the shell history and other programs can \
             read it; type it when `{command}` asks, or pipe it from a program, such as `pass show \
             {} | {command}`. If this was the value, replace it",
            shell::quoted(name)
        )))
    }

    pub(super) fn run(
        mut self,
        mut own: OwnFile,
        config: &Config,
        end: &CallEnd,
        as_json: bool,
    ) -> Result<Exit, CliError> {
        let old = config.secrets.get(&self.name);
        self.check_places()?;
        let placement = self.placement.read(self.prefix.as_deref()).map_err(CliError::Usage)?;
        let source = self.source(old).ok_or_else(|| unknown(config, &self.name))?;
        if let SecretSource::Variable(name) = &source
            && (name.is_empty() || name.contains(['=', '\0']))
        {
            let error = format!("`{}` is not the name of a variable", shown(name));
            return Err(CliError::Usage(error));
        }
        let granted = GrantedTools::of(config, &self.name);
        let had_places = old.is_some_and(|old| !old.to.value.is_empty());
        if !had_places && !self.to.is_empty() {
            // The person who granted the secret could not know its destinations.
            granted.agree(&self.name, &self.to, self.yes, as_json)?;
        }
        let parts: Vec<_> = self.placeholder.iter().map(|part| part.as_str()).collect();
        let changes = Changes {
            name: &self.name,
            source: &source,
            to: (!self.to.is_empty()).then_some((&*self.to, self.wildcard)),
            placement: placement.as_ref(),
            placeholder: (!parts.is_empty()).then_some(&*parts),
            store: None,
        };
        let kept = match source == SecretSource::Store && !self.keep_value {
            true => Some(self.keep(changes, &mut own, config, end)?),
            false => {
                let text = applied(&changes, own.text()?)?;
                own.write(&text)?;
                None
            }
        };
        let done = Done {
            name: &self.name,
            path: own.path(),
            source: &source,
            store: kept.as_deref(),
            to: match (&self.to[..], old) {
                ([], Some(old)) => old.to.value.iter().map(SecretPlace::to_string).collect(),
                (to, _) => to.to_vec(),
            },
            placement: placement.or_else(|| Some(old?.placement.value.clone())),
            granted,
        };
        done.report(as_json)
    }

    fn check_places(&self) -> Result<(), CliError> {
        for text in &self.to {
            if let Err(error) = SecretPlace::new(text, self.wildcard) {
                let error = error.to_string().replace("add `wildcard = true`", "add `--wildcard`");
                return Err(CliError::Usage(error));
            }
        }
        match self.wildcard && self.to.is_empty() {
            true => Err(CliError::Usage("`--wildcard` is for `--to`".into())),
            false => Ok(()),
        }
    }

    /// Returns the source of the value. `None`: the source is unchanged, and no such secret exists.
    fn source(&mut self, old: Option<&Secret>) -> Option<SecretSource> {
        let (variable, command) = (self.variable.take(), std::mem::take(&mut self.command));
        match (variable, &*command) {
            (Some(variable), _) => Some(SecretSource::Variable(variable)),
            (None, []) if self.keep_value => old.map(|old| old.source.value.clone()),
            (None, []) => Some(SecretSource::Store),
            (None, _) => Some(SecretSource::Command(command)),
        }
    }

    /// Reads a value and writes it to the store. Returns the location.
    fn keep(
        &self,
        mut changes: Changes<'_>,
        own: &mut OwnFile,
        config: &Config,
        end: &CallEnd,
    ) -> Result<String, CliError> {
        let kind = chosen(config, self.store, end)?;
        let is_new = config.secret_store.kind.as_ref().is_none_or(|old| old.value != kind);
        changes.store = is_new.then(|| kind.as_str());
        let before = own.text()?.to_owned();
        // Validates the changes before the person types a value.
        let after = applied(&changes, &before)?;
        let store = open(config, kind, is_new, end)?;
        store.names(end)?;
        let value = read_value(&self.name)?;
        let old = config.secrets.get(&self.name);
        let placement = changes.placement.or(old.map(|old| &old.placement.value));
        let checked = placement.map_or(Ok(()), |placement| value.check_for(placement));
        checked.map_err(|error| CliError::Usage(error.to_string()))?;
        // The new value must not be sent to the old destinations, nor the old value to the new
        // ones.
        let was_kept = old.is_some_and(|old| old.source.value == SecretSource::Store);
        if changes.to.is_some() || !was_kept {
            own.write(&applied(&Changes { to: Some((&[], false)), ..changes }, &before)?)?;
        }
        if let Err(error) = store.set(&self.name, &value, end) {
            // Restores the old content.
            own.write(&before)?;
            return Err(error.into());
        }
        own.write(&after)?;
        Ok(store.place())
    }
}

struct Done<'a> {
    name: &'a SecretName,
    path: &'a str,
    source: &'a SecretSource,
    /// The store, if the value was written to it.
    store: Option<&'a str>,
    to: Vec<String>,
    /// `None`: the default placement.
    placement: Option<Placement>,
    granted: GrantedTools,
}

impl Done<'_> {
    /// Reports what was done on standard output, and what is still missing on standard error.
    fn report(self, as_json: bool) -> Result<Exit, CliError> {
        let Self { name, path, source, store, to, placement, granted } = self;
        if as_json {
            output::json(&json!({
                "name": name.as_str(), "file": path, "store": store, "to": to,
                "tools": granted.to_json(),
            }))?;
        } else {
            let value = match (store, source) {
                (Some(store), _) => format!("`{name}` is set: its value is in {}", shown(store)),
                (None, SecretSource::Store) => format!("`{name}` is changed; its value is kept"),
                (None, SecretSource::Variable(variable)) => format!(
                    "`{name}` is set: its value is read from the variable `{}` when a request needs \
                     it",
                    shown(variable)
                ),
                (None, SecretSource::Command(words)) => format!(
                    "`{name}` is set: its value is read from `{}` when a request needs it",
                    shown(words.first().map_or("", String::as_str))
                ),
            };
            let mut lines = vec![value];
            if !to.is_empty() {
                let placement = placement.unwrap_or(Placement::Bearer);
                let to = shown(&to.join(", ")).to_string();
                lines.push(format!("it is sent to {to}, as {placement} ({path})"));
            }
            if !granted.is_empty() {
                lines.push(format!("granted to {}", granted.names()));
            }
            output::data(&lines.join("\n"))?;
        }
        if to.is_empty() {
            output::note(&format!(
                "it is sent nowhere yet; to choose where: kitbag secret set {name} --keep-value \
                 --to 'https://HOST/**'"
            ));
        }
        if granted.is_empty() {
            output::note(&format!(
                "no tool here has a grant for it; to grant it, add `{name} = {{}}` to \
                 `tools.NAME.grants.secrets` of `{path}`"
            ));
        }
        Ok(Exit::Done)
    }
}

fn applied(changes: &Changes<'_>, text: &str) -> Result<String, CliError> {
    changes.apply(text).map_err(|error| CliError::Usage(error.to_string()))
}

impl PlacementArgs {
    /// Returns the requested placement. `None`: no placement was requested.
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

/// Returns the kind of store: the recorded kind, or the requested one. The kind is changed only if
/// no value would be lost.
fn chosen(
    config: &Config,
    asked: Option<Kind>,
    end: &CallEnd,
) -> Result<SecretStoreKind, CliError> {
    let asked = asked.map(|kind| match kind {
        Kind::KeyFile => SecretStoreKind::KeyFile,
        Kind::Passphrase => SecretStoreKind::Passphrase,
        Kind::Keyring => SecretStoreKind::Keyring,
    });
    let Some(old) = &config.secret_store.kind else {
        return Ok(asked.unwrap_or(SecretStoreKind::KeyFile));
    };
    let Some(asked) = asked.filter(|asked| *asked != old.value) else { return Ok(old.value) };
    let was_file = old.value != SecretStoreKind::Keyring;
    let file = config.secret_store.file.as_ref().map(|file| &file.value);
    let file = file.filter(|file| was_file && file.exists());
    if was_file && file.is_none() {
        return Ok(asked);
    }
    let is = format!("the store is already `{}` ({})", old.value.as_str(), old.origin);
    let store = open(config, old.value, false, end)?;
    let kept = store.names(end)?;
    if !kept.is_empty() {
        let names: Vec<_> = kept.iter().map(SecretName::as_str).collect();
        return Err(CliError::Usage(format!(
            "{is} and contains {}; delete those first with `kitbag secret delete`, or omit \
             `--store`",
            names.join(", ")
        )));
    }
    // The same file, which only its own key opens.
    match file.filter(|_| asked != SecretStoreKind::Keyring) {
        Some(file) => Err(CliError::Usage(format!(
            "{is} and is empty; remove `{}` first",
            shown(&file.to_string_lossy())
        ))),
        None => Ok(asked),
    }
}

/// Reads a value from the terminal, or from standard input.
fn read_value(name: &SecretName) -> Result<SecretValue, CliError> {
    let failed = |source| CliError::Read { path: "standard input".into(), source };
    let bytes = if io::stdin().is_terminal() {
        sys::discard_typed();
        rpassword::prompt_password(format!("Value of `{name}`: ")).map_err(failed)?.into_bytes()
    } else {
        let most = SecretValue::MOST_BYTES + 3;
        let mut bytes = Vec::with_capacity(most);
        io::stdin().lock().take(most as u64).read_to_end(&mut bytes).map_err(failed)?;
        bytes
    };
    SecretValue::new(bytes).map_err(|error| CliError::Usage(error.to_string()))
}
