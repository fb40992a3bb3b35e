//! Nested calls: decisions and formatting.

mod properties;

use kitbag_policy::tools::{Condition, ToolGrant, ToolGrants};
use kitbag_policy::{Effects, Grants, Kind, RequestedGrants, ToolRequest};
use serde_json::{Value, json};

/// Parses the grants of a configuration.
fn grants(config: &Value) -> ToolGrants {
    let Value::Object(aliases) = config else { return ToolGrants::Caller };
    ToolGrants::aliases(aliases.iter().map(|(alias, grant)| {
        let tool = grant.get("tool").unwrap_or(grant).as_str().unwrap();
        let conditions = grant.get("where").and_then(Value::as_object).into_iter().flatten();
        let conditions =
            conditions.map(|(path, value)| (path.parse().unwrap(), Condition::new(value).unwrap()));
        let grant = ToolGrant {
            tool: tool.parse().unwrap(),
            conditions: conditions.collect(),
            rate: grant.get("rate").map(|rate| rate.as_str().unwrap().parse().unwrap()),
        };
        (alias.parse().unwrap(), grant)
    }))
}

fn page() -> ToolGrants {
    grants(&json!({
        "search": "search_files",
        "page": {
            "tool": "fetch",
            "where": { "url": ["https://docs.rs/**", "https://crates.io"], "/options/raw": false },
            "rate": "10/min",
        },
    }))
}

/// Returns the called tool, or the refusal and the missing grant.
fn decided(grants: &ToolGrants, alias: &str, arguments: &Value) -> String {
    let arguments = arguments.as_object().unwrap();
    match grants.decide(&ToolRequest { alias, arguments }) {
        Ok(allowed) => match allowed.rate {
            Some(rate) => format!("{} {rate}", allowed.tool),
            None => allowed.tool.to_string(),
        },
        Err(refusal) => {
            let missing = refusal.missing().map(|it| format!("{} = {}", it.key, it.entry));
            format!("{}: {refusal}; {}", refusal.kind(), missing.unwrap_or_default())
        }
    }
}

#[test]
fn calls_need_a_grant_of_their_alias() {
    let check = |grants: &ToolGrants, alias: &str, expected: &str| {
        assert_eq!(decided(grants, alias, &json!({})), expected);
    };
    check(&page(), "search", "search_files");
    check(
        &page(),
        "search_files",
        "alias: no grant of `tools` names `search_files`; did you mean `search`?; \
         tools = search_files = \"search_files\"",
    );
    check(&page(), "fetch", "alias: no grant of `tools` names `fetch`; tools = fetch = \"fetch\"");
    check(&page(), "a b\n", "alias: no grant of `tools` names `a b\\n`; ");
    check(
        &ToolGrants::None,
        "fetch",
        "alias: no grant of `tools` names `fetch`: the tool may not call other tools; \
         tools = fetch = \"fetch\"",
    );
    check(
        &grants(&json!({})),
        "fetch",
        "alias: no grant of `tools` names `fetch`; tools = fetch = \"fetch\"",
    );
    check(&ToolGrants::Caller, "fetch", "fetch");
    check(&ToolGrants::Caller, "a/b", "alias: no grant of `tools` names `a/b`; ");
}

