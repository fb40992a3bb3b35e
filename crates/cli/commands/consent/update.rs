//! `kitbag update`.

use std::path::{Path, PathBuf};

use kitbag::Config;
use kitbag::base::shell;
use kitbag::base::text::shown as escaped;
use kitbag::config::{Disabled, Layer, LockedManifest, LockedTool, Network, ToolSource};
use kitbag::contract::{Description, ErrorKind, ToolName};
use kitbag::host::{DescribeResult, read_component};
use kitbag::policy::RequestedGrants;
use kitbag::policy::server::ServerName;
use kitbag::toolbox::consent::{
    Attachment, Consent, RequestChange, RequestItem, Requester, request_item,
};
use kitbag_registry::Reference;
use serde_json::{Value, json};

use crate::commands::consent::add::grants::{Bounds, RequestedSettings};
use crate::commands::consent::add::requests::{self, RequestedGrant, form};
use crate::commands::consent::add::screen::{beginning, own_risks};
use crate::commands::consent::add::source::{OtherProgram, Source};
use crate::commands::consent::add::tool_files::ToolFiles;
use crate::commands::consent::add::trial;
use crate::commands::consent::add::wording::Reader;
use crate::commands::consent::add::workspace_trust::TrustBefore;
use crate::commands::consent::add::{is_in, recorded};
use crate::commands::consent::servers::added_name;
use crate::commands::consent::servers::update::{Options, update};
use crate::commands::registry::Registries;
use crate::commands::registry::download::reference;
use crate::commands::{Global, built, limits_now};
use crate::console::consent;
use crate::console::output;
use crate::error::{CliError, Finding};
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag update weather
  kitbag update weather ~/Downloads/weather-1.3.wasm
  kitbag update weather oci://ghcr.io/org/weather:1.3.0
  kitbag update db

