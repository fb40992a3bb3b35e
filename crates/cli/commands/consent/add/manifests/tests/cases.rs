//! Each directory in `cases` holds a manifest and its expected translation.

use std::fs;
use std::path::Path;

use crate::commands::consent::add::manifests::{Format, Manifest};

/// Prints a translated manifest with its notes as comments.
fn shown(manifest: &Manifest) -> String {
    let mut text = String::new();
    for (key, value) in [
        ("name", &manifest.name),
        ("version", &manifest.version),
        ("author", &manifest.author),
        ("component", &manifest.component),
    ] {
        let value = value.as_deref().unwrap_or("-");
        text.push_str(&format!("# {key}: {value}\n"));
    }
    for note in &manifest.notes {
        let key = if note.key.is_empty() { "the file" } else { &note.key };
        text.push_str(&format!("# {key}: {}\n", note.text));
    }
    format!("{text}\n{}", manifest.to_toml())
}

#[test]
fn manifest_becomes_a_table_with_notes() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates/cli/commands/consent/add/manifests/tests/cases");
    let mut names: Vec<_> =
        fs::read_dir(&cases).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names.len(), 40);
    for name in names {
        let directory = cases.join(&name);
        let mut files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        let manifest = files.find_map(|path| {
            let file = path.file_name()?.to_str()?;
            let source = || fs::read(&path).unwrap();
            match Format::of_file(file) {
                Some(format) => {
                    Some(Ok(Manifest::translate(format, source(), Path::new("/skills/own"))))
                }
                None if file == "jp.toml" => Some(Manifest::of_jp(source(), None)),
                None if file.starts_with("hyper-mcp.") => {
                    Some(Manifest::of_hyper_mcp(source(), file, None))
                }
                None => None,
            }
        });
        let manifest = manifest.unwrap();
        let text = match &manifest {
            Ok(manifest) => shown(manifest),
            Err(problem) => format!("# {problem}\n"),
        };
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&directory);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!("translated", text));
        // The result is TOML, regardless of the manifest's content.
        if let Ok(manifest) = manifest {
            toml::from_str::<toml::Table>(&manifest.to_toml()).unwrap();
        }
    }
}

#[test]
fn paths_below_a_prefix_are_granted() {
    let entry = |prefix: &str| {
        let text = format!(
            r#"{{"http":{{"allowlist":[{{"host":"a.example","path_prefix":"{prefix}"}}]}}}}"#
        );
        let manifest = Manifest::translate(Format::CapabilitiesJson, &text, Path::new("/"));
        let [requested] = &manifest.requested.http[..] else {
            panic!("{prefix}: {:?}", manifest.notes)
        };
        let pattern: kitbag::policy::UrlPattern = requested.url.parse().unwrap();
        move |path: &str| {
            let url = format!("https://a.example{path}");
            pattern.matches(&kitbag::policy::HttpRequest::new("GET", &url).unwrap())
        }
    };
    let with_slash = entry("/api/");
    assert!(with_slash("/api/x") && with_slash("/api/x/y"));
    assert!(!with_slash("/api") && !with_slash("/apis"));
    let without = entry("/api");
    assert!(without("/api") && without("/api/x"));
    assert!(!without("/apis"), "a segment is not granted in part");
    assert!(entry("/")("/any/thing"));
}

#[test]
fn format_is_detected_from_the_file_name() {
    let check = |name: &str, expected: Option<Format>, tool: Option<&str>| {
        assert_eq!(Format::of_file(name), expected, "{name}");
        assert_eq!(Format::tool_of_file(name), tool, "{name}");
    };
    check("skill.toml", Some(Format::SkillToml), None);
    check("manifest.yaml", Some(Format::ManifestYaml), None);
    check("policy.yaml", Some(Format::PolicyYaml), None);
    check("manifest.toml", Some(Format::ExtensionToml), None);
    check("capabilities.json", Some(Format::CapabilitiesJson), None);
    check("slack.capabilities.json", Some(Format::CapabilitiesJson), Some("slack"));
    check(".capabilities.json", None, None);
    check("Skill.toml", None, None);
}

#[test]
fn one_tool_of_an_extension_is_selected() {
    let source = include_str!("cases/extension/manifest.toml");
    let translate = |tool: &str| {
        Manifest::translate_tool(
            Format::ExtensionToml,
            source,
            Path::new("/skills/own"),
            Some(tool),
        )
    };
    let mut manifest = translate("tracker.get_ticket");
    assert_eq!(manifest.tools, ["tracker.get_ticket", "tracker.close_ticket"]);
    assert_eq!(manifest.name.as_deref(), Some("tracker_get_ticket"));
    assert_eq!(manifest.schema.as_deref(), Some("schemas/get_ticket.input.v1.json"));
    manifest.notes.clear();
    manifest.take_schema(
        br#"{
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": { "type": "integer", "minimum": 1, "description": "The number." },
                "state": { "type": ["string", "null"], "enum": ["open", "closed"] },
                "labels": { "type": "array", "items": { "type": "string", "maxLength": 9 } },
                "range": {
                    "type": "object",
                    "properties": { "to": { "type": "number", "default": 1.5 } },
                    "required": ["to"],
                    "additionalProperties": false
                },
                "any": { "type": "object", "properties": { "x": {} } }
            },
            "anyOf": []
        }"#,
    );
    let notes: Vec<_> =
        manifest.notes.iter().map(|note| format!("{}: {}", note.key, note.text)).collect();
    assert_eq!(
        notes,
        ["schemas/get_ticket.input.v1.json: only the component checks `anyOf`, `maxLength`, \
             `minimum`, `properties`"]
    );
    insta::assert_snapshot!(manifest.to_toml(), @r#"
    function = "tracker.get_ticket"
    title = "Tracker"
    description = "Reads a ticket."

    [grants]
    filesystem = []
    http = [{ url = "https://api.tracker.example", methods = "*" }]
    secrets = { tracker_token = { to = ["https://api.tracker.example/**"] } }

    [parameters.id]
    type = "integer"
    description = "The number."
    required = true

    [parameters.state]
    type = "string"
    enum = ["open", "closed"]

    [parameters.labels]
    type = "array"

    [parameters.labels.items]
    type = "string"

    [parameters.range]
    type = "object"

    [parameters.range.properties.to]
    type = "number"
    default = 1.5
    required = true

    [parameters.any]
    type = "object"
    "#);
    // An approval for each call is requested by the other tool.
    assert!(!manifest.is_approved_per_call);
    assert!(translate("tracker.close_ticket").is_approved_per_call);
    assert_eq!(translate("tracker.other").requested, Default::default());
}

#[test]
fn schemas_that_cannot_be_read_are_noted() {
    let check = |source: &[u8], expected: &str| {
        let mut manifest = Manifest::empty(Format::ExtensionToml, b"");
        manifest.schema = Some("a.json".to_owned());
        manifest.take_schema(source);
        assert_eq!(manifest.parameters, None);
        let [note] = &manifest.notes[..] else { panic!("{:?}", manifest.notes) };
        assert_eq!((&*note.key, &*note.text), ("a.json", expected));
    };
    check(b"[]", "it is a list, not a table; it is ignored");
    check(b"\xff", "it cannot be read: it is not UTF-8: see line 1; it is ignored");
    check(b"{", "it cannot be read: EOF while parsing an object at line 1 column 1; it is ignored");
}
