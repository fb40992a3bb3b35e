//! Other tools that a tool may call.

use kitbag_config::{BuiltinTool, CallGrants, Sources, load};
use kitbag_policy::tools::{Alias, ToolGrants};
use kitbag_policy::{Decision, Kind, Request, RequestedTool, ToolRequest, decide};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{Fixture, check_problems, check_problems_of, check_rows};

/// The other tools of `learn`, each with its place, and then what there is to warn of.
fn granted(fixture: &Fixture) -> Vec<String> {
    let config = fixture.load();
    let grants = &config.tools["learn"].grants;
    let placed = grants.value.tools.lines().into_iter().map(|line| {
        let origin = grants.place_of(ToolGrants::KEY, &line);
        format!("{line} # {origin}")
    });
    let warnings = grants.warnings.iter().map(|it| format!("{}: {}", it.place, it.message));
    placed.chain(warnings).map(|line| fixture.redact(&line)).collect()
}

#[track_caller]
fn check(user: &str, workspace: &str, expected: &[&str]) {
    let found = granted(&Fixture::new(workspace).user(user));
    assert_eq!(found, expected, "\n{}", found.join("\n"));
}

/// A tool of the user's own, beside the built-ins `learn` and `notes`.
const FETCH: &str = "[tools.fetch]\nsource = \"local\"\nwasm = \"/t/fetch.wasm\"\n";

fn own(tools: &str) -> String {
    format!("{FETCH}[tools.learn.grants]\ntools = {tools}\n")
}

fn of_workspace(tools: &str) -> String {
    format!("[tools.learn.grants]\ntools = {tools}\n")
}

#[test]
fn a_tool_calls_others_by_aliases_or_what_its_caller_may() {
    check(&own("\"caller\""), "", &["tools → whatever its caller may call # /t/h/config.toml:5:9"]);
    check(
        &own(
            "{ note = \"notes\", page = { tool = \"fetch\", where = { url = \"https://docs.rs/**\", \
             \"/options/raw\" = false, mode = [\"a*\", 1] }, rate = \"10/min\" } }",
        ),
        "",
        &[
            "tool note → notes # /t/h/config.toml:5:11",
            "tool page → fetch, where \"/options/raw\" = false, mode = [\"a*\", 1], \
             url = \"https://docs.rs/**\", at most 10/min # /t/h/config.toml:5:27",
        ],
    );
    check(&own("{}"), "", &[]);
    check("", "", &[]);
    let table = format!(
        "{FETCH}[tools.learn.grants.tools.page]\ntool = \"fetch\"\nwhere.url = \"https://docs.rs/**\"\n"
    );
    let line = "tool page → fetch, where url = \"https://docs.rs/**\" # /t/h/config.toml:4:27";
    check(&table, "", &[line]);
    let row = |tools: &str, expected: &str| {
        let fixture = Fixture::new("").user(&own(tools));
        let expected = format!("tools.learn.grants.tools = {expected} # /t/h/config.toml:5:9");
        check_rows(&fixture, "tools.learn.grants", &[&expected]);
    };
    row("\"caller\"", "\"caller\"");
    row("{}", "{}");
    row("{ note = \"notes\" }", "{\"note\":\"notes\"}");
    row(
        "{ page = { tool = \"fetch\", where = { url = [\"a\", \"b\"] }, rate = \"1/s\" } }",
        "{\"page\":{\"tool\":\"fetch\",\"where\":{\"url\":[\"a\",\"b\"]},\"rate\":\"1/s\"}}",
    );
}

#[test]
fn a_built_in_that_asks_for_its_callers_tools_has_them_and_two_hundred_calls() {
    let builtins = [BuiltinTool { calls: true, .."script".into() }, "notes".into()];
    let check = |user: &str, workspace: &str, expected: (&str, u64)| {
        let fixture = Fixture::new(workspace).user(user);
        let config = load(&Sources { builtins: &builtins, ..fixture.sources() }).unwrap();
        let tool = &config.tools["script"];
        let tools = tool.grants.value.tools.lines().join(", ");
        assert_eq!((&*tools, tool.limits.tool_calls.value), expected, "{user} {workspace}");
        // The others are as before.
        assert!(config.tools["notes"].grants.value.tools.lines().is_empty());
        assert!(config.tools["notes"].limits.tool_calls.value <= 100);
    };
    const CALLER: &str = "tools → whatever its caller may call";
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
    // What a workspace grants counts as for any tool.
    let note = own("grants]\ntools = { note = \"notes\" }");
    check("", &note, ("tool note → notes", 200));
    check("[ceiling.grants]\ntools = []\n", &note, ("", 200));
    let above = Fixture::new(&own("limits]\ntool_calls = 201"));
    let errors = load(&Sources { builtins: &builtins, ..above.sources() }).unwrap_err();
    assert!(errors.to_string().contains("above the ceiling of `200`"), "{errors}");
}

