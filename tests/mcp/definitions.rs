//! Definitions for models and clients: every format, the features that it cannot express, and the
//! calls that come back.

use std::fs;

use kitbag::Tool;
use kitbag::toolbox::definitions::{Format, without_nulls};
use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Workspace, crafted, guest, snapshot};

/// A schema with a difficulty for every format.
fn demanding() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "File." },
            "depth": { "type": "integer", "minimum": 0, "default": 3 },
            "mode": { "enum": ["fast", "slow"] },
            "range": {
                "type": "object",
                "properties": { "from": { "type": "integer" }, "to": { "type": "integer" } },
                "required": ["from"],
            },
            "filter": { "oneOf": [{ "type": "string" }, { "$ref": "#/$defs/filter" }] },
        },
        "required": ["path"],
        "additionalProperties": false,
        "$defs": { "filter": {
            "type": "object",
            "properties": { "not": { "$ref": "#/$defs/filter" } },
            "additionalProperties": false,
        } },
    })
}

/// A schema with a choice at its root, and a map.
fn loose() -> Value {
    json!({
        "anyOf": [
            {
                "type": "object",
                "properties": { "url": { "type": "string" }, "timeout": { "type": "number" } },
                "required": ["url"],
            },
            {
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "timeout": { "type": "string" },
                    "headers": { "type": "object", "additionalProperties": { "type": "string" } },
                    "tags": { "type": "array" },
                    "strange name": { "type": "string" },
                },
                "required": ["path"],
            },
        ],
    })
}

/// The tool `learn` with this schema.
fn tool(schema: Value) -> Tool {
    let mut tool = Workspace::new().kitbag().toolbox().tool("learn").unwrap();
    tool.input_schema.value = schema.into();
    tool.description.as_mut().unwrap().value = "Looks things up.\nThen answers.".into();
    tool
}

fn shown(tool: &Tool, format: Format) -> String {
    let definition = format.define(tool);
    let mut text = format!("{:#}\n", definition.value);
    for loss in &definition.losses {
        text.push_str(&format!("- {loss}\n"));
    }
    text
}

#[test]
fn every_format_keeps_all_that_it_can_express() {
    for (name, schema) in [("demanding", demanding()), ("loose", loose())] {
        let tool = tool(schema);
        for format in Format::ALL {
            snapshot!(&format!("{name} {format:?}"), &shown(&tool, format));
        }
    }
}

#[test]
fn a_tool_without_a_description_has_a_definition() {
    let mut tool = tool(json!(true));
    (tool.title, tool.description) = (None, None);
    let all: String =
        Format::ALL.iter().map(|format| format!("{format:?}: {}", shown(&tool, *format))).collect();
    snapshot!("nothing said", &all);
}

#[test]
fn mcp_omits_an_output_schema_that_is_not_an_object() {
    let mut tool = tool(json!({ "type": "object" }));
    let with = |tool: &mut Tool, schema: Value| {
        tool.output_schema = Some(kitbag::config::Sourced::default(schema.into()));
        Format::Mcp.define(&*tool)
    };
    let object = with(&mut tool, json!({ "type": "object" }));
    assert_eq!(object.value["outputSchema"], json!({ "type": "object" }));
    assert_eq!(object.losses, []);
    let array = with(&mut tool, json!({ "type": "array" }));
    assert_eq!(array.value.get("outputSchema"), None);
    assert_eq!(
        array.losses[0].to_string(),
        "`learn`: the input schema is served without the output schema, which must be \
         that of an object"
    );
}

#[test]
fn nulls_of_strict_mode_are_removed_from_calls() {
    let workspace = Workspace::new();
    workspace.file("notes/rules.md", "Be kind.\n");
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\n");
    let definition =
        workspace.kitbag().toolbox().definition("learn", Format::OpenAiResponses).unwrap();
    assert_eq!(definition.value["strict"], true);
    assert_eq!(definition.losses, []);
    let given = json!({ "topic": "team", "subjects": null });
    // The call is also accepted without strict mode: a null is treated like a missing argument.
    assert!(workspace.call("learn", given.clone()).contains("- rules"));
    let tool = workspace.kitbag().toolbox().tool("learn").unwrap();
    let arguments = without_nulls(&tool.input_schema.value, given.clone());
    assert!(workspace.call("learn", arguments).contains("- rules"));
    // The same on the command line.
    let given = given.to_string();
    let arguments = ["run", "learn", "--args", &given, "--without-nulls"];
    assert!(workspace.run(&arguments).success().contains("- rules"));
}

