//! Other tools that a tool may call.

use kitbag_config::{BuiltinTool, CallGrants, Sources, load};
use kitbag_policy::tools::Alias;
use kitbag_policy::{Decision, Kind, Request, RequestedTool, ToolRequest, decide};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::Fixture;

/// A tool of the user, beside the built-ins `learn` and `notes`.
const FETCH: &str = "[tools.fetch]\nsource = \"local\"\nwasm = \"/t/fetch.wasm\"\n";

fn own(tools: &str) -> String {
    format!("{FETCH}[tools.learn.grants]\ntools = {tools}\n")
}

fn of_workspace(tools: &str) -> String {
    format!("[tools.learn.grants]\ntools = {tools}\n")
}

#[test]
fn a_builtin_with_its_callers_tools_has_200_calls() {
    let builtins = [BuiltinTool { calls: true, .."script".into() }, "notes".into()];
    let check = |user: &str, workspace: &str, expected: (&str, u64)| {
        let fixture = Fixture::new(workspace).user(user);
        let config = load(&Sources { builtins: &builtins, ..fixture.sources() }).unwrap();
        let tool = &config.tools["script"];
        let tools = tool.grants.value.tools.lines().join(", ");
        assert_eq!((&*tools, tool.limits.tool_calls.value), expected, "{user} {workspace}");
        // Other built-ins have no such default.
        assert!(config.tools["notes"].grants.value.tools.lines().is_empty());
        assert!(config.tools["notes"].limits.tool_calls.value <= 100);
    };
    const CALLER: &str = "tools → every tool that its caller may call";
    let own = |table: &str| format!("[tools.script.{table}\n");
    check("", "", (CALLER, 200));
    check("", &own("limits]\ntool_calls = 60"), (CALLER, 60));
    check("[limits]\ntool_calls = 5\n", "", (CALLER, 5));
    check("", "[limits]\ntool_calls = 5\n", (CALLER, 5));
    check("[ceiling]\ntool_calls = 100\n", "", (CALLER, 100));
    check("[ceiling]\ntool_calls = 1000\n", &own("limits]\ntool_calls = 900"), (CALLER, 900));
    check(&own("limits]\ntool_calls = 1000"), "", (CALLER, 1000));
    check("", &own("grants]\ntools = {}"), ("", 200));
    check(&own("grants]\ntools = { note = \"notes\" }"), "", ("tool note → notes", 200));
    // A grant of a workspace works as for any tool.
    let note = own("grants]\ntools = { note = \"notes\" }");
    check("", &note, ("tool note → notes", 200));
    check("[ceiling.grants]\ntools = []\n", &note, ("", 200));
    let above = Fixture::new(&own("limits]\ntool_calls = 201"));
    let errors = load(&Sources { builtins: &builtins, ..above.sources() }).unwrap_err();
    assert!(errors.to_string().contains("above the ceiling of `200`"), "{errors}");
}

/// Returns the grants that `learn` lacks for this call.
fn missing(fixture: &Fixture, alias: &str, arguments: &Map<String, Value>) -> (String, String) {
    let alias = Alias::new(alias).unwrap();
    missing_of(fixture, RequestedTool::Alias { alias, arguments: Some(arguments.clone()) })
}

fn missing_of(fixture: &Fixture, wanted: RequestedTool) -> (String, String) {
    let config = fixture.load();
    let decision = decide(&config.tools["learn"].grants.value, &Request::Tool(wanted));
    let Decision::Denied { missing: Some(missing), .. } = decision else { panic!("{decision:?}") };
    let flag = config.grant_flag(&missing).unwrap();
    (missing.as_setting(), flag)
}

