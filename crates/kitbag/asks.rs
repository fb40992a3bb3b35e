//! What a workspace asks, in lines that a person reads.

use kitbag_config::{Config, OFF_BY_DEFAULT, Problem, Tool, ToolSource};
use kitbag_contract::text::shown;
use kitbag_files::{ProtectedNames, canonical};
use kitbag_policy::{Access, DirectoryGrant, HttpGrant, Kind, SecretGrant, VariableGrant};
use kitbag_policy::{StorageGrant, ToolGrants as CallableTools};

/// The kinds of grants, in the order in which they are shown.
const KINDS: [&str; 6] = [
    SecretGrant::KEY,
    HttpGrant::KEY,
    VariableGrant::KEY,
    DirectoryGrant::KEY,
    CallableTools::KEY,
    StorageGrant::KEY,
];

/// What the files of the workspace ask: tool by tool what it is and what it is granted, then the
/// rest. Each line can be understood by itself.
pub(crate) fn asks(config: &Config) -> Vec<String> {
    let mut lines = Vec::new();
    for tool in config.tools.values() {
        lines.extend(of_tool(config, tool));
        for kind in KINDS {
            let is_asked = config.is_of_workspace(tool.grants.origin_of(kind));
            if is_own(config, tool) || is_asked {
                lines.extend(of_kind(config, tool, kind));
            }
        }
    }
    for topic in config.topics.values() {
        if config.is_of_workspace(&topic.subjects.origin) {
            let path = canonical(&topic.subjects.value);
            let path = place(config, &path);
            let mut line = format!("topic `{}` reads {path}", shown(&topic.id));
            if !topic.include.value.is_empty() {
                let globs = topic.include.value.join("`, `");
                line.push_str(&format!(", with what looks like a secret: `{}`", shown(&globs)));
            }
            lines.push(line);
        }
    }
    let toolsets = &config.toolsets;
    if toolsets.write.value && config.is_of_workspace(&toolsets.write.origin) {
        lines.push("built-in tools change the files of the workspace".into());
    }
    for (name, switch) in &toolsets.switches {
        let is_asked = switch.value && config.is_of_workspace(&switch.origin);
        if is_asked && OFF_BY_DEFAULT.contains(name) {
            lines.push(format!("the tools of `{name}` keep what later sessions read"));
        }
    }
    lines
}

/// Whether the code of a tool is the workspace's.
fn is_own(config: &Config, tool: &Tool) -> bool {
    match &tool.source.value {
        ToolSource::Local(local) => config.is_of_workspace(&local.wasm.origin),
        ToolSource::Script(script) => config.is_of_workspace(&script.path.origin),
        ToolSource::Builtin { .. } | ToolSource::Bytes(_) | ToolSource::Native => false,
    }
}

/// What a tool is granted of a kind.
fn of_kind(config: &Config, tool: &Tool, key: &str) -> Vec<String> {
    let name = &tool.name;
    if key == DirectoryGrant::KEY {
        let grants = tool.grants.value.directories.iter();
        return grants.map(|grant| format!("tool `{name}` {}", directory(config, grant))).collect();
    }
    if key == VariableGrant::KEY {
        // Whether they are set now says nothing of what is asked.
        let names = tool.grants.value.variables.iter().map(|variable| &variable.name);
        let line =
            |variable| format!("tool `{name}` sees a variable of your environment: {variable}");
        return names.map(line).collect();
    }
    let kinds = tool.grants.value.kinds();
    let kind = kinds.into_iter().find(|kind| kind.key() == key);
    let lines = kind.map(Kind::lines).unwrap_or_default();
    let mut lines: Vec<_> = lines
        .into_iter()
        .map(|line| match key {
            SecretGrant::KEY => format!("tool `{name}` uses your {line}"),
            HttpGrant::KEY => format!("tool `{name}` sends requests: {line}"),
            CallableTools::KEY => {
                let called = ["tools → ", "tool "].iter().find_map(|it| line.strip_prefix(it));
                format!("tool `{name}` calls {}", called.unwrap_or(&line))
            }
            _ => format!("tool `{name}` has {line}"),
        })
        .collect();
    if key == SecretGrant::KEY {
        // It would have one of this name as soon as there is one.
        let missing = tool.grants.warnings.iter().filter_map(|warning| match &warning.value {
            Problem::NoSecret { name: secret } => Some(format!(
                "tool `{name}` uses your secret {}, which you do not have yet",
                shown(secret)
            )),
            _ => None,
        });
        lines.extend(missing);
    }
    lines
}

