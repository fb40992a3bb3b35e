//! `kitbag describe`.

mod server;

use std::fmt::Write as _;

use kitbag::Tool;
use kitbag::base::format_duration;
use kitbag::base::shell;
use kitbag::base::text::{printable, shown};
use kitbag::config::{Disabled, Origin, Sourced, ToolRate, ToolSource, address_words};
use kitbag::host::Lane;
use kitbag::policy::Kind;
use kitbag::toolbox::consent::quoted;
use serde_json::{Value, json};

use crate::commands::{Global, LimitArgs, ToolArg, warn, warn_description};
use crate::console::listener::Screen;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag describe learn
  kitbag describe ./word_count.wasm
  kitbag describe db")]
pub(crate) struct Args {
    #[command(flatten)]
    tool: ToolArg,
    #[command(flatten)]
    limits: LimitArgs,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        if let Some(described) = server::described(&self.tool, &global)? {
            return Ok(described);
        }
        let called = self.tool.as_typed();
        let (kitbag, name) = self.tool.kitbag(&global, self.limits)?;
        let describe = |events| kitbag.toolbox().with_events(events).tool_or_disabled(&name);
        let (tool, disabled) = Screen::during(global.json, describe)?;
        warn(&tool.cache_problems);
        if let Some(problem) = &tool.description_problem {
            warn_description(tool.name.as_str(), problem);
        }
        let omitted = match tool.lane {
            Some(Lane::Functions) => kitbag.toolbox().omissions(&tool.name),
            _ => Vec::new(),
        };
        match global.json {
            true => {
                let mut object = as_json(&tool, disabled.as_ref());
                if let ToolSource::Local(local) = &tool.source
                    && let Some(recorded) = &local.recorded
                    && let Some(download) = &recorded.tool.download
                {
                    object["download"] = json!({
                        "reference": recorded.tool.origin,
                        "digest": download.digest,
                        "signer": download.signer,
                    });
                }
                if !omitted.is_empty() {
                    object["omitted"] = json!(omitted);
                }
                output::json(&object)?;
            }
            false => {
                let end = match &disabled {
                    None => call(&called, &tool),
                    Some(reason) => format!("\nThe tool is {}\n", printable(&reason.to_string())),
                };
                let omitted = super::omitted(&omitted);
                output::data(&format!("{}{omitted}{end}", as_text(&tool)))?;
            }
        }
        Ok(Exit::Done)
    }
}