Grants do not change: newly requested grants are shown for you to add. For an MCP server,
kitbag shows the difference between its present and its recorded tools.")]
pub(crate) struct Args {
    /// The name of the tool or the MCP server, as `kitbag list` shows it
    #[arg(value_parser = added_name)]
    name: String,
    /// Replace the component with this one, with the one in this directory, or with a download
    /// [default: a downloaded tool is downloaded again, and any other tool is reviewed in place]
    #[arg(value_name = "FILE.wasm | DIR | REFERENCE")]
    path: Option<PathBuf>,
    /// Import the tool from the configuration of another program
    #[arg(long, value_name = "PROGRAM", requires = "path")]
    from: Option<OtherProgram>,
    /// Record the difference without asking
    #[arg(long)]
    yes: bool,
    /// Show the complete lists before the summary, in your pager
    #[arg(long)]
    all: bool,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        // Reads all recorded tools, including those not in effect, because no tool is called.
        let kitbag = built(global.builder().ask_trust())?;
        let config = kitbag.toolbox().config();
        if let Some(name) = self.server(config) {
            if self.path.is_some() {
                let why = format!("`{name}` is an MCP server, which has no component");
                return Err(CliError::Usage(why));
            }
            return update(&global, &name, Options { yes: self.yes, all: self.all });
        }
        let name =
            &ToolName::new(&*self.name).map_err(|error| CliError::Usage(error.to_string()))?;
        let Some(tool) = config.tools.get(name.as_str()) else {
            let known = config.tools.keys().map(ToolName::as_str);
            let near = kitbag::base::text::nearest(name.as_str(), known);
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(CliError::Usage(format!("no tool is named `{name}`{near}")));
        };
        // `kitbag check` reports the problem, and no tool runs with it.
        if let Some(Disabled::Broken { reason }) = &tool.disabled {
            let about = "configuration".to_owned();
            let finding =
                Finding { about, text: reason.to_string(), kind: ErrorKind::Configuration };
            let hint = "nothing was recorded".to_owned();
            return Err(CliError::Hinted { error: Box::new(CliError::Faulty(finding)), hint });
        }
        if let ToolSource::Server(of) = &tool.source.value {
            return Err(CliError::Usage(format!(
                "`{name}` is a tool of the server `{}`; run `{}`",
                of.server,
                shell::command(["kitbag", "update", of.server.as_str()])
            )));
        }
        let ToolSource::Local(local) = &tool.source.value else {
            return Err(CliError::Usage(format!("`{name}` has no component file to record")));
        };
        let place = ToolFiles::new(local.layer, config)?;
        let path = &local.wasm.value;
        if self.path.is_some() && !is_in(&place.tools, path) {
            return Err(CliError::Usage(format!(
                "the component of `{name}` is `{}`, which was not added with `kitbag add`; replace \
                 it yourself, and then run `{}`",
                place.shown(path),
                shell::command(["kitbag", "update", name.as_str()])
            )));
        }
        let home = Global::home();
        let old = local.recorded.as_ref().map(|recorded| &recorded.tool);
        let source = match self.reference(old)? {
            Some(reference) => {
                let download = Registries::new(kitbag)?.download(&reference)?;
                Source::of_download(download, Some(name.as_str()))?
            }
            None => match &self.path {
                Some(path) => Source::read(path, home.as_deref(), self.from, Some(name.as_str()))?,
                None => Source::in_place(path, home.as_deref())?,
            },
        };
        let is_new = self.path.is_some() || source.download.is_some();
        let limits = limits_now(&global)?;
        let described = source.described(kitbag.toolbox().host(), &limits, global.json)?;
        let mut new = recorded(&source, source.parts(&described, tool.own_name()), &place);
        if !is_new && let Some(old) = old {
            keep_source(&mut new, old, &place);
        }
        let before = old.and_then(|old| kitbag.toolbox().host().remembered(old.component));
        let difference = Difference::new(old, &new, &source, (tool.own_name(), &config.network));
        let is_there =
            || !is_new || read_component(path).is_ok_and(|it| it.digest == new.component);
        // A recorded component that does not exist yet was approved: a command was interrupted.
        let is_agreed = difference.is_empty();
        if is_agreed && is_there() {
            match global.json {
                true => output::json(&difference.as_value(name, true))?,
                false => output::data(&format!("{name} matches its record."))?,
            }
            return Ok(Exit::Done);
        }
        let is_interactive = consent::is_interactive(global.json) && !self.yes;
        if !global.json && !is_agreed {
            let bounds = Bounds { config, layer: place.layer, home: home.as_deref() };
            let asked = RequestedSettings::of(&source, &described, tool.own_name(), &bounds);
            let reader = Reader::new(name, &bounds);
            let mut consent = difference.consent(name, before.as_ref(), &described, &reader);
            let inspection = &source.component.inspection;
            let imports = old.map(|old| &*old.imports);
            consent.items.extend(own_risks(name, inspection, &asked, imports, &bounds));
            consent::show(&consent, self.all, is_interactive)?;
        }
        if !self.yes && !is_agreed {
            if !is_interactive {
                let error = CliError::NotAgreed(format!(
                    "`{name}` was not recorded, because there is no terminal to ask on; review the \
                     difference, and record it with `{}`",
                    shell::command(["kitbag", "update", name.as_str(), "--yes"])
                ));
                if global.json {
                    output::json(&difference.as_value(name, false))?;
                    output::note(&error.report());
                    return Ok(error.exit());
                }
                return Err(error);
            }
            if !consent::agrees("Record this version, so that it runs?")? {
                return Err(CliError::NotAgreed(format!("`{name}` was not recorded")));
            }
        }
        let mut locked = place.lock()?;
        let trusted = TrustBefore::now(&global)?;
        let known = locked.recorded.tools.get(name);
        if known != old {
            return Err(CliError::Usage(format!(
                "another command recorded `{name}` meanwhile; try again"
            )));
        }
        let text = place.config_text()?;
        let kept = locked.recorded.clone();
        locked.recorded.tools.insert(name.clone(), new.clone());
        let checked = trial::with_config(&global, place.layer, text)
            .and_then(|builder| {
                let bytes = &source.component.bytes;
                trial::check_component(builder, trusted.limits(&global)?, name, bytes, global.json)
            })
            .and_then(|()| trial::check_size("kitbag.lock", &locked.recorded.to_string()));
        checked.map_err(|error| {
            let hint = "nothing was recorded".to_owned();
            CliError::Hinted { error: Box::new(error), hint }
        })?;
        let staged = match is_new {
            true => Some(locked.stage(path, &source.component.bytes)?),
            false => None,
        };
        locked.write_lock()?;
        if let Some(staged) = staged
            && let Err(error) = locked.put(staged, path, false)
        {
            locked.recorded = kept;
            locked.write_lock()?;
            return Err(error);
        }
        if place.layer == Layer::Workspace {
            let changed = locked.changed(Some((path, Some(new.component))));
            trusted.extend(&global, &format!("tool `{name}`"), &changed)?;
        }
        match global.json {
            true => {
                let mut value = difference.as_value(name, true);
                value["component"] = json!(new.component);
                value["lock"] = json!(place.lock);
                output::json(&value)?;
            }
            false => output::data(&format!("Recorded {name} in {}.", place.shown(&place.lock)))?,
        }
        Ok(Exit::Done)
    }
}

