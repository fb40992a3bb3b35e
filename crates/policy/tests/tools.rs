//! What lets a tool call another one: decisions, lines, and how they compare to a plain
//! model.

use kitbag_policy::tools::{Alias, Condition, TextPattern, ToolGrant, ToolGrants, WantedTool};
use kitbag_policy::{
    Decision, Effects, Grants, Kind, Request, RequestedGrants, ToolRequest, decide,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Grants as a configuration has them.
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

/// The tool that is called, or why it is not and what would allow it.
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
fn a_call_is_allowed_by_its_alias_alone() {
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
        "alias: no grant of `tools` names `fetch`: the tool may call no other one; \
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
fn a_refused_argument_is_named_with_the_line_that_would_allow_it() {
    let check = |arguments: Value, expected: &str| {
        assert_eq!(decided(&page(), "page", &arguments), expected);
    };
    let options = json!({ "raw": false });
    check(json!({ "url": "https://docs.rs/serde", "options": options }), "fetch 10/min");
    check(
        json!({ "url": "https://docs.rs.evil.example", "options": options }),
        "argument: the argument `url` of `page` has to fit \
         `[\"https://docs.rs/**\", \"https://crates.io\"]`, and is `https://docs.rs.evil.example`: \
         it does not fit; \
         tools = page = { tool = \"fetch\", where = { \"/options/raw\" = false, \
         url = [\"https://docs.rs/**\", \"https://crates.io\", \"https://docs.rs.evil.example\"] }, \
         rate = \"10/min\" }",
    );
    check(
        json!({ "url": "https://docs.rs/../a", "options": options }),
        "argument: the argument `url` of `page` has to fit \
         `[\"https://docs.rs/**\", \"https://crates.io\"]`, and is `https://docs.rs/../a`: \
         it has a segment `.` or `..`; \
         tools = page = { tool = \"fetch\", where = { \"/options/raw\" = false, \
         url = [\"https://docs.rs/**\", \"https://crates.io\", \"https://docs.rs/../a\"] }, \
         rate = \"10/min\" }",
    );
    check(
        json!({ "url": "https://docs.rs/serde" }),
        "argument: the argument `/options/raw` of `page` has to fit `false`: it is absent; ",
    );
    check(
        json!({ "url": ["https://docs.rs", "https://a/*"], "options": options }),
        "argument: the argument `url` of `page` has to fit \
         `[\"https://docs.rs/**\", \"https://crates.io\"]`, and is `https://a/*`: it does not fit; ",
    );
    let long = format!("https://evil.example/{}", "\u{202e}".repeat(300));
    let refused = decided(&page(), "page", &json!({ "url": long, "options": options }));
    let shown = format!("is `https://evil.example/{}…`", "\\u{202e}".repeat(256 - 21));
    assert!(refused.contains(&shown), "{refused}");
}

#[test]
fn what_it_may_call_stands_in_lines() {
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
    assert_eq!(caller.lines(&[]), ["tools → whatever its caller may call", own]);
    assert_eq!(caller.brief(&[]), "calls whatever its caller may");
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
fn grants_read_back_as_they_are_typed() {
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
fn a_tool_that_calls_others_may_do_anything() {
    let effects = |tools| Grants { tools, ..Grants::default() }.effects();
    let all = Effects { changes: true, open_world: true };
    assert_eq!(effects(page()), all);
    assert_eq!(effects(ToolGrants::Caller), all);
    assert_eq!(effects(grants(&json!({}))), Effects::default());
    assert_eq!(effects(ToolGrants::None), Effects::default());
}

#[test]
fn a_wish_names_tools_or_the_callers() {
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
    let line = "tools → whatever its caller may call: tools tools = \"caller\"";
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
fn grants_lie_within_others_by_tool_conditions_and_rate() {
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
    // Each alias is counted by itself.
    check(json!({ "a": rated("10/min") }), json!({ "b": rated("10/min") }), false);
    check(json!("caller"), json!("caller"), true);
    check(json!("caller"), json!({ "a": "t" }), false);
    check(json!({ "a": "t" }), json!("caller"), false);
    assert!(ToolGrants::Caller.contains(&ToolGrants::None));
    assert!(ToolGrants::None.contains(&ToolGrants::None));
    assert!(!ToolGrants::None.contains(&ToolGrants::Caller));
}

/// Parts of patterns and of texts, of which some are like others.
const PIECES: [&str; 9] = ["a", "b", "ab", "*", "a*", "*b", "**", "a**b", ""];
const TEXTS: [&str; 12] =
    ["a", "b", "ab", "axb", "..", "%2e.", "..\\a", "a\\b", "a?b", "#", "a%2Fb", ""];
const HOSTS: [&str; 3] = ["u://h.x", "u://*.x", "u://h*"];
const HOST_TEXTS: [&str; 9] = [
    "u://h.x",
    "u://a.x",
    "v://h.x",
    "u://e?.x",
    "u://e\\.x",
    "u://h@e.x",
    "u://h:1.x",
    "u://.x",
    "",
];

fn pattern() -> impl Strategy<Value = String> {
    let path = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..4);
    (prop::option::of(prop::sample::select(&HOSTS[..])), path).prop_map(joined)
}

fn text() -> impl Strategy<Value = String> {
    let path = prop::collection::vec(prop::sample::select(&TEXTS[..]), 0..4);
    (prop::option::of(prop::sample::select(&HOST_TEXTS[..])), path).prop_map(joined)
}

fn joined((host, path): (Option<&'static str>, Vec<&'static str>)) -> String {
    host.into_iter().chain(path).collect::<Vec<_>>().join("/")
}

/// Whether segments fit, by trying everything.
fn segments_fit(pattern: &[&str], text: &[&str]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ["**", rest @ ..] => (0..=text.len()).any(|taken| segments_fit(rest, &text[taken..])),
        [first, rest @ ..] => {
            let [segment, others @ ..] = text else { return false };
            let is_empty = first.is_empty() == segment.is_empty();
            is_empty && chars_fit(first, segment) && segments_fit(rest, others)
        }
    }
}

fn chars_fit(pattern: &str, text: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('*') => {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.into_iter().any(|at| chars_fit(&pattern[1..], &text[at..]))
        }
        Some(first) => text.strip_prefix(first).is_some_and(|rest| chars_fit(&pattern[1..], rest)),
    }
}

/// What a pattern of [`PIECES`] and [`HOSTS`] means for a text of [`TEXTS`] and
/// [`HOST_TEXTS`].
fn model(pattern: &str, text: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == text;
    }
    let mut parts = text.split(['/', '\\']);
    if text.contains("%2F..") || parts.any(|part| matches!(part, ".." | "%2e.")) {
        return false;
    }
    fn split(text: &str) -> Vec<&str> {
        text.split('/').collect()
    }
    let Some(pattern) = pattern.strip_prefix("u://") else {
        return segments_fit(&split(pattern), &split(text));
    };
    let Some(text) = text.strip_prefix("u://") else { return false };
    let (head, has_query) = match text.split_once(['?', '#']) {
        Some((head, _)) => (head, true),
        None => (text, false),
    };
    if head.contains('\\') || head.contains("%2F") {
        return false;
    }
    let (pattern, head) = (split(pattern), split(head));
    // A host is one as a browser reads it, and what has a query has a path.
    let is_host =
        !pattern[0].contains('*') || head[0].chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
    let has_query_fit = !has_query || pattern.last() == Some(&"**") && head.len() > 1;
    is_host && has_query_fit && segments_fit(&pattern, &head)
}

/// Conditions on `x` and `y`, one of several values each.
fn conditions() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let one = prop_oneof![
        pattern()
            .prop_filter("no pattern", |text| TextPattern::new(text.as_str()).is_ok())
            .prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
    ];
    let condition = prop::collection::vec(one, 1..3).prop_map(Value::from);
    prop::collection::vec((prop::sample::select(&["x", "y"][..]), condition), 0..3)
}