/// Arguments that work with each built-in, sorted by name. Built-ins that need a file use
/// `notes.txt`, which the example of `write_file` creates.
const EXAMPLES: [(&str, &[&str]); 25] = [
    ("add_time", &["time=2026-03-01T09:00:00Z", "duration=2 days"]),
    ("apply_patch", &["patch=*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch"]),
    ("calculate", &["expression=2 + 3 * 4"]),
    ("convert_data", &[r#"text={"a":1}"#, "to=yaml"]),
    ("convert_time", &["time=2026-03-01T09:00:00Z", "to=Europe/Berlin"]),
    ("count_text", &["text=hello"]),
    ("decode_text", &["text=aGVsbG8=", "encoding=base64"]),
    ("diff_text", &["old=one", "new=two"]),
    ("edit_file", &["path=notes.txt", r#"edits:=[{"old_text":"hello","new_text":"hi"}]"#]),
    ("encode_text", &["text=hello", "encoding=base64"]),
    ("file_info", &["path=."]),
    ("hash_text", &["text=hello"]),
    ("html_to_markdown", &["text=<h1>Hello</h1>"]),
    ("make_dir", &["path=notes"]),
    ("move_path", &["path=notes.txt", "to=moved.txt"]),
    ("parse_time", &["time=2026-03-01T09:00:00Z"]),
    ("patch_data", &[r#"text={"a":1}"#, r#"merge:={"a":2}"#]),
    ("python", &["code=print(1 + 1)"]),
    ("query_data", &[r#"text={"a":1}"#, "query=$.a"]),
    ("read_file", &["path=notes.txt"]),
    ("remember", &["text=The build takes two minutes."]),
    ("time_between", &["from=2026-03-01T09:00:00Z", "to=2026-04-01T09:00:00Z"]),
    ("todo", &["action=add", "text=Write the tests"]),
    ("validate_data", &[r#"text={"a":1}"#, r#"schema:={"type":"object"}"#]),
    ("write_file", &["path=notes.txt", "content=hello"]),
];

/// Returns a command that calls the tool: the example of a built-in, or a value for each required
/// argument.
fn call(called: &[String], tool: &Tool) -> String {
    if let ToolSource::Builtin { name } = &tool.source
        && let Some((_, example)) = EXAMPLES.iter().find(|(builtin, _)| name.value == *builtin)
    {
        let words = ["kitbag", "run"].into_iter().chain(called.iter().map(String::as_str));
        let words: Vec<_> = words.chain(example.iter().copied()).collect();
        return format!("\nCall it\n  {}\n", shell::command(words));
    }
    let schema = json!(tool.input_schema.value);
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    let required = required.into_iter().filter_map(Value::as_str);
    let mut words = vec!["kitbag".to_owned(), "run".to_owned()];
    words.extend_from_slice(called);
    words.extend(required.map(|key| {
        let property = &schema["properties"][key];
        let known = [&property["examples"][0], &property["default"], &property["enum"][0]];
        match known.into_iter().find(|value| !value.is_null()) {
            Some(Value::String(text)) => format!("{key}={text}"),
            Some(value) => format!("{key}:={value}"),
            None => match property["type"].as_str() {
                Some("array") => format!("{key}:=[]"),
                Some("object") => format!("{key}:={{}}"),
                Some("integer" | "number") => format!("{key}=1"),
                Some("boolean") => format!("{key}=true"),
                _ => format!("{key}=TEXT"),
            },
        }
    }));
    format!("\nCall it\n  {}\n", shell::command(words))
}

fn as_text(tool: &Tool) -> String {
    let mut text = match &tool.source {
        ToolSource::Builtin { .. } => format!("{} (built-in)\n", tool.name),
        ToolSource::Script(script) => {
            format!("{} ({})\n", tool.name, shown(&script.path.value.to_string_lossy()))
        }
        ToolSource::Server(of) => {
            format!("{} (tool {} of the server `{}`)\n", tool.name, quoted(&of.tool), of.server)
        }
        ToolSource::Bytes(_) => format!("{} (bytes)\n", tool.name),
        ToolSource::Native => format!("{} (native)\n", tool.name),
        ToolSource::Local(local) if local.wasm.origin == Origin::Caller => {
            format!("{} ({})\n", tool.name, shown(&local.wasm.value.to_string_lossy()))
        }
        ToolSource::Local(local) => {
            format!(
                "{} ({}, named in {})\n",
                tool.name,
                shown(&local.wasm.value.to_string_lossy()),
                local.wasm.origin
            )
        }
    };
    if let Some(lane) = tool.lane.filter(|lane| lane.is_foreign()) {
        let _ = writeln!(text, "Kind: {}; has only the grants below", lane.words());
    }
    if let ToolSource::Local(local) = &tool.source
        && let Some(line) = super::download(local)
    {
        let _ = writeln!(text, "Download: {line}");
    }
    let mut section = |title: &str, origin: &Origin, body: &str| {
        let _ = write!(text, "\n{title} [{origin}]\n");
        for line in body.lines() {
            let _ = writeln!(text, "{}", format!("  {}", printable(line)).trim_end());
        }
    };
    for (title, said) in [("Title", &tool.title), ("Description", &tool.description)] {
        if let Some(Sourced { value, origin }) = said {
            section(title, origin, value);
        }
    }
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    section("Arguments", &tool.input_schema.origin, &pretty(&tool.input_schema.value));
    if let Some(schema) = &tool.output_schema {
        section("Output", &schema.origin, &pretty(&schema.value));
    }
    let is_builtin = matches!(tool.source, ToolSource::Builtin { .. });
    let requests = tool.requested_grants.requests();
    // A built-in has its requested grants. Some of its directories depend on the call.
    let (per_call, requested): (Vec<_>, Vec<_>) =
        requests.partition(|request| is_builtin && request.is_given_by_call());
    if let ToolSource::Server(of) = &tool.source {
        let access = format!("the server {}", address_words(&of.address));
        section("Access", &Origin::Default, &access);
    } else {
        let grants = tool.grants.value.lines(&per_call).join("\n");
        section("Grants", tool.grants.origin(), &grants);
    }
    if !requested.is_empty() {
        let requested: Vec<_> = requested.iter().map(ToString::to_string).collect();
        section("Requested grants", &Origin::Tool, &requested.join("\n"));
    }
    let limits = &tool.limits;
    section("Memory", &limits.memory.origin, &limits.memory.value.to_string());
    section("Time", &limits.time.origin, &format_duration(limits.time.value).to_string());
    section("Output size", &limits.output.origin, &limits.output.value.to_string());
    section("Written", &limits.written.origin, &limits.written.value.to_string());
    if !tool.grants.value.http.is_empty() {
        section("Requests", &limits.requests.origin, &limits.requests.value.to_string());
    }
    if !tool.grants.value.tools.is_empty() {
        section("Tool calls", &limits.tool_calls.origin, &limits.tool_calls.value.to_string());
    }
    if let Some(fuel) = &limits.fuel {
        section("Fuel", &fuel.origin, &fuel.value.to_string());
    }
    if tool.source.is_component() {
        let compile = &limits.compile;
        section("Compile time", &compile.origin, &format_duration(compile.value).to_string());
    }
    for ToolRate { rates, counted_as } in &tool.rates {
        let counted = match *counted_as == tool.name {
            true => String::new(),
            false => format!(", counted as `{counted_as}`"),
        };
        section("Rate", &rates.origin, &format!("{}{counted}", rates.value));
    }
    for rule in &tool.approve.rules {
        section("Approval", &rule.origin, &rule.value.to_string());
    }
    for (question, answer) in &tool.answers {
        section(
            &format!("Answer to `{}`", shown(question)),
            &answer.origin,
            &answer.value.to_string(),
        );
    }
    text
}

fn as_json(tool: &Tool, disabled: Option<&Disabled>) -> Value {
    let sourced =
        |value: Value, origin: &Origin| json!({ "value": value, "origin": origin.to_string() });
    let text = |said: &Option<Sourced<String>>| {
        said.as_ref().map(|said| sourced(said.value.as_str().into(), &said.origin))
    };
    let kind = |kind: &dyn Kind| {
        let origin = tool.grants.origin_of(kind.key());
        (kind.key().to_owned(), sourced(kind.to_json(), origin))
    };
    let rate = |ToolRate { rates, counted_as }: &ToolRate| {
        let mut rate = sourced(rates.value.to_string().into(), &rates.origin);
        rate["countedAs"] = json!(counted_as);
        rate
    };
    let grants: serde_json::Map<_, _> = tool.grants.kinds().map(kind).collect();
    let limits = &tool.limits;
    let answers: serde_json::Map<_, _> = tool
        .answers
        .iter()
        .map(|(id, answer)| (id.clone(), sourced(answer.value.clone(), &answer.origin)))
        .collect();
    json!({
        "name": tool.name,
        "disabled": disabled.map(ToString::to_string),
        "source": match &tool.source {
            ToolSource::Builtin { name } => json!({ "builtin": name.value }),
            ToolSource::Local(local) => json!({ "wasm": local.wasm.value }),
            ToolSource::Script(script) => json!({ "script": script.path.value }),
            ToolSource::Bytes(_) => json!({ "bytes": true }),
            ToolSource::Native => json!({ "native": true }),
            ToolSource::Server(of) => json!({ "server": of.server, "tool": of.tool }),
        },
        "lane": tool.lane,
        "title": text(&tool.title),
        "description": text(&tool.description),
        "inputSchema": sourced(json!(tool.input_schema.value), &tool.input_schema.origin),
        "outputSchema": tool.output_schema.as_ref().map(|s| sourced(json!(s.value), &s.origin)),
        "annotations": tool.annotations,
        "grants": grants,
        "wouldLike": tool.requested_grants,
        "approve": tool.approve.rules.iter()
            .map(|rule| sourced(rule.value.to_json(), &rule.origin)).collect::<Vec<_>>(),
        "rates": tool.rates.iter().map(rate).collect::<Vec<_>>(),
        "limits": {
            "memory": sourced(limits.memory.value.to_string().into(), &limits.memory.origin),
            "time": sourced(format_duration(limits.time.value).to_string().into(), &limits.time.origin),
            "output": sourced(limits.output.value.to_string().into(), &limits.output.origin),
            "written": sourced(limits.written.value.to_string().into(), &limits.written.origin),
            "requests": sourced(limits.requests.value.into(), &limits.requests.origin),
            "toolCalls": sourced(limits.tool_calls.value.into(), &limits.tool_calls.origin),
            "fuel": limits.fuel.as_ref().map(|fuel| sourced(fuel.value.into(), &fuel.origin)),
            "compile": sourced(format_duration(limits.compile.value).to_string().into(), &limits.compile.origin),
        },
        "answers": answers,
    })
}
