//! `kitbag run`, with a person at a terminal and without one.

use super::{content, logged, probe, workspace};
use crate::support::Workspace;
use crate::support::terminal::{on_a_hasty_terminal, on_a_terminal, unwrapped};

const WRITE: [&str; 5] = ["run", "probe", "do=write", "path=a.txt", "text=new"];

#[test]
fn a_person_at_a_terminal_sees_the_call_and_allows_or_refuses_it() {
    let workspace = workspace("\"on-write\"");
    let (stdout, shown) = on_a_terminal(&workspace, &WRITE, "perhaps\n\nno\n");
    assert_eq!(stdout, "");
    let shown = workspace.redact(&unwrapped(&shown));
    assert!(
        shown.contains("Call of `probe` (<guests>/kitbag_probe.wasm):\n| do: \"write\"\n"),
        "{shown}"
    );
    let rule = "It has `approve = \"on-write\"` (<home>/.config/kitbag/config.toml:4:11).\n\
                `probe` can write in the workspace.\n\
                `always` allows, in this session, every call of `probe` with do = \"write\", path = \
                \"a.txt\", text = \"new\".\n\
                Allow this call of `probe`? [y]es, once / [a]lways in this session / [n]o: ";
    assert!(shown.contains(rule), "{shown}");
    assert!(shown.contains("| do: \"write\"\n| path: \"a.txt\"\n| text: \"new\"\n"), "{shown}");
    assert!(shown.contains("type `y`, `a` or `n`"), "{shown}");
    let refused = "error: the call of `probe` was not approved: the user said no; nothing was done";
    assert!(shown.contains(refused), "{shown}");
    assert_eq!(content(&workspace, "a.txt"), None);
    for answer in ["yes\n", "always\n", "Y\n", "a\n"] {
        let (stdout, _) = on_a_terminal(&workspace, &WRITE, answer);
        assert_eq!(stdout, "write a.txt: 3 bytes\n");
        assert_eq!(content(&workspace, "a.txt").as_deref(), Some("new"));
    }
    // The end of the input is no yes.
    let (stdout, shown) = on_a_terminal(&workspace, &WRITE, "\u{4}");
    assert_eq!(stdout, "");
    assert!(shown.contains("there is nobody to ask"), "{shown}");
    assert_eq!(
        logged(&workspace),
        [
            "probe asked by -, user",
            "probe no by user (the caller), user",
            "probe asked by -, user",
            "probe yes by user (the caller), user",
            "probe asked by -, user",
            "probe always by user (the caller), user",
            "probe asked by -, user",
            "probe yes by user (the caller), user",
            "probe asked by -, user",
            "probe always by user (the caller), user",
            "probe asked by -, user",
            "probe nobody by -, user",
        ]
    );
    let shown = workspace.run(&["audit", "--outcome", "no"]).success();
    assert!(shown.contains("refused: probe was not approved by user "), "{shown}");
}

#[test]
fn with_nobody_to_ask_the_call_is_refused_with_the_line_that_would_allow_it() {
    let workspace = workspace("\"always\"");
    let refused = workspace.run(&WRITE);
    assert_eq!((refused.code, &*refused.stdout), (10, ""), "{}", refused.shown());
    assert_eq!(
        refused.stderr,
        "error: the call of `probe` needs the approval of a person, and there is nobody to ask; \
         nothing was done. To allow it without a question, write `approve = \"never\"` under \
         `[tools.probe]` in <home>/.config/kitbag/config.toml\n\
         hint: for one call, add `--approve`\n"
    );
    assert_eq!(content(&workspace, "a.txt"), None);
    let json = workspace.run(&[&WRITE[..], &["--json"]].concat());
    assert_eq!((json.code, json.json()["kind"].as_str()), (10, Some("approval")));
    // A yes on standard input is not one of a person at a terminal.
    let piped = workspace.run_with(&WRITE, "yes\n", &[]);
    assert_eq!(piped.code, 10, "{}", piped.shown());
    assert_eq!(content(&workspace, "a.txt"), None);
    // Both ways that the message names.
    workspace.run(&[&WRITE[..], &["--approve"]].concat()).success();
    assert_eq!(content(&workspace, "a.txt").as_deref(), Some("new"));
    assert_eq!(logged(&workspace).last().unwrap(), "probe yes by user (flag --approve), user");
    workspace.own_config(&probe("approve = \"never\"\n"));
    workspace.run(&WRITE).success();
}

