//! The output of a `---` section in a case.

use kitbag_config::{
    BuiltinTool, CallGrants, Config, ConfiguredServer, ConfiguredTool, Diagnostic, Disabled,
    Origin, Sourced, Sources, ToolSource, TrustSource, address_words, load, load_isolated,
};
use kitbag_policy::Access;

use crate::support::{Fixture, problems};

const NONE: BuiltinTool<'static> = BuiltinTool {
    name: "",
    toolset: "",
    workspace: None,
    keeps: false,
    given_by_call: &[],
    required: &[],
    calls: false,
};

/// A tool that receives a directory with each call.
const LEARN: BuiltinTool<'static> =
    BuiltinTool { name: "learn", toolset: "learn", given_by_call: &["/subjects"], ..NONE };

/// A tool without requests.
const NOTES: BuiltinTool<'static> = BuiltinTool { name: "notes", toolset: "notes", ..NONE };

const NOW: BuiltinTool<'static> = BuiltinTool { name: "now", toolset: "time", ..NONE };

const fn file(name: &'static str, access: Access) -> BuiltinTool<'static> {
    BuiltinTool { name, toolset: "files", workspace: Some(access), ..NONE }
}

/// Returns the built-in tools for the name in a section `builtins`.
pub(crate) fn builtins(name: &str) -> &'static [BuiltinTool<'static>] {
    match name {
        "default" => const { &[LEARN, NOTES] },
        // A tool that reads the workspace, a tool that changes it, and a tool without access to
        // files.
        "files" => {
            const { &[file("read", Access::ReadOnly), file("edit", Access::ReadWrite), NOW] }
        }
        // A tool of a toolset that is off by default.
        "memory" => {
            const {
                &[BuiltinTool {
                    name: "remember",
                    toolset: "memory",
                    keeps: true,
                    required: &[("storage", "storage = true")],
                    ..NONE
                }]
            }
        }
        "python" => {
            const {
                &[
                    BuiltinTool {
                        toolset: "python",
                        calls: true,
                        ..file("python", Access::ReadOnly)
                    },
                    NOTES,
                ]
            }
        }
        // A tool for each kind of restriction.
        "restricted" => {
            const {
                &[
                    BuiltinTool {
                        name: "fetch",
                        toolset: "fetch",
                        required: &[("http", "http = [\"https://docs.rs/**\"]")],
                        ..NONE
                    },
                    LEARN,
                    NOW,
                    file("read_file", Access::ReadOnly),
                    file("write_file", Access::ReadWrite),
                ]
            }
        }
        name => panic!("no built-ins are named `{name}`"),
    }
}

/// Returns the output of a section with this head.
pub(crate) fn output(fixture: &Fixture, head: &str) -> String {
    let (kind, rest) = head.split_once(' ').unwrap_or((head, ""));
    let of = |lines: Vec<String>| {
        fixture.redact(&lines.into_iter().map(|line| line + "\n").collect::<String>())
    };
    match kind {
        "problems" => fixture.problems(),
        "shown" => fixture.shown() + "\n",
        "rows" => of(rows(&fixture.load(), rest)),
        "grants" => of(grants(&fixture.load().tools[rest])),
        "call" => of(call(fixture, rest)),
        "tools" => of(fixture.load().tools.values().map(tool).collect()),
        "servers" => of(fixture.load().servers.values().map(server).collect()),
        "warnings" => {
            let config = fixture.load();
            let servers = config.servers.values().flat_map(|server| &server.warnings);
            let warnings = config.warnings.iter().chain(&config.unmatched).chain(&config.absent);
            let warnings = warnings.chain(servers);
            of(warnings.map(Diagnostic::line).collect())
        }
        "schema" => {
            let source = &fixture.load().tools[rest].source.value;
            let parameters = source.parameters().expect("it has parameters");
            serde_json::to_string_pretty(&parameters.input_schema()).unwrap() + "\n"
        }
        "isolated" => isolated(fixture, rest, of),
        _ => panic!("`--- {head}` is not a section"),
    }
}