#[test]
fn what_no_grant_of_other_tools_can_be_is_named() {
    let check = |tools: &str, expected: &[&str]| check_problems(&of_workspace(tools), expected);
    check(
        "\"all\"",
        &[
            "C:2:9: `all` names no tools; write `tools = \"caller\"` for those that the caller may call, \
           or a table such as `tools = { search = \"search_files\" }`",
        ],
    );
    check(
        "{ \"1st\" = \"notes\" }",
        &[
            "C:2:11: an alias is named like a tool: `1st` is not a tool name: it takes letters, digits, \
           `_` and `-`, starts with a letter or `_`, and has at most 48 characters",
        ],
    );
    check(
        "{ a = \"no tes\" }",
        &[
            "C:2:15: `no tes` is not a tool name: it takes letters, digits, `_` and `-`, starts with a \
           letter or `_`, and has at most 48 characters",
        ],
    );
    check(
        "{ a = \"learn\" }",
        &[
            "C:2:15: `a` is `learn` itself, and a tool does not call itself; remove it, or name another",
        ],
    );
    check(
        "{ a = { tool = \"learn\", rate = \"1/s\" } }",
        &[
            "C:2:15: `a` is `learn` itself, and a tool does not call itself; remove it, or name another",
        ],
    );
    let condition = |condition: &str, place: &str, expected: &str| {
        let tools = format!("{{ a = {{ tool = \"notes\", where = {{ {condition} }} }} }}");
        check(&tools, &[&format!("C:2:{place}: {expected}")]);
    };
    condition(
        "\"a b\" = 1",
        "43",
        "`a b` names no argument: write its name (1 to 64 letters, digits, `_`, `-` and `.`), or a JSON \
         pointer such as `/options/url`, of at most 256 bytes",
    );
    condition(
        "a = []",
        "47",
        "nothing fits an empty list; write what is allowed, or remove the condition",
    );
    let other = "a condition is a text, `true`, `false`, a number, or a list of these";
    condition("a = {}", "47", other);
    condition("a = [[1]]", "47", other);
    condition("a = nan", "47", "`nan` cannot be handed to a tool: JSON has no such number");
    condition(
        "a = \"b**\"",
        "47",
        "`b**` is not a pattern: `**` stands for whole segments: `a/**/b`, not `a**`",
    );
    condition(
        "a = \"https://docs.rs/?q=*\"",
        "47",
        "`https://docs.rs/?q=*` is not a pattern: a query has no wildcard, which would let in others; \
         end with `/**` to let in all",
    );
    check(
        "{ a = { tool = \"notes\", rate = \"soon\" }, b = { where = {} } }",
        &[
            "C:2:40: `soon` is not a rate: there is no `/`; write calls in a time, such as `60/min` or \
             `10/min, 100/h`",
            "C:2:54: missing key `tool` in `tools.learn.grants.tools.b`",
        ],
    );
    let many = |count: usize| (0..count).map(|at| format!("a{at} = \"notes\"")).collect::<Vec<_>>();
    check(
        &format!("{{ {} }}", many(65).join(", ")),
        &["C:2:9: 65 tools are listed, and 64 is the most"],
    );
    let many = (0..33).map(|at| format!("a{at} = 1")).collect::<Vec<_>>();
    check(
        &format!("{{ a = {{ tool = \"notes\", where = {{ {} }} }} }}", many.join(", ")),
        &["C:2:41: 33 arguments are listed, and 32 is the most"],
    );
}

#[test]
fn a_tool_that_is_not_there_is_a_warning_with_the_one_that_was_meant() {
    check(
        &own("{ page = \"fetsch\", x = \"nothing_like_it\", note = \"notes\" }"),
        "",
        &[
            "tool note → notes # /t/h/config.toml:5:51",
            "tool page → fetsch # /t/h/config.toml:5:11",
            "tool x → nothing_like_it # /t/h/config.toml:5:28",
            "/t/h/config.toml:5:11: `page` is `fetsch`, and no tool has that name: a call of it fails, \
             where no program brings the tool; did you mean `fetch`?",
            "/t/h/config.toml:5:28: `x` is `nothing_like_it`, and no tool has that name: a call of it \
             fails, where no program brings the tool",
        ],
    );
}

