//! Connections through proxies, including attacks on the requested target.

use kitbag_http::{
    Client, ClientOptions, Direct, FailedConnection, Nameservers, Proxy, ProxyRules, RequestError,
};
use kitbag_policy::http::{HttpGrant, RefusalKind};
use kitbag_test_servers::{Authority, Behaviour, Dns, Server};

use crate::caller::{Caller, any_method, grant, trusting};

/// Creates a client with this DNS server and these proxies.
fn client(dns: &Dns, proxies: ProxyRules) -> Client {
    let nameservers = Nameservers::These(vec![dns.address()]);
    Client::new(ClientOptions { nameservers, proxies, ..ClientOptions::default() })
}

fn proxy(server: &Server) -> Proxy {
    format!("http://{}", server.address()).parse().unwrap()
}

/// Creates rules with a proxy that resolves names.
fn resolving(server: &Server) -> ProxyRules {
    ProxyRules { resolves: true, ..proxy(server).into() }
}

/// Returns the targets that were requested from a proxy.
fn targets(through: &Server) -> Vec<String> {
    through.seen().requests.iter().map(|it| format!("{} {}", it.method, it.target)).collect()
}

#[test]
fn proxies_receive_the_checked_address() {
    let authority = Authority::new();
    let server = Server::start_tls(Behaviour::Echo, &authority.certificate(&["name.test"]));
    let dns = Dns::of(&[("name.test", &[&["10.9.8.7"]])]);
    let through = Server::start(Behaviour::Proxy(server.address()));
    let proxy: Proxy = format!("http://user:p%40ss@{}", through.address()).parse().unwrap();
    let client = Client::new(ClientOptions {
        roots: trusting(&authority),
        nameservers: Nameservers::These(vec![dns.address()]),
        proxies: proxy.into(),
        ..ClientOptions::default()
    });
    let url = server.url_as("name.test");
    let closed = Caller::new(&client, vec![grant(&url)]);
    closed.refused(&url);
    assert!(through.seen().is_nothing());
    let addresses = vec!["10.0.0.0/8".parse().unwrap()];
    let caller = Caller::new(&client, vec![HttpGrant { addresses, ..grant(&url) }]);
    assert_eq!(caller.get(&url).unwrap().status, 200);
    let connect = &through.seen().requests[0];
    let target = format!("10.9.8.7:{}", server.address().port());
    assert_eq!((&*connect.method, &*connect.target), ("CONNECT", &*target));
    assert_eq!(connect.header("proxy-authorization").unwrap(), "Basic dXNlcjpwQHNz");
    // Only the proxy receives its password.
    let seen = server.seen();
    assert!(seen.requests[0].headers.iter().all(|(name, _)| !name.starts_with("proxy")));
}

#[test]
fn local_and_listed_hosts_bypass_the_proxy() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("name.test", &[&["127.0.0.1"]])]);
    let elsewhere = Server::start(Behaviour::Echo);
    let through = Server::start(Behaviour::Proxy(elsewhere.address()));
    let proxy: Proxy = format!("http://{}", through.address()).parse().unwrap();
    let client = Client::new(ClientOptions {
        nameservers: Nameservers::These(vec![dns.address()]),
        proxies: proxy.into(),
        ..ClientOptions::default()
    });
    for url in [server.url(), server.url_as("localhost"), server.url_as("name.test")] {
        let addresses = vec!["127.0.0.1/32".parse().unwrap()];
        let caller = Caller::new(&client, vec![HttpGrant { addresses, ..grant(&url) }]);
        assert_eq!(caller.get(&url).unwrap().status, 200, "{url}");
    }
    assert!(through.seen().is_nothing());
}

#[test]
fn private_addresses_are_refused_before_the_proxy() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[
        ("private.test", &[&["10.0.0.1"]]),
        ("metadata.test", &[&["169.254.169.254"]]),
        ("mixed.test", &[&["93.184.215.14", "192.168.0.1"]]),
    ]);
    let through = Server::start(Behaviour::Proxy(server.address()));
    let client = client(&dns, proxy(&through).into());
    for host in ["private.test", "metadata.test", "mixed.test"] {
        for pattern in [format!("http://{host}/**"), "http://*/**".to_owned()] {
            let caller = Caller::new(&client, vec![grant(&pattern)]);
            let (kind, reason) = caller.refused(&format!("http://{host}/"));
            assert_eq!(kind, RefusalKind::Address, "{reason}");
        }
    }
    assert!(through.seen().is_nothing());
}

