//! `kitbag why`, and grants for one call.

use std::fs;

use kitbag::policy::{Decision, HttpRequest, Request, decide};
use kitbag_test_servers::{Answer, Authority, Behaviour, Server};
use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Workspace, guest, probe, snapshot};

#[test]
fn it_agrees_with_fetch_on_every_spelling_of_a_url() {
    let server = Server::start(Behaviour::Answer(Answer::ok("text/plain", "text")));
    let workspace = Workspace::with_toolsets(&["fetch"]);
    let grants = [format!("{}/docs/**", server.url())];
    workspace.own_config(&format!("[tools.fetch.grants]\nhttp = {grants:?}\n"));
    let mut client = Client::with_handshake(&workspace, json!({}));
    let (authority, port) = (server.address().to_string(), server.port().to_string());
    let mut outcomes = [0; 2];
    for line in include_str!("why_urls.jsonl").lines() {
        let url: String = serde_json::from_str(line).unwrap();
        let url = url.replace("{server}", &server.url());
        let url = url.replace("{authority}", &authority).replace("{port}", &port);
        let before = server.seen().requests.len();
        let fetched = client.call("fetch", json!({ "url": url }));
        let seen = server.seen().requests.split_off(before);
        let why = workspace.run(&["why", "--json", "fetch", &url]);
        let says = why.json();
        let shown = format!("{url:?}\n{fetched}\n{}", why.shown());
        match &seen[..] {
            [] => assert_eq!((why.code, &says["allowed"]), (6, &false.into()), "{shown}"),
            [request] => {
                assert_eq!((why.code, &says["allowed"]), (0, &true.into()), "{shown}");
                let requested = format!("GET {}{}", server.url(), request.path());
                assert_eq!(says["request"], requested, "{shown}");
            }
            _ => panic!("{shown}"),
        }
        outcomes[seen.len()] += 1;
    }
    assert!(outcomes.iter().all(|count| *count >= 12), "{outcomes:?}");
}

/// A configuration with an additional entry at the place that `why --json` names.
fn with(text: &str, line: &Value) -> String {
    let mut config: toml::Table = text.parse().unwrap();
    let (key, entry) = (line["key"].as_str().unwrap(), line["entry"].as_str().unwrap());
    let mut keys: Vec<_> = key.split('.').collect();
    let last = keys.pop().unwrap();
    let mut table = &mut config;
    for key in keys {
        let inner = table.entry(key).or_insert_with(|| toml::Table::new().into());
        table = inner.as_table_mut().unwrap();
    }
    if let Ok(entries) = format!("x = [{entry}]").parse::<toml::Table>() {
        let list = table.entry(last).or_insert_with(|| toml::Value::Array(Vec::new()));
        list.as_array_mut().unwrap().extend(entries["x"].as_array().unwrap().clone());
    } else {
        // A key with its value, in a table or a setting.
        let inner = table.entry(last).or_insert_with(|| toml::Table::new().into());
        inner.as_table_mut().unwrap().extend(entry.parse::<toml::Table>().unwrap());
    }
    config.to_string()
}

#[test]
fn suggested_lines_work_wherever_grants_are_configured() {
    let secret = "[secrets.mail]\nto = [\"https://b.example/**\"]\n";
    let grants = |tool: &str, kinds: &str| format!("[tools.{tool}.grants]\n{kinds}\n");
    let kinds = "http = [\"https://a.example/**\"]\nenv = [\"A\"]\ntools = { file_info = \"file_info\" }\n\
                 secrets = {}\nstorage = { keys = 5 }\n";
    let ceilings = "http = [\"https://a.example/**\"]\nenv = [\"A\"]\ntools = [\"file_info\"]\n\
                    secrets = []\nstorage = { keys = 5 }";
    let mut report = String::new();
    let free = secret.to_owned();
    let bound = format!("{secret}[ceiling.grants]\n{ceilings}\n");
    for (case, tool, own, of_workspace) in [
        ("no grants", "learn", &free, String::new()),
        ("grants of the workspace", "learn", &free, grants("learn", kinds)),
        ("grants of an untrusted workspace", "learn", &free, grants("learn", kinds)),
        (
            "own grants, ceiling",
            "learn",
            &format!("{bound}{}", grants("learn", kinds)),
            String::new(),
        ),
        ("grants of the workspace, ceiling", "learn", &bound, grants("learn", kinds)),
        ("no grants", "probe", &free, String::new()),
        ("grants of the workspace", "probe", &free, grants("probe", kinds)),
        ("no grants, ceiling", "probe", &bound, String::new()),
        ("grants of the workspace, ceiling", "probe", &bound, grants("probe", kinds)),
    ] {
        let of_workspace = format!("{of_workspace}{}", probe(""));
        report.push_str(&format!("# {tool}: {case}\n"));
        for request in [
            &["https://b.example/x"][..],
            &["env", "LANG"],
            &["secret", "mail"],
            &["storage", "32MiB"],
            &["tool", "list_dir"],
        ] {
            let workspace = Workspace::new();
            let workspace = match case.contains("untrusted") {
                true => workspace.untrusted(),
                false => workspace,
            };
            workspace.own_config(own);
            workspace.config(&of_workspace);
            let why = [&["why", tool], request].concat();
            let run = workspace.run(&why).shown();
            let advice = run.lines().find(|line| line.starts_with("  to allow it, "));
            report.push_str(&format!("{}\n", advice.unwrap_or(&run)));
            let denied = workspace.run(&[&why[..], &["--json"]].concat()).json();
            let mut texts = [own.clone(), of_workspace.clone()];
            let lines = denied["missing"]["lines"].as_array();
            for line in lines.unwrap_or_else(|| panic!("{case}: {denied:#}")) {
                let file = line["file"].as_str().unwrap();
                let is_own = file == "<home>/.config/kitbag/config.toml";
                assert!(is_own || file == ".kitbag/config.toml", "{file}");
                let text = &mut texts[usize::from(!is_own)];
                *text = with(text, line);
            }
            workspace.own_config(&texts[0]);
            workspace.config(&texts[1]);
            let run = workspace.run(&why);
            assert_eq!(run.code, 0, "{texts:#?}\n{denied:#}\n{}", run.shown());
        }
    }
    snapshot!("places", &report);
}

