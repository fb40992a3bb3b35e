//! The tools without a host: the suites of others, and cases.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::{Draft, Retrieve, Uri};
use kitbag_sdk::{Call, Tool};
use serde_json::{Value, json};
use serde_json_path::JsonPath;

use crate::Data;

/// A directory of this crate.
fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Compares what fails with the list of it.
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

/// What a call answers, or its error.
pub(crate) fn call(root: &str, tool: &str, arguments: &str) -> Result<String, String> {
    let call = Call::new(tool, root, arguments, "{}");
    let answer = crate::answer(&call).map_err(|error| error.message)?;
    let notes = answer.notes.iter().map(|note| format!("\n[{note}]"));
    Ok(answer.text + &notes.collect::<String>())
}

#[test]
fn the_definitions_cost_a_model_at_most_800_tokens() {
    let described: Value = serde_json::from_str(&Data::describe().to_string()).unwrap();
    let tools = described["tools"].as_array().unwrap();
    let bytes = tools.iter().map(|tool| {
        let parts = ["name", "description", "inputSchema"].map(|part| tool[part].to_string());
        parts.concat().len()
    });
    // A token has about four characters.
    let tokens = bytes.sum::<usize>() / 4;
    assert!(tokens <= 800, "{tokens}");
}

#[test]
fn a_result_that_is_too_long_is_an_error_and_not_left_out() {
    let text = json!({ "a": vec![1; 200_000] }).to_string();
    for query in ["$.a", ".a"] {
        let arguments = json!({ "text": text, "query": query }).to_string();
        let error = call("/", "query_data", &arguments).unwrap_err();
        assert!(error.contains("the first result has 400001 bytes, more than 262144"), "{error}");
    }
}

#[test]
fn an_answer_is_never_cut_in_the_middle() {
    let text = json!({ "a": vec![1; 200_000] }).to_string();
    let arguments = json!({ "text": text, "merge": {} }).to_string();
    let error = call("/", "patch_data", &arguments).unwrap_err();
    assert!(error.starts_with("the result is longer than 262144 bytes"), "{error}");

    // The pointer of each error has the key.
    let key = "k".repeat(100_000);
    let text = json!({ &key: [1, 2, 3, 4, 5] }).to_string();
    let arguments = json!({
        "text": text,
        "schema": { "additionalProperties": { "items": { "type": "string" } } },
    });
    let answer = call("/", "validate_data", &arguments.to_string()).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["errors"].as_array().unwrap().len(), 2);
    assert_eq!((&answer["left_out"], &answer["valid"]), (&json!(3), &json!(false)));
}

#[test]
fn the_compliance_suite_of_jsonpath_passes_but_for_what_is_listed() {
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

/// The documents that the suite expects at an address of its own.
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
fn the_suite_of_json_schema_passes_but_for_what_is_listed() {
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
fn answers_are_those_of_the_cases() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path().to_str().unwrap().to_owned();
    let files: BTreeMap<String, String> =
        serde_json::from_str(include_str!("../cases/files.json")).unwrap();
    for (path, content) in files {
        let path = workspace.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    // Those that are not UTF-8, as hexadecimal digits.
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