/// Returns every value below a key, with its place.
fn rows(config: &Config, key: &str) -> Vec<String> {
    let is_below = |row: &str| {
        key.is_empty()
            || row.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let rows = config.rows().into_iter().filter(|row| is_below(&row.key));
    rows.map(|row| format!("{} = {} # {}", row.key, row.value, row.origin)).collect()
}

/// Returns the grants of a tool, each with its place, followed by the warnings.
fn grants(tool: &ConfiguredTool) -> Vec<String> {
    let grants = &tool.grants;
    let mut lines = Vec::new();
    for kind in grants.value.kinds() {
        for line in kind.lines() {
            lines.push(format!("{line} # {}", grants.place_of(kind.key(), &line)));
        }
    }
    for variable in &grants.value.variables {
        let value = variable.value.as_deref().map(|value| &value[..value.len().min(20)]);
        lines.push(format!("{} = {value:?}", variable.name));
    }
    for pattern in grants.value.http.deny.patterns() {
        let place = grants
            .denied_at(&pattern.to_string())
            .map_or("every tool".to_owned(), ToString::to_string);
        lines.push(format!("deny {pattern} # {place}"));
    }
    lines.extend(grants.warnings.iter().map(Diagnostic::line));
    lines
}

/// Returns the grants of `learn` with a grant of the command line for one call.
fn call(fixture: &Fixture, grant: &str) -> Vec<String> {
    let call = CallGrants { tool: "learn".into(), grants: vec![grant.to_owned()] };
    match load(&Sources { call_grants: Some(call), ..fixture.sources() }) {
        Ok(config) => {
            assert!(config.tools["notes"].grants.value.http.grants.is_empty(), "{grant}");
            grants(&config.tools["learn"])
        }
        Err(errors) => vec![errors.to_string()],
    }
}

/// Describes a tool: its source, its access or the reason why it is off, and its rates.
fn tool(tool: &ConfiguredTool) -> String {
    let mut line = match &tool.source.value {
        ToolSource::Builtin { name } => format!("{}: built-in {}", tool.name, name.value),
        ToolSource::Local(local) => format!("{}: {}", tool.name, local.wasm.value.display()),
        ToolSource::Script(script) => format!("{}: {}", tool.name, script.path.value.display()),
        ToolSource::Server(of) => format!("{}: {}", tool.name, of.source()),
        source => panic!("no file names {source:?}"),
    };
    line += &match &tool.disabled {
        None if matches!(tool.source.value, ToolSource::Server(_)) => String::new(),
        None => format!(", {}", tool.grants.value.brief(&[])),
        Some(reason) => format!(", {reason}"),
    };
    for rate in &tool.rates {
        line += &format!(", {} as {} # {}", rate.rates.value, rate.counted_as, rate.rates.origin);
    }
    line
}

/// Describes a server: its address, and the reason why it is off.
fn server(server: &ConfiguredServer) -> String {
    let address = server.address.as_ref();
    let address = address.map_or("unknown".to_owned(), |address| address_words(&address.value));
    let off = server.disabled.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
    format!("{} {address}{off}", server.name)
}

/// Returns the tools that are off because of a mistake, and the mistakes. `!` marks broken tools,
/// and `?` tools that are off for another reason.
fn isolated(fixture: &Fixture, mode: &str, of: impl Fn(Vec<String>) -> String) -> String {
    let mut sources = fixture.sources();
    match mode {
        "" => {}
        "untrusted" => {
            sources.trust = TrustSource::Said(Sourced { value: false, origin: Origin::Caller });
        }
        // A server continues if the user config has mistakes.
        "server" => (sources.is_server, sources.isolates_own) = (true, true),
        mode => panic!("`{mode}` is not a mode"),
    }
    let config = match load_isolated(&sources) {
        Ok(config) => config,
        errors => return problems(&errors, fixture),
    };
    let off = config.tools.values().filter_map(|tool| match tool.disabled.as_ref()? {
        Disabled::Broken { .. } => Some(format!(" {}!", tool.name)),
        Disabled::Unrestricted { .. } => Some(format!(" {}", tool.name)),
        _ => Some(format!(" {}?", tool.name)),
    });
    let off = off.chain(config.servers.values().filter_map(|server| {
        let reason = server.disabled.as_ref()?;
        let mark = if matches!(reason, Disabled::Broken { .. }) { "!" } else { "?" };
        Some(format!(" server:{}{mark}", server.name))
    }));
    let off = format!("off:{}", off.collect::<String>());
    let broken = config.broken.iter().map(|broken| match broken.is_own {
        true => format!("own: {broken}"),
        false => broken.to_string(),
    });
    of([off].into_iter().chain(broken).collect())
}
