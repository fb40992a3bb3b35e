//! Requests over HTTP, what is denied, and what a workspace grants of it.

use kitbag_config::{CallGrants, load};
use kitbag_policy::http::HttpRequest;
use kitbag_policy::{
    Decision, HttpGrant, Kind, MissingGrant, PathRequest, Request, VariableRequest, decide,
};

use crate::support::{Fixture, check_problems_of, check_rows};

/// The grants of a tool as they are shown, each with its place, and then what there is to
/// warn of.
fn granted(fixture: &Fixture, tool: &str) -> Vec<String> {
    let config = fixture.load();
    let grants = &config.tools[tool].grants;
    let lines = grants.value.http.lines().into_iter();
    let placed = lines.map(|line| {
        let origin = grants.place_of(HttpGrant::KEY, &line);
        fixture.redact(&format!("{line} ← {origin}"))
    });
    let warnings = grants.warnings.iter();
    let warnings = warnings.map(|it| fixture.redact(&format!("{}: {}", it.place, it.message)));
    placed.chain(warnings).collect()
}

#[track_caller]
fn check(fixture: &Fixture, expected: &[&str]) {
    let granted = granted(fixture, "learn");
    assert_eq!(granted, expected, "\n{}", granted.join("\n"));
}

fn user(http: &str) -> Fixture {
    Fixture::new("").user(&format!("[tools.learn.grants]\nhttp = {http}\n"))
}

#[test]
fn a_grant_is_a_pattern_or_a_table() {
    let fixture = user(
        "[\n\"https://api.github.com/repos/**\",\n\
         { url = \"http://localhost:8080\", methods = [\"POST\"], follow = 3, encoded_slash = true },\n\
         { url = \"https://*.corp.example\", methods = \"*\", addresses = [\"10.0.0.0/8\", \"::1\"] },\n\
         { url = \"https://a.example\", headers = [\"X-A\"], max_request = \"2MiB\", \
         max_response = \"1KiB\", time = \"5s\" },\n]",
    );
    check(
        &fixture,
        &[
            "GET, HEAD  https://api.github.com/repos/** ← /t/h/config.toml:3:1",
            "POST  http://localhost:8080/**, follow 3, encoded_slash ← /t/h/config.toml:4:1",
            "*  https://*.corp.example/**, addresses 10.0.0.0/8 ::1/128 ← /t/h/config.toml:5:1",
            "GET, HEAD  https://a.example/**, headers x-a, max_request 2 MiB, max_response 1 KiB, \
             time 5s ← /t/h/config.toml:6:1",
        ],
    );
    let expected = concat!(
        r#"tools.learn.grants.http = [{"url":"https://api.github.com/repos/**"},"#,
        r#"{"url":"http://localhost:8080/**","methods":["POST"],"follow":3,"encoded_slash":true},"#,
        r#"{"url":"https://*.corp.example/**","methods":"*","addresses":["10.0.0.0/8","::1/128"]},"#,
        r#"{"url":"https://a.example/**","headers":["x-a"],"max_request":"2 MiB","#,
        r#""max_response":"1 KiB","time":"5s"}] # /t/h/config.toml:2:8"#,
    );
    check_rows(&fixture, "tools.learn.grants", &[expected]);
    check(&user("[]"), &[]);
    check(&Fixture::new(""), &[]);
    check(&user("[\"https://*/**\"]"), &["GET, HEAD  https://*/** ← /t/h/config.toml:2:9"]);
}

#[test]
fn a_grant_is_read_back_as_an_error_writes_it() {
    let entries = [
        "\"https://a.example/**\"",
        "{ url = \"https://a.example/x%2Fy\", methods = [\"DELETE\", \"POST\"], follow = 2, \
         encoded_slash = true, max_response = \"9 MiB\" }",
        "{ url = \"https://[::1]:8443/a/*/**\", methods = \"*\", addresses = [\"10.0.0.0/8\", \
         \"fd00::/8\"], headers = [\"x-a\"], time = \"1m 5s\" }",
    ];
    let fixture = user(&format!("[{}]", entries.join(", ")));
    let config = fixture.load();
    let grants = &config.tools["learn"].grants.value.http.grants;
    let written: Vec<_> = grants.iter().map(|grant| grant.as_entry()).collect();
    assert_eq!(written, entries);
}

