//! Native tests of the tools: third-party suites, and cases.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::{Draft, Retrieve, Uri};
use kitbag_sdk::Call;
use serde_json::{Value, json};
use serde_json_path::JsonPath;

/// Returns a directory of this crate.
fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Compares the failures with the list of expected failures.
#[track_caller]
fn check_failing(list: &str, failing: &[String]) {
    let path = directory("suites").join(list);
    let failing: String = failing.iter().map(|name| format!("{name}\n")).collect();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &failing).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(failing == expected, "expected to fail:\n{expected}\nfails:\n{failing}");
}

/// Returns the answer of a call, or its error.
pub(crate) fn call(root: &str, tool: &str, arguments: &str) -> Result<String, String> {
    let call = Call::new(tool, root, arguments, "{}");
    let answer = crate::answer(&call).map_err(|error| error.message)?;
    let notes = answer.notes.iter().map(|note| format!("\n[{note}]"));
    Ok(answer.text + &notes.collect::<String>())
}

#[test]
fn jq_reads_rows_like_documents() {
    let csv =
        "id,a b,,x,x\n1,\"q\"\"\",3,true,\n-0.50,007,,1e5,2E5\n\\N,\u{e4},c,-1\n\n9,-7,,-,00\n";
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let lines = [
        r#"{"a":1.50,"a":2,"b":[null,true,"\n\"\\"]}"#,
        r#" {"u":"\u00e4\ud83d\ude00","big":123456789012345678901234567890} "#,
        "",
        "\"\u{e4}\"",
        "-0.0",
        "{a: 1, /* not strict */}",
        "1 2",
        &deep(100),
    ];
    for (from, text) in [("csv", csv), ("jsonl", &lines.join("\n"))] {
        let answer = |query: &str| {
            let arguments = json!({ "query": query, "text": text, "from": from });
            call("/", "query_data", &arguments.to_string()).unwrap()
        };
        assert_eq!(answer("."), answer("$"), "{from}");
    }
    for line in [deep(200), r#""\ud800""#.to_owned(), "nan".to_owned(), "[1,]#".to_owned()] {
        let answer = |query: &str| {
            let arguments = json!({ "query": query, "text": line, "from": "jsonl" });
            call("/", "query_data", &arguments.to_string())
        };
        assert_eq!(answer("."), answer("$"), "{line}");
    }
}

#[test]
fn definitions_have_at_most_800_tokens() {
    let described: Value = serde_json::from_str(crate::DESCRIPTION).unwrap();
    let tools = described["tools"].as_array().unwrap();
    let bytes = tools.iter().map(|tool| {
        let parts = ["name", "description", "inputSchema"].map(|part| tool[part].to_string());
        parts.concat().len()
    });
    // A token has about four characters.
    let tokens = bytes.sum::<usize>() / 4;
    assert!(tokens <= 800, "{tokens}");
    for tool in tools.iter().filter(|tool| tool["name"] != "validate_data") {
        let default = &tool["inputSchema"]["properties"]["max_bytes"]["default"];
        assert_eq!(*default, crate::write::ANSWER_BYTES);
    }
}

#[test]
fn oversized_results_name_their_parts() {
    let text = json!({ "a": vec![1; 200_000], "b": "x".repeat(100_000) }).to_string();
    let check = |query: &str, expected: &str| {
        let arguments = json!({ "text": text, "query": query }).to_string();
        let error = call("/", "query_data", &arguments).unwrap_err();
        assert_eq!(error, format!("result 0 has {expected}, or raise `max_bytes`"));
    };
    let array = "400001 bytes, more than `max_bytes` 49152: it is an array of 200000 elements; select \
                 the first 24576, as `.a[0:24576]` and `$.a[0:24576]` do";
    let object = "500014 bytes, more than `max_bytes` 49152: it is an object with the keys `a`, `b`; \
                  select a part of it, as `.a.b` and `$.a.b` do";
    let string = "100002 bytes, more than `max_bytes` 49152: it is a text; select a part of it, as the \
                  jq filter `.a[0:1000]` does";
    for (path, filter, expected) in
        [("$.a", ".a", array), ("$", ".", object), ("$.b", ".b", string)]
    {
        check(path, expected);
        check(filter, expected);
    }
    let all = json!({ "text": text, "query": ".", "max_bytes": 600_000 }).to_string();
    assert!(call("/", "query_data", &all).unwrap().len() > 500_000);
}

