//! `fetch`, through the real component, from servers on loopback.

use std::fs;

use kitbag_test_servers::{Answer, Authority, Behaviour, Coding, Server};
use serde_json::json;

use crate::support::cases::call;
use crate::support::{Workspace, repository};

/// A workspace whose user config lets `fetch` read these patterns.
fn workspace(grants: &[String]) -> Workspace {
    let workspace = Workspace::with_toolsets(&["fetch"]);
    workspace.own_config(&format!("[tools.fetch.grants]\nhttp = {grants:?}\n"));
    workspace
}

/// A pattern for all paths of a server.
fn all(server: &Server) -> String {
    format!("{}/**", server.url())
}

#[test]
fn responses_are_shown() {
    let cases = repository().join("guest-tools/fetch/cases");
    let responses = cases.join("responses");
    let server = Server::start(Behaviour::respond(move |request| {
        let file = fs::read(responses.join(request.path().trim_start_matches('/'))).unwrap();
        let end = file.windows(2).position(|two| two == b"\n\n").unwrap();
        let head = str::from_utf8(&file[..end]).unwrap();
        let mut lines = head.lines();
        let answer = Answer::new(lines.next().unwrap().parse().unwrap(), &file[end + 2..]);
        lines.fold(answer, |answer, line| {
            let (name, value) = line.split_once(": ").unwrap();
            answer.header(name, value)
        })
    }));
    let workspace = workspace(&[all(&server)]);
    let kitbag = workspace.kitbag();
    // Lines about the server itself, besides the fields of the file.
    let is_of_host = |line: &&str| line.starts_with("date:") || line.starts_with("content-length:");
    kitbag_cases::check(cases.join("fetch.txt"), |tool, arguments| {
        let arguments = arguments.replace("https://a.test", &server.url());
        let shown = call(&kitbag, tool, serde_json::from_str(&arguments).unwrap());
        let tidy = |text: String| {
            let text = text.replace(&server.url(), "https://a.test");
            let end = if text.ends_with('\n') { "\n" } else { "" };
            let lines: Vec<_> = text.lines().filter(|line| !is_of_host(line)).collect();
            lines.join("\n") + end
        };
        shown.map(tidy).map_err(tidy)
    });
}

#[test]
fn a_request_has_its_accept_and_user_agent_headers() {
    let server = Server::start(Behaviour::Echo);
    let workspace = workspace(&[all(&server)]);
    let url = format!("{}/a?b=c#d", server.url());
    workspace.tool("fetch", &json!({ "url": url }), &[]).success();
    let seen = server.seen();
    let [request] = &seen.requests[..] else { panic!("{seen:?}") };
    assert_eq!((&*request.method, &*request.target), ("GET", "/a?b=c"));
    assert!(request.header("accept").unwrap().starts_with("text/markdown, text/html"));
    assert_eq!(request.header("user-agent").unwrap(), "kitbag/0.1.0");
    assert_eq!(request.header("host").unwrap(), server.address().to_string());
    assert_eq!(request.header("cookie"), None);
}

#[test]
fn a_refusal_names_the_line_that_allows_the_request() {
    let (granted, other) = (Server::start(Behaviour::Echo), Server::start(Behaviour::Echo));
    let workspace = workspace(&[format!("{}/docs/**", granted.url())]);
    for url in [format!("{}/", other.url()), format!("{}/private", granted.url())] {
        let run = workspace.tool("fetch", &json!({ "url": url }), &[]);
        let shown = format!("{}{}", run.stdout, run.stderr);
        assert_ne!(run.code, 0, "{shown}");
        assert!(
            shown.contains(&format!("`GET {url}` failed: the request is not allowed")),
            "{shown}"
        );
        assert!(shown.contains("to `tools.fetch.grants.http`"), "{shown}");
        // The printed option works for one call.
        let hint = format!("hint: for one call, add --grant 'http={url}'\n");
        assert!(run.stderr.ends_with(&hint), "{}", run.stderr);
    }
    assert!(other.seen().is_nothing() && granted.seen().is_nothing());
    let url = format!("{}/", other.url());
    let grant = format!("http={url}");
    workspace.run(&["run", "fetch", &format!("url={url}"), "--grant", &grant]).success();
    let url = format!("{}/docs/a", granted.url());
    workspace.tool("fetch", &json!({ "url": url }), &[]).success();
}

