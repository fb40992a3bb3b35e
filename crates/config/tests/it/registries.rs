//! `[registry]` and `[registries]`, in the user config.

use kitbag_config::AcceptedSigner;

use crate::support::Fixture;

/// A P-256 key.
const KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEVaTNcq4k7MmpNEvNU0k229lCKuwA\n\
    BhlEDLE+E6reiNfO15iF5CPr616D8dSBqJ6Gc2X8f5I2mb6RdDYLRgELgQ==\n\
    -----END PUBLIC KEY-----\n";

fn user(config: &str) -> Fixture {
    Fixture::new("").user(config).file("h/org.pub", KEY).file("h/text", "hello")
}

#[test]
fn rules_match_hosts_and_repositories() {
    let fixture = user(
        "[registries.\"ghcr.io\"]\nprivate = false\n\
         [registries.\"ghcr.io/org/*\"]\nsigned-by = [\"~/org.pub\"]\n\
         [registries.\"*.example.com/**\"]\nsigned_by = [{ identity = \"a\", issuer = \"b\" }]\n",
    );
    let config = fixture.load();
    let matching = |name: &str| {
        let rules = config.registries.rules_of(name).map(|rule| rule.pattern.clone());
        rules.collect::<Vec<_>>()
    };
    assert_eq!(matching("ghcr.io/org/tool"), ["ghcr.io", "ghcr.io/org/*"]);
    assert_eq!(matching("ghcr.io/org/a/tool"), ["ghcr.io"]);
    assert_eq!(matching("ghcr.io:5000/org/tool"), Vec::<String>::new());
    assert_eq!(matching("a.example.com/b/c"), ["*.example.com/**"]);
    let signers = |at: usize| config.registries.rules[at].signed_by.clone().unwrap().value;
    assert!(matches!(&signers(1)[..], [AcceptedSigner::Key(key)] if key.bytes.len() == 91));
    let identity = AcceptedSigner::Identity { identity: "a".into(), issuer: "b".into() };
    assert_eq!(signers(2), [identity]);
}

#[test]
fn mistakes_in_registries_are_reported() {
    let check = |config: &str, expected: &str| {
        let problems = user(config).problems();
        assert!(problems.contains(expected), "{config}: {problems}");
    };
    let rule = |line: &str| format!("[registries.\"a.example\"]\n{line}\n");
    check(&rule("signed_by = [\"~/absent.pub\"]"), "cannot be used");
    check(&rule("signed_by = [\"~/text\"]"), "contains no public key in PEM");
    check(&rule("signed_by = [\"org.pub\"]"), "org.pub");
    check(&rule("signed_by = []"), "names no signer");
    check(&rule("signed_by = [{ identity = \"a\" }]"), "needs `identity` and `issuer`");
    check(&rule("plain_http = true"), "with `private = true` only");
    check(&rule("username = \"ada\""), "`username` needs `secret`");
    check(&rule("username = \"ada\"\nsecret = \"none\""), "no secret is named `none`");
    check(&rule("signedby = 1"), "unknown key `signedby`");
    let anywhere = "[secrets.a]\n[registries.\"*\"]\nusername = \"ada\"\nsecret = \"a\"\n";
    check(anywhere, "write its host without `*`");
    check("[registries.\"https://a.example\"]\n", "a pattern has no scheme");
    check("[registry]\npackages = \"https://a.example\"\n", "is not the host of a registry");
    check("[registry]\nindex = \"tools.json\"\n", "tools.json");
}

#[test]
fn only_the_user_config_has_registries() {
    for table in ["registries.\"a.example\"", "registry"] {
        let problems = Fixture::new(&format!("[{table}]\n")).user("").problems();
        let key = table.split('.').next().unwrap();
        let expected = format!("a workspace may not set `{key}`");
        assert!(problems.contains(&expected), "{problems}");
    }
}
