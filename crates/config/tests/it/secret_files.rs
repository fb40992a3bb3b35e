//! Names of files that look like secrets.

use crate::support::{Fixture, check_rows};

#[test]
fn layers_add_names_and_the_user_config_removes_names() {
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