impl Args {
    /// Returns the reference to download: the argument, or the recorded origin of the tool. `None`:
    /// the component is a file.
    fn reference(&self, old: Option<&LockedTool>) -> Result<Option<Reference>, CliError> {
        if let Some(path) = &self.path {
            return reference(path).transpose();
        }
        let origin = old.filter(|old| old.download.is_some()).and_then(|old| old.origin.as_ref());
        match origin {
            Some(origin) => reference(Path::new(origin)).transpose(),
            None => Ok(None),
        }
    }

    /// Returns the server that the name is for. A tool with a component has precedence.
    fn server(&self, config: &Config) -> Option<ServerName> {
        let name = ServerName::new(&*self.name).ok()?;
        let tool = config.tools.get(name.as_str());
        let is_component = tool.is_some_and(|it| matches!(it.source.value, ToolSource::Local(_)));
        (config.servers.contains_key(&name) && !is_component).then_some(name)
    }
}

/// The changes since a tool was recorded.
struct Difference<'a> {
    old: Option<&'a LockedTool>,
    new: &'a LockedTool,
    /// The component's own name of the tool.
    own: &'a str,
    network: &'a Network,
    requested: Vec<RequestedGrant>,
}

impl<'a> Difference<'a> {
    fn new(
        old: Option<&'a LockedTool>,
        new: &'a LockedTool,
        source: &Source,
        (own, network): (&'a str, &'a Network),
    ) -> Self {
        let requested = match (&source.manifest, &new.manifest) {
            (Some(manifest), _) => requests::grants(&manifest.content),
            (None, Some(recorded)) => requests::recorded_grants(recorded),
            (None, None) => Vec::new(),
        };
        Self { old, new, own, network, requested }
    }

    /// Returns the difference as JSON, with the requests of the component and of the manifest.
    fn as_value(&self, name: &ToolName, is_recorded: bool) -> Value {
        let then = self.old.map(|old| &*old.requested).unwrap_or_default();
        let added = self.new.requested.iter().filter(|request| !then.contains(request)).cloned();
        let removed = then.iter().filter(|request| !self.new.requested.contains(request)).cloned();
        let added_grants = self.requested.iter().flat_map(|grant| &grant.lines);
        let added_grants = added_grants.filter(|line| !self.is_recorded(line)).cloned();
        let removed_grants = self.removed_grants().into_iter().flat_map(|grant| grant.lines);
        json!({
            "name": name,
            "recorded": is_recorded,
            "changed": self.keys(),
            "addedRequests": added.chain(added_grants).collect::<Vec<_>>(),
            "removedRequests": removed.chain(removed_grants).collect::<Vec<_>>(),
        })
    }