/// Returns the word after `--grant`, as a shell reads it.
fn word_of_shell(flag: &str) -> String {
    let script = format!("set -- {flag}; printf %s \"$2\"");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{flag}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_printed_line_allows_the_call() {
    let table = "{ page = { tool = \"fetch\", where = { url = \"https://docs.rs/**\", n = 1 } } }";
    let cases = [
        ("{}", "fetch", json!({}), "tools=fetch=fetch"),
        (
            table,
            "page",
            json!({ "url": "it's \"a\"\\ \u{7f}\u{202e}\n\0", "n": 1 }),
            "tools=page={ tool = \"fetch\", where = { n = 1, url = [\"https://docs.rs/**\", \
             \"it'\\''s \\\"a\\\"\\\\ \\u007f'\"$(printf '\\342\\200\\256')\"'\\n\\u0000\"] } }",
        ),
        (
            table,
            "page",
            json!({ "url": ["https://docs.rs/a", "https://docs.rs/../b", "c"], "n": [2.5, true] }),
            "tools=page={ tool = \"fetch\", where = { n = [1, 2.5, true], \
             url = [\"https://docs.rs/**\", \"https://docs.rs/../b\", \"c\"] } }",
        ),
    ];
    for (tools, alias, arguments, expected) in cases {
        let arguments = arguments.as_object().unwrap();
        let (setting, flag) = missing(&Fixture::new("").user(&own(tools)), alias, arguments);
        assert_eq!(flag, format!("--grant '{expected}'"));
        let allows = |fixture: &Fixture, call: Option<CallGrants>| {
            let sources = Sources { call_grants: call, ..fixture.sources() };
            let config =
                load(&sources).unwrap_or_else(|errors| panic!("{setting} {flag}: {errors}"));
            let request = ToolRequest { alias, arguments };
            config.tools["learn"].grants.value.tools.decide(&request).is_ok()
        };
        let written = Fixture::new("").user(&format!("{FETCH}[tools.learn.grants]\n{setting}\n"));
        assert!(allows(&written, None), "{setting}");
        let call = CallGrants { tool: "learn".into(), grants: vec![word_of_shell(&flag)] };
        assert!(allows(&Fixture::new("").user(&own(tools)), Some(call)), "{flag}");
    }
}

#[test]
fn the_printed_option_grants_the_callers_tools() {
    let (setting, flag) = missing_of(&Fixture::new("").user(FETCH), RequestedTool::Caller);
    assert_eq!(setting, "tools = \"caller\"");
    assert_eq!(flag, "--grant 'tools=caller'");
}

/// Aliases, some of them narrower than others.
const ALIASES: [&str; 5] = [
    "a = \"notes\"",
    "b = { tool = \"notes\", where = { x = \"s/**\" } }",
    "c = { tool = \"notes\", where = { x = [\"s/a\", \"s/*/b\"], y = true } }",
    "d = { tool = \"fetch\", where = { x = \"s/*\" } }",
    "e = { tool = \"fetch\", where = { x = \"s/**\" } }",
];

const CALLED: [&str; 2] = ["notes", "fetch"];

/// Returns the tools that `learn` may call by any alias, with the allowed arguments.
fn callable(own: &[usize], ceiling: &[usize], workspace: Option<&[usize]>) -> Vec<bool> {
    let table = |entries: &[usize]| {
        let entries: Vec<_> = entries.iter().map(|at| ALIASES[*at]).collect();
        of_workspace(&format!("{{ {} }}", entries.join(", ")))
    };
    let names: Vec<_> = ceiling.iter().map(|at| CALLED[*at]).collect();
    let user = format!("{FETCH}{}[ceiling.grants]\ntools = {names:?}\n", table(own));
    let fixture = Fixture::new(&workspace.map(table).unwrap_or_default()).user(&user);
    let config = fixture.load();
    let tools = &config.tools["learn"].grants.value.tools;
    let texts = ["s/a", "s/b", "s/a/b", "s/../a", "t"];
    let arguments = texts.iter().flat_map(|x| [json!({ "x": x }), json!({ "x": x, "y": true })]);
    let calls = arguments.chain([json!({})]).flat_map(|it| CALLED.map(|tool| (tool, it.clone())));
    let is_allowed = |(tool, arguments): (&str, Value)| {
        let arguments = arguments.as_object().unwrap();
        ["a", "b", "c", "d", "e"].iter().any(|alias| {
            let called = tools.decide(&ToolRequest { alias, arguments });
            called.is_ok_and(|called| called.tool.as_str() == tool)
        })
    };
    calls.map(is_allowed).collect()
}

fn some_of(count: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::btree_set(0..count, 0..=count).prop_map(|set| set.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_workspace_allows_no_additional_calls(
        own in some_of(ALIASES.len()),
        ceiling in some_of(CALLED.len()),
        workspace in some_of(ALIASES.len()),
    ) {
        let found = callable(&own, &ceiling, Some(&workspace));
        let of_user = callable(&own, &[], None);
        for (at, found) in found.iter().enumerate() {
            let is_in_ceiling = ceiling.contains(&(at % CALLED.len()));
            prop_assert!(!found || of_user[at] || is_in_ceiling);
        }
        let without = |list: &[usize]| {
            let fewer = |at: usize| [&list[..at], &list[at + 1..]].concat();
            (0..list.len()).map(fewer).collect::<Vec<_>>()
        };
        let holds = |fewer: Vec<bool>| fewer.iter().zip(&found).all(|(fewer, found)| *found || !fewer);
        for own in without(&own) {
            prop_assert!(holds(callable(&own, &ceiling, Some(&workspace))), "{own:?}");
        }
        for ceiling in without(&ceiling) {
            prop_assert!(holds(callable(&own, &ceiling, Some(&workspace))), "{ceiling:?}");
        }
        for workspace in without(&workspace) {
            prop_assert!(holds(callable(&own, &ceiling, Some(&workspace))), "{workspace:?}");
        }
    }
}
