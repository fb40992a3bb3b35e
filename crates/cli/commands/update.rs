//! `kitbag update`.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use kitbag::config::{Layer, LockedManifest, LockedTool, ToolSource};
use kitbag::contract::text::shown as escaped;
use kitbag::contract::{Description, ToolName, shell};
use kitbag::host::{Described, read_component};
use serde_json::json;

use crate::commands::add::place::Place;
use crate::commands::add::shown::beginning;
use crate::commands::add::source::{OtherProgram, Source};
use crate::commands::add::trial;
use crate::commands::add::trusted::TrustBefore;
use crate::commands::add::{ask, is_in, recorded};
use crate::commands::{Global, built, limits_now};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag update weather
  kitbag update weather ~/Downloads/weather-1.3.wasm

It changes no grants: newly requested grants are shown, and are yours to write.")]
pub(crate) struct Args {
    /// The tool's name, which `kitbag list` shows
    tool: ToolName,
    /// Take this component, or that of this directory, in place of the one that is there
    #[arg(value_name = "FILE.wasm | DIR")]
    path: Option<PathBuf>,
    /// Take the tool over from a configuration of another program
    #[arg(long, value_name = "PROGRAM", requires = "path")]
    from: Option<OtherProgram>,
    /// Record the difference without asking
    #[arg(long)]
    yes: bool,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        // All that was recorded, also where it does not count: nothing is called with its grants.
        let kitbag = built(global.builder().ask_trust())?;
        let config = kitbag.toolbox().config();
        let name = &self.tool;
        let Some(tool) = config.tools.get(name.as_str()) else {
            let known = config.tools.keys().map(ToolName::as_str);
            let near = kitbag::contract::text::nearest(name.as_str(), known);
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(CliError::Usage(format!("there is no tool `{name}`{near}")));
        };
        let ToolSource::Local(local) = &tool.source.value else {
            return Err(CliError::Usage(format!(
                "`{name}` has no component in a file, of which something could be recorded"
            )));
        };
        let place = Place::new(local.layer, config)?;
        let path = &local.wasm.value;
        if self.path.is_some() && !is_in(&place.tools, path) {
            return Err(CliError::Usage(format!(
                "the component of `{name}` is `{}`, which `kitbag add` has not put there; replace it \
                 yourself, and then call `{}`",
                place.shown(path),
                shell::command(["kitbag", "update", name.as_str()])
            )));
        }
        let home = Global::home();
        let source = match &self.path {
            Some(path) => Source::read(path, home.as_deref(), self.from, Some(name.as_str()))?,
            None => Source::in_place(path, home.as_deref())?,
        };
        let limits = limits_now(&global)?;
        let described = source.described(kitbag.toolbox().host(), &limits, global.json)?;
        let old = local.recorded.as_ref().map(|recorded| &recorded.tool);
        let mut new = recorded(&source, source.parts(&described, name));
        if self.path.is_none()
            && let Some(old) = old
        {
            keep_source(&mut new, old);
        }
        let before = old.and_then(|old| kitbag.toolbox().host().remembered(old.component));
        let difference = Difference::new(old, &new);
        let is_there = || {
            self.path.is_none() || read_component(path).is_ok_and(|it| it.digest == new.component)
        };
        // What was recorded and is not there yet was agreed to: a command was stopped in between.
        let is_agreed = difference.is_empty();
        if is_agreed && is_there() {
            match global.json {
                true => output::json(&json!({ "name": name, "recorded": true, "changed": [] }))?,
                false => output::data(&format!("{name} is as it was recorded."))?,
            }
            return Ok(Exit::Done);
        }
        if !global.json && !is_agreed {
            output::data(&difference.shown(name, before.as_ref(), &described))?;
        }
        if !self.yes && !is_agreed {
            if global.json || !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
                let error = CliError::NotAgreed(format!(
                    "nothing was recorded of `{name}`, since there is no terminal to ask on; look at the \
                     difference, and record it with `{}`",
                    shell::command(["kitbag", "update", name.as_str(), "--yes"])
                ));
                if global.json {
                    let changed = difference.keys();
                    output::json(&json!({ "name": name, "recorded": false, "changed": changed }))?;
                    output::note(&error.report());
                    return Ok(error.exit());
                }
                return Err(error);
            }
            let answer = ask("Record this, so that it runs? [yes, no]: ")?;
            if !matches!(&*answer, "y" | "yes") {
                return Err(CliError::NotAgreed(format!("nothing was recorded of `{name}`")));
            }
        }
        let mut locked = place.lock()?;
        let trusted = TrustBefore::now(&global)?;
        let known = locked.recorded.tools.get(name);
        if known != old {
            return Err(CliError::Usage(format!(
                "another command has recorded something of `{name}` meanwhile; try again"
            )));
        }
        let text = place.config_text()?;
        let builder = trial::with_config(&global, place.layer, text);
        let checked = trial::check_component(builder, name, &source.component.bytes, global.json);
        checked.map_err(|error| {
            let hint = "nothing was recorded: `kitbag check` would report this".to_owned();
            CliError::Hinted { error: Box::new(error), hint }
        })?;
        let staged = match self.path {
            Some(_) => Some(locked.stage(path, &source.component.bytes)?),
            None => None,
        };
        let kept = locked.recorded.clone();
        locked.recorded.tools.insert(name.clone(), new.clone());
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
            trusted.extend(&global, name, &changed)?;
        }
        match global.json {
            true => output::json(&json!({
                "name": name,
                "recorded": true,
                "changed": difference.keys(),
                "component": new.component,
                "lock": place.lock,
            }))?,
            false => output::data(&format!("Recorded {name} in {}.", place.shown(&place.lock)))?,
        }
        Ok(Exit::Done)
    }
}