/// What a tool does in a directory.
fn directory(config: &Config, grant: &DirectoryGrant) -> String {
    let does = match grant.access {
        Access::ReadOnly => "reads",
        Access::ReadWrite => "reads and changes",
    };
    if grant.is_temporary() {
        return "has a directory of its own in each run".to_owned();
    }
    let mut line = format!("{does} {}", place(config, &grant.host));
    if !grant.include.is_empty() {
        let globs = grant.include.join("`, `");
        line.push_str(&format!(", with what looks like a secret: `{}`", shown(&globs)));
    }
    if let (Access::ReadWrite, Some(protected)) = (grant.access, &grant.protected) {
        line.push_str(&unprotected(protected));
    }
    line
}

/// The files of other programs that a grant lets a tool write, with its own list of protected
/// names.
fn unprotected(protected: &[String]) -> String {
    let joined = |names: Vec<&str>| shown(&names.join("`, `")).to_string();
    let (exceptions, names): (Vec<_>, Vec<_>) =
        protected.iter().map(String::as_str).partition(|name| name.starts_with('!'));
    match (names.contains(&ProtectedNames::BUILT_IN), names.is_empty()) {
        (true, _) if exceptions.is_empty() => String::new(),
        (true, _) => format!(
            ", with files named `{}` of other programs",
            joined(exceptions.iter().map(|name| &name[1..]).collect())
        ),
        (false, true) => ", with the files by which other programs run something".to_owned(),
        (false, false) => format!(
            ", with the files by which other programs run something, but not `{}`",
            joined(names)
        ),
    }
}

/// What else is asked of a tool.
fn of_tool(config: &Config, tool: &Tool) -> Vec<String> {
    let (name, source) = (&tool.name, &tool.source.value);
    let is_own = is_own(config, tool);
    let mut lines = Vec::new();
    match source {
        ToolSource::Local(local) if is_own => {
            let path = canonical(&local.wasm.value);
            let mut line = format!("tool `{name}` runs {}", place(config, &path));
            if local.dev.value {
                let by = &local.dev.origin;
                line.push_str(&format!(", and each later build of it (`dev = true`, {by})"));
            }
            lines.push(line);
        }
        ToolSource::Script(script) if is_own => {
            lines.push(format!("tool `{name}` runs {}", place(config, &script.path.value)));
        }
        ToolSource::Builtin { name: own }
            if own.value != name.as_str() && config.is_of_workspace(&own.origin) =>
        {
            lines.push(format!("tool `{name}` is the built-in `{}`", shown(&own.value)));
        }
        _ => {}
    }
    if let Some(replaced) = source.replaces().filter(|own| config.is_of_workspace(&own.origin)) {
        let own = shown(&replaced.value);
        lines.push(format!("tool `{name}` takes the place of the built-in `{own}`"));
    }
    if let (ToolSource::Builtin { .. }, Some(description)) = (source, &tool.description)
        && config.is_of_workspace(&description.origin)
    {
        lines.push(format!("tool `{name}` is described to models in other words than its own"));
    }
    // What the user's own file says of a name holds for whatever a workspace has by that name.
    for (id, answer) in &tool.answers {
        let value = answer.value.to_string();
        let (id, value) = (shown(id), shown(&value));
        let line = format!("tool `{name}` is answered `{id}` with {value} without asking you");
        match (config.is_of_workspace(&answer.origin), is_own) {
            (true, _) => lines.push(line),
            (false, true) => lines.push(format!("{line} ({})", answer.origin)),
            (false, false) => {}
        }
    }
    if let (true, Some(by)) = (is_own, &tool.approve.never) {
        lines.push(format!(
            "tool `{name}` is called without asking you (`approve = \"never\"`, {by})"
        ));
    }
    lines
}

/// A canonical path, and whether it is in the workspace.
fn place(config: &Config, path: &std::path::Path) -> String {
    let root = canonical(&config.root.value);
    match path.strip_prefix(&root) {
        Ok(inside) if inside.as_os_str().is_empty() => "the workspace".into(),
        Ok(inside) => format!("`{}`", shown(&inside.to_string_lossy())),
        Err(_) => {
            let path = path.to_string_lossy();
            format!("`{}`, which is outside of the workspace", shown(&path))
        }
    }
}
