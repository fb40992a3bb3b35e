//! `[conversation.tools.NAME]` of JP: `source`, `wasm` or `command`, `summary`, `description`,
//! `parameters`, `run`, `questions`, `access`.
//!
//! A file may hold several tools; `[conversation.tools.'*']` has the defaults of all tools. Paths
//! are relative to JP's workspace. With `run = "ask"` a person approves each call.

use kitbag::base::text::alternatives;

use super::fields::{Fields, Notes};
use super::manifest::{Format, Manifest};
use super::node::{Node, Problem, quoted};
use super::requested_grants::{ManifestDirectory, guest_path, host_path};
use super::toml_tree;
use super::translate::decoded;

const TOOLS: &str = "conversation.tools";

/// The name of the table with the defaults of all tools.
const DEFAULTS: &str = "*";

/// Settings for how JP displays a tool and its results.
const SHOWN: [&str; 6] =
    ["style", "format", "result", "cancellation_response", "compaction", "enable"];

impl Manifest {
    /// Translates a tool of a configuration of JP: the tool of this name, or the only tool.
    ///
    /// # Errors
    ///
    /// The file cannot be read, has no such tool or several, or the tool is not a component.
    pub(crate) fn of_jp(source: impl AsRef<[u8]>, tool: Option<&str>) -> Result<Self, String> {
        let source = source.as_ref();
        let root = decoded(source).and_then(toml_tree::read);
        let root = root.map_err(|problem| format!("it cannot be read: {problem}"))?;
        let mut notes = Notes::default();
        let tools = ["conversation", "tools"].into_iter().try_fold(&root, child);
        let Some(Node::Table(tables)) = tools else {
            return Err(format!("it has no table `[{TOOLS}.NAME]`"));
        };
        let names: Vec<_> =
            tables.iter().map(|(name, _)| &**name).filter(|name| *name != DEFAULTS).collect();
        let all = || alternatives(&names);
        let name = match (tool, &names[..]) {
            (_, []) => return Err(format!("it has no table `[{TOOLS}.NAME]`")),
            (Some(tool), names) if names.contains(&tool) => tool,
            (Some(tool), _) => {
                return Err(format!("it has no tool {}; its tools are {}", quoted(tool), all()));
            }
            (None, [only]) => only,
            (None, _) => {
                return Err(format!("it has several tools: choose {} with `--tool`", all()));
            }
        };
        let find = |wanted: &str| tables.iter().find(|(own, _)| own == wanted).map(|it| &it.1);
        let path = crate::commands::consent::add::manifests::fields::join(TOOLS, name);
        let table = find(name).and_then(|node| Fields::of(path, node, &mut notes));
        let table = table.ok_or_else(|| format!("the tool {} is not a table", quoted(name)))?;
        let mut manifest = Self::empty(Format::Jp, source);
        manifest.name = Some(name.to_owned());
        let default_run = find(DEFAULTS).and_then(|defaults| child(defaults, "run"));
        translate(table, default_run, &mut manifest, &mut notes)?;
        manifest.finish(notes);
        Ok(manifest)
    }
}

fn child<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let Node::Table(entries) = node else { return None };
    entries.iter().find(|(own, _)| own == key).map(|(_, value)| value)
}

fn translate(
    mut tool: Fields<'_>,
    default_run: Option<&Node>,
    manifest: &mut Manifest,
    notes: &mut Notes,
) -> Result<(), Problem> {
    let source = tool.text("source", notes).unwrap_or("local");
    let name = || quoted(manifest.name.as_deref().unwrap_or_default());
    if !(source == "local" || source.starts_with("local.")) {
        return Err(format!(
            "the tool {} has the source {}; only `local` tools with `wasm` are components",
            name(),
            quoted(source)
        ));
    }
    let Some(wasm) = tool.text("wasm", notes) else {
        let what = match tool.take("command") {
            Some(_) => "runs a command, which kitbag does not",
            None => "names no component with `wasm`",
        };
        return Err(format!("the tool {} {what}", name()));
    };
    tool.remark(&["command"], "JP ignores it beside `wasm`; it is ignored", notes);
    manifest.component = Some(wasm.to_owned());
    manifest.description = description(&mut tool, notes);
    tool.remark(&["examples"], "kitbag has no examples of tools; it is ignored", notes);
    let run = match (tool.take("run"), default_run) {
        (Some(run), _) | (None, Some(run)) => Some(run),
        (None, None) => None,
    };
    match run {
        None => {}
        Some(Node::Text(run)) if run == "unattended" => {}
        Some(Node::Text(run)) if run == "ask" => manifest.is_approved_per_call = true,
        Some(other) => {
            manifest.is_approved_per_call = true;
            let said = match other {
                Node::Text(text) => quoted(text),
                other => other.kind().to_owned(),
            };
            notes.add(
                tool.path("run"),
                format!("{said} is treated as `ask`: a person approves each call"),
            );
        }
    }
    questions(&mut tool, notes);
    if let Some(parameters) = tool.table("parameters", notes) {
        manifest.parameters = Some(self::parameters(&parameters, notes));
    }
    access(&mut tool, manifest, notes);
    tool.remark(&["options"], "grant settings yourself with `grants.config`; it is ignored", notes);
    tool.remark(&SHOWN, "it controls how JP offers or shows the tool; it is ignored", notes);
    tool.note_unread(notes);
    Ok(())
}

