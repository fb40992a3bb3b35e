//! Secrets and their store, in the user's own file.

use kitbag_fs_guard::{EntryChange, locate};

use crate::support::{Fixture, check_problems_of, check_rows};

fn user(config: &str) -> Fixture {
    Fixture::new("").user(config)
}

#[test]
fn a_secret_has_a_source_and_places() {
    let fixture = user(
        "[secrets.github]\nto = [\"https://api.github.com/**\"]\n\
         [secrets.mail]\nto = [\"https://mail.example.com/**\", \"http://localhost:8025/**\"]\n\
         as = { basic = \"ada\" }\ncommand = [\"pass\", \"show\", \"mail\"]\n\
         [secrets.bot]\nto = [\"https://*.example.org/**\"]\nwildcard = true\n\
         as = { header = \"Authorization\", prefix = \"Bot \" }\nvariable = \"BOT_TOKEN\"\n\
         placeholder = [\"query\", \"body\"]\n",
    );
    check_rows(
        &fixture,
        "secrets",
        &[
            r#"secrets.bot.variable = "BOT_TOKEN" # /t/h/config.toml:11:12"#,
            r#"secrets.bot.to = ["https://*.example.org/**"] # /t/h/config.toml:8:6"#,
            r#"secrets.bot.as = {"header":"authorization","prefix":"Bot "} # /t/h/config.toml:10:6"#,
            r#"secrets.bot.placeholder = ["query","body"] # /t/h/config.toml:12:15"#,
            r#"secrets.github.to = ["https://api.github.com/**"] # /t/h/config.toml:2:6"#,
            r#"secrets.github.as = "bearer" # default"#,
            r#"secrets.github.placeholder = [] # default"#,
            r#"secrets.mail.command = ["pass","show","mail"] # /t/h/config.toml:6:11"#,
            r#"secrets.mail.to = ["https://mail.example.com/**","http://localhost:8025/**"] # /t/h/config.toml:4:6"#,
            r#"secrets.mail.as = {"basic":"ada"} # /t/h/config.toml:5:6"#,
            r#"secrets.mail.placeholder = [] # default"#,
        ],
    );
}

#[test]
fn a_workspace_says_neither_where_a_secret_goes_nor_what_keeps_it() {
    let fixture = Fixture::new(
        "[secrets.github]\nto = [\"https://evil.example/**\"]\n[secret_store]\nkind = \"key-file\"\n",
    )
    .user("[secrets.github]\nto = [\"https://api.github.com/**\"]\n");
    check_problems_of(
        &fixture,
        &[
            "C:1:2: `secrets` has no place in a workspace's file: only your own \
             `/t/h/config.toml` may hold it; remove it",
            "C:3:2: `secret_store` has no place in a workspace's file: only your own \
             `/t/h/config.toml` may hold it; remove it",
        ],
    );
}

#[test]
fn what_a_secret_cannot_be_is_named() {
    let fixture = user(
        "[secrets.\"a b\"]\n\
         [secrets.plain]\nto = [\"http://example.com/**\"]\n\
         [secrets.wide]\nto = [\"https://*.example.com/**\", \"api.example.com\"]\n\
         [secrets.two]\nvariable = \"A\"\ncommand = [\"b\"]\n\
         [secrets.none]\ncommand = []\n\
         [secret_store]\nfile = \"secrets.age\"\n",
    );
    check_problems_of(
        &fixture,
        &[
            "/t/h/config.toml:1:10: `a b` is not the name of a secret: it takes letters, digits, \
             `_` and `-`, does not start with `-`, and has at most 64 characters",
            "/t/h/config.toml:3:7: `http://example.com/**` would send it unencrypted; a secret \
             goes by `https`, or to this machine",
            "/t/h/config.toml:5:7: `https://*.example.com/**` has more than one host; name each, \
             or add `wildcard = true`",
            "/t/h/config.toml:5:35: `api.example.com` is not a pattern of URLs: it must start with \
             `https://` or `http://`",
            "/t/h/config.toml:7:12: a secret has `variable` or `command`, not both",
            "/t/h/config.toml:10:11: `command` is empty",
            "/t/h/config.toml:12:8: `secrets.age` is relative; write an absolute path, or one that \
             starts with `~/`",
        ],
    );
}