/// Three tools, one of them disabled.
fn several() -> Workspace {
    let workspace = Workspace::with_probe(
        "[tools.probe.parameters.do]\ntype = \"string\"\nrequired = true\n\
         [tools.probe.parameters.options]\ntype = \"object\"\n",
    );
    workspace.file("off.wasm", "");
    let text = fs::read_to_string(workspace.path(".kitbag/config.toml")).unwrap();
    workspace.config(&format!(
        "{text}[tools.off]\nsource = \"local\"\nwasm = \"off.wasm\"\nenable = false\n"
    ));
    workspace
}

#[test]
fn the_enabled_tools_are_exported_by_name() {
    let workspace = several();
    for format in ["openai-chat", "openai-responses", "anthropic", "gemini", "mcp"] {
        let run = workspace.run(&["export", "--format", format]);
        assert_eq!(run.code, 0, "{}", run.shown());
        assert_eq!(run.stdout.lines().count(), 1);
        let text = format!("{:#}\n--- stderr\n{}", run.json(), run.stderr);
        snapshot!(&format!("export: {format}"), &text);
        assert_eq!(workspace.run(&["export", "--format", format]).stdout, run.stdout);
    }
    let names = |arguments: &[&str]| {
        let exported = workspace.run(arguments).json();
        let tools = exported["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&["export", "--format", "mcp", "probe", "learn", "probe"]),
        ["learn", "probe"]
    );
    assert_eq!(names(&["export", "--format", "mcp", "probe"]), ["probe"]);
}

#[test]
fn a_tool_without_a_definition_leaves_none() {
    let workspace = several();
    let with = |tables: &str| {
        let workspace = several();
        let text = fs::read_to_string(workspace.path(".kitbag/config.toml")).unwrap();
        workspace.config(&format!("{text}{tables}"));
        workspace
    };
    let missing = with("[tools.missing]\nsource = \"local\"\nwasm = \"missing.wasm\"\n");
    let broken = with("[tools.broken]\nsource = \"local\"\nwasm = \"off.wasm\"\n");
    let mut report = String::new();
    for (workspace, arguments, code) in [
        (&workspace, &["export", "--format", "mcp", "nothing"][..], 2),
        (&workspace, &["export", "--format", "mcp", "off", "learn"], 2),
        (&workspace, &["export", "--format", "cobol"], 2),
        (&workspace, &["export"], 2),
        (&missing, &["export", "--format", "gemini"], 4),
        (&broken, &["export", "--format", "gemini"], 7),
    ] {
        let run = workspace.run(arguments);
        assert_eq!((run.code, &*run.stdout), (code, ""), "{}", run.shown());
        report.push_str(&format!("$ kitbag {}\n{}\n", arguments.join(" "), run.shown()));
    }
    snapshot!("export: errors", &report);
    let json = missing.run(&["export", "--format", "gemini", "--json"]).json();
    assert_eq!(json["kind"], "not-found");
    let json = broken.run(&["export", "--format", "gemini", "--json"]).json();
    assert_eq!(json["kind"], "invalid-component");
    // Tools that are not requested may be missing.
    assert_eq!(missing.run(&["export", "--format", "gemini", "learn"]).code, 0);
}

/// A workspace with the tool `good` and a tool with this description.
fn with_description(description: &Value) -> Workspace {
    let workspace = Workspace::new();
    workspace.file(
        ".kitbag/tools/bad.wasm",
        crafted::describing(&json!({ "tools": [description] }).to_string()),
    );
    workspace.file(".kitbag/tools/good.wasm", fs::read(guest("probe")).unwrap());
    workspace
}

#[test]
fn a_broken_schema_is_omitted_or_omits_its_tool() {
    for (key, schema) in [
        ("inputSchema", json!({ "type": 5 })),
        ("outputSchema", json!({ "type": 5 })),
        ("inputSchema", json!({ "type": "array" })),
    ] {
        let workspace = with_description(&json!({ "name": "bad", key: schema }));
        let run = workspace.run(&["check"]);
        assert_eq!(run.code, 7, "{key}: {}", run.shown());
        assert!(
            run.stderr.contains("tool `bad`") && run.stderr.contains("schema"),
            "{}",
            run.shown()
        );
        assert!(run.stdout.ends_with(": 1 error, 0 warnings\n"), "{}", run.shown());

        let run = workspace.run(&["export", "--format", "mcp"]);
        assert_eq!(run.code, 0, "{key}: {}", run.shown());
        let tools = run.json()["tools"].as_array().unwrap().clone();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
        // Without its output schema the tool is still usable.
        let (expected, said): (&[_], _) = match key {
            "outputSchema" => (
                &["bad", "good", "learn"],
                "warning: the description of `bad` cannot be used: its output schema: ",
            ),
            _ => (&["good", "learn"], "warning: `bad` is omitted: "),
        };
        assert_eq!(names, expected, "{key}");
        assert!(run.stderr.starts_with(said), "{}", run.shown());
        // Requesting it by name returns no definition.
        let run = workspace.run(&["export", "--format", "mcp", "bad"]);
        assert_eq!((run.code, &*run.stdout), (7, ""), "{key}: {}", run.shown());

        let mut client = Client::with_handshake(&workspace, json!({}));
        let list = client.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, expected, "{key}");
        let (_, stderr) = client.close();
        assert!(stderr.contains("`bad` is omitted"), "{stderr}");
    }
}