/// What is not as it was recorded.
struct Difference<'a> {
    old: Option<&'a LockedTool>,
    new: &'a LockedTool,
}

impl<'a> Difference<'a> {
    fn new(old: Option<&'a LockedTool>, new: &'a LockedTool) -> Self {
        Self { old, new }
    }

    /// The keys of what has changed.
    fn keys(&self) -> Vec<&'static str> {
        let Some(old) = self.old else { return vec!["component"] };
        let new = self.new;
        let changes = [
            ("component", old.component != new.component),
            ("version", old.version != new.version),
            ("description", old.description != new.description),
            ("schema", old.schema != new.schema),
            ("wishes", old.wishes != new.wishes),
            ("imports", old.imports != new.imports),
            ("manifest", old.manifest != new.manifest),
        ];
        changes.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
    }

    fn is_empty(&self) -> bool {
        self.keys().is_empty()
    }

    /// The difference for a person. `before` is what the recorded component said of itself,
    /// where that is known.
    fn shown(&self, name: &ToolName, before: Option<&Described>, now: &Described) -> String {
        let new = self.new;
        let mut text = String::new();
        let Some(old) = self.old else {
            let digest = beginning(&new.component);
            let _ = writeln!(text, "{name}: nothing was recorded of it; its digest is {digest}");
            text.push_str(&lines("wishes", &[], &new.wishes));
            text.push_str(&lines("imports", &[], &new.imports));
            text.push_str(&manifests(None, new.manifest.as_ref()));
            return text;
        };
        let _ = writeln!(text, "{name}, from {}", escaped(new.origin.as_deref().unwrap_or("-")));
        let version = |tool: &LockedTool| tool.version.clone().unwrap_or_else(|| "-".to_owned());
        if old.version != new.version {
            let _ = writeln!(text, "Version: {} → {}", version(old), version(new));
        }
        let _ = match old.component == new.component {
            true => writeln!(text, "Component: {}, the same", beginning(&new.component)),
            false => writeln!(
                text,
                "Component: {} → {}",
                beginning(&old.component),
                beginning(&new.component)
            ),
        };
        let said = |described: Option<&Described>, part: fn(&Description, &str) -> String| {
            let description = described.and_then(Described::description);
            description.map(|description| part(description, name.as_str()))
        };
        for (what, changed, part) in [
            ("Description", old.description != new.description, description as fn(&_, &str) -> _),
            ("Schema", old.schema != new.schema, schema),
        ] {
            if !changed {
                continue;
            }
            let before = said(before, part);
            let now = said(Some(now), part).unwrap_or_default();
            let _ = match before {
                Some(before) => writeln!(text, "{what}:\n{}", changed_lines(&before, &now)),
                None => {
                    writeln!(text, "{what}: another one than was recorded, now\n{}", indented(&now))
                }
            };
        }
        text.push_str(&lines("Wishes", &old.wishes, &new.wishes));
        text.push_str(&imports(&old.imports, &new.imports));
        text.push_str(&manifests(old.manifest.as_ref(), new.manifest.as_ref()));
        text
    }
}