#[test]
fn a_limit_and_a_flag_bound_the_requests_of_a_call() {
    let server = Server::start(Behaviour::Redirects);
    let workspace = Workspace::with_toolsets(&["fetch"]);
    workspace.own_config(&format!(
        "[tools.fetch.grants]\nhttp = [{{ url = \"{}\", follow = 2 }}]\n\
         [tools.fetch.limits]\nrequests = 1\n",
        all(&server)
    ));
    let url = format!("url={}/302/1", server.url());
    let run = workspace.run(&["run", "fetch", &url]);
    assert_ne!(run.code, 0, "{}", run.stdout);
    let refused = "reached its limit `requests`, 1; allow more with `limits.requests` of the tool";
    assert!(run.stderr.contains(refused), "{}", run.stderr);
    workspace.run(&["run", "fetch", &url, "--requests", "2"]).success();
}

#[test]
fn the_user_config_sets_roots_and_a_proxy() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Echo, &authority.local());
    let workspace = Workspace::with_toolsets(&["fetch"]);
    let grants =
        format!("[tools.fetch.grants]\nhttp = [\"{}\", \"http://10.9.8.7/**\"]\n", all(&server));
    let url = format!("url={}/", server.url());
    workspace.own_config(&grants);
    let stranger = workspace.run(&["run", "fetch", &url]);
    assert_ne!(stranger.code, 0, "{}", stranger.stdout);
    fs::write(workspace.home().join("ca.pem"), authority.pem()).unwrap();
    workspace.own_config(&format!("{grants}[network]\nroots = [\"~/ca.pem\"]\n"));
    workspace.run(&["run", "fetch", &url]).success();
    // An address that does not exist on this machine: it can only be reached through the proxy.
    let target = Server::start(Behaviour::Echo);
    let proxy = Server::start(Behaviour::Proxy(target.address()));
    let network = format!("[network]\nproxy = \"{}\"\n", proxy.url());
    workspace.own_config(&format!("{grants}{network}"));
    workspace.run(&["run", "fetch", "url=http://10.9.8.7/a"]).success();
    let asked = &proxy.seen().requests[0];
    assert_eq!((&*asked.method, &*asked.target), ("CONNECT", "10.9.8.7:80"));
    assert_eq!(target.seen().requests[0].path(), "/a");
}

#[test]
fn the_environment_sets_the_proxy_if_configured() {
    let target = Server::start(Behaviour::Echo);
    let proxy = Server::start(Behaviour::Proxy(target.address()));
    let value = proxy.url().replace("http://", "http://ada:hunter2@");
    let variables = [("HTTP_PROXY", &*value), ("NO_PROXY", "10.9.8.8")];
    let grants = "[tools.fetch.grants]\nhttp = [\"http://10.9.8.7/**\", \"http://10.9.8.8/**\"]\n";
    let workspace = Workspace::with_toolsets(&["fetch"]);
    workspace.own_config(&format!("{grants}[network]\nproxy = \"environment\"\n"));
    let fetch = ["run", "fetch", "url=http://10.9.8.7/a"];
    workspace.run_with(&fetch, "", &variables).success();
    let asked = &proxy.seen().requests[0];
    assert_eq!((&*asked.method, &*asked.target), ("CONNECT", "10.9.8.7:80"));
    assert_eq!(asked.header("proxy-authorization").unwrap(), "Basic YWRhOmh1bnRlcjI=");
    assert!(target.seen().requests[0].header("proxy-authorization").is_none());
    // The configuration is printed without the credentials.
    let shown = workspace.run_with(&["config", "--show"], "", &variables).shown();
    assert!(shown.contains("network.proxy") && !shown.contains("hunter2"), "{shown}");
    // A workspace cannot change any of this.
    workspace.own_config(grants);
    workspace.config("[network]\nproxy = \"environment\"\n");
    let run = workspace.run_with(&fetch, "", &variables);
    assert!(
        run.code != 0 && run.stderr.contains("a workspace may not set `network`"),
        "{}",
        run.shown()
    );
    assert_eq!(proxy.seen().requests.len(), 1);
}

