//! The connections of tools, in the user config.

use kitbag_fs_guard::{EntryChange, locate};

use crate::support::{Fixture, check_problems_of, check_rows};

/// The certificate of an authority, and the certificate of a server, which is not an authority.
const AUTHORITY: &str = include_str!("network/authority.pem");

fn user(config: &str) -> Fixture {
    Fixture::new("").user(config)
}

#[test]
fn connections_use_no_proxy_and_system_roots_by_default() {
    let fixture = Fixture::new("").user("");
    let config = fixture.load();
    assert_eq!(config.network, kitbag_config::Network::default());
    check_rows(&fixture, "network", &[]);
}

#[test]
fn the_user_config_names_the_proxy_and_its_exceptions() {
    let fixture = user(
        "[network]\nproxy = \"http://ada:hunter2@proxy.example.com:3128\"\n\
         no_proxy = [\"*.internal.example.com\", \"10.0.0.0/8\"]\n",
    );
    check_rows(
        &fixture,
        "network",
        &[
            r#"network.proxy = "http://proxy.example.com:3128" # /t/h/config.toml:2:9"#,
            r#"network.no_proxy = ["*.internal.example.com","10.0.0.0/8"] # /t/h/config.toml:2:9"#,
            r#"network.resolve = "kitbag" # default"#,
        ],
    );
    let config = fixture.load();
    let proxies = &config.network.proxies.as_ref().unwrap().value;
    let credentials = Some((&b"ada"[..], &b"hunter2"[..]));
    assert_eq!(proxies.http.as_ref().unwrap().credentials(), credentials);
    assert_eq!(proxies.http, proxies.https);
    assert!(!format!("{proxies:?}").contains("hunter2"));
    assert!(!config.network.proxy_resolves());
}

/// Checks the rows of `[network]` with these variables and this user config.
fn check_environment<const N: usize>(
    config: &str,
    variables: [(&str, &str); N],
    expected: &[&str],
) -> kitbag_config::Config {
    let variables = variables.map(|(name, value)| (name, value.as_bytes()));
    let fixture = user(config).variables(variables);
    check_rows(&fixture, "network", expected);
    fixture.load()
}

