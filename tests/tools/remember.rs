//! `remember`, through the real component. The formats are tested in detail in
//! `guest-tools/memory`.

use serde_json::json;

use crate::support::Workspace;

#[test]
fn a_memory_exists_in_the_next_process() {
    let workspace = Workspace::with_toolsets(&["memory"]);
    let text = "Staging deploys from `stage`.\nNever on a Friday: 👩‍🚀 می‌خواهم.";
    let arguments = json!({ "text": text, "tags": ["#Deploy", "größe"] });
    let answer = workspace.tool("remember", &arguments, &[]).success();
    let id = answer.trim_end().strip_prefix("remembered m").unwrap();
    assert!(id.len() == 12 && id.bytes().all(|it| it.is_ascii_digit()), "{answer}");
    let whole = workspace.tool("recall", &json!({ "id": format!("m{id}") }), &[]).success();
    let (head, rest) = whole.split_once('\n').unwrap();
    assert!(head.ends_with("Z #deploy #größe"), "{head}");
    assert_eq!(rest.trim_end(), text);
    // The same text is another memory the second time.
    let again = workspace.tool("remember", &arguments, &[]).success();
    assert_ne!(again, answer);
}

#[test]
fn invisible_characters_are_refused() {
    let workspace = Workspace::with_toolsets(&["memory"]);
    let error = |arguments| {
        let run = workspace.tool("remember", &arguments, &[]);
        assert_eq!(run.code, 1, "{}", run.shown());
        run.stderr
    };
    let hidden = error(json!({ "text": "Deploy.\u{e0049}\u{e0067}\u{e006e}" }));
    let expected = "error: line 1, column 8 of the text: the invisible character U+E0049; remove \
                    it\n";
    assert_eq!(hidden, expected);
    let large = error(json!({ "text": "x".repeat(100_000) }));
    assert_eq!(large, "error: the text has 100000 bytes; the limit for a memory is 65536\n");
    let tags: Vec<_> = (0..10_000).map(|it| format!("t{it}")).collect();
    let many = error(json!({ "text": "a", "tags": tags }));
    assert_eq!(many, "error: 10000 tags; the limit is 20\n");
    assert!(!workspace.home().join(".local/state/kitbag/workspaces").exists(), "nothing is made");
}