#[test]
fn a_proxy_that_refuses_is_named_without_its_credentials() {
    let answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
    let proxy = Server::start(Behaviour::Raw(answer.to_vec()));
    let value = proxy.url().replace("http://", "http://ada:hunter2@");
    let workspace = Workspace::with_toolsets(&["fetch"]);
    workspace.own_config(&format!(
        "[tools.fetch.grants]\nhttp = [\"http://10.9.8.7/**\"]\n[network]\nproxy = \"{value}\"\n"
    ));
    let run = workspace.run(&["run", "fetch", "url=http://10.9.8.7/a"]);
    let expected = format!(
        "the proxy `{}` did not open a connection to `http://10.9.8.7`: 407 Proxy Authentication Required",
        proxy.url()
    );
    assert!(run.code != 0 && run.stderr.contains(&expected), "{}", run.shown());
    let audit = workspace.run(&["audit", "--json"]).shown();
    for shown in [run.shown(), audit] {
        assert!(!shown.contains("hunter2") && !shown.contains("YWRhOmh1"), "{shown}");
    }
}

#[test]
fn a_failed_connection_names_the_ignored_proxy() {
    let closed = Server::start(Behaviour::Echo).url();
    let workspace = workspace(&[format!("{closed}/**")]);
    let url = format!("url={closed}/");
    let value = "http://ada:hunter2@127.0.0.1:9";
    let run = workspace.run_with(&["run", "fetch", &url], "", &[("HTTPS_PROXY", value)]);
    let expected = "the proxy in the variable `HTTPS_PROXY` is not used; to use it, set `proxy = \
                    \"environment\"` under `[network]` in your user config `";
    assert!(run.code != 0 && run.stderr.contains(expected), "{}", run.shown());
    assert!(!run.shown().contains("hunter2"), "{}", run.shown());
    let run = workspace.run_with(&["run", "fetch", &url], "", &[]);
    assert!(run.code != 0 && !run.shown().contains("proxy"), "{}", run.shown());
}

#[test]
fn an_unresolved_name_names_the_setting_for_a_proxy() {
    let advice = "set `resolve = \"proxy\"` under `[network]` in your user config `";
    for (network, is_advised) in [
        ("[network]\nproxy = \"http://127.0.0.1:9\"\n", true),
        ("[network]\nproxy = \"http://127.0.0.1:9\"\nresolve = \"proxy\"\n", false),
        ("", false),
    ] {
        let workspace = Workspace::with_toolsets(&["fetch"]);
        let grant = "[tools.fetch.grants]\nhttp = [\"http://name.invalid/**\"]\n";
        workspace.own_config(&format!("{grant}{network}"));
        let run = workspace.run(&["run", "fetch", "url=http://name.invalid/"]);
        let has_advice = run.stderr.contains(advice);
        assert!(run.code != 0 && has_advice == is_advised, "{network} {}", run.shown());
    }
}

#[test]
fn a_name_resolving_proxy_is_shown_as_a_risk() {
    let target = Server::start(Behaviour::Echo);
    let proxy = Server::start(Behaviour::Proxy(target.address()));
    let workspace = Workspace::with_toolsets(&["fetch"]);
    workspace.own_config(&format!(
        "[tools.fetch.grants]\nhttp = [\"http://name.invalid/**\", \"http://*:81/**\"]\n\
         [network]\nproxy = \"{}\"\nresolve = \"proxy\"\n",
        proxy.url()
    ));
    workspace.run(&["run", "fetch", "url=http://name.invalid/a"]).success();
    assert_eq!(proxy.seen().requests[0].target, "name.invalid:80");
    let checked = workspace.run(&["check"]).shown();
    let expected = "the proxy resolves `name.invalid` for the tool `fetch`, so kitbag does not \
                    check the addresses (";
    assert!(checked.contains(expected), "{checked}");
    let why = |url: &str| workspace.run(&["why", "fetch", url]).success();
    let asked = why("http://name.invalid/a");
    assert!(asked.contains("`resolve = \"proxy\"` lets the proxy resolve the name"), "{asked}");
    let every = why("http://other.invalid:81/a");
    assert!(every.contains("if the grant allows all addresses of its host"), "{every}");
}

