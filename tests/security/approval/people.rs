//! People who share a server: one tries to use the approvals of another.

use serde_json::{Value, json};

use super::server::{REFUSED, Session, accept, forms, resumed, text};
use super::{content, logged, workspace, write};
use crate::support::Workspace;
use crate::support::http::HttpServer;
use crate::support::mcp::meta;

/// A server with two people, and the headers with their tokens.
fn serve(workspace: &Workspace) -> (HttpServer, String, String) {
    let token = |name: &str| {
        let token = workspace.run(&["token", "add", name]).success();
        format!("Authorization: Bearer {}\r\n", token.trim())
    };
    let (ann, ben) = (token("ann"), token("ben"));
    (HttpServer::start(workspace, &[]), ann, ben)
}

#[test]
fn a_remembered_approval_does_not_cover_another_person() {
    let workspace = workspace("\"always\"");
    let (server, ann, ben) = serve(&workspace);
    let (of_ann, of_ben) = (Session::begin_as(&server, &ann), Session::begin_as(&server, &ben));
    let arguments = write("a.txt", "1");
    let written = || "write a.txt: 1 byte".to_owned();
    assert_eq!(of_ann.call(&arguments, &accept("always")), (true, written()));
    assert_eq!(of_ann.call(&arguments, &accept("no")), (false, written()));
    assert_eq!(of_ben.call(&arguments, &accept("no")), (true, REFUSED.to_owned()));
    // Without a session, nothing is remembered for anyone.
    for person in [&ann, &ben] {
        let params = json!({ "name": "probe", "arguments": arguments });
        let reply = server.message(person, "tools/call", params);
        assert!(text(&reply.message()).contains("needs the approval of a person"), "{reply:?}");
    }
    // The approval of one person is not that of the other in the log either.
    let logged = logged(&workspace);
    let by_ben: Vec<_> = logged.iter().filter(|line| line.contains("person ben")).collect();
    assert!(by_ben.iter().all(|line| !line.contains("remembered")), "{logged:?}");
    assert!(logged.iter().any(|line| line == "probe remembered by -, person ann"), "{logged:?}");
}

#[test]
fn a_person_cannot_answer_the_form_of_another_person() {
    let workspace = workspace("\"always\"");
    let (server, ann, ben) = serve(&workspace);
    let (of_ann, of_ben) = (Session::begin_as(&server, &ann), Session::begin_as(&server, &ben));
    let params = json!({ "name": "probe", "arguments": write("a.txt", "1") });
    let said = of_ann.call_with(params, |form| {
        let yes = json!({ "jsonrpc": "2.0", "id": form, "result": accept("always") });
        of_ben.send(&yes);
        assert_eq!(of_ann.stolen_by(&ann, &ben).send(&yes), 404);
        assert_eq!(content(&workspace, "a.txt"), None);
        let no = json!({ "jsonrpc": "2.0", "id": form, "result": accept("no") });
        assert_eq!(of_ann.send(&no), 202);
    });
    assert_eq!(said, REFUSED);
    assert_eq!(content(&workspace, "a.txt"), None);
}

#[test]
fn a_waiting_approval_belongs_to_one_person() {
    let workspace = workspace("\"always\"");
    let (server, ann, ben) = serve(&workspace);
    let arguments = write("a.txt", "1");
    let send = |person: &str, mut params: Value| {
        params["name"] = "probe".into();
        params["_meta"] = meta(forms());
        server.message(person, "tools/call", params).message()
    };
    let asked = send(&ann, json!({ "arguments": arguments }))["result"].clone();
    let id = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let yes = resumed(&arguments, &asked["requestState"], &id, accept("yes"));
    let stolen = send(&ben, yes.clone());
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    assert_eq!(content(&workspace, "a.txt"), None);
    // The attempt does not take the question from its owner.
    assert_eq!(text(&send(&ann, yes)), "write a.txt: 1 byte");
}
