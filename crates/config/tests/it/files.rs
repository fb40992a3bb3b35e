//! Files that cannot be read.

use crate::support::{Fixture, check_problems_of};

#[test]
fn a_fifo_is_not_waited_for() {
    let fixture = Fixture::empty();
    let path = fixture.path("w/.kitbag/config.toml");
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    check_problems_of(&fixture, &[".kitbag/config.toml: is not a regular file"]);
}

#[test]
fn the_own_file_of_a_person_must_be_there_when_it_is_named() {
    let fixture = Fixture::empty().user("");
    std::fs::remove_file(fixture.path("h/config.toml")).unwrap();
    check_problems_of(&fixture, &["/t/h/config.toml: cannot be read: no such file or directory"]);
    // A variable names it, also one that leads nowhere.
    let path = fixture.path("h/config.toml");
    let fixture = fixture.variable("KITBAG_CONFIG", path.to_str().unwrap());
    let named = "/t/h/config.toml: cannot be read: no such file or directory; `KITBAG_CONFIG` names \
                 it: correct that, make the file, or unset the variable";
    check_problems_of(&fixture, &[named]);
    check_problems_of(&fixture.link("h/config.toml", "nowhere"), &[named]);
}

#[test]
fn a_file_of_more_than_a_mebibyte_is_refused() {
    let comment = |bytes: usize| format!("#{}", "x".repeat(bytes - 1));
    Fixture::new(&comment(1 << 20)).load();
    check_problems_of(
        &Fixture::new(&comment((1 << 20) + 1)),
        &[".kitbag/config.toml: is larger than 1 MiB, which is the most that is read"],
    );
}

#[test]
fn a_file_that_is_not_utf8_is_refused_at_the_place() {
    let fixture = Fixture::empty().file("w/.kitbag/config.toml", b"[limits]\n# w\xc3\xb6rt\xff\n");
    check_problems_of(&fixture, &["C:2:7: is not UTF-8 from here on; save the file as UTF-8"]);
}

#[test]
fn a_byte_order_mark_is_no_column() {
    check_problems_of(
        &Fixture::new("\u{feff}x = 1"),
        &[
            "C:1:1: unknown key `x` at the top level; known keys: `limits`, `secret_files`, `serve`, `toolsets`, `tools`, `knowledge`",
        ],
    );
}

#[test]
fn nothing_is_shown_of_a_file_that_a_link_of_the_workspace_leads_to() {
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
