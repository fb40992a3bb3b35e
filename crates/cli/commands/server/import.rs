//! `kitbag import`.
//!
//! An import changes the files of the client and kitbag's configuration, and stores secrets. It is
//! recorded before the first file is written, so that it can be undone even if it was interrupted.

mod client_file;
mod entry;
mod plan;
mod record;
mod reference;
mod screen;
mod secret_signs;
mod table;
mod three_way;
mod undo;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kitbag::Config;
use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::{Layer, SecretStoreKind};
use kitbag::policy::SecretName;
use kitbag::policy::server::ServerName;
use kitbag::secret_store::Store;
use kitbag::secrets::{CallEnd, SecretValue};
use kitbag::trust::digest_of;
use serde_json::json;

use self::client_file::{ClientFile, ImportSource, ServersTable};
use self::plan::{Plan, Present};
use self::record::{Before, FileContent, ImportRecord, RecordedFile};
use crate::commands::consent::add::workspace_trust::TrustBefore;
use crate::commands::consent::servers::update::update_servers;
use crate::commands::data::secret::edit::Changes;
use crate::commands::data::secret::store;
use crate::commands::server::mcp_config::client::{Connection, FileFormat};
use crate::commands::server::mcp_config::merge::{self, Others, ServerEntry};
use crate::commands::server::mcp_config::{called_as, text};
use crate::commands::{Global, built};
use crate::console::{consent, interrupt, output};
use crate::error::CliError;
use crate::exit::Exit;
use crate::files::links::refuse_links;
use crate::files::own_file::OwnFile;
use crate::files::replace::Original;

/// The name of kitbag's own server in the files of clients.
const KITBAG: &str = "kitbag";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag import claude-code
  kitbag import cursor github docs
  kitbag import vscode --dry-run
  kitbag import ~/servers.json --yes
  kitbag import cursor --undo")]