#[test]
fn what_cannot_be_granted_is_an_error_at_its_place() {
    check_problems_of(
        &user(
            "[\n\"api.github.com\",\n\"https://*.com\",\n1,\n\
             { methods = [\"GET\"] },\n\
             { url = \"https://a.example/a%2Fb\" },\n\
             { url = \"https://a.example\", method = \"POST\" },\n\
             { url = \"https://a.example\", methods = \"POST\" },\n\
             { url = \"https://a.example\", methods = [\"get\", \"TRACE\", \"G T\"] },\n\
             { url = \"https://a.example\", methods = [] },\n\
             { url = \"https://a.example\", methods = 1 },\n\
             { url = \"https://a.example\", addresses = [\"10.0.0.1/8\", \"10.x\", \"::ffff:10.0.0.0/104\"] },\n\
             { url = \"https://a.example\", follow = 21 },\n\
             { url = \"https://a.example\", follow = 0 },\n\
             { url = \"https://a.example\", headers = [\"Host\", \"a b\"] },\n\
             { url = \"https://a.example\", max_response = \"8\", time = \"0s\" },\n]",
        ),
        &[
            "/t/h/config.toml:3:1: `api.github.com` is not a URL pattern: it must start with \
             `https://` or `http://`",
            "/t/h/config.toml:4:1: `https://*.com` is not a URL pattern: anyone can register names \
             below `com`; name the intended hosts",
            "/t/h/config.toml:5:1: `tools.learn.grants.http[2]` takes a string or a table, not the \
             integer `1`",
            "/t/h/config.toml:6:1: missing key `url` in `tools.learn.grants.http[3]`",
            "/t/h/config.toml:7:9: no request has an encoded slash in its path without `encoded_slash = \
             true`; add it, or write the path without `%2F`",
            "/t/h/config.toml:8:30: unknown key `method` in `tools.learn.grants.http[5]`; did you mean \
             `methods`?",
            "/t/h/config.toml:9:40: `methods` is a list, such as `[\"GET\", \"POST\"]`, or `\"*\"`",
            "/t/h/config.toml:10:41: methods are case-sensitive: write `GET`",
            "/t/h/config.toml:10:48: `TRACE` cannot be granted",
            "/t/h/config.toml:10:57: `G T` is not a method",
            "/t/h/config.toml:11:40: a list of methods must name at least one",
            "/t/h/config.toml:12:40: `tools.learn.grants.http[9].methods` takes a string or an array, not \
             the integer `1`",
            "/t/h/config.toml:13:43: `10.0.0.1/8` names an address in a block; write `10.0.0.0/8`",
            "/t/h/config.toml:13:57: `10.x` is not a block of addresses; write one such as `10.0.0.0/8`",
            "/t/h/config.toml:13:65: `::ffff:10.0.0.0/104` is IPv4 within IPv6, which is judged by what \
             it holds; write the IPv4 block",
            "/t/h/config.toml:14:39: `follow` is at most 20",
            "/t/h/config.toml:15:39: `tools.learn.grants.http[12].follow` takes a positive integer, not \
             the integer `0`",
            "/t/h/config.toml:16:41: `host` is set by the host and cannot be granted",
            "/t/h/config.toml:16:49: `a b` is not the name of a header field",
            "/t/h/config.toml:17:45: `8` is not a size; write a number and a unit, such as `64MiB`",
            "/t/h/config.toml:17:57: `0s` is not a duration; write a number and a unit, such as `30s` or \
             `500ms`",
        ],
    );
}

#[test]
fn a_workspace_never_grants_every_host() {
    check_problems_of(
        &Fixture::new("[tools.learn.grants]\nhttp = [\"https://*/**\"]\n")
            .user("[ceiling.grants]\nhttp = [\"https://*/**\"]\n"),
        &["C:2:9: only your own file may grant every host; name the intended hosts"],
    );
}

