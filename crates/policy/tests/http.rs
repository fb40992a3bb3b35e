//! HTTP grants and requests: parsing, matching, comparing and denying, with the cases in `http/`.

use std::net::IpAddr;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_base::parse_duration;
use kitbag_policy::addresses::is_global;
use kitbag_policy::http::{Deny, Headers, Methods};
use kitbag_policy::{HttpGrant, HttpGrants, HttpRequest, RefusalKind, UrlPattern};

/// Iterates over the numbered lines of a case file, without comments.
fn cases(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Unescapes `\t`, `\r`, `\n`, `\\`, `\xNN` and `\u{N}` as in Rust.
fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let mut out = String::new();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        let number = |digits: String| {
            let number = u32::from_str_radix(&digits, 16).unwrap();
            char::from_u32(number).unwrap()
        };
        out.push(match chars.next().unwrap() {
            't' => '\t',
            'r' => '\r',
            'n' => '\n',
            'x' => number(chars.by_ref().take(2).collect()),
            'u' => number(chars.by_ref().skip(1).take_while(|char| *char != '}').collect()),
            char => char,
        });
    }
    out
}

#[test]
fn requests_are_never_normalized() {
    for (line, case) in cases(include_str!("http/requests.txt")) {
        let mut words = case.rsplitn(2, ' ');
        let (expected, request) = (words.next().unwrap(), words.next().unwrap());
        let (method, url) = request.split_once(' ').unwrap();
        let (method, url) = (unescaped(method), unescaped(url));
        let outcome = match HttpRequest::new(&method, &url) {
            Ok(_) => "ok".to_owned(),
            Err(refusal) => {
                assert_eq!(refusal.missing, None, "line {line}: {case}");
                assert!(!refusal.reason.contains(char::is_control), "line {line}: {case}");
                refusal.kind.to_string()
            }
        };
        assert_eq!(outcome, expected, "line {line}: {case}");
    }
}

#[test]
fn a_url_has_at_most_8_kib() {
    let url = |length: usize| format!("https://a.example/{}", "x".repeat(length - 18));
    assert!(HttpRequest::get(&url(8192)).is_ok());
    // The entry that would allow the longest URL is valid as well.
    let longest = format!("https://a.example/{}", "\"".repeat(8192 - 18));
    let grant = HttpGrant::allowing(&HttpRequest::get(&longest).unwrap());
    assert_eq!(grant.url.to_string().parse(), Ok(grant.url));
    let refusal = HttpRequest::get(&url(8193)).unwrap_err();
    assert_eq!(refusal.kind.as_str(), "size");
}

/// Parses a grant of a case: a pattern, followed by `|` or `+slash` and the fields that differ from
/// the default.
fn grant(text: &str) -> HttpGrant {
    let mut fields = text.split('|');
    let url = fields.next().unwrap();
    let (url, is_slash) = match url.strip_suffix("+slash") {
        Some(url) => (url, true),
        None => (url, false),
    };
    let mut grant = HttpGrant::new(url.parse().unwrap());
    grant.encoded_slash = is_slash;
    for field in fields {
        let (key, value) = field.split_once('=').unwrap_or((field, ""));
        match key {
            "methods" => grant.methods = Methods::new(value.split(',')).unwrap(),
            "addresses" => {
                grant.addresses = value.split(',').map(|block| block.parse().unwrap()).collect();
            }
            "follow" => grant.follow = value.parse().unwrap(),
            "encoded_slash" => grant.encoded_slash = true,
            "headers" => grant.headers = Headers::new(value.split(',')).unwrap(),
            "max_request" => grant.max_request = value.parse().unwrap(),
            "max_response" => grant.max_response = value.parse().unwrap(),
            "time" => grant.time = Some(parse_duration(value).unwrap()),
            key => panic!("{key}"),
        }
    }
    grant
}

fn grants(texts: &[&str]) -> HttpGrants {
    texts.iter().map(|text| grant(text)).collect::<Vec<_>>().into()
}