#[test]
fn a_workspace_lets_tools_be_called_within_the_ceiling_alone() {
    let ceiling = |tools: &str| format!("{FETCH}[ceiling.grants]\ntools = {tools}\n");
    let beyond = |at: &str, ceiling: &str, setting: &str| {
        format!(
            ".kitbag/config.toml:2:{at}: this grant does not count: what the files and components of \
             a workspace are granted counts only within `[ceiling.grants]` of your own \
             file{ceiling}; to allow it, have `[ceiling.grants]` in your own \
             `/t/h/config.toml` include `tools = {setting}`"
        )
    };
    const PLACE: &str = " (/t/h/config.toml:5:9)";
    let alias = of_workspace("{ page = \"fetch\" }");
    let line = "tool page → fetch # .kitbag/config.toml:2:11";
    check(FETCH, &alias, &[line]);
    // What the caller may call need not be this.
    for other in ["[\"notes\"]", "[]", "\"caller\""] {
        check(&ceiling(other), &alias, &[&beyond("11", PLACE, "[\"fetch\"]")]);
    }
    check(&ceiling("[\"notes\", \"fetch\"]"), &alias, &[line]);
    let caller = of_workspace("\"caller\"");
    check(&ceiling("[\"notes\", \"fetch\"]"), &caller, &[&beyond("9", PLACE, "\"caller\"")]);
    let line = "tools → whatever its caller may call # .kitbag/config.toml:2:9";
    check(&ceiling("\"caller\""), &caller, &[line]);
    check(FETCH, &caller, &[line]);
    check_rows(
        &Fixture::new("").user(&ceiling("[\"notes\"]")),
        "ceiling.grants",
        &["ceiling.grants.tools = [\"notes\"] # /t/h/config.toml:5:9"],
    );
    check_problems_of(
        &Fixture::new("").user(&ceiling("\"all\"")),
        &[
            "/t/h/config.toml:5:9: `all` is no ceiling; write `tools = \"caller\"` for those that the \
           caller may call, or a list such as `tools = [\"search_files\"]`",
        ],
    );
    check_problems_of(
        &Fixture::new("").user(&ceiling("[\"a b\"]")),
        &[
            "/t/h/config.toml:5:10: `a b` is not a tool name: it takes letters, digits, `_` and `-`, \
           starts with a letter or `_`, and has at most 48 characters",
        ],
    );
}

#[test]
fn a_workspace_narrows_which_tools_the_user_lets_be_called() {
    let user = own(
        "{ page = { tool = \"fetch\", where = { url = \"https://docs.rs/**\" } }, note = \"notes\" }",
    );
    let narrower = "{ page = { tool = \"fetch\", where = { url = \"https://docs.rs/serde/*\", raw = true } } }";
    check(
        &user,
        &of_workspace(narrower),
        &["tool page → fetch, where raw = true, url = \"https://docs.rs/serde/*\" \
           # .kitbag/config.toml:2:11"],
    );
    check(&user, &of_workspace("{}"), &[]);
    let bound = |user: &str| format!("{user}[ceiling.grants]\ntools = []\n");
    let wider = of_workspace("{ page = \"fetch\", note = \"notes\" }");
    let wider = granted(&Fixture::new(&wider).user(&bound(&user)));
    assert_eq!(wider[0], "tool note → notes # .kitbag/config.toml:2:27");
    assert!(wider[1].contains("this grant does not count"), "{wider:?}");
    assert_eq!(
        wider[2],
        ".kitbag/config.toml:2:9: `tools` of the workspace takes the place of what your own file \
         grants the tool (/t/h/config.toml:5:9), and not all of it counts; without it your own grants \
         count here"
    );
    assert_eq!(wider.len(), 3);
    // A rate is of one alias: another one would be counted by itself.
    let user = own("{ page = { tool = \"fetch\", rate = \"1/h\" } }");
    let same = of_workspace("{ page = { tool = \"fetch\", rate = \"1/h, 1/d\" } }");
    check(&user, &same, &["tool page → fetch, at most 1/h, 1/d # .kitbag/config.toml:2:11"]);
    let other = of_workspace("{ more = { tool = \"fetch\", rate = \"1/h\" } }");
    let found = granted(&Fixture::new(&other).user(&bound(&user)));
    assert!(found[0].contains("this grant does not count"), "{found:?}");
}

#[test]
fn a_component_of_the_workspace_calls_nothing_that_the_user_grants_its_name() {
    let user = format!("{FETCH}[tools.count.grants]\ntools = {{ page = \"fetch\" }}\n");
    let tools = |ceiling: &str, workspace: &str| {
        let fixture = Fixture::new(workspace).user(&format!("{user}{ceiling}"));
        let config = fixture.file("w/.kitbag/tools/count.wasm", "").load();
        config.tools["count"].grants.value.tools.lines()
    };
    let same = "[tools.count.grants]\ntools = { page = \"fetch\" }\n";
    assert_eq!(tools("", ""), [""; 0]);
    for workspace in ["", same] {
        assert_eq!(tools("[ceiling.grants]\ntools = []\n", workspace), [""; 0]);
        let ceiling = "[ceiling.grants]\ntools = [\"fetch\"]\n";
        assert_eq!(tools(ceiling, workspace), ["tool page → fetch"]);
    }
}