#[test]
fn how_a_secret_is_added_is_checked() {
    let check = |placement: &str, expected: &str| {
        let fixture = user(&format!("[secrets.a]\nas = {placement}\n"));
        check_problems_of(&fixture, &[&format!("/t/h/config.toml:2:6: {expected}")]);
    };
    check(
        "\"cookie\"",
        "`cookie` says nothing of how a secret is added: write `bearer`, `basic`, or a table",
    );
    check("{}", "a secret is added by one of `basic`, `header`, `query` and `path`");
    check(
        "{ header = \"a\", query = \"b\" }",
        "a secret is added by one of `basic`, `header`, `query` and `path`",
    );
    check("{ query = \"a\", prefix = \"b\" }", "`prefix` belongs to `header`");
    check(
        "{ header = \"Host\" }",
        "the header `host` says how a request is sent and holds no secret",
    );
}

#[test]
fn the_store_is_beside_what_belongs_to_kitbag() {
    let fixture = user("[secret_store]\nkind = \"key-file\"\n");
    check_rows(
        &fixture,
        "secret_store",
        &[
            r#"secret_store.kind = "key-file" # /t/h/config.toml:2:8"#,
            r#"secret_store.key_file = "/t/h/secrets.key" # default"#,
        ],
    );
    let fixture = user(
        "[secret_store]\nkind = \"passphrase\"\nfile = \"~/kept.age\"\n\
         passphrase_command = [\"pass\", \"show\", \"kitbag\"]\n",
    );
    check_rows(
        &fixture,
        "secret_store",
        &[
            r#"secret_store.kind = "passphrase" # /t/h/config.toml:2:8"#,
            r#"secret_store.file = "/t/h/kept.age" # /t/h/config.toml:3:8"#,
            r#"secret_store.passphrase_command = ["pass","show","kitbag"] # /t/h/config.toml:4:22"#,
        ],
    );
    let fixture = user("[secret_store]\nkind = \"keyring\"\nfile = \"~/kept.age\"\n");
    let kind = r#"secret_store.kind = "keyring" # /t/h/config.toml:2:8"#;
    check_rows(&fixture, "secret_store", &[kind]);
    check_rows(&user(""), "secret_store", &[]);
}

/// What a tool gets of secrets, and then what there is to warn of.
fn granted(fixture: &Fixture) -> Vec<String> {
    let config = fixture.load();
    let grants = &config.tools["learn"].grants;
    let secrets = grants.value.secrets.iter().map(ToString::to_string);
    let warnings = grants.warnings.iter();
    let warnings = warnings.map(|it| fixture.redact(&format!("{}: {}", it.place, it.message)));
    secrets.chain(warnings).collect()
}

const OWN: &str = "[secrets.github]\nto = [\"https://api.github.com/**\"]\n";

#[test]
fn a_tool_gets_a_secret_by_its_name() {
    let fixture = user(&format!(
        "{OWN}[secrets.mail]\n[tools.learn.grants]\n\
         secrets = {{ github = {{ to = [\"https://api.github.com/repos/**\"] }}, none = {{}} }}\n\
         env = [{{ name = \"GITHUB_TOKEN\", secret = \"github\" }}, \
         {{ name = \"MAIL_TOKEN\", secret = \"mail\" }}]\n",
    ));
    assert_eq!(
        granted(&fixture),
        [
            "secret github → https://api.github.com/repos/**, as bearer, env GITHUB_TOKEN",
            "secret mail → nowhere, env MAIL_TOKEN",
            "/t/h/config.toml:5:68: there is no secret `none`; keep one with `kitbag secret set \
             none --to 'https://…'`",
        ]
    );
}