#[test]
fn environment_proxies_are_used_if_configured() {
    let config = "[network]\nproxy = \"environment\"\n";
    let both = [
        r#"network.proxy = "http://one:1 for http, http://two:2 for https" # /t/h/config.toml:2:9"#,
        r#"network.no_proxy = [".a.test","10.0.0.0/8"] # /t/h/config.toml:2:9"#,
        r#"network.resolve = "kitbag" # default"#,
    ];
    let variables = [
        ("HTTP_PROXY", "http://one:1"),
        ("HTTPS_PROXY", "http://ada:hunter2@two:2"),
        ("NO_PROXY", "a.test, 10.0.0.0/8"),
    ];
    let loaded = check_environment(config, variables, &both);
    assert_eq!(loaded.network.ignored_proxy, None);
    assert!(!format!("{:?}", loaded.network).contains("hunter2"));
    let row = |proxy: &str| {
        let proxy = format!(r#"network.proxy = "{proxy}" # /t/h/config.toml:2:9"#);
        [proxy, r#"network.resolve = "kitbag" # default"#.to_owned()]
    };
    let check = |variables: [(&str, &str); 3], proxy: &str| {
        let rows = row(proxy);
        let rows: Vec<_> = rows.iter().map(String::as_str).collect();
        check_environment(config, variables, &rows);
    };
    // Lower case is read first, an empty value is ignored, and `ALL_PROXY` is the last.
    let variables = [("https_proxy", "low:1"), ("HTTPS_PROXY", "high:2"), ("http_proxy", "low:1")];
    check(variables, "http://low:1");
    let variables = [("https_proxy", ""), ("HTTPS_PROXY", "high:2"), ("ALL_PROXY", "all:3")];
    check(variables, "http://all:3 for http, http://high:2 for https");
    check([("ALL_PROXY", "all:3"), ("A", ""), ("B", "")], "http://all:3");
    // A client of a web server controls this variable.
    let variables = [("HTTP_PROXY", "evil:1"), ("REQUEST_METHOD", "GET"), ("HTTPS_PROXY", "b:2")];
    check(variables, "http://b:2 for https");
    check([("A", ""), ("B", ""), ("C", "")], "none");
}

#[test]
fn unused_environment_proxies_are_recorded() {
    let check = |config: &str, variable: (&str, &str), expected: Option<&str>| {
        let variables = [(variable.0, variable.1.as_bytes())];
        let loaded = user(config).variables(variables).load();
        assert_eq!(loaded.network.ignored_proxy, expected, "{config} {variable:?}");
    };
    let proxy = "http://ada:hunter2@one:1";
    check("", ("HTTPS_PROXY", proxy), Some("HTTPS_PROXY"));
    check("", ("http_proxy", proxy), Some("http_proxy"));
    check("", ("ALL_PROXY", proxy), Some("ALL_PROXY"));
    check("", ("HTTPS_PROXY", ""), None);
    check("", ("NO_PROXY", "*"), None);
    check("[network]\nroots = []\n", ("HTTPS_PROXY", proxy), Some("HTTPS_PROXY"));
    check("[network]\nproxy = \"http://own:1\"\n", ("HTTPS_PROXY", proxy), None);
    check("[network]\nproxy = \"environment\"\n", ("HTTPS_PROXY", proxy), None);
    let loaded = Fixture::new("").variables([("HTTPS_PROXY", proxy.as_bytes())]).load();
    assert_eq!(loaded.network.ignored_proxy, Some("HTTPS_PROXY"));
}

#[test]
fn variables_with_unusable_proxies_are_refused_by_name() {
    for value in ["https://ada:hunter2@two:2", "socks5://ada:hunter2@two", "http://", "a b"] {
        let fixture = user("[network]\nproxy = \"environment\"\n")
            .variables([("HTTPS_PROXY", value.as_bytes())]);
        let problems = fixture.shown();
        let expected = "/t/h/config.toml:2:9: kitbag cannot use the proxy in the variable \
                        `HTTPS_PROXY`: a proxy must be `http://HOST:PORT` or \
                        `http://USER:PASSWORD@HOST:PORT`";
        assert!(problems.starts_with(expected), "{value}: {problems}");
        assert!(!problems.contains("hunter2") && !problems.contains("ada"), "{problems}");
    }
    let fixture = user("[network]\nproxy = \"environment\"\n")
        .variables([("NO_PROXY", b"a.test,192.168.*"), ("HTTPS_PROXY", b"one:1")]);
    let warnings: Vec<_> = fixture.load().warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("`192.168.*` in the variable `NO_PROXY` is ignored"),
        "{warnings:?}"
    );
}

#[test]
fn a_proxy_resolves_names_if_configured() {
    let config = "[network]\nproxy = \"http://one:1\"\nresolve = \"proxy\"\n";
    let expected = [
        r#"network.proxy = "http://one:1" # /t/h/config.toml:2:9"#,
        r#"network.resolve = "proxy" # /t/h/config.toml:3:11"#,
    ];
    let loaded = check_environment(config, [("A", "")], &expected);
    assert!(loaded.network.proxy_resolves());
    assert!(loaded.network.proxies.unwrap().value.resolves);
    let config = "[network]\nproxy = \"environment\"\nresolve = \"proxy\"\n";
    assert!(!user(config).load().network.proxy_resolves(), "there is no proxy");
    check_problems_of(
        &user("[network]\nresolve = \"proxy\"\n"),
        &["/t/h/config.toml:2:11: `resolve = \"proxy\"` has no effect without `proxy`; add \
             `proxy`, or remove `resolve`"],
    );
    let kitbag = user("[network]\nresolve = \"kitbag\"\n").load();
    assert!(!kitbag.network.proxy_resolves());
}

#[test]
fn tools_cannot_change_additional_root_certificates() {
    let two = format!("{AUTHORITY}text between\n{AUTHORITY}");
    let fixture = user("[network]\nroots = [\"~/ca.pem\", \"~/two.pem\"]\n")
        .file("h/ca.pem", AUTHORITY)
        .file("h/two.pem", &two)
        .file("h/other.pem", &two);
    let rows = [r#"network.roots = ["/t/h/ca.pem","/t/h/two.pem"] # /t/h/config.toml:2:10"#];
    check_rows(&fixture, "network", &rows);
    let config = fixture.load();
    let roots: Vec<_> = config.network.roots.iter().map(|roots| &*roots.value.pem).collect();
    assert_eq!(roots, [AUTHORITY.as_bytes(), two.as_bytes()]);
    let id = |path: &str| locate(&fixture.path(path)).unwrap().id();
    let table = config.guard().table(&[kitbag_fs_guard::Writable::new(fixture.path("h"), id("h"))]);
    let forbids =
        |name: &str| table.forbids(id("h"), name, Some(id(&format!("h/{name}"))), EntryChange::Put);
    assert!(forbids("ca.pem") && forbids("two.pem") && !forbids("other.pem"));
}

#[test]
fn invalid_network_settings_are_errors_at_their_places() {
    let fixture = user(
        "[network]\nproxy = \"https://proxy.example.com\"\n\
         no_proxy = [\"http://a.example.com\", \"10.0.0.1/8\", 1]\n\
         roots = [\n\"ca.pem\",\n\"~/none.pem\",\n\"~\",\n\"~/key.pem\",\n\"~/broken.pem\",\n\
         \"~/empty.pem\",\n\"~/fifo\",\n]\nroot = 1\n",
    );
    let broken =
        format!("{AUTHORITY}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let fixture =
        fixture.file("h/key.pem", key).file("h/broken.pem", broken).file("h/empty.pem", "");
    let fifo = fixture.path("h/fifo");
    assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    let no_certificate =
        "contains no PEM certificate, which starts with `-----BEGIN CERTIFICATE-----`";
    check_problems_of(
        &fixture,
        &[
            "/t/h/config.toml:2:9: a proxy must be `http://HOST:PORT` or \
             `http://USER:PASSWORD@HOST:PORT`",
            "/t/h/config.toml:3:13: `http://a.example.com` is neither a host, such as `example.com` \
             or `*.example.com`, nor an address, nor a block such as `10.0.0.0/8`: \
             `http://a.example.com` is not a host name: use letters, digits, `-` and `_`, in labels of \
             at most 63",
            "/t/h/config.toml:3:37: `10.0.0.1/8` is neither a host, such as `example.com` or \
             `*.example.com`, nor an address, nor a block such as `10.0.0.0/8`",
            "/t/h/config.toml:3:51: `network.no_proxy[2]` takes a string, not the integer `1`",
            "/t/h/config.toml:5:1: `ca.pem` must be absolute or start with `~/`, because this file \
             applies to all workspaces",
            "/t/h/config.toml:6:1: the certificates in `/t/h/none.pem` cannot be used: cannot be read: \
             no such file or directory",
            "/t/h/config.toml:7:1: the certificates in `/t/h` cannot be used: is a directory, but \
             must be a file",
            &format!("/t/h/config.toml:8:1: `/t/h/key.pem` {no_certificate}"),
            "/t/h/config.toml:9:1: certificate 2 in `/t/h/broken.pem` cannot be used: \
             trailing data",
            &format!("/t/h/config.toml:10:1: `/t/h/empty.pem` {no_certificate}"),
            "/t/h/config.toml:11:1: the certificates in `/t/h/fifo` cannot be used: is not a regular file",
            "/t/h/config.toml:13:1: unknown key `root` in `network`; did you mean `roots`?",
        ],
    );
    check_problems_of(
        &user("[network]\nno_proxy = [\"a.example.com\"]\n"),
        &["/t/h/config.toml:2:12: `no_proxy` has no effect without `proxy`; add `proxy`, or \
             remove `no_proxy`"],
    );
}

#[test]
fn errors_do_not_show_the_password_of_a_proxy() {
    let errors = user("[network]\nproxy = \"htp://ada:hunter2@proxy.example.com:3128\"\n");
    let shown = errors.try_load().unwrap_err().to_string();
    assert!(shown.contains("config.toml:2:9: a proxy must be"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn root_certificates_in_writable_files_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = user("[network]\nroots = [\"~/ca.pem\"]\n").file("h/ca.pem", AUTHORITY);
    let mode = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(fixture.path("h/ca.pem"), mode).unwrap();
    let problems = fixture.problems();
    let expected = "/t/h/config.toml:2:10: the certificates in `/t/h/ca.pem` cannot be used: cannot be \
                    read: it is writable by every user";
    assert!(problems.starts_with(expected), "{problems}");
}