#[test]
fn an_output_schema_with_a_dangling_reference_is_omitted() {
    for reference in ["#/$defs/Screen", "#/properties/zz", "https://example.com/screen.json"] {
        let output = json!({ "type": "object", "properties": { "q": { "$ref": reference } } });
        let workspace = with_description(&json!({ "name": "bad", "outputSchema": output }));
        let mut client = Client::with_handshake(&workspace, json!({}));
        let list = client.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["bad", "good", "learn"], "{reference}");
        assert_eq!(tools[0].get("outputSchema"), None, "{reference}");
        let (_, stderr) = client.close();
        let said = "the output schema of `bad` is omitted, because it cannot be used: ";
        assert!(stderr.contains(said), "{stderr}");
        let check = workspace.run(&["check"]);
        assert_eq!(check.code, 7, "{}", check.shown());
        assert!(check.stderr.contains("output schema of `bad`"), "{}", check.shown());
    }
}

#[test]
fn schemas_are_served_in_the_form_clients_accept() {
    let pattern = json!({ "type": "string", "pattern": "(?i)abc" });
    let schema = json!({ "type": "object", "properties": { "q": pattern, "r": true } });
    let description = json!({ "name": "bad", "inputSchema": schema, "outputSchema": schema });
    let workspace = with_description(&description);
    let mut client = Client::with_handshake(&workspace, json!({}));
    let list = client.request("tools/list", json!({}));
    let tool = &list["result"]["tools"][0];
    assert_eq!(tool["inputSchema"]["properties"], json!({ "q": { "type": "string" }, "r": {} }));
    assert_eq!(tool.get("outputSchema"), None, "{list}");
    let (_, stderr) = client.close();
    let check = workspace.run(&["check"]);
    assert_eq!(check.code, 0, "{}", check.shown());
    let shown = [
        "is served without `pattern` (`(?i)abc`), since many clients would refuse all tools",
        "is served without the output schema, which many clients refuse because of `pattern` \
         (`(?i)abc`)",
    ];
    for text in shown {
        assert!(stderr.contains(text), "{stderr}");
        assert!(check.stderr.contains(text), "{}", check.shown());
    }
}

#[test]
fn listing_compiles_no_patterns_and_types_arguments_as_object() {
    // Compiling this pattern would fail.
    let pattern = json!({ "type": "string", "pattern": "(?=a)b" });
    let schema = json!({ "type": ["object", "null"], "properties": { "x": pattern } });
    let workspace = with_description(&json!({ "name": "bad", "inputSchema": schema }));
    let run = workspace.run(&["check"]);
    assert_eq!(run.code, 7, "{}", run.shown());
    let mut client = Client::with_handshake(&workspace, json!({}));
    let list = client.request("tools/list", json!({}));
    assert_eq!(list["result"]["tools"][0]["name"], "bad", "{list}");
    assert_eq!(list["result"]["tools"][0]["inputSchema"]["type"], "object", "{list}");
}

#[test]
fn a_tool_that_may_write_is_never_marked_harmless() {
    let hints = json!({ "readOnlyHint": true, "destructiveHint": false, "openWorldHint": true });
    let workspace = with_description(&json!({ "name": "bad", "annotations": hints }));
    let annotations = || {
        let exported = workspace.run(&["export", "--format", "mcp", "bad"]).json();
        exported["tools"][0]["annotations"].clone()
    };
    let read_only = json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
                            "openWorldHint": false });
    assert_eq!(annotations(), read_only);
    fs::create_dir(workspace.path("out")).unwrap();
    workspace.config(
        "[tools.bad.grants]\nfilesystem = [{ host = \"out\", guest = \"/out\", mode = \"rw\" }]\n",
    );
    assert_eq!(
        annotations(),
        json!({ "readOnlyHint": false, "destructiveHint": true, "openWorldHint": false })
    );
}

#[test]
fn tool_descriptions_are_escaped_on_a_terminal() {
    let workspace = Workspace::new();
    workspace.config(&format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {:?}\n\
         description = \"a\\u001b[2J\\u202eb\\u009b\"\n[tools.probe.parameters.x]\n\
         type = \"string\"\n",
        guest("probe"),
    ));
    let stdout = workspace.run(&["export", "--format", "anthropic", "probe"]).success();
    assert!(stdout.contains(r#""a\u001b[2J\u202eb\u009b""#), "{stdout}");
    assert!(stdout.trim_end().chars().all(|c| !kitbag::base::text::is_hidden(c)));
}