#[test]
fn proxied_redirects_are_checked_at_each_hop() {
    let server = Server::start(Behaviour::Redirects);
    let dns = Dns::of(&[("start.test", &[&["93.184.215.14"]]), ("inside.test", &[&["10.0.0.1"]])]);
    let through = Server::start(Behaviour::Proxy(server.address()));
    for rules in [proxy(&through).into(), resolving(&through)] {
        let by_name = rules == resolving(&through);
        let client = client(&dns, rules);
        let following = |url: &str| HttpGrant { follow: 3, ..grant(url) };
        // Every host is granted, so that only the address refuses the second hop.
        let grants = vec![following("http://start.test/**"), following("http://*/**")];
        let caller = Caller::new(&client, grants);
        let count = targets(&through).len();
        let (kind, _) = caller.refused("http://start.test/to/302?http://inside.test/");
        assert_eq!(kind, RefusalKind::Address);
        let (kind, _) = caller.refused("http://start.test/to/302?http://10.0.0.1/");
        assert_eq!(kind, RefusalKind::Address);
        let host = if by_name { "start.test:80" } else { "93.184.215.14:80" };
        for target in &targets(&through)[count..] {
            assert_eq!(*target, format!("CONNECT {host}"));
        }
    }
}

#[test]
fn resolving_proxies_receive_only_granted_names() {
    let authority = Authority::new();
    let server =
        Server::start_tls(Behaviour::Echo, &authority.certificate(&["name.test", "www.name.test"]));
    // No DNS server knows the name.
    let dns = Dns::of(&[]);
    let through = Server::start(Behaviour::Proxy(server.address()));
    let client = Client::new(ClientOptions {
        roots: trusting(&authority),
        nameservers: Nameservers::These(vec![dns.address()]),
        proxies: resolving(&through),
        ..ClientOptions::default()
    });
    let url = server.url_as("name.test");
    let caller = Caller::new(&client, vec![grant(&url)]);
    for _ in 0..2 {
        assert_eq!(caller.get(&url).unwrap().status, 200);
    }
    let expected = format!("CONNECT name.test:{}", server.port());
    // The second request reuses the connection of the first.
    assert_eq!(targets(&through), [&*expected]);
    assert_eq!(server.seen().requests[0].header("host"), None);
    // Grants of the names below a domain also name the host.
    let below = format!("https://*.name.test:{}", server.port());
    let url = server.url_as("www.name.test");
    assert_eq!(Caller::new(&client, vec![grant(&below)]).get(&url).unwrap().status, 200);
}

#[test]
fn grants_of_every_host_are_resolved_locally() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("public.test", &[&["93.184.215.14"]]), ("inside.test", &[&["10.0.0.1"]])]);
    let through = Server::start(Behaviour::Proxy(server.address()));
    let client = client(&dns, resolving(&through));
    let caller = Caller::new(&client, vec![grant("http://*/**")]);
    assert_eq!(caller.get("http://public.test/").unwrap().status, 200);
    assert_eq!(targets(&through), ["CONNECT 93.184.215.14:80"]);
    assert_eq!(caller.refused("http://inside.test/").0, RefusalKind::Address);
    assert!(matches!(caller.get("http://nowhere.test/"), Err(RequestError::Name { .. })));
    // A grant of every host does not use a connection whose name the proxy resolved.
    let both = vec![grant("http://inside.test/a/**"), grant("http://*/**")];
    let both = Caller::new(&client, both);
    assert_eq!(both.get("http://inside.test/a/").unwrap().status, 200);
    assert_eq!(both.refused("http://inside.test/b/").0, RefusalKind::Address);
    let expected = ["CONNECT 93.184.215.14:80", "CONNECT inside.test:80"];
    assert_eq!(targets(&through), expected);
}

