//! `kitbag add`.

pub(crate) mod grants;
pub(crate) mod manifests;
pub(crate) mod requests;
pub(crate) mod screen;
pub(crate) mod source;
pub(crate) mod table;
pub(crate) mod tool_files;
pub(crate) mod trial;
pub(crate) mod wording;
pub(crate) mod workspace_trust;

use std::path::{Path, PathBuf};

use kitbag::Config;
use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::{Layer, LockedTool, ToolSource};
use kitbag::contract::ToolName;
use kitbag::host::DescribeResult;
use kitbag::toolbox::RecordedDescription;
use kitbag::toolbox::consent::Consent;
use serde_json::{Value, json};

use self::grants::{Bounds, GrantSelection, RequestedSettings};
use self::source::{OtherProgram, Source};
use self::table::ToolTable;
use self::tool_files::ToolFiles;
use self::wording::Group;
use self::workspace_trust::TrustBefore;
use crate::commands::consent::servers::add::{ServerArgs, Shared};
use crate::commands::registry::Registries;
use crate::commands::registry::download::{Download, reference};
use crate::commands::{Global, built, limits_now};
use crate::console::consent::{self, Choice};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag add ~/Downloads/weather.wasm
  kitbag add ~/Downloads/weather --user
  kitbag add ~/butterfly-bot --tool todo
  kitbag add weather.wasm --yes --grant requested
  kitbag add oci://ghcr.io/org/weather:1.2.0
  kitbag add wasi:http@0.2.0
  kitbag add --from jp .jp/config.toml --tool word_stats
  kitbag add --from hyper-mcp ~/.config/hyper-mcp/config.json --tool time
  kitbag add db --read . --write data -- mcp-server-sqlite --db-path data/app.db
  kitbag add docs https://mcp.example.com/mcp --secret docs

kitbag also reads a manifest in the directory or beside the component: one of its own,
skill.toml, manifest.yaml, manifest.toml, NAME.capabilities.json, policy.yaml or act.toml, or
else the manifest in a component for ACT. It shows the requested grants of the manifest; they
grant nothing.