/// Takes over the origin, the manifest and the version that a manifest gave, none of which can be
/// told from a component in place.
fn keep_source(new: &mut LockedTool, old: &LockedTool) {
    if old.origin.is_some() {
        new.origin.clone_from(&old.origin);
    }
    new.manifest.clone_from(&old.manifest);
    let by_manifest = old.manifest.as_ref().is_some_and(|manifest| manifest.version.is_some());
    if by_manifest || new.version.is_none() || new.component == old.component {
        new.version.clone_from(&old.version);
    }
}

/// The difference of two manifests: their files, authors, requested grants and settings.
fn manifests(old: Option<&LockedManifest>, new: Option<&LockedManifest>) -> String {
    if old == new {
        return String::new();
    }
    let file = |manifest: Option<&LockedManifest>| match manifest {
        Some(manifest) => {
            format!("{} {}", escaped(&manifest.file), beginning(&manifest.digest))
        }
        None => "none".to_owned(),
    };
    let mut text = format!("Manifest: {} → {}\n", file(old), file(new));
    let author = |manifest: Option<&LockedManifest>| {
        let author = manifest.and_then(|manifest| manifest.author.clone());
        author.unwrap_or_else(|| "-".to_owned())
    };
    if author(old) != author(new) {
        let _ = writeln!(text, "Author: {} → {}", escaped(&author(old)), escaped(&author(new)));
    }
    let requests = |manifest: Option<&LockedManifest>| {
        manifest.map(|manifest| manifest.requests.clone()).unwrap_or_default()
    };
    text.push_str(&lines("Requested by the manifest", &requests(old), &requests(new)));
    text
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

/// What was added to a list, and what is gone from it.
fn lines(what: &str, old: &[String], new: &[String]) -> String {
    let gone = old.iter().filter(|line| !new.contains(line)).map(|line| ("-", line));
    let added = new.iter().filter(|line| !old.contains(line)).map(|line| ("+", line));
    let changes: Vec<_> = gone.chain(added).collect();
    if changes.is_empty() {
        return String::new();
    }
    let lines = changes.iter().map(|(sign, line)| format!("  {sign} {}\n", escaped(line)));
    format!("{what}:\n{}", lines.collect::<String>())
}

/// The imports that were added and those that are gone. One of another version could do as much
/// as before, so that such are counted alone.
fn imports(old: &[String], new: &[String]) -> String {
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
    let text = lines("Imports", &gone, &added);
    let title = if text.is_empty() { "Imports:\n" } else { "" };
    match new.iter().filter(is_other).count() {
        0 => text,
        1 => format!("{text}{title}  1 in another version\n"),
        others => format!("{text}{title}  {others} in other versions\n"),
    }
}

/// The lines that differ of two texts, in their order.
fn changed_lines(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[same..], &new[same..]);
    let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let gone = old[..old.len() - same_end].iter().map(|line| ("-", line));
    let added = new[..new.len() - same_end].iter().map(|line| ("+", line));
    let lines = gone.chain(added).map(|(sign, line)| format!("  {sign} {}", escaped(line)));
    lines.collect::<Vec<_>>().join("\n")
}

fn indented(text: &str) -> String {
    let lines = text.lines().take(40).map(|line| format!("  {}", escaped(line)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_that_have_another_version_do_not_hide_a_new_one() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let check = |old: &[&str], new: &[&str], expected: &str| {
            assert_eq!(imports(&list(old), &list(new)), expected);
        };
        check(&["a:b/c@1.0.0"], &["a:b/c@1.0.0"], "");
        check(&["a:b/c@1.0.0"], &["a:b/c@1.1.0"], "Imports:\n  1 in another version\n");
        check(
            &["a:b/c@1.0.0", "a:b/d@1.0.0", "a:b/e"],
            &["a:b/c@1.1.0", "a:b/d@1.1.0", "wasi:http/types@0.2.0"],
            "Imports:\n  - a:b/e\n  + wasi:http/types@0.2.0\n  2 in other versions\n",
        );
        check(&[], &["a:b/c"], "Imports:\n  + a:b/c\n");
    }
}