/// A pseudo-random generator with a fixed seed (PCG).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len())]
    }

    /// A path of random segments.
    fn path(&mut self, segments: &[&str]) -> String {
        (0..self.below(4)).map(|_| format!("/{}", self.of(segments))).collect()
    }
}

/// Servers that a request may reach, and other hosts of the same machine.
struct Machine {
    plain: Server,
    encrypted: Server,
}

impl Machine {
    fn authority(&self, random: &mut Random, scheme: &str, hosts: &[&str]) -> String {
        let host = random.of(hosts);
        // The port that fits the scheme, in most cases.
        let own = if scheme == "https" { &self.encrypted } else { &self.plain };
        let other = if scheme == "https" { &self.plain } else { &self.encrypted };
        match random.below(12) {
            0 => host.to_owned(),
            1 => format!("{host}:{}", other.port()),
            2 => format!("{host}:0{}", own.port()),
            _ => format!("{host}:{}", own.port()),
        }
    }

    fn pattern(&self, random: &mut Random) -> String {
        const HOSTS: [&str; 9] = [
            "localhost",
            "localhost",
            "127.0.0.1",
            "127.0.0.1",
            "[::1]",
            "*.a.localhost",
            "x.a.localhost",
            "127.0.0.2",
            "*",
        ];
        let scheme = random.of(&["http", "http", "https"]);
        let authority = self.authority(random, scheme, &HOSTS);
        let path = random.path(&["**", "*", "docs", "d*s", "a", "%61", "a%2Fb", "admin"]);
        format!("{scheme}://{authority}{path}").replace(":0", ":")
    }

    fn grant(&self, random: &mut Random, url: &str) -> String {
        let methods = random.of(&["", ", methods = [\"POST\"]", ", methods = \"*\""]);
        let is_plain = !url.contains("%2F") && random.below(3) > 0;
        let slash = if is_plain { "" } else { ", encoded_slash = true" };
        let addresses = random.of(&["", "", ", addresses = [\"127.0.0.0/8\", \"::1/128\"]"]);
        format!("{{ url = \"{url}\"{methods}{slash}{addresses} }}")
    }

    /// A request. Every second request is similar to a pattern.
    fn request(&self, random: &mut Random, patterns: &[String]) -> (&'static str, String) {
        const HOSTS: [&str; 16] = [
            "localhost",
            "localhost",
            "localhost",
            "127.0.0.1",
            "127.0.0.1",
            "127.0.0.1",
            "[::1]",
            "x.a.localhost",
            "y.x.a.localhost",
            "a.localhost",
            "LOCALHOST",
            "127.0.0.2",
            "127.1",
            "2130706433",
            "localhost.",
            "[::ffff:127.0.0.1]",
        ];
        const SEGMENTS: [&str; 16] = [
            "docs", "docs", "docs", "a", "a", "a", "%61", "b", "admin", "ADMIN", "..", "%2e%2E",
            "", "a%2Fb", "a;x", "%64ocs",
        ];
        let scheme = random.of(&["http", "http", "http", "https", "HTTP", "ftp"]);
        let (method, path) = (
            random.of(&["GET", "GET", "GET", "HEAD", "POST", "PUT", "get", "TRACE", "OPTIONS"]),
            random.path(&SEGMENTS),
        );
        let query = random.of(&["", "", "?q=1", "?a=/../b"]);
        if random.below(4) == 0 {
            let authority = self.authority(random, &scheme.to_ascii_lowercase(), &HOSTS);
            return (method, format!("{scheme}://{authority}{path}{query}"));
        }
        let pattern = &patterns[random.below(patterns.len())];
        let (scheme, rest) = pattern.split_once("://").unwrap();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = authority.split_at(authority.rfind(':').unwrap_or(authority.len()));
        let host = match host.strip_prefix('*') {
            Some("") => random.of(&HOSTS).to_owned(),
            Some(below) => format!("{}{below}", random.of(&["x", "y.x", "127.0.0.1"])),
            None => host.to_owned(),
        };
        // Replacements for the stars, matching and not matching.
        let segment = |random: &mut Random, segment: &str| match segment {
            "**" => random.path(&SEGMENTS),
            own => format!("/{}", own.replace('*', random.of(&["oc", "x", "o", "", "a/b"]))),
        };
        let path: String = match path.is_empty() {
            true => random.path(&SEGMENTS),
            false => path[1..].split('/').map(|own| segment(random, own)).collect(),
        };
        (method, format!("{scheme}://{host}{port}{path}{query}"))
    }
}