An MCP server is added by its name and its URL, or its name and the command that starts it.
Without --confine, --read, --write or --network its process has all of your rights.")]
pub(crate) struct Args {
    /// The component, the directory that contains it, with --from a configuration, a reference
    /// (`oci://HOST/REPOSITORY:TAG`, `https://URL#sha256=DIGEST` or `namespace:package@version`), or
    /// the name of an MCP server
    #[arg(value_name = "FILE.wasm | DIR | REFERENCE | NAME")]
    path: PathBuf,
    /// Import a tool from the configuration of another program
    #[arg(long, value_name = "PROGRAM")]
    from: Option<OtherProgram>,
    /// Name the tool [default: its own name, otherwise the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<ToolName>,
    /// Select this tool of a component, a configuration or a directory with several [default: all
    /// tools of a component]
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Add the tool for all workspaces, beside your user config
    #[arg(long)]
    user: bool,
    /// Add the tool without asking
    #[arg(long)]
    yes: bool,
    /// Show the complete lists before the summary, in your pager
    #[arg(long)]
    all: bool,
    /// Grant nothing, or the requested grants [default: ask; nothing with --yes]
    #[arg(long, value_name = "GRANTS")]
    grant: Option<GrantFlag>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum GrantFlag {
    /// Nothing
    None,
    /// The requested grants
    #[value(alias = "wishes")]
    Requested,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        if self.server.is_server() {
            return self.add_server(&global);
        }
        if let Some(option) = self.server.option() {
            return Err(CliError::Usage(format!(
                "`{option}` is for an MCP server: `kitbag add NAME URL`, or `kitbag add NAME -- \
                 COMMAND`"
            )));
        }
        // Also reads untrusted settings, because no tool of the workspace is called.
        let kitbag = built(global.builder().ask_trust())?;
        let config = kitbag.toolbox().config();
        let home = Global::home();
        let source = match reference(&self.path) {
            Some(_) if self.from.is_some() => {
                let why = "`--from` is for a file with the configuration of another program";
                return Err(CliError::Usage(why.to_owned()));
            }
            Some(reference) => {
                let download = Registries::new(kitbag)?.download(&reference?)?;
                Source::of_download(download, self.tool.as_deref())?
            }
            None => Source::read(&self.path, home.as_deref(), self.from, self.tool.as_deref())?,
        };
        let layer = if self.user { Layer::User } else { Layer::Workspace };
        let place = ToolFiles::new(layer, config)?;
        let limits = limits_now(&global)?;
        let described = source.described(kitbag.toolbox().host(), &limits, global.json)?;
        let bounds = Bounds { config, layer, home: home.as_deref() };
        let found = Found { source, described, place, bounds };
        let tools = self.chosen(&found)?;
        // Nothing is added if one of the names is taken.
        for tool in &tools {
            check_free(config, &found.place, &tool.name, &found.source)?;
        }
        let requested = tools.into_iter().map(|tool| self.requested(tool, &found, &global));
        let requested = requested.collect::<Result<Vec<_>, _>>()?;
        let additions: Vec<_> = requested.iter().map(|tool| tool.addition(&found)).collect();
        let values = |granted: Option<&GrantSelection>| {
            let mut values: Vec<_> = additions.iter().map(|it| it.as_value(granted)).collect();
            match values.len() {
                1 => values.remove(0),
                _ => json!({ "tools": values }),
            }
        };
        if global.json && !self.yes {
            let error = CliError::NotAgreed(ask_with_yes(&requested));
            output::note(&error.report());
            output::json(&values(None))?;
            return Ok(error.exit());
        }
        let consent = screen::consent(&requested, &found);
        let granted = self.agreed(&requested, &consent, &found, global.json)?;
        for (index, addition) in additions.iter().enumerate() {
            let written = addition.write(&requested[index].table(&found, &granted), &global);
            if let (Err(_), [_, ..]) = (&written, &additions[..index]) {
                let added = additions[..index].iter().map(|it| format!("`{}`", it.name));
                let added: Vec<_> = added.collect();
                output::note(&format!("added before the error: {}", added.join(", ")));
            }
            written?;
        }
        match global.json {
            true => output::json(&values(Some(&granted)))?,
            false => report(&requested, &found, &granted)?,
        }
        Ok(Exit::Done)
    }

    /// Adds an MCP server.
    fn add_server(&self, global: &Global) -> Result<Exit, CliError> {
        let Self { path, from, name, tool, user, yes, all, grant, server } = self;
        let options = [
            ("--from", from.is_some()),
            ("--name", name.is_some()),
            ("--tool", tool.is_some()),
            ("--grant", grant.is_some()),
        ];
        if let Some((option, _)) = options.into_iter().find(|(_, is_set)| *is_set) {
            return Err(CliError::Usage(format!(
                "`{option}` is for a component, not for a server"
            )));
        }
        let name = path.to_str().unwrap_or_default();
        server.add(name, &Shared { user: *user, yes: *yes, all: *all }, global)
    }

    /// Reads the requests of one tool, and checks that they can be written.
    fn requested(
        &self,
        tool: ChosenTool,
        found: &Found<'_>,
        global: &Global,
    ) -> Result<RequestedTool, CliError> {
        let Found { source, described, place, bounds } = found;
        let (config, layer) = (bounds.config, bounds.layer);
        let is_unfinished = check_free(config, place, &tool.name, source)?;
        let asked = RequestedSettings::of(source, described, &tool.own, bounds);
        let mut requested = RequestedTool { tool, asked, groups: Vec::new(), is_unfinished };
        let text = place.config_text()?;
        let mut asked = std::mem::take(&mut requested.asked);
        asked.without_invalid(|asked| {
            let table = requested.table_of(asked, found, &GrantSelection::Requested);
            let text = place.with_table(&table, &text, is_unfinished)?;
            trial::read(trial::with_config(global, layer, text)?)
        })?;
        requested.groups = wording::groups(&asked, &requested.tool.name, bounds);
        requested.asked = asked;
        Ok(requested)
    }

