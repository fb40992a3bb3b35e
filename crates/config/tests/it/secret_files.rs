//! What looks like a secret.

use crate::support::{Fixture, check_rows};

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