pub(crate) struct Args {
    /// The client: claude-code, claude-desktop, cline, codex, cursor, gemini, vscode or windsurf; or
    /// the path of a file in the format of one of them
    #[arg(value_name = "CLIENT | FILE", value_parser = ImportSource::parse)]
    source: ImportSource,
    /// Move only these servers, by their names in the client [default: all]
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,
    /// Read only the client's file of the user, and move servers of a FILE to your user config
    #[arg(long, conflicts_with = "undo")]
    user: bool,
    /// Show what would be moved, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Move the servers without asking
    #[arg(long, conflicts_with_all = ["dry_run", "undo"])]
    yes: bool,
    /// Restore the files as they were before the latest import of this client or file
    #[arg(long, conflicts_with = "servers")]
    undo: bool,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let name = self.source.name();
        if self.undo {
            return undo::run(&name, &global, self.dry_run);
        }
        // Also reads untrusted settings, because no tool of the workspace is called.
        let kitbag = built(global.builder().ask_trust())?;
        let config = kitbag.toolbox().config();
        let root = &config.root.value;
        let files = self.source.files(root, self.user)?;
        let end = interrupt::call_end();
        let own_path = own_path()?;
        let read = |path: &Path| {
            let shown = path.display().to_string();
            Original::read(path).map_err(|source| CliError::Read { path: shown, source })
        };
        let own = read(&own_path)?;
        let shared_path = root.join(".kitbag/config.toml");
        refuse_links(root, &shared_path)?;
        let shared = read(&shared_path)?;
        for file in files.iter().filter(|file| file.tables.iter().any(|table| table.is_shared)) {
            refuse_links(root, &file.path)?;
        }
        let opened = OnceCell::new();
        let stored = |name: &SecretName| {
            let store = opened.get_or_init(|| existing_store(config, &end));
            store.as_ref()?.get(name, &end).ok().flatten()
        };
        let (own_text, shared_text) = (utf8(&own_path, &own)?, utf8(&shared_path, &shared)?);
        let home = Global::home();
        let present = Present {
            config,
            texts: [(Layer::User, own_text), (Layer::Workspace, shared_text)],
            stored: &stored,
            home: home.as_deref(),
            variable: &|name| std::env::var(name).ok(),
        };
        let plan = Plan::new(&files, &self.servers, &present)?;
        let is_interactive = consent::is_interactive(global.json) && !self.yes && !self.dry_run;
        if !global.json {
            let text = screen::text(&plan, &files, &own_path, &shared_path, home.as_deref());
            match is_interactive {
                true => output::note(&text),
                false => output::data(&text)?,
            }
        }
        let moved = plan.servers.len();
        if moved == 0 || self.dry_run {
            if global.json {
                let mut value = plan.as_json(&files);
                value["moved"] = false.into();
                output::json(&value)?;
            }
            if moved == 0 {
                output::note("there is no server to move; nothing was changed");
            }
            return Ok(Exit::Done);
        }
        if !self.yes {
            if !is_interactive {
                return Err(CliError::NotAgreed(
                    "nothing was moved, because there is no terminal to ask on; to agree, add \
                     `--yes`"
                        .into(),
                ));
            }
            let these =
                if moved == 1 { "this server".into() } else { format!("these {moved} servers") };
            if !consent::agrees(&format!("Move {these} to kitbag?"))? {
                return Err(CliError::NotAgreed("nothing was moved".into()));
            }
        }
        let changes = FileChanges {
            files: &files,
            plan: &plan,
            config,
            own_path: &own_path,
            is_own_new: own.written().is_none(),
            shared_path: &shared_path,
            origin: self.origin(),
        };
        let texts = changes.texts(own_text, shared_text)?;
        let trusted = TrustBefore::now_leniently(&global);
        let new = texts.shared.as_ref().map(|(_, after)| digest_of(after.as_bytes()));
        let done = changes.apply(texts, name, &end)?;
        if let (Some(trusted), Some(new)) = (trusted, new) {
            let changed = [(".kitbag/config.toml".to_owned(), Some(new))];
            trusted.extend(&global, "", &changed.into())?;
        }
        if global.json {
            let mut value = plan.as_json(&files);
            value["moved"] = true.into();
            value["files"] = json!(done.files);
            value["backups"] = json!(done.backups);
            output::json(&value)?;
            return Ok(Exit::Done);
        }
        screen::report(&plan, &done.files, &done.backups, &self.words())?;
        let enabled = plan.servers.iter().filter(|server| server.is_enabled);
        let enabled: BTreeSet<_> = enabled.map(|server| server.name.as_str()).collect();
        let names = enabled.iter().filter_map(|name| ServerName::new(*name).ok());
        let names: Vec<_> = names.collect();
        if names.is_empty() {
            return Ok(Exit::Done);
        }
        if is_interactive && consent::agrees("Start them now, to see and record their tools?")? {
            return update_servers(&global, &names);
        }
        let command = |name: &str| shell::command(["kitbag", "update", name]);
        output::note(&match &names[..] {
            [one] => format!(
                "it offers no tool until you have seen its tools: `{}`",
                command(one.as_str())
            ),
            _ => format!(
                "they offer no tool until you have seen the tools of each: `{}` and so on",
                command(names[0].as_str())
            ),
        });
        Ok(Exit::Done)
    }

    /// Returns the origin for the comments of the tables, without a path of this machine.
    fn origin(&self) -> String {
        match &self.source {
            ImportSource::Client(_) => self.source.name(),
            ImportSource::File(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                shown(&name).to_string()
            }
        }
    }

    /// Returns the words that name the source on a command line.
    fn words(&self) -> String {
        match &self.source {
            ImportSource::Client(_) => self.source.name(),
            ImportSource::File(path) => path.to_string_lossy().into_owned(),
        }
    }
}

/// The content to write.
struct FileChanges<'a> {
    files: &'a [ClientFile],
    plan: &'a Plan,
    config: &'a Config,
    own_path: &'a Path,
    /// The user config does not exist yet.
    is_own_new: bool,
    shared_path: &'a Path,
    origin: String,
}

/// The new content. `None`: unchanged.
struct Texts {
    /// The user config before and after.
    own: Option<(String, String)>,
    /// The configuration of the workspace before and after.
    shared: Option<(String, String)>,
    /// The files of the client.
    files: Vec<Option<String>>,
}

struct Done {
    files: Vec<PathBuf>,
    backups: Vec<PathBuf>,
}