    fn old_manifest(&self) -> Option<&'a LockedManifest> {
        self.old.and_then(|old| old.manifest.as_ref())
    }

    /// Returns whether a line of the manifest was recorded. A truncated line may match another
    /// grant with the same prefix.
    fn is_recorded(&self, line: &str) -> bool {
        let old = self.old_manifest();
        let is_whole = !line.ends_with('…');
        old == self.new.manifest.as_ref()
            || (is_whole && old.is_some_and(|old| old.requests.iter().any(|known| known == line)))
    }

    /// Returns the grants that only the recorded manifest requests.
    fn removed_grants(&self) -> Vec<RequestedGrant> {
        let old = self.old_manifest().map(requests::recorded_grants).unwrap_or_default();
        let is_kept = |line: &String| self.requested.iter().any(|grant| grant.lines.contains(line));
        old.into_iter().filter(|grant| !grant.lines.iter().all(is_kept)).collect()
    }

    fn keys(&self) -> Vec<&'static str> {
        changed_keys(self.old, self.new)
    }

    fn is_empty(&self) -> bool {
        self.keys().is_empty()
    }

    /// Describes the difference for a person. `before` is the recorded component's own description,
    /// if known.
    fn consent(
        &self,
        name: &ToolName,
        before: Option<&DescribeResult>,
        now: &DescribeResult,
        reader: &Reader<'_>,
    ) -> Consent {
        let new = self.new;
        let said = |described: Option<&DescribeResult>, part: fn(&Description, &str) -> String| {
            let description = described.and_then(DescribeResult::description);
            description.map(|description| part(description, self.own))
        };
        let more = "`--all` shows them".to_owned();
        let mut items = self.requests(name, now);
        items.extend(self.manifest_requests(name, reader));
        let Some(old) = self.old else {
            let digest = beginning(&new.component);
            let heading = format!("{name}: not recorded; its digest is {digest}");
            let description = said(Some(now), description).unwrap_or_default();
            let lines = description.lines().map(str::to_owned).collect();
            let imports = new.imports.iter().map(|import| escaped(import).to_string()).collect();
            let parts = vec![
                Attachment::theirs("Its own description:", lines),
                Attachment::ours("Imports:", imports),
                Attachment::theirs("Manifest:", changed_manifest(None, new.manifest.as_ref())),
            ];
            return Consent { heading, parts, items, more };
        };
        let heading = format!("{name}, from {}", escaped(new.origin.as_deref().unwrap_or("-")));
        let mut lines = Vec::new();
        let version =
            |tool: &LockedTool| escaped(tool.version.as_deref().unwrap_or("-")).to_string();
        if old.version != new.version {
            lines.push(format!("version {} → {}", version(old), version(new)));
        }
        let (was, is) = (beginning(&old.component), beginning(&new.component));
        lines.push(match old.component == new.component {
            true => format!("digest {is}, the same"),
            false => format!("digest {was} → {is}"),
        });
        lines.extend(download_lines(old, new));
        let mut parts = vec![Attachment::ours("Component:", lines)];
        for (title, changed, part) in [
            ("Description:", old.description != new.description, description as fn(&_, &str) -> _),
            ("Schema:", old.schema != new.schema, schema),
        ] {
            if !changed {
                continue;
            }
            let before = said(before, part);
            let now = said(Some(now), part).unwrap_or_default();
            parts.push(match before {
                Some(before) => Attachment::theirs(title, changed_lines(&before, &now)),
                None => {
                    let title = format!("{title} differs from the record, now");
                    Attachment::theirs(title, now.lines().map(str::to_owned).collect())
                }
            });
        }
        let imports = imports(&old.imports, &new.imports);
        if !imports.is_empty() {
            parts.push(Attachment::ours("Imports:", imports));
        }
        let manifest = changed_manifest(old.manifest.as_ref(), new.manifest.as_ref());
        if !manifest.is_empty() {
            parts.push(Attachment::theirs("Manifest:", manifest));
        }
        Consent { heading, parts, items, more }
    }

    fn requests(&self, name: &ToolName, now: &DescribeResult) -> Vec<RequestItem> {
        let says = now.description().and_then(|says| says.tool(self.own));
        let grants = says.and_then(|says| says.grants.as_ref());
        let requested = grants.and_then(|grants| RequestedGrants::read(grants).ok());
        let requests: Vec<_> = requested.iter().flat_map(RequestedGrants::requests).collect();
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let then = self.old.map(|old| &*old.requested).unwrap_or_default();
        let item = |recorded: &String| {
            let request = requests.iter().find(|request| line(&request.to_string()) == *recorded);
            let item = match request {
                Some(request) => request_item(name.as_str(), request, self.network),
                None => untyped(name, recorded),
            };
            match self.old.is_none() || then.contains(recorded) {
                true => item,
                false => item.changed(RequestChange::Added),
            }
        };
        let gone = then.iter().filter(|request| !self.new.requested.contains(request));
        let gone = gone.map(|request| untyped(name, request).changed(RequestChange::Removed));
        self.new.requested.iter().map(item).chain(gone).collect()
    }

    fn manifest_requests(&self, name: &ToolName, reader: &Reader<'_>) -> Vec<RequestItem> {
        let items = |grant: &RequestedGrant, change: RequestChange| {
            let items = match &grant.value {
                Some(value) => reader.items(&grant.kind, value),
                None => grant.lines.iter().map(|line| untyped(name, line)).collect(),
            };
            items.into_iter().map(move |item| item.changed(change))
        };
        let now = self.requested.iter().flat_map(|grant| {
            let is_known = self.old.is_none() || grant.lines.iter().all(|it| self.is_recorded(it));
            items(grant, if is_known { RequestChange::Same } else { RequestChange::Added })
        });
        let removed = self.removed_grants();
        let removed = removed.iter().flat_map(|grant| items(grant, RequestChange::Removed));
        now.chain(removed).collect()
    }
}