    /// Returns the tools of a component to add: the requested tool, or all of them.
    fn chosen(&self, found: &Found<'_>) -> Result<Vec<ChosenTool>, CliError> {
        let description = found.described.description();
        let tools = description.map(|says| &says.tools[..]).unwrap_or_default();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let all = || kitbag::base::text::alternatives(&names);
        // `--tool` selected a tool of the manifest, or of another program's configuration.
        let is_selected = |own: &String| match found.source.foreign() {
            Some(manifest) => self.from.is_some() && names.len() <= 1 || manifest.has_tool(own),
            None => false,
        };
        let tool = self.tool.as_ref().filter(|_| !found.source.is_selected);
        match tool {
            Some(own) if names.contains(&own.as_str()) => {
                let name = self.name.clone().unwrap_or_else(|| valid_name(own));
                Ok(vec![ChosenTool { name, own: own.clone() }])
            }
            Some(own) if !names.is_empty() && !is_selected(own) => Err(CliError::Usage(format!(
                "the component has no tool `{}`; its tools are {}",
                shown(own),
                all()
            ))),
            None if names.len() > 1 => match &self.name {
                Some(_) => Err(CliError::Usage(format!(
                    "the component has several tools: choose {} with `--tool`, or omit `--name` to \
                     add all of them",
                    all()
                ))),
                None => Ok(ChosenTool::all(&names, found)),
            },
            _ => {
                let name = match &self.name {
                    Some(name) => name.clone(),
                    None => found.source.name(&found.described),
                };
                let own = name.to_string();
                Ok(vec![ChosenTool { name, own }])
            }
        }
    }

    /// Shows the tools and asks for consent to all of them. Returns the granted grants.
    fn agreed(
        &self,
        requested: &[RequestedTool],
        consent: &Consent,
        found: &Found<'_>,
        as_json: bool,
    ) -> Result<GrantSelection, CliError> {
        let is_interactive = consent::is_interactive(as_json) && !self.yes;
        if !as_json {
            consent::show(consent, self.all, is_interactive)?;
        }
        let chosen = match self.grant {
            Some(GrantFlag::Requested) => GrantSelection::Requested,
            Some(GrantFlag::None) => GrantSelection::Nothing,
            None if self.yes => GrantSelection::Nothing,
            None => GrantSelection::Requested,
        };
        if self.yes {
            return Ok(chosen);
        }
        if !is_interactive {
            return Err(CliError::NotAgreed(ask_with_yes(requested)));
        }
        let groups = all_groups(requested);
        let (with, choices): (_, &[Choice]) = match self.grant {
            Some(GrantFlag::None) => (" with no grants", &[Choice::Yes, Choice::No]),
            Some(GrantFlag::Requested) => (" with all its requests", &[Choice::Yes, Choice::No]),
            None if groups.is_empty() => ("", &[Choice::Yes, Choice::No]),
            None => (" with these grants", &[Choice::Yes, Choice::No, Choice::Customize]),
        };
        let place = &found.place;
        let (what, path) = match requested {
            [only] => ("it as".to_owned(), place.component(only.tool.name.as_str())),
            several => (format!("the {} tools to", several.len()), place.tools.clone()),
        };
        // Turns the directory into a workspace if it is not one yet.
        let into = match found.bounds.config.has_workspace {
            true => place.shown(&path),
            false => path.display().to_string(),
        };
        match consent::ask(&format!("Add {what} {into}{with}?"), choices)? {
            Some(Choice::Yes) => Ok(chosen),
            Some(Choice::Customize) => customized(requested, &groups),
            _ => Err(not_added(requested)),
        }
    }
}

/// A component that was read, and the files to which its tools are added.
pub(crate) struct Found<'a> {
    pub(crate) source: Source,
    pub(crate) described: DescribeResult,
    place: ToolFiles,
    pub(crate) bounds: Bounds<'a>,
}

/// A tool that is added, with its requests.
pub(crate) struct RequestedTool {
    pub(crate) tool: ChosenTool,
    pub(crate) asked: RequestedSettings,
    pub(crate) groups: Vec<Group>,
    /// An earlier `add` was interrupted.
    is_unfinished: bool,
}

