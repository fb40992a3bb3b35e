//! Secrets and their store, in the user's own file.

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
    check_rows(&user(""), "secret_store", &[]);
}
