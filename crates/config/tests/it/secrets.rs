//! Secrets and their store, in the user config.

use kitbag_fs_guard::{EntryChange, locate};

use crate::support::Fixture;

/// Returns the granted secrets of a tool, followed by the warnings.
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
fn workspaces_name_secrets_within_the_ceiling() {
    let workspace = "[tools.learn.grants]\n\
                     secrets = { github = { to = [\"https://evil.example/**\"] } }\n\
                     env = [{ name = \"TOKEN\", secret = \"github\" }]\n";
    let beyond = |place: &str| {
        format!(
            ".kitbag/config.toml:{place}: this grant has no effect: a workspace may grant only \
             what `[ceiling.grants]` in your user config allows (/t/h/config.toml:4:11); to allow \
             it, let `[ceiling.grants]` in your user config `/t/h/config.toml` include `secrets = \
             [\"github\"]`"
        )
    };
    let bound = format!("{OWN}[ceiling.grants]\nsecrets = []\n");
    let fixture = Fixture::new(workspace).user(&bound);
    assert_eq!(granted(&fixture), ["2:13", "3:8"].map(beyond));
    let ceiling = format!("{OWN}[ceiling.grants]\nsecrets = [\"github\"]\n");
    let config = Fixture::new(workspace).user(&ceiling).load();
    let [grant] = &*config.tools["learn"].grants.value.secrets else { panic!() };
    // The workspace names a destination that the user config does not have.
    let goes_to = |url: &str| grant.goes_to(&kitbag_policy::HttpRequest::get(url).unwrap());
    assert!(!goes_to("https://evil.example/a") && !goes_to("https://api.github.com/a"));
}

#[test]
fn tools_cannot_change_programs_for_secrets() {
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
    // A directory among the arguments is not protected.
    check("w", "data", [false; 3]);
}