fn config() -> impl Strategy<Value = Map<String, Value>> {
    let rate = prop::option::of(prop::sample::select(&["1/s", "2/s", "1/s, 5/h"][..]));
    let grant = (prop::sample::select(&["t", "u"][..]), conditions(), rate);
    let grant = grant.prop_map(|(tool, conditions, rate)| {
        let conditions = conditions.into_iter().map(|(key, value)| (key.to_owned(), value));
        let mut grant = json!({ "tool": tool, "where": Value::Object(conditions.collect()) });
        if let Some(rate) = rate {
            grant["rate"] = rate.into();
        }
        grant
    });
    prop::collection::vec((prop::sample::select(&["a", "b"][..]), grant), 0..3).prop_map(|grants| {
        grants.into_iter().map(|(alias, grant)| (alias.to_owned(), grant)).collect()
    })
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        text().prop_map(Value::from),
        prop::collection::vec(text(), 0..3).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        Just(json!({})),
    ];
    prop::collection::vec((prop::sample::select(&["x", "y"][..]), value), 0..3)
        .prop_map(|values| values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Whether a configuration allows a call, read without this crate.
fn allows(config: &Map<String, Value>, alias: &str, arguments: &Map<String, Value>) -> bool {
    fn fits(expected: &[Value], value: &Value) -> bool {
        match value {
            Value::Array(values) => {
                !values.is_empty() && values.iter().all(|value| fits(expected, value))
            }
            Value::String(text) => {
                expected.iter().filter_map(Value::as_str).any(|pattern| model(pattern, text))
            }
            Value::Bool(_) | Value::Number(_) => expected.contains(value),
            Value::Object(_) | Value::Null => false,
        }
    }
    let Some(grant) = config.get(alias) else { return false };
    let conditions = grant["where"].as_object().unwrap();
    conditions.iter().all(|(key, expected)| {
        arguments.get(key).is_some_and(|value| fits(expected.as_array().unwrap(), value))
    })
}

fn is_allowed(grants: &ToolGrants, alias: &str, arguments: &Map<String, Value>) -> bool {
    grants.decide(&ToolRequest { alias, arguments }).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_pattern_matches_as_a_plain_model(pattern in pattern(), texts in prop::collection::vec(text(), 20)) {
        let Ok(read) = TextPattern::new(pattern.as_str()) else { return Ok(()) };
        for text in texts {
            prop_assert_eq!(read.check(&text).is_ok(), model(&pattern, &text), "{} {}", pattern, text);
        }
    }

    #[test]
    fn a_pattern_within_another_matches_nothing_that_the_other_does_not(
        own in pattern(), other in pattern(), texts in prop::collection::vec(text(), 20),
    ) {
        let (Ok(own), Ok(other)) = (TextPattern::new(own), TextPattern::new(other)) else {
            return Ok(());
        };
        prop_assert!(own.holds(&own), "{}", own);
        if own.holds(&other) {
            for text in texts {
                let is_held = own.check(&text).is_ok() || other.check(&text).is_err();
                prop_assert!(is_held, "{} {} {}", own, other, text);
            }
        }
    }

    #[test]
    fn a_call_is_decided_as_by_a_plain_model(
        config in config(), calls in prop::collection::vec(arguments(), 8),
    ) {
        let read = grants(&Value::Object(config.clone()));
        for arguments in calls {
            for alias in ["a", "b", "c"] {
                let expected = allows(&config, alias, &arguments);
                prop_assert_eq!(is_allowed(&read, alias, &arguments), expected);
                let wanted = WantedTool::Alias {
                    alias: Alias::new(alias).unwrap(),
                    arguments: Some(arguments.clone()),
                };
                let all = Grants { tools: read.clone(), ..Grants::default() };
                let decision = decide(&all, &Request::Tool(wanted));
                prop_assert_eq!(matches!(decision, Decision::Allowed { .. }), expected);
            }
        }
    }

    #[test]
    fn fewer_grants_or_more_conditions_never_allow_more(
        config in config(), more in conditions(), calls in prop::collection::vec(arguments(), 8),
    ) {
        let own = grants(&Value::Object(config.clone()));
        for alias in config.keys() {
            let mut fewer = config.clone();
            fewer.remove(alias);
            let mut narrower = config.clone();
            for (key, value) in &more {
                let conditions = narrower[alias]["where"].as_object_mut().unwrap();
                conditions.entry(*key).or_insert_with(|| value.clone());
            }
            for less in [fewer, narrower].map(|config| grants(&Value::Object(config))) {
                prop_assert!(own.contains(&less));
                for arguments in &calls {
                    for alias in ["a", "b"] {
                        let allows = |grants| is_allowed(grants, alias, arguments);
                        prop_assert!(!allows(&less) || allows(&own));
                    }
                }
            }
        }
    }

    #[test]
    fn grants_within_others_allow_no_call_that_the_others_do_not(
        own in config(), other in config(), calls in prop::collection::vec(arguments(), 8),
    ) {
        let (own, other) = (grants(&Value::Object(own)), grants(&Value::Object(other)));
        if !own.contains(&other) {
            return Ok(());
        }
        for arguments in &calls {
            for alias in ["a", "b"] {
                let decided = |grants: &ToolGrants, alias| {
                    grants.decide(&ToolRequest { alias, arguments }).ok()
                };
                let Some(call) = decided(&other, alias) else { continue };
                // By the same alias, where that is counted, else by any.
                let is_held = ["a", "b"].into_iter().any(|own_alias| {
                    decided(&own, own_alias).is_some_and(|held| {
                        let is_as_rare = held.rate.as_ref().is_none_or(|own| {
                            own_alias == alias
                                && call.rate.as_ref().is_some_and(|rate| own.and(rate) == *rate)
                        });
                        held.tool == call.tool && is_as_rare
                    })
                });
                prop_assert!(is_held);
            }
        }
    }

    #[test]
    fn the_line_that_is_missing_allows_the_call(
        config in config(), arguments in arguments(),
    ) {
        let read = grants(&Value::Object(config.clone()));
        for alias in ["a", "b", "c"] {
            let Err(refusal) = read.decide(&ToolRequest { alias, arguments: &arguments }) else {
                continue;
            };
            let Some(missing) = refusal.missing() else { continue };
            // TOML of one line, which here differs from JSON in its keys and signs alone.
            let (named, entry) = missing.entry.split_once(" = ").unwrap();
            let entry = ["tool", "where", "rate", "x", "y"].iter().fold(entry.to_owned(), |text, key| {
                text.replace(&format!("{{ {key} = "), &format!("{{ \"{key}\": "))
                    .replace(&format!(", {key} = "), &format!(", \"{key}\": "))
            });
            let entry: Value = serde_json::from_str(&entry).unwrap();
            let mut more = config.clone();
            more.insert(named.to_owned(), entry);
            prop_assert!(is_allowed(&grants(&Value::Object(more)), alias, &arguments));
        }
    }
}