#[test]
fn refused_arguments_name_the_missing_grant() {
    let check = |arguments: Value, expected: &str| {
        assert_eq!(decided(&page(), "page", &arguments), expected);
    };
    let options = json!({ "raw": false });
    check(json!({ "url": "https://docs.rs/serde", "options": options }), "fetch 10/min");
    check(
        json!({ "url": "https://docs.rs.evil.example", "options": options }),
        "argument: the argument `url` of `page` must match \
         `[\"https://docs.rs/**\", \"https://crates.io\"]`, but is `https://docs.rs.evil.example`: \
         it does not \
         match; tools = page = { tool = \"fetch\", where = { \"/options/raw\" = false, \
         url = [\"https://docs.rs/**\", \"https://crates.io\", \"https://docs.rs.evil.example\"] }, \
         rate = \"10/min\" }",
    );
    check(
        json!({ "url": "https://docs.rs/../a", "options": options }),
        "argument: the argument `url` of `page` must match \
         `[\"https://docs.rs/**\", \"https://crates.io\"]`, but is `https://docs.rs/../a`: \
         it has a segment `.` or `..`; \
         tools = page = { tool = \"fetch\", where = { \"/options/raw\" = false, \
         url = [\"https://docs.rs/**\", \"https://crates.io\", \"https://docs.rs/../a\"] }, \
         rate = \"10/min\" }",
    );
    check(
        json!({ "url": "https://docs.rs/serde" }),
        "argument: the argument `/options/raw` of `page` must match `false`: it is absent; ",
    );
    check(
        json!({ "url": ["https://docs.rs", "https://a/*"], "options": options }),
        "argument: the argument `url` of `page` must match \
         `[\"https://docs.rs/**\", \"https://crates.io\"]`, but is `https://a/*`: it does not match; ",
    );
    let long = format!("https://evil.example/{}", "\u{202e}".repeat(300));
    let refused = decided(&page(), "page", &json!({ "url": long, "options": options }));
    let shown = format!("is `https://evil.example/{}…`", "\\u{202e}".repeat(200 - 21));
    assert!(refused.contains(&shown), "{refused}");
}

#[test]
fn callable_tools_are_listed() {
    let with = |tools: ToolGrants| Grants { tools, ..Grants::default() };
    let own = "no directory, no environment, no network of its own";
    let lines = [
        "tool page → fetch, where \"/options/raw\" = false, \
         url = [\"https://docs.rs/**\", \"https://crates.io\"], at most 10/min",
        "tool search → search_files",
        own,
    ];
    assert_eq!(with(page()).lines(&[]), lines);
    assert_eq!(with(page()).brief(&[]), "calls fetch, calls search_files");
    let line = "Calls other tools: fetch, search_files";
    assert_eq!(with(page()).tools_line().as_deref(), Some(line));
    let caller = with(ToolGrants::Caller);
    assert_eq!(caller.lines(&[]), ["tools → every tool that its caller may call", own]);
    assert_eq!(caller.brief(&[]), "calls every tool that its caller may call");
    let line = "Calls other tools: those of its caller";
    assert_eq!(caller.tools_line().as_deref(), Some(line));
    for none in [ToolGrants::None, grants(&json!({}))] {
        assert_eq!(with(none.clone()).lines(&[]), ["no directory, no environment, no network"]);
        assert_eq!(with(none.clone()).brief(&[]), "reaches nothing");
        assert_eq!(with(none).tools_line(), None);
    }
    let hidden = grants(&json!({ "a": { "tool": "b", "where": { "x": "\u{202e}\u{1b}" } } }));
    assert_eq!(hidden.lines(), ["tool a → b, where x = \"\\u{202e}\\u001b\""]);
    let many = (0..23).map(|number| (format!("a{number}"), json!(format!("t{number:02}"))));
    let line = with(grants(&Value::Object(many.collect()))).tools_line().unwrap();
    assert!(line.ends_with("t19, and 3 more"), "{line}");
}

#[test]
fn typed_grants_are_parsed_back() {
    for config in [
        json!("caller"),
        json!({}),
        json!({ "a": "b" }),
        json!({ "a": { "tool": "b", "where": { "/x/y": [1, true, "c*"] }, "rate": "1/s, 2/h" } }),
    ] {
        assert_eq!(grants(&config).to_json(), config);
    }
}

#[test]
fn nested_calls_may_have_any_effect() {
    let effects = |tools| Grants { tools, ..Grants::default() }.effects();
    let all = Effects { changes: true, open_world: true };
    assert_eq!(effects(page()), all);
    assert_eq!(effects(ToolGrants::Caller), all);
    assert_eq!(effects(grants(&json!({}))), Effects::default());
    assert_eq!(effects(ToolGrants::None), Effects::default());
}