/// Continues an answer of `query_data` until the end.
fn read_on(mut arguments: Value) -> (usize, Vec<Value>) {
    let (mut calls, mut all) = (0, Vec::new());
    loop {
        calls += 1;
        let answer = call("/", "query_data", &arguments.to_string()).unwrap();
        assert!(answer.len() < 50_000);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        all.extend(answer["results"].as_array().unwrap().iter().cloned());
        match answer.get("next_offset") {
            Some(next) => arguments["offset"] = next.clone(),
            None => return (calls, all),
        }
    }
}

#[test]
fn results_continue_at_next_offset() {
    let items: Vec<_> = (0..3_000).map(|n| json!({ "n": n, "text": "x".repeat(50) })).collect();
    let text = json!(items).to_string();
    for query in ["$[*]", ".[]"] {
        let arguments = json!({ "text": text, "query": query, "limit": 10_000 });
        let (calls, all) = read_on(arguments);
        assert_eq!((calls, all.len(), &all), (5, 3_000, &items));
    }
}

#[test]
fn rows_continue_at_the_named_offset() {
    let items: Vec<_> = (0..1_000).map(|n| json!({ "n": n, "text": "x\"y".repeat(40) })).collect();
    let text = json!(items).to_string();
    for to in ["json", "yaml", "jsonl", "csv"] {
        let (mut all, mut offset) = (Vec::new(), 0);
        loop {
            let arguments = json!({ "text": text, "to": to, "offset": offset });
            let answer = call("/", "convert_data", &arguments.to_string()).unwrap();
            assert!(answer.len() < 50_000, "{to}: {}", answer.len());
            let (rows, note) = match answer.rsplit_once("[rows ") {
                Some((rows, note)) => (rows.to_owned(), Some(note.to_owned())),
                None => (answer, None),
            };
            let back = json!({ "text": rows, "from": to, "to": "json", "max_bytes": 1_000_000 });
            let back = call("/", "convert_data", &back.to_string()).unwrap();
            all.extend(serde_json::from_str::<Vec<Value>>(&back).unwrap());
            let Some(note) = note else { break };
            let next = note.split("offset=").nth(1).and_then(|it| it.split(' ').next());
            offset = next.unwrap().parse().unwrap();
            assert_eq!(offset, all.len());
        }
        // CSV has only strings.
        let texts = |rows: &[Value]| rows.iter().map(|row| row["text"].clone()).collect::<Vec<_>>();
        assert!(texts(&all) == texts(&items), "{to}");
    }
}

#[test]
fn an_error_does_not_repeat_the_document() {
    let items: Vec<_> = (0..10_000).map(|n| json!({ "i": n })).collect();
    let text = json!({ "items": items, "name": "k".repeat(10_000) }).to_string();
    let long = "k".repeat(10_000);
    let queries = [
        ".items.i",
        ". + 1",
        ".[\"items\"][\"x\"]",
        ".items|tonumber",
        "error",
        ".items|ltrimstr(\"x\")|length|error",
        ".items|.[0:1]=1",
        "[.items]|implode",
        ".items as $x|$x|fromjson",
        &format!(".{long}x|{long}"),
        &format!("{long}("),
        "[limit(3;.items)]|nan",
        &format!("$.{long}["),
        ".name|strptime(\"%Y\")",
    ];
    for query in queries {
        let arguments = json!({ "text": text, "query": query }).to_string();
        if let Err(error) = call("/", "query_data", &arguments) {
            assert!(error.len() < 4_096, "{query}: {}", error.len());
        }
    }
    let arguments = json!({ "text": text, "query": ".items.i" }).to_string();
    let error = call("/", "query_data", &arguments).unwrap_err();
    assert!(error.starts_with("jq, on `text`: cannot index [{\"i\":0},"), "{error}");
    assert!(error.ends_with("… with \"i\""), "{error}");
    let others = [
        ("patch_data", json!({ "text": text, "patch": [{ "op": long, "path": long }] })),
        (
            "patch_data",
            json!({ "text": text, "patch": [{ "op": "test", "path": "/items", "value": items }] }),
        ),
        ("convert_data", json!({ "text": format!("{{\"{long}\":[null]}}"), "to": "toml" })),
        ("convert_data", json!({ "text": long, "to": "csv" })),
        ("convert_data", json!({ "path": long, "to": "csv" })),
        ("convert_data", json!({ "text": "[]", "to": "csv", "delimiter": long })),
        ("convert_data", json!({ "text": format!("{long}: [}}"), "from": "yaml", "to": "json" })),
        ("convert_data", json!({ "text": format!("{long} = {{"), "from": "toml", "to": "json" })),
        ("validate_data", json!({ "text": "1", "schema": { "$ref": long } })),
        ("validate_data", json!({ "text": "1", "schema": { "pattern": format!("({long}") } })),
    ];
    for (tool, arguments) in others {
        let error = call("/", tool, &arguments.to_string()).unwrap_err();
        assert!(error.len() < 4_096, "{tool}: {}: {}", error.len(), &error[..200]);
    }
}

