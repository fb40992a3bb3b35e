//! Knowledge as resources and as a prompt.

use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Workspace, snapshot};

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.file("notes/rules/naming.md", "Name things.\n");
    workspace.file("notes/rules/naming two.rs", "fn two() {}\n");
    workspace.file("notes/.hidden.md", "Hidden.\n");
    workspace.file("notes/secret.md", "Secret.\n");
    workspace.file("skills/cook.md", "Cook.\n");
    workspace.config(
        "[knowledge.team]\nsubjects = \"notes\"\ndisabled = [\"secret\"]\n\
         [knowledge.more-skills]\nsubjects = \"skills\"\nlearned = [\"cook\"]\n\
         [knowledge.gone]\nsubjects = \"gone\"\n",
    );
    workspace
}

#[test]
fn subjects_are_listed_and_read() {
    let workspace = workspace();
    let mut shown = String::new();
    let mut client = Client::with_handshake(&workspace, json!({}));
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "kb://team/rules/naming" })),
        ("resources/read", json!({ "uri": "kb://team/rules/naming%20two" })),
        ("resources/read", json!({ "uri": "kb://more-skills/cook" })),
        ("resources/read", json!({ "uri": "kb://team/hidden" })),
        ("resources/read", json!({ "uri": "kb://team/secret" })),
        ("resources/read", json!({ "uri": "kb://team/none" })),
        ("resources/read", json!({ "uri": "kb://nobody/none" })),
        ("resources/read", json!({ "uri": "file:///etc/passwd" })),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "knowledge" })),
        ("prompts/get", json!({ "name": "other" })),
    ] {
        let answer = client.request(method, params.clone());
        let outcome = answer.get("result").or(answer.get("error")).unwrap();
        shown.push_str(&format!("{method} {params}\n{outcome:#}\n\n"));
    }
    snapshot!("resources", &workspace.redact(&shown));
}

#[test]
fn topics_and_slugs_are_completed() {
    let workspace = workspace();
    let mut client = Client::stateless(&workspace, json!({}));
    let mut check = |name: &str, typed: &str, context: Value, expected: &[&str]| {
        let params = json!({
            "ref": { "type": "ref/resource", "uri": "kb://{topic}/{+slug}" },
            "argument": { "name": name, "value": typed },
            "context": { "arguments": context },
        });
        let answer = client.request("completion/complete", params);
        assert_eq!(answer["result"]["completion"]["values"], json!(expected), "{answer}");
    };
    check("topic", "", json!({}), &["more-skills", "team"]);
    check("topic", "T", json!({}), &["team"]);
    check("slug", "nam", json!({ "topic": "team" }), &["rules/naming", "rules/naming two"]);
    check("slug", "rules/naming t", json!({ "topic": "team" }), &["rules/naming two"]);
    check("slug", "a", json!({}), &[]);
    check("colour", "r", json!({ "topic": "team" }), &[]);
}
