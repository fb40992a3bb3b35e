//! `kitbag why`, and grants for one call.

use crate::support::{Workspace, snapshot};

/// A tool of the user's and one of the workspace's.
fn workspace() -> Workspace {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \".\", guest = \"/workspace\" }]\n\
         http = [\"https://w.example/**\"]\n",
    );
    workspace.own_config(
        "deny = [\"https://api.example/admin\"]\n\
         [tools.learn.grants]\nhttp = [\n\"https://api.example/**\",\n\
         { url = \"http://10.0.0.1:8080/*\", methods = [\"POST\"] },\n]\n\
         secrets = { github = {} }\n\
         [secrets.github]\nto = [\"https://api.example/**\"]\n",
    );
    workspace
}

#[test]
fn it_says_what_allows_a_request_or_what_would() {
    let workspace = workspace();
    let mut report = String::new();
    for (request, code) in [
        (&["learn", "GET", "https://api.example/repos"][..], 0),
        (&["learn", "https://api.example/repos?q=secret"], 0),
        (&["learn", "POST", "https://api.example/repos"], 6),
        (&["learn", "https://api.example/%61dmin"], 6),
        (&["learn", "https://api.example/../etc"], 6),
        (&["learn", "http://api.example/repos"], 6),
        (&["learn", "https://api.example:8443/repos"], 6),
        (&["learn", "https://other.example/"], 6),
        (&["learn", "POST", "http://10.0.0.1:8080/x"], 0),
        (&["learn", "ftp://api.example/"], 6),
        (&["learn", "env", "LANG"], 6),
        (&["learn", "secret", "github"], 0),
        (&["learn", "secret", "mail"], 6),
        (&["learn", "tool", "search"], 6),
        (&["learn", "tool", "search", "--grant", "tools=search=probe"], 0),
        (&["probe", "docs/a.md"], 0),
        (&["probe", "/workspace/docs/a.md", "--write"], 6),
        (&["probe", "/etc/passwd"], 6),
        (&["probe", "https://w.example/"], 6),
        (&["probe", "https://w.example/", "--grant", "http=https://w.example/"], 0),
    ] {
        let run = workspace.run(&[&["why"], request].concat());
        report.push_str(&format!("$ kitbag why {}\n{}\n", request.join(" "), run.shown()));
        assert_eq!(run.code, code, "{}", run.shown());
        let json = workspace.run(&[&["why", "--json"], request].concat());
        assert_eq!((json.code, &json.json()["allowed"]), (code, &(code == 0).into()));
    }
    snapshot!("requests", &report);
}

#[test]
fn a_question_that_cannot_be_answered_is_wrong_usage() {
    let workspace = workspace();
    for request in [
        &["nothing", "https://a.example"][..],
        &["learn"],
        &["learn", "env", "LC_*"],
        &["learn", "a/../b"],
        &["learn", "https://a.example", "--grant", "http=a.example"],
    ] {
        let run = workspace.run(&[&["why"], request].concat());
        assert!(matches!(run.code, 2 | 4), "{}", run.shown());
    }
}

#[test]
fn the_line_that_it_names_allows_the_request() {
    let workspace = workspace();
    let request = ["why", "learn", "DELETE", "https://b.example/x%2Fy", "--json"];
    let denied = workspace.run(&request).json();
    let (missing, kind) = (&denied["missing"], &denied["kind"]);
    assert_eq!(kind, "host");
    assert_eq!(missing["keys"], serde_json::json!(["tools.learn.grants.http"]));
    let entry = missing["entry"].as_str().unwrap();
    workspace.own_config(&format!("[tools.learn.grants]\nhttp = [{entry}]\n"));
    assert_eq!(workspace.run(&request).json()["allowed"], true);
    workspace.own_config("");
    let flag = missing["flag"].as_str().unwrap().strip_prefix("--grant '").unwrap();
    let flag = flag.strip_suffix('\'').unwrap();
    let granted = workspace.run(&[&request[..], &["--grant", flag]].concat()).json();
    assert_eq!((&granted["allowed"], &granted["origin"]), (&true.into(), &"flag --grant".into()));
}

#[test]
fn a_call_is_granted_no_more_than_the_ceiling() {
    let workspace = workspace();
    workspace.own_config("[ceiling.grants]\nhttp = [\"https://a.example/x/**\"]\n");
    let why = |url: &str| {
        let grant = format!("http={url}");
        workspace.run(&["why", "learn", url, "--grant", &grant])
    };
    assert_eq!(why("https://a.example/x/y").code, 0);
    let beyond = why("https://a.example/y");
    assert_eq!(beyond.code, 4);
    snapshot!("beyond the ceiling", &beyond.shown());
}
