//! Trust by name: with an option, a variable, the user config, or a program.

use serde_json::json;

use super::greedy;
use crate::support::CallInTest;

#[test]
fn a_program_decides_on_trust_in_the_workspace() {
    let workspace = greedy();
    workspace.config("");
    let call = |trust: Option<bool>| {
        let builder = match trust {
            None => workspace.builder(),
            Some(is_trusted) => workspace.builder().trust_workspace(is_trusted),
        };
        let arguments = json!({ "do": "echo", "text": "here" });
        builder.build().unwrap().call_in_test("planted", arguments)
    };
    let refused = "failed: the tool `planted` is disabled: its workspace is not trusted; `kitbag \
                   trust` shows its requests";
    assert_eq!(call(None), refused);
    assert_eq!(call(Some(false)), refused);
    assert_eq!(call(Some(true)), "here");
    // A record is used if there is a state directory, unless the program decides.
    workspace.trust();
    assert_eq!(call(None), refused);
    let state = kitbag::config::Sourced::default(workspace.home().join(".local/state/kitbag"));
    let with_state = |trust: Option<bool>| {
        let places = kitbag::Places {
            cache: Some(workspace.cache().to_owned()),
            state: Some(state.clone()),
            home: Some(workspace.home()),
            ..kitbag::Places::default()
        };
        let builder = kitbag::Kitbag::builder().workspace(workspace.root()).places(places);
        let builder = match trust {
            None => builder,
            Some(is_trusted) => builder.trust_workspace(is_trusted),
        };
        let arguments = json!({ "do": "echo", "text": "here" });
        let kitbag = builder.build().unwrap();
        let answer = kitbag.call_in_test("planted", arguments);
        kitbag.toolbox().auditor().unwrap().flush();
        answer
    };
    assert_eq!(with_state(None), "here");
    assert_eq!(with_state(Some(false)), refused);
    // The refused call is in the log.
    let logged = workspace.run(&["audit", "--outcome", "refused", "--json"]).json();
    assert_eq!((&logged["tool"], &logged["reason"]), (&json!("planted"), &json!("trust")));
}