/// Describes a recorded request that is known only by its line.
fn untyped(name: &ToolName, request: &str) -> RequestItem {
    let line = format!("tool `{name}` requests {}", escaped(request));
    RequestItem::new(Requester::Tool(name.to_string()), line)
}

/// Returns the keys that differ between two records.
pub(crate) fn changed_keys(old: Option<&LockedTool>, new: &LockedTool) -> Vec<&'static str> {
    let Some(old) = old else { return vec!["component"] };
    let changes = [
        ("component", old.component != new.component),
        ("version", old.version != new.version),
        ("description", old.description != new.description),
        ("schema", old.schema != new.schema),
        ("requestedGrants", old.requested != new.requested),
        ("imports", old.imports != new.imports),
        ("manifest", old.manifest != new.manifest),
        ("download", old.download != new.download),
    ];
    changes.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
}

/// Copies the origin, the manifest and the manifest's version, which cannot be read from a
/// component in place.
pub(crate) fn keep_source(new: &mut LockedTool, old: &LockedTool, place: &ToolFiles) {
    if let Some(origin) = &old.origin {
        new.origin = Some(place.origin(origin));
    }
    new.manifest.clone_from(&old.manifest);
    if new.component == old.component {
        new.download.clone_from(&old.download);
    }
    let by_manifest = old.manifest.as_ref().is_some_and(|manifest| manifest.version.is_some());
    if by_manifest || new.version.is_none() || new.component == old.component {
        new.version.clone_from(&old.version);
    }
}

/// Returns the lines that differ between two manifests: files, authors and settings. Requested
/// grants are items of the consent.
fn changed_manifest(old: Option<&LockedManifest>, new: Option<&LockedManifest>) -> Vec<String> {
    let lines = |manifest: Option<&LockedManifest>| {
        let Some(manifest) = manifest else { return Vec::new() };
        let is_setting =
            |line: &&String| line.split_once(": ").is_some_and(|(key, _)| form(key).is_none());
        let mut lines = vec![format!("{} {}", manifest.file, beginning(&manifest.digest))];
        lines.extend(manifest.author.iter().map(|author| format!("author: {author}")));
        lines.extend(manifest.requests.iter().filter(is_setting).cloned());
        lines
    };
    let (old, new) = (lines(old), lines(new));
    let removed = old.iter().filter(|line| !new.contains(line)).map(|line| format!("- {line}"));
    let added = new.iter().filter(|line| !old.contains(line)).map(|line| format!("+ {line}"));
    removed.chain(added).collect()
}

