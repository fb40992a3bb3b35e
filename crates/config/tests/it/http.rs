//! HTTP requests, denied requests, and a workspace's grants of requests.

use kitbag_config::{CallGrants, load};
use kitbag_policy::http::HttpRequest;
use kitbag_policy::{Decision, MissingGrant, PathRequest, Request, VariableRequest, decide};

use crate::support::Fixture;

fn user(http: &str) -> Fixture {
    Fixture::new("").user(&format!("[tools.learn.grants]\nhttp = {http}\n"))
}

#[test]
fn grants_in_error_messages_can_be_read_back() {
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

/// Returns the value of a word that a shell reads in single quotes.
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
fn every_printed_flag_grants_the_denied_request() {
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
fn flags_beyond_the_ceiling_are_not_printed() {
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