impl RequestedTool {
    /// Returns the tool's table in the configuration.
    fn table(&self, found: &Found<'_>, granted: &GrantSelection) -> ToolTable {
        self.table_of(&self.asked, found, granted)
    }

    fn table_of(
        &self,
        asked: &RequestedSettings,
        found: &Found<'_>,
        granted: &GrantSelection,
    ) -> ToolTable {
        let Found { source, described, place, .. } = found;
        let ChosenTool { name, own } = &self.tool;
        let is_one_of_several = described.description().is_some_and(|it| it.tools.len() > 1);
        let function = (is_one_of_several && *own != name.as_str())
            .then(|| ("function".to_owned(), toml_edit::value(own.as_str())));
        ToolTable {
            name: name.to_string(),
            origin: place.origin(&source.origin),
            wasm: place.written(&place.component(name.as_str())),
            keys: function.iter().chain(&asked.keys).cloned().collect(),
            grants: asked.written(granted),
        }
    }

    fn addition<'a>(&'a self, found: &'a Found<'_>) -> Addition<'a> {
        Addition {
            parts: found.source.parts(&found.described, &self.tool.own),
            name: self.tool.name.clone(),
            source: &found.source,
            asked: &self.asked,
            place: &found.place,
            is_unfinished: self.is_unfinished,
        }
    }
}

/// Returns the groups of all tools, each kind once.
fn all_groups(requested: &[RequestedTool]) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    for group in requested.iter().flat_map(|tool| &tool.groups) {
        match all.iter_mut().find(|known| known.key == group.key) {
            Some(known) => known.items.extend(group.items.iter().cloned()),
            None => all.push(group.clone()),
        }
    }
    all
}

/// A tool that is added.
pub(crate) struct ChosenTool {
    pub(crate) name: ToolName,
    /// The component's own name of the tool.
    pub(crate) own: String,
}

impl ChosenTool {
    /// Returns all tools of a component. A name that is taken gets the name of the file as a prefix.
    fn all(names: &[&str], found: &Found<'_>) -> Vec<Self> {
        let file = crate::commands::name_of(&found.source.path);
        let mut chosen: Vec<Self> = Vec::new();
        for own in names {
            let plain = valid_name(own);
            let is_taken = found.bounds.config.tools.contains_key(&plain)
                || chosen.iter().any(|other| other.name == plain);
            let name = if is_taken { valid_name(&format!("{file}_{own}")) } else { plain };
            chosen.push(Self { name, own: (*own).to_owned() });
        }
        chosen
    }
}

/// Returns the name of a tool that is most similar to a component's own name.
fn valid_name(own: &str) -> ToolName {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut name: String = own.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
    }
    name.truncate(ToolName::MAX_LEN);
    ToolName::new(name).expect("it has only allowed characters")
}

fn not_added(requested: &[RequestedTool]) -> CliError {
    CliError::NotAgreed(format!("{} not added", were(requested)))
}

/// Returns the subject and the verb of a sentence about the tools.
fn were(requested: &[RequestedTool]) -> String {
    match requested {
        [only] => format!("`{}` was", only.tool.name),
        several => format!("the {} tools were", several.len()),
    }
}

/// Asks about each group of grants. At the end of the input nothing is added.
fn customized(requested: &[RequestedTool], groups: &[Group]) -> Result<GrantSelection, CliError> {
    let mut kinds = Vec::new();
    // Denials apply regardless of grants.
    for group in groups.iter().filter(|group| group.key != "deny") {
        let heading = format!("Grants of {}:", group.word);
        let consent = Consent { heading, items: group.items.clone(), ..Consent::default() };
        output::note(&consent.requests());
        match consent::ask(&format!("Grant {}?", group.word), &[Choice::Yes, Choice::No])? {
            Some(Choice::Yes) => kinds.push(group.key.clone()),
            Some(_) => {}
            None => return Err(not_added(requested)),
        }
    }
    Ok(match kinds.is_empty() {
        true => GrantSelection::Nothing,
        false => GrantSelection::Kinds(kinds),
    })
}