#[test]
fn a_workspace_names_secrets_within_the_ceiling_and_narrows_their_places() {
    let workspace = "[tools.learn.grants]\n\
                     secrets = { github = { to = [\"https://evil.example/**\"] } }\n\
                     env = [{ name = \"TOKEN\", secret = \"github\" }]\n";
    let beyond = |place: &str| {
        format!(
            ".kitbag/config.toml:{place}: this grant does not count: what the files and components \
             of a workspace are granted counts only within `[ceiling.grants]` of your own file \
             (/t/h/config.toml:4:11); to allow it, have `[ceiling.grants]` in your own \
             `/t/h/config.toml` include `secrets = [\"github\"]`"
        )
    };
    let bound = format!("{OWN}[ceiling.grants]\nsecrets = []\n");
    let fixture = Fixture::new(workspace).user(&bound);
    assert_eq!(granted(&fixture), ["2:13", "3:8"].map(beyond));
    let ceiling = format!("{OWN}[ceiling.grants]\nsecrets = [\"github\"]\n");
    let config = Fixture::new(workspace).user(&ceiling).load();
    let [grant] = &*config.tools["learn"].grants.value.secrets else { panic!() };
    // It names its own place, which the user's file does not have.
    let goes_to = |url: &str| grant.goes_to(&kitbag_policy::HttpRequest::get(url).unwrap());
    assert!(!goes_to("https://evil.example/a") && !goes_to("https://api.github.com/a"));
}

#[test]
fn a_variable_with_a_secret_has_both_names() {
    let check = |env: &str, expected: &str| {
        let fixture = user(&format!("{OWN}[tools.learn.grants]\nenv = {env}\n"));
        assert!(fixture.problems().contains(expected), "{}", fixture.problems());
    };
    check("[{ name = \"A\" }]", "missing key `secret` in `tools.learn.grants.env[0]`");
    check(
        "[{ name = \"A\", secret = \"github\", to = \"x\" }]",
        "unknown key `to` in `tools.learn.grants.env[0]`",
    );
    check("[{ name = \"A-B\", secret = \"github\" }]", "`A-B` is not the exact name of a variable");
    check("[{ name = \"A\", secret = \"a b\" }]", "`a b` is not the name of a secret");
    check("[\"A\", { name = \"A\", secret = \"github\" }]", "`A` is listed twice");
    check("[1]", "`tools.learn.grants.env[0]` takes a string or a table");
}

#[test]
fn a_false_positive_is_allowed_by_fingerprint_or_rule_with_its_reason() {
    let fixture = user(
        "[[allow_leak]]\nfingerprint = \"9F86d081884c7d65\"\nreason = \" a public token \"\n\
         [[allow_leak]]\nrule = \"json-web-token\"\nreason = \"every tool logs in\"\n",
    );
    check_rows(
        &fixture,
        "allow_leak",
        &[concat!(
            r#"allow_leak = [{"fingerprint":"9f86d081884c7d65","reason":"a public token"},"#,
            r#"{"rule":"json-web-token","reason":"every tool logs in"}] # /t/h/config.toml:1:1"#
        )],
    );
}

#[test]
fn an_allowed_leak_says_what_it_means_and_why() {
    let check = |entry: &str, expected: &str| {
        let fixture = user(&format!("[[allow_leak]]\n{entry}\n"));
        check_problems_of(&fixture, &[&format!("/t/h/config.toml:{expected}")]);
    };
    let reason = "an allowed leak has a `reason`, which is not empty: why it is no key or token";
    let one = "an allowed leak has one of `fingerprint` and `rule`";
    check("fingerprint = \"9f86d081884c7d65\"", &format!("1:1: {reason}"));
    check("fingerprint = \"9f86d081884c7d65\"\nreason = \" \"", &format!("1:1: {reason}"));
    check("reason = \"a\"", &format!("1:1: {one}"));
    let both = "fingerprint = \"9f86d081884c7d65\"\nrule = \"npm-token\"\nreason = \"a\"";
    check(both, &format!("1:1: {one}"));
    check(
        "fingerprint = \"9f86\"\nreason = \"a\"",
        "2:15: a fingerprint is the 16 digits that the message about the finding names it by",
    );
    check(
        "rule = \"npm-tokens\"\nreason = \"a\"",
        "2:8: `npm-tokens` is no rule of leak detection; a message about a finding names its \
         rule; did you mean `npm-token`?",
    );
}