/// Joins `summary` and `description`, which JP shows to a model in two steps.
fn description(fields: &mut Fields<'_>, notes: &mut Notes) -> Option<String> {
    let texts = [fields.text("summary", notes), fields.text("description", notes)];
    let texts: Vec<_> = texts.into_iter().flatten().map(str::trim).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Notes preset answers: only a person may preset answers.
fn questions(tool: &mut Fields<'_>, notes: &mut Notes) {
    let Some(questions) = tool.table("questions", notes) else { return };
    for (path, id, node) in questions.entries() {
        let Some(mut question) = Fields::of(path, node, notes) else { continue };
        if question.take("answer").is_some() {
            let text = format!(
                "only you can preset an answer; it is ignored: set {} in `answers` of the tool",
                quoted(id)
            );
            notes.add(question.path("answer"), text);
        }
        match question.take("target") {
            None => {}
            Some(Node::Text(target)) if target == "user" => {}
            Some(_) => {
                notes.add(question.path("target"), "a person answers, not a model; it is ignored");
            }
        }
        question.note_unread(notes);
    }
}

fn parameters(fields: &Fields<'_>, notes: &mut Notes) -> toml::Table {
    let mut table = toml::Table::new();
    for (path, name, node) in fields.entries() {
        if let Some(fields) = Fields::of(path, node, notes) {
            table.insert(name.to_owned(), parameter(fields, notes).into());
        }
    }
    table
}

/// Translates a parameter into kitbag's form. Restrictions that cannot be read are noted.
fn parameter(mut fields: Fields<'_>, notes: &mut Notes) -> toml::Table {
    let mut table = toml::Table::new();
    match fields.take("type") {
        None => {}
        Some(Node::Text(kind)) => drop(table.insert("type".to_owned(), (&**kind).into())),
        Some(Node::List(kinds)) => match &kinds[..] {
            [Node::Text(kind)] => drop(table.insert("type".to_owned(), (&**kind).into())),
            _ => notes.add(fields.path("type"), "several types are read as any value"),
        },
        Some(other) => notes.wrong_type(fields.path("type"), "a type", other),
    }
    if let Some(description) = description(&mut fields, notes) {
        table.insert("description".to_owned(), description.into());
    }
    if let Some(required) = fields.bool("required", notes) {
        table.insert("required".to_owned(), required.into());
    }
    for key in ["default", "enum"] {
        if let Some(node) = fields.take(key) {
            match value(node) {
                Some(value) => drop(table.insert(key.to_owned(), value)),
                None => notes.add(fields.path(key), "it cannot be read; it is ignored"),
            }
        }
    }
    if let Some(items) = fields.table("items", notes) {
        table.insert("items".to_owned(), parameter(items, notes).into());
    }
    if let Some(properties) = fields.table("properties", notes) {
        table.insert("properties".to_owned(), parameters(&properties, notes).into());
    }
    fields.remark(&["examples"], "kitbag has no examples of parameters; it is ignored", notes);
    fields.note_unread(notes);
    table
}

pub(super) fn value(node: &Node) -> Option<toml::Value> {
    Some(match node {
        Node::Bool(value) => (*value).into(),
        Node::Integer(value) => i64::try_from(*value).ok()?.into(),
        Node::Number(text) => text.parse::<f64>().ok().filter(|value| value.is_finite())?.into(),
        Node::Text(text) => text.clone().into(),
        Node::List(list) => list.iter().map(value).collect::<Option<Vec<_>>>()?.into(),
        Node::Table(entries) => {
            let entries = entries.iter().map(|(key, node)| Some((key.clone(), value(node)?)));
            toml::Value::Table(entries.collect::<Option<_>>()?)
        }
        Node::Null | Node::Unusable(_) => return None,
    })
}

/// Reads `access`: rules for workspace paths and for variables. Without rules the tool gets the
/// whole workspace.
fn access(tool: &mut Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let access = tool.table("access", notes);
    let has_rules = access.is_some();
    if let Some(mut access) = access {
        directories(&mut access, manifest, notes);
        variables(&mut access, manifest, notes);
        access.note_unread(notes);
    }
    if !has_rules {
        let text = "JP lets the tool read and write the workspace; only read access is requested";
        notes.add(tool.own_path(), text);
        let (host, guest) = (".".to_owned(), "/workspace".to_owned());
        manifest.requested.directories.push(ManifestDirectory { host, guest, is_writable: false });
    }
}

fn directories(access: &mut Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let (mut allowed, mut denied) = (Vec::new(), Vec::new());
    for (path, node) in access.list("fs", notes).unwrap_or_default() {
        let Some(mut rule) = Fields::of(path.clone(), node, notes) else { continue };
        let Some(host) = rule.text("path", notes) else {
            notes.add(path, "it names no path; it is dropped");
            continue;
        };
        let mut flag = |key| rule.bool(key, notes);
        let (reads, write) = (flag("read").unwrap_or(false), flag("write").unwrap_or(false));
        let writes = ["create", "update", "delete"].map(|key| flag(key).unwrap_or(write));
        if flag("external") == Some(true) {
            let text =
                "it leads out of the workspace; it is dropped: grant that directory yourself";
            notes.add(rule.path("external"), text);
            continue;
        }
        if flag("execute") == Some(true) {
            notes.add(rule.path("execute"), "a component runs no programs; it is ignored");
        }
        rule.note_unread(notes);
        match (reads, writes.contains(&true)) {
            (false, false) => denied.push(host),
            (false, true) => notes.add(path, "no grant allows only writing; it is dropped"),
            (true, any) => {
                let is_writable = writes == [true; 3];
                if any && !is_writable {
                    let text = "a grant to write includes creating, changing and removing; only \
                                read access is requested";
                    notes.add(path.clone(), text);
                }
                allowed.push((path, host, is_writable));
            }
        }
    }
    for (path, host, is_writable) in allowed {
        if let Some(denied) = denied.iter().find(|denied| is_below(denied, host)) {
            notes.add(path, format!("{} is denied in it; it is dropped", quoted(denied)));
            continue;
        }
        match directory(host, is_writable) {
            Ok(requested) => manifest.requested.directories.push(requested),
            Err(reason) => notes.add(path, reason),
        }
    }
}

/// Returns whether a path of the workspace is in a directory, or is the directory itself.
fn is_below(path: &str, directory: &str) -> bool {
    let parts = |path: &str| {
        let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    parts(path).starts_with(&parts(directory))
}

fn directory(text: &str, is_writable: bool) -> Result<ManifestDirectory, String> {
    let host = host_path(text)?;
    if host.starts_with(['/', '~']) {
        return Err(format!("{} is not a path in the workspace; it is dropped", quoted(text)));
    }
    let relative = host.trim_start_matches("./").trim_end_matches('/');
    let guest = match relative {
        "" | "." => "/workspace".to_owned(),
        relative => format!("/workspace/{relative}"),
    };
    Ok(ManifestDirectory { guest: guest_path(&guest)?, host, is_writable })
}

fn variables(access: &mut Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    for (path, node) in access.list("env", notes).unwrap_or_default() {
        let Some(mut rule) = Fields::of(path.clone(), node, notes) else { continue };
        let name = rule.text("name", notes);
        let reads = rule.bool("read", notes).unwrap_or(false);
        rule.note_unread(notes);
        match name {
            Some(name) if reads => manifest.requested.variable(path, name, notes),
            // A variable without a rule is not requested anyway.
            Some(_) => {}
            None => notes.add(path, "it names no variable; it is dropped"),
        }
    }
}