/// The tools that `learn` may call where the command line grants something, or what is wrong.
fn for_a_call(user: &str, grant: &str) -> String {
    let fixture = Fixture::new("").user(user);
    let mut sources = fixture.sources();
    sources.call_grants = Some(CallGrants { tool: "learn".into(), grants: vec![grant.to_owned()] });
    let text = match load(&sources) {
        Ok(config) => {
            let grants = &config.tools["learn"].grants;
            let lines = grants.value.tools.lines().into_iter();
            let placed =
                lines.map(|line| format!("{line} ← {}", grants.place_of(ToolGrants::KEY, &line)));
            placed.collect::<Vec<_>>().join("; ")
        }
        Err(errors) => errors.to_string(),
    };
    fixture.redact(&text)
}

#[test]
fn a_call_is_granted_other_tools_by_the_command_line_within_the_ceiling() {
    let check = |user: &str, grant: &str, expected: &str| {
        assert_eq!(for_a_call(user, grant), expected, "{user} {grant}");
    };
    let fetch = "tool page → fetch ← flag --grant";
    check(FETCH, "tools=page=fetch", fetch);
    check(FETCH, "tools=page = \"fetch\"", fetch);
    check(FETCH, "tools=caller", "tools → whatever its caller may call ← flag --grant");
    check(
        FETCH,
        "tools=page={ tool = \"fetch\", where = { url = \"a=b\" } }",
        "tool page → fetch, where url = \"a=b\" ← flag --grant",
    );
    check(
        &own("{ note = \"notes\", page = \"notes\" }"),
        "tools=page=fetch",
        "tool note → notes ← /t/h/config.toml:5:11; tool page → fetch ← flag --grant",
    );
    check(
        &own("\"caller\""),
        "tools=page=fetch",
        "flag --grant: the tool has what its caller may call, and a call has either that or aliases; \
         change `tools` of its grants instead",
    );
    check(
        &own("{ note = \"notes\" }"),
        "tools=caller",
        "flag --grant: the tool has aliases, and a call has either that or what its caller may call; \
         change `tools` of its grants instead",
    );
    check(
        FETCH,
        "tools=page=learn",
        "flag --grant: `page` is `learn` itself, and a tool does not call itself; remove it, or name \
         another",
    );
    check(
        FETCH,
        "tools=fetch",
        "flag --grant: `fetch` names no tools; write `tools = \"caller\"` for those that the caller may \
         call, or a table such as `tools = { search = \"search_files\" }`",
    );
    let ceiling = format!("{FETCH}[ceiling.grants]\ntools = [\"fetch\"]\n");
    check(&ceiling, "tools=page=fetch", fetch);
    check(
        &ceiling,
        "tools=page=notes",
        "flag --grant: a call is granted no more than `[ceiling.grants]` of your own file allows; \
         to allow it, have `[ceiling.grants]` in your own `/t/h/config.toml` include `tools = \
         [\"notes\"]`",
    );
    check(
        &ceiling,
        "tools=caller",
        "flag --grant: a call is granted no more than `[ceiling.grants]` of your own file allows; \
         to allow it, have `[ceiling.grants]` in your own `/t/h/config.toml` include `tools = \
         \"caller\"`",
    );
}

/// What would let `learn` make this call.
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

/// The word after `--grant` as a shell reads it.
fn word_of_shell(flag: &str) -> String {
    let script = format!("set -- {flag}; printf %s \"$2\"");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{flag}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_line_that_is_printed_lets_the_tool_be_called() {
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
fn what_the_caller_may_call_is_granted_for_a_call_by_the_option_that_is_printed() {
    let (setting, flag) = missing_of(&Fixture::new("").user(FETCH), RequestedTool::Caller);
    assert_eq!(setting, "tools = \"caller\"");
    assert_eq!(flag, "--grant 'tools=caller'");
}

/// Aliases of which some are narrower than others.
const ALIASES: [&str; 5] = [
    "a = \"notes\"",
    "b = { tool = \"notes\", where = { x = \"s/**\" } }",
    "c = { tool = \"notes\", where = { x = [\"s/a\", \"s/*/b\"], y = true } }",
    "d = { tool = \"fetch\", where = { x = \"s/*\" } }",
    "e = { tool = \"fetch\", where = { x = \"s/**\" } }",
];

const CALLED: [&str; 2] = ["notes", "fetch"];

/// Which tools `learn` may call with which arguments, by whatever alias.
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
    fn a_workspace_lets_no_more_tools_be_called(
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