/// The outcome of a request. `None`: the guest's own library did not send it.
fn was_sent<'a>(url: &str, answer: &'a Value) -> Option<Result<(), &'a str>> {
    match answer["error"].as_str() {
        None => Some(Ok(())),
        Some(code) => match code.strip_prefix("ErrorCode::")? {
            // The interface accepts no other scheme, and refuses it before the host is called.
            refused @ "HttpProtocolError" if url.starts_with("ftp") => Some(Err(refused)),
            refused @ ("HttpRequestDenied" | "DestinationIpProhibited") => Some(Err(refused)),
            // There is no such server, or it uses the other protocol.
            _ => Some(Ok(())),
        },
    }
}

#[test]
fn it_agrees_with_a_thousand_random_requests() {
    const WORKSPACES: usize = 20;
    const REQUESTS: usize = 50;
    let authority = Authority::new();
    let machine = Machine {
        plain: Server::start(Behaviour::Answer(Answer::new(200, "plain"))),
        encrypted: Server::start_tls(
            Behaviour::Answer(Answer::new(200, "tls")),
            &authority.local(),
        ),
    };
    let mut random = Random(18);
    let mut outcomes = [0; 3];
    for _ in 0..WORKSPACES {
        let workspace = Workspace::new();
        let roots = workspace.home().join("authority.pem");
        fs::write(&roots, authority.pem()).unwrap();
        let patterns: Vec<_> =
            (0..=random.below(5)).map(|_| machine.pattern(&mut random)).collect();
        let grants = patterns.iter().map(|url| machine.grant(&mut random, url));
        let grants: Vec<_> = grants.collect();
        let denied: Vec<_> = (0..random.below(3)).map(|_| machine.pattern(&mut random)).collect();
        let own = format!(
            "deny = {denied:?}\n[network]\nroots = [{roots:?}]\n\
             [tools.request]\nsource = \"local\"\nwasm = {:?}\n\
             [tools.request.grants]\nhttp = [{}]\n",
            guest("request"),
            grants.join(", ")
        );
        workspace.own_config(&own);
        let mut client = Client::with_handshake(&workspace, json!({}));
        let kitbag = workspace.kitbag();
        let granted = &kitbag.toolbox().config().tools["request"].grants.value;
        let is_granted = |method: &str, url: &str| {
            HttpRequest::new(method, url).is_ok_and(|request| {
                matches!(decide(granted, &Request::Http(request)), Decision::Allowed { .. })
            })
        };
        for number in 0..REQUESTS {
            let (method, url, happened) = loop {
                let (method, url) = machine.request(&mut random, &patterns);
                let called = client.call("request", json!({ "method": method, "url": url }));
                let text = called["content"][0]["text"].as_str().unwrap();
                let answer: Value = serde_json::from_str(text).unwrap();
                if let Some(happened) = was_sent(&url, &answer) {
                    break (method, url, happened.map_err(str::to_owned));
                }
            };
            let is_granted = is_granted(method, &url);
            let shown = format!("{method} {url}: {happened:?}, granted: {is_granted}\n{own}");
            // The addresses of a name are not known before the request.
            let is_by_address =
                is_granted && happened.as_ref().is_err_and(|it| it == "DestinationIpProhibited");
            assert!(is_by_address || happened.is_ok() == is_granted, "{shown}");
            // The command makes the same decision. It is a process, so a part of the requests is
            // enough.
            let is_asked_too = is_by_address && outcomes[1] < 20;
            if is_asked_too || number % 10 == 0 {
                let why = workspace.run(&["why", "--json", "request", method, &url]);
                let expected = (if is_granted { 0 } else { 6 }, &is_granted.into());
                assert_eq!(
                    (why.code, &why.json()["allowed"]),
                    expected,
                    "{shown}\n{}",
                    why.shown()
                );
            }
            if is_asked_too {
                let caveat = workspace.run(&["why", "request", method, &url]).stdout;
                assert!(
                    caveat.contains("if the grant allows all addresses of its host"),
                    "{shown}"
                );
            }
            outcomes[match happened {
                Ok(()) => 0,
                Err(_) if is_granted => 1,
                Err(_) => 2,
            }] += 1;
        }
    }
    // Each of the three outcomes is frequent, so each is tested.
    assert_eq!(outcomes.iter().sum::<usize>(), WORKSPACES * REQUESTS);
    assert!(outcomes.iter().all(|count| *count >= 20), "{outcomes:?}");
}
