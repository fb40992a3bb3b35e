//! What looks like a secret.

use crate::support::{Fixture, check_problems_of, check_rows};

#[test]
fn every_layer_adds_names_and_the_users_own_file_takes_some_away() {
    let fixture = Fixture::new("[secret_files]\nnames = [\"*.tfstate\"]\n")
        .user("[secret_files]\nnames = [\"vault.*\"]\nexcept = [\".npmrc\"]\n");
    check_rows(
        &fixture,
        "secret_files",
        &[
            r#"secret_files.names = ["vault.*","*.tfstate"] # .kitbag/config.toml:2:9"#,
            r#"secret_files.except = [".npmrc"] # /t/h/config.toml:3:10"#,
        ],
    );
    let guard = fixture.load().guard();
    for (name, expected) in
        [("a.TFSTATE", true), ("vault.md", true), (".env", true), (".npmrc", false)]
    {
        assert_eq!(guard.secrets().matches(name), expected, "{name}");
    }
}

#[test]
fn a_workspace_takes_no_name_away() {
    let fixture = Fixture::new("[secret_files]\nexcept = [\"*\"]\n").user("");
    check_problems_of(
        &fixture,
        &[
            "C:2:10: `secret_files.except` has no place in a workspace's file: only your user config \
           `/t/h/config.toml` may hold it; remove it",
        ],
    );
}

#[test]
fn names_and_what_a_grant_includes_are_globs() {
    let fixture = Fixture::new(
        "[secret_files]\nnames = [\"a**\"]\n[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n\
         grants.filesystem = [{ host = \".\", guest = \"/w\", include = [\"ok/*\", \"[\"] }]\n",
    );
    check_problems_of(
        &fixture,
        &[
            "C:2:10: `a**` is not a glob: recursive wildcards must form a single path component",
            "C:6:69: `[` is not a glob: invalid range pattern",
        ],
    );
}

#[test]
fn what_a_grant_includes_is_part_of_it() {
    let fixture = Fixture::new(
        "[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n\
         grants.filesystem = [{ host = \".\", guest = \"/w\", include = [\".env\"] }]\n",
    );
    check_rows(
        &fixture,
        "tools.t.grants",
        &[
            r#"tools.t.grants.filesystem = [{"host":"/t/w","guest":"/w","mode":"ro","include":[".env"]}] # .kitbag/config.toml:4:21"#,
        ],
    );
    let lines = fixture.load().tools["t"].grants.value.lines(&[]);
    assert_eq!(fixture.redact(&lines[0]), "ro  /w ← /t/w, with .env");
}
