//! The audit log, in the user's own file.

use crate::support::{Fixture, check_problems, check_problems_of, check_rows};

#[test]
fn calls_are_logged_by_default_and_without_their_arguments() {
    let fixture = Fixture::new("");
    check_rows(
        &fixture,
        "audit",
        &[
            "audit.enable = true # default",
            "audit.arguments = false # default",
            "audit.required = false # default",
            "audit.sync = \"batch\" # default",
            "audit.size = \"128 MiB\" # default",
        ],
    );
}

#[test]
fn the_users_own_file_sets_the_log_and_a_workspace_does_not() {
    let own = "[audit]\nenable = true\nsync = \"each\"\nsize = \"2GiB\"\nrequired = true\n";
    let fixture = Fixture::new("").user(own);
    check_rows(
        &fixture,
        "audit",
        &[
            "audit.enable = true # /t/h/config.toml:2:10",
            "audit.arguments = false # default",
            "audit.required = true # /t/h/config.toml:5:12",
            "audit.sync = \"each\" # /t/h/config.toml:3:8",
            "audit.size = \"2 GiB\" # /t/h/config.toml:4:8",
        ],
    );
    check_problems(
        "[audit]\nenable = false\n",
        &[
            "C:1:2: `audit` has no place in a workspace's file: only your user config `/t/h/config.toml` may \
           hold it; remove it",
        ],
    );
}

#[test]
fn mistakes_name_the_value_and_its_place() {
    check_problems_of(
        &Fixture::new("").user(
            "[audit]\nsync = \"often\"\nsize = \"100KiB\"\narguments = \"all\"\nrequire = true\n",
        ),
        &[
            "/t/h/config.toml:2:8: `audit.sync` takes `none`, `batch` or `each`, not `often`",
            "/t/h/config.toml:3:8: `audit.size` is `100 KiB`; the log needs at least `1 MiB`",
            "/t/h/config.toml:4:13: `audit.arguments` takes `true` or `false`, not the string `all`",
            "/t/h/config.toml:5:1: unknown key `require` in `audit`; did you mean `required`?",
        ],
    );
}
