//! Files that cannot be read.

use crate::support::{Fixture, check_problems_of};

#[test]
fn loading_does_not_wait_for_a_fifo() {
    let fixture = Fixture::empty();
    let path = fixture.path("w/.kitbag/config.toml");
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    check_problems_of(&fixture, &[".kitbag/config.toml: is not a regular file"]);
}

#[test]
fn a_named_user_config_must_exist() {
    let fixture = Fixture::empty().user("");
    std::fs::remove_file(fixture.path("h/config.toml")).unwrap();
    check_problems_of(&fixture, &["/t/h/config.toml: cannot be read: no such file or directory"]);
    // A variable names the file, even if it does not exist.
    let path = fixture.path("h/config.toml");
    let fixture = fixture.variable("KITBAG_CONFIG", path.to_str().unwrap());
    let named = "/t/h/config.toml: cannot be read: no such file or directory; `KITBAG_CONFIG` \
                 names it: correct or unset the variable, or create the file";
    check_problems_of(&fixture, &[named]);
    check_problems_of(&fixture.link("h/config.toml", "nowhere"), &[named]);
}

#[test]
fn a_file_over_one_mebibyte_is_refused() {
    let comment = |bytes: usize| format!("#{}", "x".repeat(bytes - 1));
    Fixture::new(&comment(1 << 20)).load();
    check_problems_of(
        &Fixture::new(&comment((1 << 20) + 1)),
        &[".kitbag/config.toml: is larger than the limit of 1 MiB"],
    );
}

#[test]
fn invalid_utf8_is_refused_at_its_place() {
    let fixture = Fixture::empty().file("w/.kitbag/config.toml", b"[limits]\n# w\xc3\xb6rt\xff\n");
    check_problems_of(&fixture, &["C:2:7: is not UTF-8 from here on; save the file as UTF-8"]);
}

#[test]
fn a_byte_order_mark_is_not_a_column() {
    check_problems_of(
        &Fixture::new("\u{feff}x = 1"),
        &[
            "C:1:1: unknown key `x` at the top level; known keys: `limits`, `secret_files`, `serve`, `toolsets`, `servers`, `tools`, `knowledge`",
        ],
    );
}

#[test]
fn targets_of_workspace_links_are_not_quoted() {
    let key = "AGE-SECRET-KEY-1NOTAREALONE";
    for link in ["w/.kitbag/config.toml", "w/.kitbag/tools/x.toml"] {
        let fixture = Fixture::empty()
            .file("h/secrets.key", key)
            .file("w/.kitbag/tools/x.wasm", "")
            .link(link, "/t/h/secrets.key");
        let target = fixture.path("h/secrets.key");
        let at = fixture.path(link);
        std::fs::remove_file(&at).unwrap();
        std::os::unix::fs::symlink(&target, &at).unwrap();
        let errors = fixture.try_load().unwrap_err().to_string();
        assert!(errors.contains(":1:28: there is a mistake here"), "{errors}");
        assert!(!errors.contains(key), "{errors}");
    }
}