#[test]
fn a_workspace_allows_no_leak() {
    let fixture =
        Fixture::new("[[allow_leak]]\nfingerprint = \"9f86d081884c7d65\"\nreason = \"trust me\"\n");
    check_problems_of(
        &fixture,
        &["C:1:3: `allow_leak` has no place in a workspace's file: only your own \
           `/t/h/config.toml` may hold it; remove it"],
    );
}

#[test]
fn a_program_of_the_workspace_gives_no_secret() {
    let check = |program: &str, is_fine: bool| {
        let own = format!("[secrets.s]\ncommand = [\"{program}\"]\n");
        let loaded = Fixture::empty().user(&own).try_load();
        assert_eq!(loaded.is_ok(), is_fine, "{program}");
    };
    check("pass", true);
    check("/usr/bin/pass", true);
    check("./pass", false);
    check("tools/pass", false);
}

#[test]
fn a_place_that_the_secret_does_not_have_is_left_out_with_a_warning() {
    let fixture = Fixture::new("").user(
        "[secrets.s]\nvariable = \"S\"\nto = [\"https://a.example/x/**\"]\n\
         [tools.learn.grants.secrets.s]\nto = [\"https://a.example/x/y\", \"https://b.example/**\"]\n",
    );
    let config = fixture.load();
    let grants = &config.tools["learn"].grants;
    let within = grants.value.secrets[0].within.as_ref().unwrap();
    assert_eq!(
        within.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["https://a.example/x/y"]
    );
    let warnings: Vec<_> = grants.warnings.iter().map(|it| it.message.clone()).collect();
    assert!(warnings[0].contains("does not go to `https://b.example/**`"), "{warnings:?}");
}

#[test]
fn the_programs_that_keep_secrets_are_not_changed_by_tools() {
    let fixture = Fixture::empty()
        .file("w/bin/get-token", "")
        .file("w/bin/script", "")
        .file("w/bin/other", "")
        .directory("w/data")
        .link("w/bin/pass", "get-pass")
        .file("w/bin/get-pass", "");
    let at = |path: &str| format!("{:?}", fixture.path(path));
    let user = format!(
        "[secrets.a]\ncommand = [{}, \"other\"]\n\
         [secrets.b]\ncommand = [\"sh\", {}, {}, \"/nowhere\"]\n\
         [secret_store]\nkind = \"passphrase\"\npassphrase_command = [{}]\n",
        at("w/bin/get-token"),
        at("w/bin/script"),
        at("w/data"),
        at("w/bin/pass"),
    );
    let fixture = fixture.user(&user);
    let id = |path: &str| locate(&fixture.path(path)).unwrap().id();
    let table =
        fixture.load().guard().table(&[kitbag_fs_guard::Writable::new(fixture.path("w"), id("w"))]);
    let check = |parent: &str, name: &str, expected: [bool; 3]| {
        let found = Some(id(&format!("{parent}/{name}")));
        let changes = [EntryChange::Put, EntryChange::Remove, EntryChange::Content];
        let forbidden = changes.map(|change| table.forbids(id(parent), name, found, change));
        assert_eq!(forbidden, expected, "{parent}/{name}");
    };
    check("w/bin", "get-token", [true; 3]);
    check("w/bin", "get-pass", [true; 3]);
    check("w/bin", "pass", [true; 3]);
    check("w/bin", "script", [true; 3]);
    check("w", "bin", [true, true, false]);
    check("w/bin", "other", [false; 3]);
    // A directory that is an argument is not sealed.
    check("w", "data", [false; 3]);
}