#[test]
fn answers_are_never_cut_within_a_result() {
    let text = json!({ "a": vec![1; 200_000] }).to_string();
    let arguments = json!({ "text": text, "merge": {} }).to_string();
    let error = call("/", "patch_data", &arguments).unwrap_err();
    assert!(error.starts_with("the result is longer than `max_bytes` 49152"), "{error}");

    // The pointer of each error contains the key.
    let key = "k".repeat(100_000);
    let text = json!({ &key: [1, 2, 3, 4, 5] }).to_string();
    let arguments = json!({
        "text": text,
        "schema": { "additionalProperties": { "items": { "type": "string" } } },
    });
    let answer = call("/", "validate_data", &arguments.to_string()).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["errors"].as_array().unwrap().len(), 5);
    assert_eq!(answer["errors"][4]["pointer"], format!("/{}…", &key[..999]));
    assert_eq!(answer["valid"], json!(false));
}

#[test]
fn jsonpath_compliance_suite_passes_with_listed_exceptions() {
    let suite = read_json(&directory("suites/jsonpath/cts.json"));
    let tests = suite["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 687);
    let mut failing = Vec::new();
    for test in tests {
        let selector = test["selector"].as_str().unwrap();
        let passes = match JsonPath::parse(selector) {
            Err(_) => test["invalid_selector"] == json!(true),
            Ok(path) => {
                let found: Vec<_> =
                    path.query(&test["document"]).iter().cloned().cloned().collect();
                let is = |result: &Value| result.as_array() == Some(&found);
                match (&test["result"], test["results"].as_array()) {
                    (Value::Null, None) => false,
                    (result, None) => is(result),
                    (_, Some(results)) => results.iter().any(is),
                }
            }
        };
        if !passes {
            failing.push(test["name"].as_str().unwrap().to_owned());
        }
    }
    check_failing("jsonpath/failing.txt", &failing);
}

/// The documents that the suite expects at its own address.
struct Remotes;

impl Retrieve for Remotes {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let path = uri.as_str().strip_prefix("http://localhost:1234/").ok_or("no remote")?;
        Ok(read_json(&directory("suites/json-schema/remotes").join(path)))
    }
}

#[test]
fn json_schema_suite_passes_with_listed_exceptions() {
    let mut files: Vec<PathBuf> = Vec::new();
    for below in ["", "optional", "optional/format"] {
        let entries = fs::read_dir(directory("suites/json-schema/tests").join(below)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
    }
    files.sort();
    let (mut failing, mut checked) = (Vec::new(), 0);
    for file in files {
        let name = file.strip_prefix(directory("suites/json-schema/tests")).unwrap();
        for group in read_json(&file).as_array().unwrap() {
            let validator = crate::validate::options()
                .with_draft(Draft::Draft202012)
                .with_retriever(Remotes)
                .should_validate_formats(name.starts_with("optional/format"))
                .build(&group["schema"]);
            for test in group["tests"].as_array().unwrap() {
                checked += 1;
                let is_valid = validator.as_ref().map(|it| it.is_valid(&test["data"]));
                if is_valid.ok() != test["valid"].as_bool() {
                    let (group, test) = (&group["description"], &test["description"]);
                    failing.push(format!("{}: {group}: {test}", name.display()));
                }
            }
        }
    }
    assert!(checked > 1_800, "{checked}");
    check_failing("json-schema/failing.txt", &failing);
}

#[test]
fn answers_match_the_cases() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path().to_str().unwrap().to_owned();
    let files: BTreeMap<String, String> =
        serde_json::from_str(include_str!("../cases/files.json")).unwrap();
    for (path, content) in files {
        let path = workspace.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    // Files that are not UTF-8, as hexadecimal digits.
    let files: BTreeMap<String, String> =
        serde_json::from_str(include_str!("../cases/encodings.json")).unwrap();
    for (path, digits) in files {
        let bytes = digits
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
        fs::write(workspace.path().join(path), bytes.collect::<Vec<_>>()).unwrap();
    }
    for file in
        ["query_data", "validate_data", "patch_data", "convert_data", "formats", "csv", "jq"]
    {
        kitbag_cases::check(directory("cases").join(format!("{file}.txt")), |tool, arguments| {
            let shorten = |text: String| text.replace(&root, "/workspace");
            call(&root, tool, arguments).map(shorten).map_err(shorten)
        });
    }
}