/// Returns `yes` or the kind of the refusal. Checks that the missing grant would allow the request.
fn outcome(grants: &HttpGrants, request: &HttpRequest) -> String {
    match grants.decide(request) {
        Ok(_) => "yes".to_owned(),
        Err(refusal) => {
            let missing = refusal.missing.expect("nothing is denied");
            let allowing = HttpGrant::allowing(request);
            assert_eq!((missing.key, missing.entry), ("http", allowing.as_entry()));
            let more = HttpGrants::from(vec![allowing]);
            assert!(more.decide(request).is_ok(), "{request}");
            refusal.kind.to_string()
        }
    }
}

#[test]
fn patterns_match_the_listed_urls() {
    for (line, case) in cases(include_str!("http/matches.txt")) {
        let [pattern, url, expected] = case.split(' ').collect::<Vec<_>>()[..] else {
            panic!("line {line}: {case}")
        };
        let request = HttpRequest::get(url).unwrap();
        assert_eq!(outcome(&grants(&[pattern]), &request), expected, "line {line}: {case}");
    }
}

#[test]
fn invalid_patterns_have_a_reason() {
    let mut wrong = Vec::new();
    for (line, case) in cases(include_str!("http/patterns.txt")) {
        let (text, expected) = case.split_once(" | ").unwrap();
        let error = match UrlPattern::parse(text) {
            Ok(pattern) => panic!("line {line}: {case}: {pattern}"),
            Err(error) => error.to_string(),
        };
        if !error.contains(expected) {
            wrong.push(format!("line {line}: {case}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let long = format!("https://a.example/{}", "x".repeat(32 << 10));
    assert!(UrlPattern::parse(&long).unwrap_err().to_string().contains("longer than 32 KiB"));
}

#[test]
fn host_names_open_only_public_addresses() {
    let name = grants(&["https://a.example/**"]);
    for (line, case) in cases(include_str!("http/addresses.txt")) {
        let (address, expected) = case.split_once(' ').unwrap();
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(is_global(address), expected == "yes", "line {line}: {case}");

        let request = HttpRequest::get("https://a.example/").unwrap();
        let allowed = || name.decide(&request).unwrap();
        let public: IpAddr = "1.1.1.1".parse().unwrap();
        // One such address among several refuses the name.
        for addresses in [&[address][..], &[public, address], &[address, public]] {
            let refusal = allowed().addresses(addresses).err();
            let kind = refusal.map(|refusal| refusal.kind.as_str());
            let expected = if expected == "yes" { None } else { Some("address") };
            assert_eq!(kind, expected, "line {line}: {case}");
        }
    }
    let mut allowed = name.decide(&HttpRequest::get("https://a.example/").unwrap()).unwrap();
    assert!(allowed.addresses(&[]).is_err());
}

#[test]
fn addresses_need_a_name_localhost_or_a_block() {
    let check = |text: &str, url: &str, address: &str, expected: bool| {
        let request = HttpRequest::get(url).unwrap();
        let mut allowed = grants(&[text]).decide(&request).unwrap();
        let outcome = allowed.addresses(&[address.parse().unwrap()]);
        assert_eq!(outcome.is_ok(), expected, "{text} {url} {address}: {outcome:?}");
    };
    check("https://10.0.0.1/**", "https://10.0.0.1/", "10.0.0.1", true);
    check("https://10.0.0.1/**", "https://10.0.0.1/", "10.0.0.2", false);
    check("https://localhost/**", "https://localhost/", "127.0.0.1", true);
    check("https://localhost/**", "https://localhost/", "127.8.8.8", true);
    check("https://localhost/**", "https://localhost/", "::1", true);
    check("https://localhost/**", "https://localhost/", "10.0.0.1", false);
    check("https://*/**", "https://localhost/", "127.0.0.1", false);
    let block = "https://a.example/**|addresses=10.0.0.0/8";
    check(block, "https://a.example/", "10.1.2.3", true);
    check(block, "https://a.example/", "::ffff:10.1.2.3", true);
    check(block, "https://a.example/", "64:ff9b::10.1.2.3", true);
    check(block, "https://a.example/", "8.8.8.8", true);
    check(block, "https://a.example/", "127.0.0.1", false);
    check("https://a.example/**|addresses=fd00::/8", "https://a.example/", "fd00::1", true);
    check("https://a.example/**|addresses=fd00::/8", "https://a.example/", "fe80::1", false);
}

#[test]
fn deny_matches_broadly_and_overrides_grants() {
    for (line, case) in cases(include_str!("http/deny.txt")) {
        let [denied, method, url, expected] = case.split(' ').collect::<Vec<_>>()[..] else {
            panic!("line {line}: {case}")
        };
        let outcome = match HttpRequest::new(method, url) {
            Err(_) => "refused",
            Ok(request) => {
                let mut granted = HttpGrants::from(vec![HttpGrant::allowing(&request)]);
                assert!(granted.decide(&request).is_ok(), "line {line}: {case}");
                let denied = UrlPattern::parse_denied(denied).unwrap();
                granted.deny = Deny::new(vec![denied]).into();
                match granted.decide(&request) {
                    Ok(_) => "no",
                    Err(refusal) => {
                        assert_eq!(refusal.missing, None, "line {line}: {case}");
                        "yes"
                    }
                }
            }
        };
        assert_eq!(outcome, expected, "line {line}: {case}");
    }
}

#[test]
fn denied_addresses_apply_to_names() {
    let request = HttpRequest::get("https://a.example/x").unwrap();
    let check = |denied: &str, addresses: &[&str], expected: bool| {
        let mut granted = grants(&["https://a.example/**"]);
        granted.deny = Deny::new(vec![UrlPattern::parse_denied(denied).unwrap()]).into();
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let outcome = granted.decide(&request).unwrap().addresses(&addresses);
        assert_eq!(outcome.is_err(), expected, "{denied} {addresses:?}");
    };
    check("https://8.8.8.8", &["8.8.8.8"], true);
    check("https://8.8.8.8", &["1.1.1.1", "8.8.8.8"], true);
    check("http://8.8.8.8/X", &["8.8.8.8"], true);
    check("https://8.8.8.8", &["::ffff:8.8.8.8"], true);
    check("https://8.8.8.8", &["64:ff9b::8.8.8.8"], true);
    check("https://8.8.8.8", &["1.1.1.1"], false);
    check("https://8.8.8.8/y", &["8.8.8.8"], false);
    check("https://8.8.8.8:444", &["8.8.8.8"], false);
    check("https://b.example", &["8.8.8.8"], false);
    check("http://localhost", &["127.0.0.1"], true);
    check("http://localhost", &["127.8.8.8"], true);
    check("http://localhost", &["8.8.8.8", "::1"], true);
    check("http://localhost", &["8.8.8.8"], false);
}

#[test]
fn ceilings_cover_only_grants_they_fully_allow() {
    for (line, case) in cases(include_str!("http/holds.txt")) {
        let [ceiling, inner, expected] = case.split(' ').collect::<Vec<_>>()[..] else {
            panic!("line {line}: {case}")
        };
        let beyond = grants(&[inner]).beyond(&grants(&[ceiling]).grants);
        let outcome = beyond.map_or("held", |(_, field)| field);
        assert_eq!(outcome, expected, "line {line}: {case}");
    }
    let (reads, writes) = ("https://a.example", "https://a.example|methods=POST");
    let both = grants(&["https://a.example|methods=GET,POST"]);
    assert_eq!(both.beyond(&grants(&[reads, writes]).grants), None);
    assert!(both.beyond(&grants(&[reads]).grants).is_some());
    assert!(both.beyond(&[]).is_some());
    assert_eq!(grants(&[]).beyond(&[]), None);
}

#[test]
fn methods_are_case_sensitive() {
    let check = |methods: &[&str], method: &str, expected: &str| {
        let methods = Methods::new(methods.iter().copied()).unwrap();
        let grant = HttpGrant { methods, ..grant("https://a.example/**") };
        let grants = HttpGrants::from(vec![grant]);
        let outcome = match HttpRequest::new(method, "https://a.example/x") {
            Ok(request) => outcome(&grants, &request),
            Err(refusal) => format!("never: {}", refusal.kind),
        };
        assert_eq!(outcome, expected, "{methods:?} {method}", methods = grants.grants[0].methods);
    };
    check(&["GET"], "GET", "yes");
    check(&["GET"], "HEAD", "yes");
    check(&["HEAD"], "HEAD", "yes");
    check(&["HEAD"], "GET", "method");
    check(&["GET"], "POST", "method");
    check(&["GET"], "get", "method");
    check(&["POST"], "POST", "yes");
    check(&["POST"], "GET", "method");
    check(&["PROPFIND"], "PROPFIND", "yes");
    check(&["*"], "POST", "yes");
    check(&["*"], "PROPFIND", "yes");
    check(&["*"], "CONNECT", "never: method");
    check(&["*"], "TRACE", "never: method");
    check(&["*"], "track", "yes");
    let error = |methods: &[&str]| Methods::new(methods.iter().copied()).unwrap_err().to_string();
    assert_eq!(error(&["CONNECT"]), "`CONNECT` cannot be granted");
    assert_eq!(error(&["*", "trace"]), "`TRACE` cannot be granted");
    assert_eq!(error(&["get"]), "methods are case-sensitive: write `GET`");
    assert_eq!(error(&["G T"]), "`G T` is not a method");
    assert_eq!(error(&[]), "a list of methods must name at least one");
}

#[test]
fn header_fields_of_the_connection_are_refused() {
    let check = |text: &str, names: &[&str], expected: bool| {
        let request = HttpRequest::get("https://a.example/x").unwrap();
        let mut allowed = grants(&[text]).decide(&request).unwrap();
        let outcome = allowed.headers(names.iter().copied());
        assert_eq!(outcome.is_ok(), expected, "{text} {names:?}");
    };
    let (all, named) =
        ("https://a.example", "https://a.example|headers=X-A,x-http-method-override");
    check(all, &["Accept", "X-Anything", "authorization"], true);
    for never in ["Host", "connection", "TE", "transfer-encoding", "upgrade", "proxy-authorization"]
    {
        check(all, &["accept", never], false);
        check(named, &[never], false);
        assert!(Headers::new([never]).is_err());
    }
    check(all, &["X-HTTP-Method-Override"], false);
    check(all, &["X-Original-URL"], false);
    // In spellings that a server treats as equal, and others that some servers obey.
    for name in ["x_original_url", "X-HTTP_Method-Override", "X.HTTP.Method.Override", "x_a"] {
        check(all, &[name], false);
    }
    check(named, &["X-HTTP-Method-Override", "x-a", "content-type"], true);
    check(named, &["x-b"], false);
}

#[test]
fn override_and_identity_fields_must_be_named() {
    let request = HttpRequest::get("https://a.example/x").unwrap();
    for (line, name) in cases(include_str!("http/overrides.txt")) {
        let sent = |text: &str| grants(&[text]).decide(&request).unwrap().headers([name]).is_ok();
        assert!(!sent("https://a.example"), "line {line}: {name}");
        assert!(!sent("https://a.example|headers=x-a"), "line {line}: {name}");
        assert!(sent(&format!("https://a.example|headers={name}")), "line {line}: {name}");
    }
    for name in ["Authorization", "X-Api-Key", "If-Match", "Range", "Referer", "Origin", "X-Id"] {
        let sent = grants(&["https://a.example"]).decide(&request).unwrap().headers([name]);
        assert!(sent.is_ok(), "{name}");
    }
}

#[test]
fn a_single_grant_must_allow_the_request() {
    let request = HttpRequest::get("https://a.example/x").unwrap();
    let (large, far) = ("https://a.example|max_response=20MiB", "https://a.example|follow=2");
    let both = grants(&[large, far]);
    let mut allowed = both.decide(&request).unwrap();
    assert_eq!(allowed.max_response(), ByteSize::mib(20));
    assert!(allowed.follows(1));
    assert!(!allowed.follows(2));
    // The grant that remains has the default size.
    assert_eq!(allowed.max_response(), ByteSize::mib(8));
    let refusal = allowed.response_bytes(9 << 20).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Size);
    let entry = "{ url = \"https://a.example/**\", follow = 2, max_response = \"9 MiB\" }";
    assert_eq!(refusal.missing.unwrap().entry, entry);
    assert!(both.decide(&request).unwrap().response_bytes(20 << 20).is_ok());
    assert!(both.decide(&request).unwrap().request_bytes((1 << 20) + 1).is_err());
    let mut timed = grants(&["https://a.example|time=2s"]).decide(&request).unwrap();
    assert!(timed.elapsed(Duration::from_secs(2)).is_ok());
    let refusal = timed.elapsed(Duration::from_millis(2001)).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Time);
}

#[test]
fn refusals_name_the_missing_grant() {
    let check = |text: &str, method: &str, url: &str, expected: &str| {
        let request = HttpRequest::new(method, url).unwrap();
        let refusal = grants(&[text]).decide(&request).unwrap_err();
        assert_eq!(format!("{refusal}; {}", refusal.missing.as_ref().unwrap().entry), expected);
    };
    check(
        "https://a.example/x",
        "POST",
        "https://a.example/x?token=1",
        "no `http` grant allows `POST https://a.example/x`: its method is not granted; \
         { url = \"https://a.example/x\", methods = [\"POST\"] }",
    );
    check(
        "https://a.example/x",
        "GET",
        "https://a.example/y/*%2fz",
        "no `http` grant allows `GET https://a.example/y/*%2fz`: its path is not granted; \
         { url = \"https://a.example/y/%2A%2Fz\", encoded_slash = true }",
    );
    let request = HttpRequest::get("https://b.example:444").unwrap();
    let refusal = grants(&[]).decide(&request).unwrap_err();
    assert_eq!(refusal.missing.unwrap().entry, "\"https://b.example:444/\"");
    let mut allowed = grants(&["https://a.example"])
        .decide(&HttpRequest::get("https://a.example/x").unwrap())
        .unwrap();
    let refusal = allowed.addresses(&["10.0.0.1".parse().unwrap()]).unwrap_err();
    let entry = "{ url = \"https://a.example/**\", addresses = [\"10.0.0.1/32\"] }";
    assert_eq!(refusal.missing.unwrap().entry, entry);
}

#[test]
fn grants_are_not_combined() {
    let request = HttpRequest::get("https://a.example/x").unwrap();
    let both =
        grants(&["https://a.example|addresses=10.0.0.0/8", "https://a.example|max_response=20MiB"]);
    let mut allowed = both.decide(&request).unwrap();
    assert!(allowed.clone().response_bytes(20 << 20).is_ok());
    assert!(allowed.addresses(&["10.0.0.1".parse().unwrap()]).is_ok());
    assert!(allowed.response_bytes(20 << 20).is_err());
}

#[test]
fn proxies_resolve_only_named_hosts() {
    let check = |granted: &[&str], denied: &[&str], url: &str, expected: bool| {
        let deny = denied.iter().map(|url| UrlPattern::parse_denied(url).unwrap()).collect();
        let grants = HttpGrants { deny: Deny::new(deny).into(), ..grants(granted) };
        let mut allowed = grants.decide(&HttpRequest::new("GET", url).unwrap()).unwrap();
        assert_eq!(allowed.unresolved(), expected, "{granted:?} {denied:?} {url}");
        if expected {
            assert!(allowed.by().url.host().is_of_names(), "{granted:?}");
        }
    };
    let url = "https://a.example/";
    check(&["https://a.example"], &[], url, true);
    check(&["https://*.a.example"], &[], "https://b.a.example/", true);
    check(&["https://*"], &[], url, false);
    // The grant of every host no longer allows any part of the request.
    check(&["https://*", "https://a.example"], &[], url, true);
    check(&["https://10.0.0.1"], &[], "https://10.0.0.1/", false);
    check(&["https://localhost"], &[], "https://localhost/", false);
    check(&["https://db.localhost"], &[], "https://db.localhost/", false);
    // Denied addresses require a resolved host.
    check(&["https://a.example"], &["http://b.example"], url, true);
    check(&["https://a.example"], &["http://10.0.0.1"], url, false);
    check(&["https://a.example"], &["http://localhost"], url, false);
}