fn ask_with_yes(requested: &[RequestedTool]) -> String {
    let (it, its) = if requested.len() == 1 { ("it", "its") } else { ("them", "their") };
    format!(
        "{} not added, because there is no terminal to ask on; review {its} requests, and add {it} \
         with `--yes --grant none` or `--yes --grant requested`",
        were(requested)
    )
}

/// Reports the additions.
fn report(
    requested: &[RequestedTool],
    found: &Found<'_>,
    granted: &GrantSelection,
) -> Result<(), CliError> {
    let place = &found.place;
    let groups = all_groups(requested);
    let granted = match granted {
        GrantSelection::Kinds(keys) => {
            let groups = groups.iter().filter(|group| keys.contains(&group.key));
            groups.map(|group| group.word).collect::<Vec<_>>().join(", ")
        }
        GrantSelection::Requested if !groups.is_empty() => match requested {
            [_] => "all its requests".to_owned(),
            _ => "all their requests".to_owned(),
        },
        GrantSelection::Requested | GrantSelection::Nothing => "nothing".to_owned(),
    };
    let Some(first) = requested.first() else { return Ok(()) };
    let (added, path, it) = match requested {
        [only] => {
            let name = only.tool.name.to_string();
            let path = place.component(&name);
            (format!("{name} as"), path, "it")
        }
        several => {
            let names: Vec<_> = several.iter().map(|tool| tool.tool.name.as_str()).collect();
            (format!("{} to", names.join(", ")), place.tools.clone(), "them")
        }
    };
    let name = first.tool.name.as_str();
    let call = if requested.len() == 1 { "it" } else { "the first" };
    output::data(&format!(
        "Added {added} {}, and granted {it} {granted} in {}.\nCall {call} with `{}`; `{}` shows its \
         arguments.",
        place.shown(&path),
        place.shown(&place.config),
        shell::command(["kitbag", "run", name]),
        shell::command(["kitbag", "describe", name]),
    ))
}

/// Refuses a name that is already taken, and names the location of the other tool. Returns whether
/// an earlier `add` was interrupted.
fn check_free(
    config: &Config,
    place: &ToolFiles,
    name: &ToolName,
    source: &Source,
) -> Result<bool, CliError> {
    let Some(tool) = config.tools.get(name.as_str()) else {
        let path = place.component(name.as_str());
        return match path.symlink_metadata() {
            Ok(_) => Err(taken(name, &format!("`{}`", place.shown(&path)))),
            Err(_) => Ok(false),
        };
    };
    let holder = match &tool.source.value {
        ToolSource::Builtin { .. } => "a built-in tool".to_owned(),
        ToolSource::Local(local) => {
            let path = &local.wasm.value;
            let recorded =
                local.recorded.as_ref().filter(|_| *path == place.component(name.as_str()));
            match recorded {
                Some(_) if path.symlink_metadata().is_err() => return Ok(true),
                Some(recorded) if recorded.tool.component == source.component.digest => {
                    return Err(CliError::Usage(format!(
                        "`{name}` already is this component ({})",
                        recorded.place
                    )));
                }
                Some(recorded) => {
                    return Err(CliError::Usage(format!(
                        "the name `{name}` is taken by `{}` ({}); replace it with `{} FILE`, or \
                         choose another name with `--name`",
                        place.shown(path),
                        recorded.place,
                        shell::command(["kitbag", "update", name.as_str()])
                    )));
                }
                None => format!("`{}`", place.shown(path)),
            }
        }
        ToolSource::Script(script) => format!("the script `{}`", place.shown(&script.path.value)),
        ToolSource::Server(tool) => format!("a tool of the server `{}`", tool.server),
        ToolSource::Bytes(_) | ToolSource::Native => "another tool".to_owned(),
    };
    Err(taken(name, &holder))
}

fn taken(name: &ToolName, holder: &str) -> CliError {
    CliError::Usage(format!(
        "the name `{name}` is taken by {holder}; choose another name with `--name`"
    ))
}

struct Addition<'a> {
    name: ToolName,
    source: &'a Source,
    parts: RecordedDescription,
    asked: &'a RequestedSettings,
    place: &'a ToolFiles,
    is_unfinished: bool,
}

