//! How connections of tools are made, in the user's own file.

use kitbag_files::{Change, locate};

use crate::support::{Fixture, check_problems_of, check_rows};

/// The certificate of an authority, and one of a server, which is none.
const AUTHORITY: &str = include_str!("network/authority.pem");

fn user(config: &str) -> Fixture {
    Fixture::new("").user(config)
}

#[test]
fn connections_go_through_no_proxy_by_default_and_trust_the_system() {
    let fixture = Fixture::new("").user("").variable("HTTPS_PROXY", "http://elsewhere:3128");
    let config = fixture.load();
    assert_eq!(config.network, kitbag_config::Network::default());
    check_rows(&fixture, "network", &[]);
}

#[test]
fn the_users_own_file_names_the_proxy_and_what_goes_without_it() {
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
        ],
    );
    let config = fixture.load();
    let proxy = &config.network.proxy.as_ref().unwrap().value;
    assert_eq!(proxy.credentials(), Some((&b"ada"[..], &b"hunter2"[..])));
    assert!(!format!("{proxy:?}").contains("hunter2"));
}

#[test]
fn own_roots_are_files_of_certificates_that_no_tool_changes() {
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
    let table = config.guard().table(&[kitbag_files::Writable::new(fixture.path("h"), id("h"))]);
    let forbids =
        |name: &str| table.forbids(id("h"), name, Some(id(&format!("h/{name}"))), Change::Put);
    assert!(forbids("ca.pem") && forbids("two.pem") && !forbids("other.pem"));
}

#[test]
fn what_connections_cannot_be_made_with_is_an_error_at_its_place() {
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
        "holds no certificate in PEM, which begins with `-----BEGIN CERTIFICATE-----`";
    check_problems_of(
        &fixture,
        &[
            "/t/h/config.toml:2:9: a proxy is written as `http://HOST:PORT` or \
             `http://USER:PASSWORD@HOST:PORT`",
            "/t/h/config.toml:3:13: `http://a.example.com` is neither a host, such as `example.com` \
             or `*.example.com`, nor an address, nor a block such as `10.0.0.0/8`: \
             `http://a.example.com` is not a host name: letters, digits, `-` and `_`, in labels of at \
             most 63",
            "/t/h/config.toml:3:37: `10.0.0.1/8` is neither a host, such as `example.com` or \
             `*.example.com`, nor an address, nor a block such as `10.0.0.0/8`",
            "/t/h/config.toml:3:51: `network.no_proxy[2]` takes a string, not the integer `1`",
            "/t/h/config.toml:5:1: `ca.pem` is relative, and this file is for all workspaces; write an \
             absolute path, or one that starts with `~/`",
            "/t/h/config.toml:6:1: the certificates in `/t/h/none.pem` cannot be used: cannot be read: \
             no such file or directory",
            "/t/h/config.toml:7:1: the certificates in `/t/h` cannot be used: is a directory; a file is \
             expected here",
            &format!("/t/h/config.toml:8:1: `/t/h/key.pem` {no_certificate}"),
            "/t/h/config.toml:9:1: certificate 2 in `/t/h/broken.pem` cannot be used: \
             TrailingData(SignedData)",
            &format!("/t/h/config.toml:10:1: `/t/h/empty.pem` {no_certificate}"),
            "/t/h/config.toml:11:1: the certificates in `/t/h/fifo` cannot be used: is not a regular file",
            "/t/h/config.toml:13:1: unknown key `root` in `network`; did you mean `roots`?",
        ],
    );
    check_problems_of(
        &user("[network]\nno_proxy = [\"a.example.com\"]\n"),
        &[
            "/t/h/config.toml:2:12: `no_proxy` means nothing without `proxy`; add that, or remove this",
        ],
    );
}

#[test]
fn an_error_shows_no_password_of_a_proxy() {
    let errors = user("[network]\nproxy = \"htp://ada:hunter2@proxy.example.com:3128\"\n");
    let shown = errors.try_load().unwrap_err().to_string();
    assert!(shown.contains("config.toml:2:9: a proxy is written as"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_file_that_others_can_write_is_trusted_for_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = user("[network]\nroots = [\"~/ca.pem\"]\n").file("h/ca.pem", AUTHORITY);
    let mode = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(fixture.path("h/ca.pem"), mode).unwrap();
    let problems = fixture.problems();
    let expected = "/t/h/config.toml:2:10: the certificates in `/t/h/ca.pem` cannot be used: cannot be \
                    read: it is writable by every user";
    assert!(problems.starts_with(expected), "{problems}");
}

#[test]
fn a_workspace_says_nothing_of_connections() {
    check_problems_of(
        &Fixture::new("[network]\nproxy = \"http://evil.example.com\"\nroots = [\"/w/ca.pem\"]\n")
            .user(""),
        &[
            "C:1:2: `network` has no place in a workspace's file: only your own `/t/h/config.toml` may \
           hold it; remove it",
        ],
    );
}
