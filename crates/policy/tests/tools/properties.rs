//! Decisions match a plain model, and fewer grants never allow more.

use kitbag_policy::tools::{Alias, RequestedTool, TextPattern, ToolGrants};
use kitbag_policy::{Decision, Grants, Request, ToolRequest, decide};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::grants;

/// Parts of patterns and strings, some of them similar.
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

/// Matches segments by exhaustive search.
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

/// Matches a pattern of [`PIECES`] and [`HOSTS`] with a string of [`TEXTS`] and [`HOST_TEXTS`].
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
    // Hosts have the characters of browser hosts, and a URL with a query has a path.
    let is_host =
        !pattern[0].contains('*') || head[0].chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
    let has_query_fit = !has_query || pattern.last() == Some(&"**") && head.len() > 1;
    is_host && has_query_fit && segments_fit(&pattern, &head)
}

/// Conditions on `x` and `y`, each with several values.
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

/// Evaluates a configuration for a call without this crate.
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
    fn patterns_match_as_the_model(pattern in pattern(), texts in prop::collection::vec(text(), 20)) {
        let Ok(read) = TextPattern::new(pattern.as_str()) else { return Ok(()) };
        for text in texts {
            prop_assert_eq!(read.check(&text).is_ok(), model(&pattern, &text), "{} {}", pattern, text);
        }
    }

    #[test]
    fn covered_patterns_match_nothing_more(
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
    fn calls_are_decided_as_by_the_model(
        config in config(), calls in prop::collection::vec(arguments(), 8),
    ) {
        let read = grants(&Value::Object(config.clone()));
        for arguments in calls {
            for alias in ["a", "b", "c"] {
                let expected = allows(&config, alias, &arguments);
                prop_assert_eq!(is_allowed(&read, alias, &arguments), expected);
                let requested = RequestedTool::Alias {
                    alias: Alias::new(alias).unwrap(),
                    arguments: Some(arguments.clone()),
                };
                let all = Grants { tools: read.clone(), ..Grants::default() };
                let decision = decide(&all, &Request::Tool(requested));
                prop_assert_eq!(matches!(decision, Decision::Allowed { .. }), expected);
            }
        }
    }

    #[test]
    fn narrowing_never_allows_more_calls(
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
    fn covered_grants_allow_no_further_calls(
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
                // With the same alias if rates apply, otherwise with any alias.
                let is_held = ["a", "b"].into_iter().any(|own_alias| {
                    decided(&own, own_alias).is_some_and(|allowed| {
                        let is_as_rare = allowed.rate.as_ref().is_none_or(|own| {
                            own_alias == alias
                                && call.rate.as_ref().is_some_and(|rate| own.and(rate) == *rate)
                        });
                        allowed.tool == call.tool && is_as_rare
                    })
                });
                prop_assert!(is_held);
            }
        }
    }

    #[test]
    fn the_missing_grant_allows_the_call(
        config in config(), arguments in arguments(),
    ) {
        let read = grants(&Value::Object(config.clone()));
        for alias in ["a", "b", "c"] {
            let Err(refusal) = read.decide(&ToolRequest { alias, arguments: &arguments }) else {
                continue;
            };
            let Some(missing) = refusal.missing() else { continue };
            // One line of TOML, which differs from JSON only in keys and signs here.
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