#[test]
fn requested_tools_are_names_or_the_callers() {
    let check = |requested: Value, granted: ToolGrants, expected: &[&str]| {
        let requested = RequestedGrants::read(requested.as_object().unwrap()).unwrap();
        let grants = Grants { tools: granted, ..Grants::default() };
        let missing = requested.missing_required(&grants);
        let missing: Vec<_> = missing
            .map(|(request, missing)| format!("{request}: {} {}", missing.key, missing.entry))
            .collect();
        assert_eq!(missing, expected);
    };
    let names = json!({ "tools": ["search_files", "page", "a b"], "required": ["tools"] });
    check(
        names.clone(),
        ToolGrants::None,
        &[
            "tool search_files: tools search_files = \"search_files\"",
            "tool page: tools page = \"page\"",
        ],
    );
    check(names.clone(), page(), &[]);
    check(names, ToolGrants::Caller, &[]);
    let caller = json!({ "tools": "caller", "required": ["tools"] });
    let line = "tools → every tool that its caller may call: tools tools = \"caller\"";
    check(caller.clone(), ToolGrants::None, &[line]);
    check(caller.clone(), ToolGrants::Caller, &[]);
    check(caller, page(), &[]);
    for wrong in [json!({ "tools": "all" }), json!({ "tools": true }), json!({ "tools": [1] })] {
        assert!(RequestedGrants::read(wrong.as_object().unwrap()).is_err(), "{wrong}");
    }
    let requested = json!({ "tools": ["page"] });
    let read = RequestedGrants::read(requested.as_object().unwrap()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), requested);
}

#[test]
fn grants_compare_tool_conditions_and_rate() {
    let check = |own: Value, other: Value, expected: bool| {
        assert_eq!(grants(&own).contains(&grants(&other)), expected, "{own} {other}");
    };
    let tool = |rate: Option<&str>, conditions: Value| {
        let mut tool = json!({ "tool": "t", "where": conditions });
        if let Some(rate) = rate {
            tool["rate"] = rate.into();
        }
        tool
    };
    check(json!({ "a": "t" }), json!({}), true);
    check(json!({}), json!({ "a": "t" }), false);
    check(json!({ "a": "t" }), json!({ "b": "t" }), true);
    check(json!({ "a": "t" }), json!({ "a": "u" }), false);
    check(json!({ "a": "t" }), json!({ "a": tool(Some("1/s"), json!({ "x": 1 })) }), true);
    check(json!({ "a": tool(None, json!({ "x": 1 })) }), json!({ "a": "t" }), false);
    check(
        json!({ "a": tool(None, json!({ "x": "a/**" })) }),
        json!({ "a": tool(None, json!({ "x": ["a/b", "a/*"], "y": true })) }),
        true,
    );
    check(
        json!({ "a": tool(None, json!({ "x": 1 })) }),
        json!({ "a": tool(None, json!({ "/x": 1 })) }),
        false,
    );
    let rated = |rate: &str| tool(Some(rate), json!({}));
    check(json!({ "a": rated("10/min") }), json!({ "a": rated("10/min, 1/h") }), true);
    check(json!({ "a": rated("10/min") }), json!({ "a": rated("11/min") }), false);
    check(json!({ "a": rated("10/min") }), json!({ "a": rated("1/h") }), false);
    check(json!({ "a": rated("10/min") }), json!({ "a": "t" }), false);
    // Each alias is counted separately.
    check(json!({ "a": rated("10/min") }), json!({ "b": rated("10/min") }), false);
    check(json!("caller"), json!("caller"), true);
    check(json!("caller"), json!({ "a": "t" }), false);
    check(json!({ "a": "t" }), json!("caller"), false);
    assert!(ToolGrants::Caller.contains(&ToolGrants::None));
    assert!(ToolGrants::None.contains(&ToolGrants::None));
    assert!(!ToolGrants::None.contains(&ToolGrants::Caller));
}