impl FileChanges<'_> {
    fn texts(&self, own: &str, shared: &str) -> Result<Texts, CliError> {
        let servers = &self.plan.servers;
        let mut new = table::with_servers(own, servers, Layer::User, &self.origin)?;
        let mut kind = self.kind().filter(|_| self.stored().next().is_some());
        for secret in &self.plan.secrets {
            let changes = Changes {
                name: &secret.name,
                source: &secret.source,
                to: (!secret.to.is_empty()).then_some((&*secret.to, false)),
                placement: secret.placement.as_ref(),
                placeholder: None,
                store: kind.take().map(SecretStoreKind::as_str),
            };
            new = changes.apply(&new).map_err(|error| CliError::Usage(error.to_string()))?;
        }
        let in_workspace = table::with_servers(shared, servers, Layer::Workspace, &self.origin)?;
        let changed = |old: &str, new: String| (old != new).then(|| (old.to_owned(), new));
        let files = self.files.iter().enumerate().map(|(at, file)| self.client_text(at, file));
        Ok(Texts {
            own: changed(own, new),
            shared: changed(shared, in_workspace),
            files: files.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the kind of a new store of secrets. `None`: it exists already.
    fn kind(&self) -> Option<SecretStoreKind> {
        self.config.secret_store.kind.is_none().then_some(SecretStoreKind::KeyFile)
    }

    /// Returns the secrets whose values are stored.
    fn stored(&self) -> impl Iterator<Item = (&SecretName, &SecretValue)> {
        self.plan.secrets.iter().filter_map(|it| Some((&it.name, it.value.as_ref()?)))
    }

    /// Returns the client's names of the servers that leave a table.
    fn moved(&self, at_file: usize, at_table: usize) -> Vec<&str> {
        let servers = self.plan.servers.iter().filter(|it| it.place == (at_file, at_table));
        servers.map(|server| server.original.as_str()).collect()
    }

    /// Returns the name of kitbag's entry: another name if a different server keeps this one.
    fn own_name(&self, at_file: usize, at_table: usize) -> String {
        let moved = self.moved(at_file, at_table);
        let servers = &self.files[at_file].tables[at_table].servers;
        let is_free =
            |name: &str| moved.contains(&name) || servers.iter().all(|(other, _)| other != name);
        let numbered = (2..).map(|number: u64| format!("{KITBAG}-{number}"));
        let mut names = [KITBAG.to_owned()].into_iter().chain(numbered);
        names.find(|name| is_free(name)).expect("the numbers are endless")
    }

    /// Returns whether kitbag is added to a table. One server of the user's file is enough for the
    /// projects in the same file, because the client starts it in the project.
    fn gets_kitbag(&self, at_file: usize, at_table: usize) -> bool {
        let tables = &self.files[at_file].tables;
        let is_there = |at: usize| tables[at].has_kitbag || !self.moved(at_file, at).is_empty();
        let is_project = tables[at_table].layer == Layer::Workspace && !tables[at_table].is_shared;
        let is_covered = is_project && (0..at_table).any(is_there);
        !tables[at_table].has_kitbag && !self.moved(at_file, at_table).is_empty() && !is_covered
    }

    /// Returns the text of a client's file with kitbag in place of the moved servers.
    fn client_text(&self, at: usize, file: &ClientFile) -> Result<Option<String>, CliError> {
        let (merge, without): (Merge, Without) = match file.client.format() {
            FileFormat::Toml => (merge::toml, merge::without_toml),
            FileFormat::Json | FileFormat::Yaml => (merge::json, merge::without_json),
        };
        let path = file.path.display().to_string();
        let untouched = |error: merge::MergeError| {
            CliError::Usage(format!("nothing was moved: `{}`: {error}", shown(&path)))
        };
        let mut text = file.text().to_owned();
        for (at_table, table) in file.tables.iter().enumerate() {
            let moved = self.moved(at, at_table);
            if moved.is_empty() {
                continue;
            }
            let keys: Vec<_> = table.keys.iter().map(String::as_str).collect();
            // Another server that is called kitbag makes room first.
            let is_taken = moved.contains(&KITBAG);
            if is_taken {
                text = without(&text, &keys, &[KITBAG]).map_err(untouched)?;
            }
            if self.gets_kitbag(at, at_table) {
                let value = self.entry(file, table)?;
                let name = self.own_name(at, at_table);
                let entry = ServerEntry { table: &keys, name: &name, value: &value };
                text = merge(&text, &entry, Others::Keep).map_err(untouched)?;
            }
            let rest: Vec<_> =
                moved.into_iter().filter(|name| !(is_taken && *name == KITBAG)).collect();
            text = without(&text, &keys, &rest).map_err(untouched)?;
        }
        Ok((text != file.text()).then_some(text))
    }

    /// Returns the client's entry for kitbag.
    fn entry(
        &self,
        file: &ClientFile,
        table: &ServersTable,
    ) -> Result<serde_json::Map<String, serde_json::Value>, CliError> {
        let program = called_as()?;
        let (command, arguments) = match (table.is_shared, table.layer) {
            // Third-party machines have other paths.
            (true, _) => {
                let arguments = file.client.portable_arguments().iter();
                (KITBAG, arguments.map(|it| (*it).to_owned()).collect())
            }
            (false, Layer::Workspace) => {
                let root = text(&self.config.root.value)?;
                (text(&program)?, ["serve", "--workspace", root].map(str::to_owned).to_vec())
            }
            (false, _) => (text(&program)?, vec!["serve".to_owned()]),
        };
        let connection = Connection::Program { command, arguments: &arguments };
        file.client.server(&connection).map_err(CliError::Usage)
    }

    /// Records the import, then stores the secrets and writes the files. After an error everything
    /// is as before.
    fn apply(&self, texts: Texts, source: String, end: &CallEnd) -> Result<Done, CliError> {
        let mut own = OwnFile::lock()?;
        let expected = texts.own.as_ref().map(|(before, _)| before.as_str());
        if expected.is_some_and(|before| own.text().ok() != Some(before)) {
            return Err(CliError::Usage(format!(
                "another command changed `{}` meanwhile; nothing was moved, try again",
                shown(own.path())
            )));
        }
        let mut backups = Vec::new();
        let recorded = self.recorded(&texts, &mut backups)?;
        let stored: Vec<_> = self.stored().map(|(name, _)| name.to_string()).collect();
        let root = self.config.root.value.clone();
        let record = ImportRecord::new(source, root, recorded, stored).write()?;
        let mut written = Vec::new();
        let result = self.write(&texts, &mut own, &mut written, end);
        if let Err(error) = result {
            self.roll_back(&texts, own, &written, end);
            for path in backups.iter().chain([&record]) {
                // The error below matters more.
                let _ = std::fs::remove_file(path);
            }
            let hint = "nothing was moved".to_owned();
            return Err(CliError::Hinted { error: Box::new(error), hint });
        }
        Ok(Done { files: written, backups })
    }

    /// Copies the files of the client, and describes all changes for the record.
    fn recorded(
        &self,
        texts: &Texts,
        backups: &mut Vec<PathBuf>,
    ) -> Result<Vec<RecordedFile>, CliError> {
        let mut recorded = Vec::new();
        let added = |layer: Layer| {
            let servers = self.plan.servers.iter();
            servers.filter(move |it| it.layer == layer && !it.is_present)
        };
        let names = |layer| added(layer).map(|it| it.name.clone()).collect();
        let tools =
            |layer, before: &str, after: &str| table::new_tools(before, after, added(layer));
        for (path, layer, text) in [
            (self.own_path, Layer::User, &texts.own),
            (self.shared_path, Layer::Workspace, &texts.shared),
        ] {
            let Some((before, after)) = text else { continue };
            let secrets = match layer {
                Layer::User => self.plan.secrets.iter().map(|it| it.name.to_string()).collect(),
                Layer::Workspace | Layer::Manifest => Vec::new(),
            };
            recorded.push(RecordedFile {
                path: path.to_owned(),
                before: match path.exists() {
                    true => Before::Text(before.clone()),
                    false => Before::Absent,
                },
                content: FileContent::Config {
                    servers: names(layer),
                    secrets,
                    tools: tools(layer, before, after),
                },
                after: after.clone(),
            });
        }
        for (at, (file, text)) in self.files.iter().zip(&texts.files).enumerate() {
            let Some(after) = text else { continue };
            let backup = record::back_up(&file.path, file.text().as_bytes())?;
            backups.push(backup.clone());
            let tables = file.tables.iter().enumerate().map(|(at_table, table)| {
                let mut names: Vec<_> =
                    self.moved(at, at_table).into_iter().map(str::to_owned).collect();
                let own = self.own_name(at, at_table);
                if self.gets_kitbag(at, at_table) && !names.contains(&own) {
                    names.push(own);
                }
                (table.keys.clone(), names)
            });
            recorded.push(RecordedFile {
                path: file.path.clone(),
                before: Before::Backup(backup),
                after: after.clone(),
                content: FileContent::Client {
                    is_toml: file.client.format() == FileFormat::Toml,
                    tables: tables.collect(),
                },
            });
        }
        Ok(recorded)
    }

    fn write(
        &self,
        texts: &Texts,
        own: &mut OwnFile,
        written: &mut Vec<PathBuf>,
        end: &CallEnd,
    ) -> Result<(), CliError> {
        if self.stored().next().is_some() {
            let kind = self.config.secret_store.kind.as_ref().map(|kind| kind.value);
            let is_new = kind.is_none();
            let kind = kind.unwrap_or(SecretStoreKind::KeyFile);
            let store = store::open(self.config, kind, is_new, end)?;
            for (name, value) in self.stored() {
                store.set(name, value, end)?;
            }
        }
        if let Some((_, after)) = &texts.own {
            own.write(after)?;
            written.push(self.own_path.to_owned());
        }
        if let Some((before, after)) = &texts.shared {
            replace(self.shared_path, before, after)?;
            written.push(self.shared_path.to_owned());
        }
        for (file, text) in self.files.iter().zip(&texts.files) {
            let Some(text) = text else { continue };
            replace(&file.path, file.text(), text)?;
            written.push(file.path.clone());
        }
        Ok(())
    }

    /// Restores what was written before an error.
    fn roll_back(&self, texts: &Texts, mut own: OwnFile, written: &[PathBuf], end: &CallEnd) {
        let is_written = |path: &Path| written.iter().any(|other| other == path);
        for (file, text) in self.files.iter().zip(&texts.files) {
            if let Some(text) = text
                && is_written(&file.path)
            {
                let _ = replace(&file.path, text, file.text());
            }
        }
        if let Some((before, after)) = &texts.shared
            && is_written(self.shared_path)
        {
            let _ = replace(self.shared_path, after, before);
        }
        if let Some((before, _)) = &texts.own
            && is_written(self.own_path)
        {
            let _ = match self.is_own_new {
                true => std::fs::remove_file(self.own_path).map_err(CliError::Output),
                false => own.write(before),
            };
        }
        let kind = self.config.secret_store.kind.as_ref().map(|kind| kind.value);
        let kind = kind.unwrap_or(SecretStoreKind::KeyFile);
        if self.stored().next().is_some()
            && let Ok(store) = store::open(self.config, kind, false, end)
        {
            for (name, _) in self.stored() {
                let _ = store.delete(name, end);
            }
        }
    }
}

type Merge = fn(&str, &ServerEntry<'_>, Others<'_>) -> Result<String, merge::MergeError>;
type Without = fn(&str, &[&str], &[&str]) -> Result<String, merge::MergeError>;

/// Replaces the content of a file, which must not have changed since it was read.
fn replace(path: &Path, before: &str, after: &str) -> Result<(), CliError> {
    let failed = |source| CliError::Save { path: path.display().to_string(), source };
    let mut original = Original::read(path).map_err(failed)?;
    if original.content() != before.as_bytes() {
        return Err(failed(std::io::Error::other(
            "another program changed it meanwhile; try again",
        )));
    }
    original.replace(after.as_bytes()).map_err(failed)
}

fn own_path() -> Result<PathBuf, CliError> {
    Global::own_file().ok_or_else(|| {
        let why = "the path of your user config is unknown: set `HOME` or `KITBAG_CONFIG`";
        CliError::Usage(why.into())
    })
}

fn utf8<'a>(path: &Path, original: &'a Original) -> Result<&'a str, CliError> {
    str::from_utf8(original.content())
        .map_err(|error| CliError::Usage(format!("`{}`: {error}", path.display())))
}

/// Opens the store of secrets, if there is one.
fn existing_store(config: &Config, end: &CallEnd) -> Option<Store> {
    let settings = &config.secret_store;
    let has_file = settings.file.as_ref().is_some_and(|file| file.value.exists());
    let kind = match &settings.kind {
        Some(kind) if kind.value == SecretStoreKind::Keyring || has_file => kind.value,
        None if has_file => SecretStoreKind::KeyFile,
        _ => return None,
    };
    store::open(config, kind, false, end).ok()
}