#[test]
fn an_image_is_content_of_the_answer() {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend([0, 0, 2, 128, 0, 0, 1, 224, 8, 2, 0, 0, 0]);
    let server = Server::start(Behaviour::Answer(Answer::ok("image/png", png)));
    let workspace = workspace(&[all(&server)]);
    let url = format!("url={}/plot.png", server.url());
    let shown = workspace.run(&["run", "fetch", &url, "--json"]).json();
    assert_eq!(shown["emitted"][0]["mimeType"], "image/png", "{shown}");
    assert_eq!(shown["content"], "image/png, 640 x 480, 29 bytes", "{shown}");
}

#[test]
fn endless_or_large_answers_are_truncated_or_refused() {
    for (behaviour, expected) in [
        (Behaviour::Endless, "[truncated: "),
        // It unpacks to zeros, only until the limit of a response.
        (Behaviour::Bomb(Coding::Gzip, 1024), "(8388608 bytes), neither text nor an image"),
    ] {
        let server = Server::start(behaviour);
        let workspace = workspace(&[all(&server)]);
        let run = workspace.tool("fetch", &json!({ "url": server.url() }), &[]);
        let shown = format!("{}{}", run.stdout, run.stderr);
        assert!(shown.contains(expected), "{shown}");
        assert!(shown.len() < 50_000, "{}", shown.len());
    }
}

#[test]
fn an_aborted_answer_is_truncated() {
    let server = Server::start(Behaviour::too_short());
    let workspace = workspace(&[all(&server)]);
    let shown = workspace.tool("fetch", &json!({ "url": server.url() }), &[]).success();
    assert!(shown.starts_with("0123456789\n[truncated: "), "{shown}");
}

#[test]
fn a_redirect_is_shown_without_a_request_to_its_target() {
    let target = Server::start(Behaviour::Echo);
    let server = Server::start(Behaviour::Redirects);
    let workspace = workspace(&[all(&server), all(&target)]);
    let url = format!("{}/to/302?{}/new", server.url(), target.url());
    let shown = workspace.tool("fetch", &json!({ "url": url }), &[]).success();
    let to = format!("is redirected to {}/new", target.url());
    assert!(shown.contains("status 302") && shown.contains(&to), "{shown}");
    assert!(target.seen().is_nothing());
}

#[test]
fn a_redirect_within_the_site_is_followed_if_granted() {
    let server = Server::start(Behaviour::Redirects);
    let url = |path: &str| format!("{}{path}", server.url());
    let workspace = workspace(&[url("/to/**"), url("/docs/**")]);
    let fetch = |target: &str| {
        let url = url(&format!("/to/302?{}", url(target)));
        workspace.tool("fetch", &json!({ "url": url }), &[]).success()
    };
    let shown = fetch("/docs/a");
    let note = format!(
        "[redirected from {}/to/302?{} to {}]",
        server.url(),
        url("/docs/a"),
        url("/docs/a")
    );
    assert!(shown.trim_end().ends_with(&note), "{shown}");
    assert_eq!(server.seen().requests.len(), 2);

    let shown = fetch("/private");
    let note = format!(
        "is redirected to {0}\n[not followed: `GET {0}` failed: the request is not allowed",
        url("/private")
    );
    assert!(shown.contains(&note), "{shown}");
    assert_eq!(server.seen().requests.len(), 3);
}

#[test]
fn a_grant_with_follow_reaches_the_final_target() {
    let server = Server::start(Behaviour::Redirects);
    let workspace = Workspace::with_toolsets(&["fetch"]);
    let grant = format!("[{{ url = \"{}\", follow = 3 }}]", all(&server));
    workspace.own_config(&format!("[tools.fetch.grants]\nhttp = {grant}\n"));
    let fetch = |path: &str| {
        let url = format!("{}{path}", server.url());
        workspace.tool("fetch", &json!({ "url": url }), &[]).success()
    };
    assert!(fetch("/302/3").contains("\"target\":\"/302/0\""));
    // The tool itself follows five times at most, each time with the redirects of the grant.
    assert!(fetch("/302/30").contains("is redirected to"));
}