#[test]
fn no_answer_that_was_given_before_counts() {
    let workspace = workspace("\"always\"");
    let ids =
        ["approve", "kitbag/approve", "kitbag/approve/00000000000000000000000000000000", "kitbag/"];
    let presets: String = ids.iter().map(|id| format!("{id:?} = \"yes\"\n")).collect();
    workspace.own_config(&format!(
        "{}[tools.probe.answers]\n{presets}",
        probe("approve = \"always\"\n")
    ));
    let answers: Vec<_> = ids.iter().map(|id| format!("{id}=yes")).collect();
    let flags = answers.iter().flat_map(|answer| ["--answer", answer]);
    let run = workspace.run(&WRITE.into_iter().chain(flags).collect::<Vec<_>>());
    assert_eq!(run.code, 10, "{}", run.shown());
    assert_eq!(content(&workspace, "a.txt"), None);
}

#[test]
fn a_call_that_the_rule_does_not_name_is_made_at_once() {
    let workspace = workspace("{ when = { do = \"write\", path = \"secrets/**\" } }");
    workspace.file("secrets/key", "old");
    let run = |path: &str| {
        workspace.run(&["run", "probe", "do=write", &format!("path={path}"), "text=x"]).code
    };
    assert_eq!(run("a.txt"), 0);
    for path in [
        "secrets/key",
        "/workspace/secrets/key",
        "./secrets/key",
        "secrets//key",
        "a/../secrets/key",
    ] {
        assert_eq!(run(path), 10, "{path}");
    }
    assert_eq!(content(&workspace, "secrets/key").as_deref(), Some("old"));
    assert_eq!(workspace.run(&["run", "probe", "do=read", "path=secrets/key"]).code, 0);
}

#[test]
fn only_a_tool_that_can_change_something_is_asked_about_on_write() {
    let workspace = Workspace::with_toolsets(&["files", "write"]);
    workspace.own_config("[approve]\ndefault = \"on-write\"\n");
    workspace.file("a.txt", "text\n");
    assert_eq!(workspace.run(&["run", "read_file", "path=a.txt"]).code, 0);
    let written = workspace.run(&["run", "write_file", "path=a.txt", "content=x"]);
    assert_eq!(written.code, 10, "{}", written.shown());
    assert_eq!(content(&workspace, "a.txt").as_deref(), Some("text\n"));
}

#[test]
fn rendering_a_call_and_describing_a_tool_need_no_approval() {
    let workspace = workspace("\"always\"");
    workspace.run(&["run", "probe", "do=read", "--format-arguments"]).success();
    let described = workspace.run(&["describe", "probe"]).success();
    let section = "Approval [<home>/.config/kitbag/config.toml:4:11]\n  \"always\"\n";
    assert!(described.contains(section), "{described}");
    let json = workspace.run(&["describe", "probe", "--json"]).json();
    assert_eq!(json["approve"][0]["value"], "always");
}

#[test]
fn text_typed_before_the_question_is_not_an_answer() {
    let workspace = workspace("\"always\"");
    // The first line is typed before the command starts, the second one at the question.
    let (stdout, shown) = on_a_hasty_terminal(&workspace, &WRITE, "yes\n", "no\n");
    assert_eq!(stdout, "");
    assert!(shown.contains("was not approved: the user said no"), "{shown}");
    assert_eq!(content(&workspace, "a.txt"), None);
    // A line that was begun before, and is ended at the question.
    let (_, shown) = on_a_hasty_terminal(&workspace, &WRITE, "y", "\nno\n");
    assert!(shown.contains("was not approved: the user said no"), "{shown}");
    assert_eq!(content(&workspace, "a.txt"), None);
}