/// What is said of a grant that does not count.
fn beyond(place: &str, setting: &str) -> String {
    format!(
        "{place}: this grant does not count: what the files and components of a workspace are \
         granted counts only within `[ceiling.grants]` of your own file; to allow it, have \
         `[ceiling.grants]` in your own `/t/h/config.toml` include `{setting}`"
    )
}

/// The same where there is a ceiling of the kind, at a place in the user's own file.
fn beyond_at(ceiling: &str, beyond: &str) -> String {
    let own = "`[ceiling.grants]` of your own file";
    beyond.replacen(own, &format!("{own} (/t/h/config.toml:{ceiling})"), 1)
}

#[test]
fn a_workspaces_grants_count_within_the_ceiling_alone() {
    let config = "[tools.learn.grants]\nhttp = [\"https://a.example/x/**\", { url = \
                  \"https://b.example\", methods = [\"POST\"] }]\n";
    let with = |user: &str| Fixture::new(config).user(user);
    let beyond_a = beyond(".kitbag/config.toml:2:9", "http = [\"https://a.example/x/**\"]");
    let setting = "http = [{ url = \"https://b.example/**\", methods = [\"POST\"] }]";
    let beyond_b = beyond(".kitbag/config.toml:2:35", setting);
    let [beyond_a, beyond_b] = [beyond_a, beyond_b].map(|it| beyond_at("2:8", &it));
    check(&with("[ceiling.grants]\nhttp = []\n"), &[&beyond_a, &beyond_b]);
    let a = "GET, HEAD  https://a.example/x/** ← .kitbag/config.toml:2:9";
    let b = "POST  https://b.example/** ← .kitbag/config.toml:2:35";
    check(&with(""), &[a, b]);
    let ceiling = "[ceiling.grants]\nhttp = [\"https://*.example\", \"https://a.example\"]\n";
    check_problems_of(
        &with(ceiling),
        &["/t/h/config.toml:2:9: `https://*.example` is not a URL pattern: anyone can register \
           names below `example`; name the intended hosts"],
    );
    check(&with("[ceiling.grants]\nhttp = [\"https://*\"]\n"), &[a, &beyond_b]);
    // The line of the message allows it.
    let ceiling = format!("[ceiling.grants]\n{setting}\n");
    check(&with(&ceiling), &[b, &beyond_a]);
    let ceiling = "[ceiling.grants]\nhttp = [{ url = \"https://*\", methods = \"*\" }]\n";
    check(&with(ceiling), &[a, b]);
    check_rows(
        &with("[ceiling.grants]\nhttp = [\"https://a.example\"]\n"),
        "ceiling.grants",
        &[r#"ceiling.grants.http = [{"url":"https://a.example/**"}] # /t/h/config.toml:2:8"#],
    );
}

#[test]
fn a_workspaces_component_gets_no_more_than_the_ceiling_whoever_writes_the_grant() {
    let user = "[tools.notes.grants]\nhttp = [\"https://a.example\"]\n";
    let fixture = |config: &str| Fixture::new(config).user(user);
    let own = ["GET, HEAD  https://a.example/** ← /t/h/config.toml:2:9"];
    assert_eq!(granted(&fixture(""), "notes"), own);
    let replaces = "[tools.notes]\nsource = \"local\"\nwasm = \"n.wasm\"\nreplaces = \"notes\"\n";
    let beyond = beyond("/t/h/config.toml:2:9", "http = [\"https://a.example/**\"]");
    assert_eq!(granted(&fixture(replaces), "notes"), [beyond]);
}

#[test]
fn a_workspace_gives_no_other_built_in_the_users_grants() {
    let user = "[tools.web]\nsource = \"builtin\"\nbuiltin = \"notes\"\n\
                [tools.web.grants]\nhttp = [\"https://a.example\"]\n";
    let fixture = |config: &str| Fixture::new(config).user(user);
    let own = ["GET, HEAD  https://a.example/** ← /t/h/config.toml:5:9"];
    assert_eq!(granted(&fixture(""), "web"), own);
    assert_eq!(granted(&fixture("[tools.web]\nbuiltin = \"notes\"\n"), "web"), own);
    let other = granted(&fixture("[tools.web]\nbuiltin = \"learn\"\n"), "web");
    assert_eq!(other, [beyond("/t/h/config.toml:5:9", "http = [\"https://a.example/**\"]")]);
}

#[test]
fn what_is_denied_holds_for_every_tool_and_stands_in_the_users_own_file_alone() {
    let fixture = Fixture::new("[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n")
        .user("deny = [\"https://*.com\", \"http://10.0.0.1/x\"]\n");
    let config = fixture.load();
    for tool in ["learn", "notes", "t"] {
        let denied = config.tools[tool].grants.value.http.deny.patterns();
        let denied: Vec<_> = denied.iter().map(ToString::to_string).collect();
        assert_eq!(denied, ["https://*.com/**", "http://10.0.0.1/x"]);
    }
    check_rows(
        &fixture,
        "deny",
        &[r#"deny = ["https://*.com/**","http://10.0.0.1/x"] # /t/h/config.toml:1:8"#],
    );
    check_problems_of(
        &Fixture::new("deny = [\"https://a.example\"]\n").user("deny = [\"a.example\", 1]\n"),
        &[
            "/t/h/config.toml:1:9: `a.example` is not a URL pattern: it must start with `https://` \
             or `http://`",
            "/t/h/config.toml:1:22: `deny[1]` takes a string, not the integer `1`",
            "C:1:1: `deny` has no place in a workspace's file: only your own `/t/h/config.toml` may hold \
             it; remove it",
        ],
    );
}

/// The grants of `learn` where the command line grants something, or what is wrong.
fn granted_for_a_call(fixture: &Fixture, grant: &str) -> String {
    let mut sources = fixture.sources();
    sources.call_grants = Some(CallGrants { tool: "learn".into(), grants: vec![grant.to_owned()] });
    let text = match load(&sources) {
        Ok(config) => {
            assert_eq!(config.tools["notes"].grants.value.http.lines(), [""; 0]);
            let grants = &config.tools["learn"].grants;
            let http = grants.value.http.lines().into_iter().map(|line| (HttpGrant::KEY, line));
            let env = grants.value.variables.lines().into_iter().map(|line| ("env", line));
            let placed = http.chain(env).map(|(kind, line)| {
                let origin = grants.place_of(kind, &line);
                format!("{line} ← {origin}")
            });
            placed.collect::<Vec<_>>().join("; ")
        }
        Err(errors) => errors.to_string(),
    };
    fixture.redact(&text)
}

#[test]
fn a_call_is_granted_what_the_command_line_says_within_the_ceiling() {
    let check = |user: &str, grant: &str, expected: &str| {
        let fixture = Fixture::new("").user(user).variables([("LANG", b"C".as_slice())]);
        assert_eq!(granted_for_a_call(&fixture, grant), expected, "{user} {grant}");
    };
    let a = "GET, HEAD  https://a.example/** ← flag --grant";
    check("", "http=https://a.example", a);
    check("", "http=https://*", "GET, HEAD  https://*/** ← flag --grant");
    check(
        "[tools.learn.grants]\nhttp = [\"https://b.example\"]\n",
        "http={ url = \"https://a.example\", methods = [\"POST\"] }",
        "GET, HEAD  https://b.example/** ← /t/h/config.toml:2:9; POST  https://a.example/** ← flag \
         --grant",
    );
    let ceiling = "[ceiling.grants]\nhttp = [\"https://a.example/x/**\"]\n";
    check(ceiling, "http=https://a.example/x/y", "GET, HEAD  https://a.example/x/y ← flag --grant");
    check(
        ceiling,
        "http=https://a.example",
        "flag --grant: a call is granted no more than `[ceiling.grants]` of your own file allows; \
         to allow it, have `[ceiling.grants]` in your own `/t/h/config.toml` include `http = \
         [\"https://a.example/**\"]`",
    );
    check("[ceiling.grants]\nenv = []\n", "http=https://a.example", a);
    check("", "env=LANG", "env LANG ← flag --grant");
    check(
        "",
        "env=UNSET",
        "flag --grant: the variable `UNSET` is not set, so that the tool does not find it",
    );
    check(
        "",
        "htp=https://a.example",
        "flag --grant: `htp` cannot be granted for one call; write KIND=GRANT, where the kind is \
         `http`, `env`, `storage` or `tools`\n  did you mean `http`?",
    );
    check(
        "",
        "http=a.example",
        "flag --grant: `a.example` is not a URL pattern: it must start with `https://` or `http://`",
    );
    check(
        "",
        "http={ url = \"https://a.example\", methods = [\"TRACE\"] }",
        "flag --grant: `TRACE` cannot be granted",
    );
}

/// What a shell makes of a word in single quotes.
fn unquoted(word: &str) -> String {
    let inner = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')).unwrap();
    let inner = inner.replace(r"'\''", "\0");
    assert!(!inner.contains('\''), "{word}");
    inner.replace('\0', "'")
}

fn missing(decision: Decision) -> MissingGrant {
    match decision {
        Decision::Denied { missing: Some(missing), .. } => missing,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_flag_that_is_printed_grants_what_was_denied() {
    let fixture = Fixture::new("").user("").variables([("LANG", b"C".as_slice())]);
    let config = fixture.load();
    let none = &config.tools["learn"].grants.value;
    let urls = [
        "https://api.example.com/",
        "https://api.example.com:8443/a/b?c=d",
        "https://api.example.com/it's/$HOME/`a`/\"b\"/a%2Fb/*",
        "http://localhost:8080/x",
        "http://10.0.0.5/%25/%27/é",
        "https://[fd00::1]/",
        "https://xn--bcher-kva.example.com/",
    ];
    let http = urls.iter().flat_map(|url| ["GET", "POST", "X-ODD"].map(|method| (method, url)));
    let requests: Vec<_> = http
        .filter_map(|(method, url)| HttpRequest::new(method, url).ok())
        .map(Request::Http)
        .chain([Request::Variable(VariableRequest { name: "LANG".parse().unwrap() })])
        .collect();
    assert!(requests.len() > 15, "{}", requests.len());
    for request in requests {
        let flag = config.grant_flag(&missing(decide(none, &request))).unwrap();
        let word = flag.strip_prefix("--grant ").unwrap();
        let call = CallGrants { tool: "learn".into(), grants: vec![unquoted(word)] };
        let mut sources = fixture.sources();
        sources.call_grants = Some(call);
        let granted = load(&sources).unwrap_or_else(|errors| panic!("{flag}: {errors}"));
        let decision = decide(&granted.tools["learn"].grants.value, &request);
        assert!(matches!(decision, Decision::Allowed { .. }), "{flag}: {decision:?}");
    }
    let request = PathRequest { guest: "/data".parse().unwrap(), access: Default::default() };
    let decision = decide(none, &Request::Path(request));
    assert_eq!(config.grant_flag(&missing(decision)), None, "no flag grants a directory");
}

#[test]
fn a_flag_that_the_ceiling_would_refuse_is_not_printed() {
    let flag = |user: &str, url: &str| {
        let config = Fixture::new("").user(user).load();
        let request = Request::Http(HttpRequest::get(url).unwrap());
        config.grant_flag(&missing(decide(&config.tools["learn"].grants.value, &request)))
    };
    let (a, b) = ("https://a.example.com/x", "https://b.example.com/x");
    let expected = Some("--grant 'http=https://b.example.com/x'".to_owned());
    assert_eq!(flag("", b), expected);
    let ceiling = "[ceiling.grants]\nhttp = [\"https://b.example.com\"]\n";
    assert_eq!(flag(ceiling, b), expected);
    assert_eq!(flag(ceiling, a), None);
}