/// Returns the changes of a download: a tag that moved, and another signer.
fn download_lines(old: &LockedTool, new: &LockedTool) -> Vec<String> {
    let Some(now) = &new.download else { return Vec::new() };
    let signer = |signer: Option<&String>| match signer {
        Some(signer) => format!("signed by {}", escaped(signer)),
        None => "unsigned".to_owned(),
    };
    let is = signer(now.signer.as_ref());
    let Some(then) = &old.download else {
        return vec![format!("download {}, {is}", escaped(&now.digest))];
    };
    let mut lines = Vec::new();
    if then.digest != now.digest {
        let (from, to) = (escaped(&then.digest), escaped(&now.digest));
        let what = if old.origin == new.origin { "the reference moved" } else { "download" };
        lines.push(format!("{what}: {from} → {to}"));
    }
    let was = signer(then.signer.as_ref());
    lines.push(if was == is { is } else { format!("{was} → {is}") });
    lines
}

fn description(description: &Description, name: &str) -> String {
    let tool = description.tool(name);
    let title = tool.and_then(|tool| tool.title.clone());
    let text = tool.and_then(|tool| tool.description.clone());
    [title, text].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn schema(description: &Description, name: &str) -> String {
    let tool = description.tool(name);
    let schemas = tool.map(|tool| [&tool.input_schema, &tool.output_schema]);
    let schemas = schemas.into_iter().flatten().flatten();
    schemas.map(|schema| format!("{schema:#}")).collect::<Vec<_>>().join("\n")
}

/// Returns the added and removed imports. Version changes do not allow more, so they are only
/// counted.
fn imports(old: &[String], new: &[String]) -> Vec<String> {
    let name = |import: &String| match import.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => import.clone(),
    };
    let without = |imports: &[String], others: &[String]| -> Vec<String> {
        let names: Vec<_> = others.iter().map(name).collect();
        imports.iter().filter(|import| !names.contains(&name(import))).cloned().collect()
    };
    let (gone, added) = (without(old, new), without(new, old));
    let is_other = |import: &&String| !added.contains(import) && !old.contains(import);
    let gone_lines = gone.iter().map(|import| format!("- {}", escaped(import)));
    let added_lines = added.iter().map(|import| format!("+ {}", escaped(import)));
    let others = match new.iter().filter(is_other).count() {
        0 => None,
        1 => Some("1 in another version".to_owned()),
        others => Some(format!("{others} in other versions")),
    };
    gone_lines.chain(added_lines).chain(others).collect()
}

/// Returns the lines that differ between two strings, in their order.
pub(crate) fn changed_lines(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[same..], &new[same..]);
    let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let gone = old[..old.len() - same_end].iter().map(|line| ("-", line));
    let added = new[..new.len() - same_end].iter().map(|line| ("+", line));
    gone.chain(added).map(|(sign, line)| format!("{sign} {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_import_version_does_not_hide_a_new_import() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let check = |old: &[&str], new: &[&str], expected: &[&str]| {
            assert_eq!(imports(&list(old), &list(new)), expected);
        };
        check(&["a:b/c@1.0.0"], &["a:b/c@1.0.0"], &[]);
        check(&["a:b/c@1.0.0"], &["a:b/c@1.1.0"], &["1 in another version"]);
        check(
            &["a:b/c@1.0.0", "a:b/d@1.0.0", "a:b/e"],
            &["a:b/c@1.1.0", "a:b/d@1.1.0", "wasi:http/types@0.2.0"],
            &["- a:b/e", "+ wasi:http/types@0.2.0", "2 in other versions"],
        );
        check(&[], &["a:b/c"], &["+ a:b/c"]);
    }
}