#[test]
fn resolving_proxies_receive_no_denied_or_local_names() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("name.test", &[&["93.184.215.14"]]), ("denied.test", &[&["10.0.0.1"]])]);
    let through = Server::start(Behaviour::Proxy(server.address()));
    let client = client(&dns, resolving(&through));
    // While any address is denied, all names are resolved locally.
    let names = || vec![grant("http://name.test/**"), grant("http://denied.test/**")];
    let caller = Caller::denied(&client, names(), &["http://10.0.0.1"]);
    assert_eq!(caller.get("http://name.test/").unwrap().status, 200);
    assert_eq!(caller.refused("http://denied.test/").0, RefusalKind::Address);
    let caller = Caller::denied(&client, names(), &["http://denied.test"]);
    assert_eq!(caller.refused("http://denied.test/").0, RefusalKind::Host);
    assert_eq!(targets(&through), ["CONNECT 93.184.215.14:80"]);
    // Names of this machine never reach the proxy.
    let local = server.url_as("localhost");
    assert_eq!(Caller::new(&client, vec![grant(&local)]).get(&local).unwrap().status, 200);
    assert_eq!(targets(&through).len(), 1);
}

#[test]
fn no_proxy_does_not_skip_the_address_check() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("inside.test", &[&["127.0.0.1"]]), ("private.test", &[&["10.0.0.1"]])]);
    let through = Server::start(Behaviour::Proxy(server.address()));
    for value in ["*", "inside.test,private.test", ".test", "10.0.0.0/8,127.0.0.0/8"] {
        let (direct, unknown) = Direct::read_variable(value);
        assert!(unknown.is_empty());
        for resolves in [false, true] {
            let direct = direct.clone();
            let client = client(&dns, ProxyRules { direct, resolves, ..proxy(&through).into() });
            for host in ["inside.test", "private.test"] {
                let is_by_address = value.contains('/');
                if resolves && is_by_address {
                    continue;
                }
                let url = format!("http://{host}:{}/", server.port());
                let caller = Caller::new(&client, vec![any_method(&url)]);
                assert_eq!(caller.refused(&url).0, RefusalKind::Address, "{value} {url}");
            }
        }
    }
    assert!(through.seen().is_nothing() && server.seen().is_nothing());
}

#[test]
fn errors_of_a_proxy_show_no_credentials() {
    let dns = Dns::of(&[("name.test", &[&["93.184.215.14"]])]);
    let answers: [&[u8]; 3] = [
        b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 502 ada:hunter2\r\nContent-Length: 0\r\n\r\n",
        b"not HTTP\r\n\r\n",
    ];
    for answer in answers {
        let through = Server::start(Behaviour::Raw(answer.to_vec()));
        let text = format!("http://ada:hunter2@{}", through.address());
        for resolves in [false, true] {
            let rules = ProxyRules { resolves, ..text.parse::<Proxy>().unwrap().into() };
            let caller =
                Caller::new(&client(&dns, rules.clone()), vec![grant("http://name.test/**")]);
            let error = caller.get("http://name.test/").unwrap_err();
            let failed = caller.requests.take_unconnected();
            let shown = format!("{error} {error:?} {failed:?} {rules} {rules:?}");
            for part in ["hunter2", "ada", "YWRhOmh1bnRlcjI="] {
                assert!(!shown.contains(part), "{shown}");
            }
            let reason = error.to_string();
            let start =
                format!("the proxy `http://{}` did not open a connection to ", through.address());
            assert!(reason.starts_with(&start), "{reason}");
            let (is_of_proxy, is_of_name) = (true, false);
            assert_eq!(failed, [FailedConnection { reason, is_of_proxy, is_of_name }]);
        }
    }
}

#[test]
fn each_scheme_uses_its_proxy() {
    let server = Server::start(Behaviour::Echo);
    let dns = Dns::of(&[("name.test", &[&["93.184.215.14"]])]);
    let through = Server::start(Behaviour::Proxy(server.address()));
    let rules = ProxyRules { http: Some(proxy(&through)), ..ProxyRules::default() };
    let caller = Caller::new(&client(&dns, rules), vec![grant("http://name.test/**")]);
    assert_eq!(caller.get("http://name.test/").unwrap().status, 200);
    assert_eq!(targets(&through), ["CONNECT 93.184.215.14:80"]);
}