impl Addition<'_> {
    fn record(&self) -> LockedTool {
        recorded(self.source, self.parts.clone(), self.place)
    }

    /// Checks everything, then writes the record, the table and finally the component. The tool
    /// cannot run before the component exists.
    fn write(&self, table: &ToolTable, global: &Global) -> Result<(), CliError> {
        let mut locked = self.place.lock()?;
        let trusted = TrustBefore::now(global)?;
        let path = self.place.component(self.name.as_str());
        if path.symlink_metadata().is_ok() {
            return Err(taken(&self.name, &format!("`{}`", self.place.shown(&path))));
        }
        let text = self.place.with_table(table, locked.config_text()?, self.is_unfinished)?;
        let before = locked.recorded.clone();
        let builder = || trial::with_config(global, self.place.layer, text.clone());
        let bytes = &self.source.component.bytes;
        let limits = trusted.limits(global)?;
        locked.recorded.tools.insert(self.name.clone(), self.record());
        let checked = builder()
            .and_then(trial::read)
            .and_then(|()| {
                trial::check_component(builder()?, limits, &self.name, bytes, global.json)
            })
            .and_then(|()| trial::check_size("kitbag.lock", &locked.recorded.to_string()));
        checked.map_err(|error| {
            let hint = "nothing was added".to_owned();
            CliError::Hinted { error: Box::new(error), hint }
        })?;
        let staged = locked.stage(&path, bytes)?;
        let before_config = locked.config_text()?.to_owned();
        let written = locked.write_lock().and_then(|()| locked.write_config(&text));
        if let Err(error) = written.and_then(|()| locked.put(staged, &path, true)) {
            locked.recorded = before;
            locked.write_config(&before_config)?;
            locked.write_lock()?;
            return Err(error);
        }
        if self.place.layer == Layer::User {
            return Ok(());
        }
        let changed = locked.changed(Some((&path, Some(self.source.component.digest))));
        trusted.extend(global, &format!("tool `{}`", self.name), &changed)
    }

    /// Returns the JSON for `--json`, with the granted grants after the tool was added.
    fn as_value(&self, granted: Option<&GrantSelection>) -> Value {
        let (place, name) = (self.place, &self.name);
        let inspection = &self.source.component.inspection;
        let unexplained = screen::unexplained(inspection, self.asked).into_iter();
        let requested = self.asked.grants.iter();
        let mut value = json!({
            "name": name,
            "lane": inspection.lane,
            "added": granted.is_some(),
            "granted": granted.map(|granted| match granted {
                GrantSelection::Nothing => json!("none"),
                GrantSelection::Requested => json!("requested"),
                GrantSelection::Kinds(keys) => json!(keys),
            }),
            "wasm": place.component(name.as_str()),
            "config": place.config,
            "lock": place.lock,
            "component": self.source.component.digest,
            "version": self.source.version(),
            "author": self.source.foreign().and_then(|manifest| manifest.author.as_deref()),
            "requestedGrants": requested
                .map(|(key, value)| format!("{key} = {}", value.to_string().trim()))
                .collect::<Vec<_>>(),
            "unexplainedImports": unexplained.map(|(import, _)| import).collect::<Vec<_>>(),
            "notes": self.asked.notes,
        });
        if let Some(download) = &self.source.download {
            value["download"] = as_value(download);
        }
        value
    }
}

pub(crate) fn recorded(
    source: &Source,
    parts: RecordedDescription,
    place: &ToolFiles,
) -> LockedTool {
    let RecordedDescription { description, schema, requests } = parts;
    LockedTool {
        version: source.version(),
        origin: Some(place.origin(&source.origin)),
        component: source.component.digest,
        description,
        schema,
        requested: requests,
        imports: source.imports(),
        manifest: source.manifest.as_ref().map(requests::recorded),
        download: source.download.as_ref().map(Download::record),
    }
}

fn as_value(download: &Download) -> Value {
    let record = download.record();
    json!({
        "reference": download.origin,
        "digest": record.digest,
        "signer": record.signer,
    })
}

pub(crate) fn is_in(directory: &Path, path: &Path) -> bool {
    path.parent() == Some(directory)
}
