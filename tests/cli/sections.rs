//! The description of a component in its section `kitbag:describe`, which is read without running
//! the component: of a guest with a section written by the sdk, and of guests to which one is
//! added. `crates/host` tests which sections are used.

use std::fs;

use serde_json::json;

use crate::support::{Workspace, guest, snapshot};

/// A component with an additional section at its end.
fn with_section(name: &str, description: &[u8]) -> Vec<u8> {
    let mut content = vec![15];
    content.extend(b"kitbag:describe");
    content.extend(description);
    let mut component = fs::read(guest(name)).unwrap();
    component.push(0);
    let mut left = content.len();
    while left > 0x7f {
        component.push(left as u8 | 0x80);
        left >>= 7;
    }
    component.push(left as u8);
    component.extend(content);
    component
}

/// A workspace with this component as the tool `tool`, in which nothing has been compiled yet.
fn workspace(component: &[u8]) -> Workspace {
    let workspace = Workspace::with_own_cache();
    workspace.file(".kitbag/tools/tool.wasm", component);
    workspace
}

/// Returns true if the component was neither compiled nor called.
fn is_untouched(workspace: &Workspace) -> bool {
    fs::read_dir(workspace.cache()).map_or(true, |mut entries| entries.next().is_none())
}

#[test]
fn the_sdk_description_is_known_before_compiling() {
    let workspace = workspace(&fs::read(guest("settings")).unwrap());
    let listed = workspace.run(&["list"]).success();
    assert!(listed.contains("Read configuration values and variables"), "{listed}");
    assert!(listed.contains("unavailable: tool `tool` requests a grant"), "{listed}");
    let described = workspace.run(&["describe", "tool", "--json"]).json();
    assert_eq!(described["inputSchema"]["value"]["properties"]["key"]["type"], "string");
    assert_eq!(described["wouldLike"]["env"], json!(["SETTINGS_MODE"]));
    assert!(is_untouched(&workspace));
    assert_eq!(workspace.run(&["run", "tool", "key=a"]).success(), "none\n");
    assert!(!is_untouched(&workspace));
    let again = workspace.run(&["describe", "tool", "--json"]).json();
    assert_eq!(again, described);
}

#[test]
fn inspect_shows_the_description_and_its_source() {
    let workspace = Workspace::new();
    let place = |name: &str, component: &[u8]| workspace.file(name, component);
    place("settings.wasm", &fs::read(guest("settings")).unwrap());
    place("probe.wasm", &fs::read(guest("probe")).unwrap());
    place("stranger.wasm", &fs::read(guest("stranger")).unwrap());
    place("named.wasm", &with_section("stranger", br#"{"name":"count"}"#));
    place("two.wasm", &with_section("settings", br#"{"name":"count"}"#));
    let mut shown = String::new();
    for name in ["settings", "probe", "stranger", "named", "two"] {
        let inspected = workspace.run(&["inspect", &format!("{name}.wasm")]).success();
        let (_, from) = inspected.split_once("Description").unwrap();
        let (description, _) = from.split_once("\n\nExports").unwrap();
        shown.push_str(&format!("{name}.wasm\nDescription{description}\n\n"));
    }
    snapshot!("inspect", &shown);
    let json = |name: &str| workspace.run(&["inspect", name, "--json"]).json();
    let settings = json("settings.wasm");
    assert_eq!(settings["describedBy"], "section");
    assert_eq!(settings["description"]["tools"][0]["name"], "settings");
    assert_eq!(json("probe.wasm")["describedBy"], "describe");
    assert_eq!(json("stranger.wasm")["describedBy"], json!(null));
    let two = json("two.wasm");
    assert_eq!(two["description"], json!(null));
    let problem = "it has two sections `kitbag:describe`, but may have only one";
    assert_eq!(two["descriptionProblem"], problem);
}

#[test]
fn the_section_takes_precedence_over_describe() {
    let section = br#"{"name":"tool","description":"From the section.","inputSchema":{
        "type":"object","properties":{"do":{"const":"preopens"}},"additionalProperties":false}}"#;
    let workspace = workspace(&with_section("probe", section));
    for _ in 0..2 {
        let described = workspace.run(&["describe", "tool"]).success();
        assert!(described.contains("From the section."), "{described}");
        let refused = workspace.run(&["run", "tool", "do=echo"]);
        assert_eq!(refused.code, 2, "{}", refused.shown());
        // Now the component is compiled, and the stored description is the same.
        let preopens = workspace.run(&["run", "tool", "do=preopens"]).success();
        assert!(preopens.starts_with("preopens: "), "{preopens}");
    }
    // A component without `describe` may also have the section.
    let section = br#"{"name":"x","description":"Counts.","inputSchema":{"type":"object",
        "properties":{"text":{"type":"string"}},"required":["text"]}}"#;
    let workspace = self::workspace(&with_section("stranger", section));
    let missing = workspace.run(&["run", "tool"]);
    assert!(missing.stderr.contains("`/text`: is missing"), "{}", missing.shown());
    assert!(workspace.run(&["run", "tool", "text=a b"]).success().contains('2'));
}

#[test]
fn an_unusable_section_is_ignored_and_named() {
    let check = |component: &[u8], argument: &str, expected: &str| {
        let workspace = workspace(component);
        let checked = workspace.run(&["check"]);
        assert!(checked.shown().contains(expected), "{}", checked.shown());
        let run = workspace.run(&["run", "tool", argument]);
        assert_eq!(run.code, 0, "{}", run.shown());
        assert!(run.stderr.contains(expected), "{}", run.shown());
        // `describe`, which would return a schema, is not called instead.
        let schema = &workspace.run(&["describe", "tool", "--json"]).json()["inputSchema"];
        assert_eq!(schema["value"], json!({ "type": "object" }));
    };
    let two = "it has two sections `kitbag:describe`, but may have only one";
    check(&with_section("settings", b"{}"), "key=a", two);
    let no_json = "its section `kitbag:describe`: expected ident at line 1 column 2";
    check(&with_section("probe", b"no JSON"), "do=preopens", no_json);
}
