//! Finding the workspace.

use kitbag_config::{Origin, Sourced, load};

use crate::support::{Fixture, problems};

#[track_caller]
fn check(fixture: &Fixture, start: &str, expected: (&str, bool, &str)) {
    let mut sources = fixture.sources();
    sources.start = fixture.path(start);
    let config = load(&sources).unwrap();
    let root = fixture.redact(config.root.value.to_str().unwrap());
    assert_eq!(
        (root.as_str(), config.has_workspace, config.root.origin.to_string().as_str()),
        expected
    );
}

#[test]
fn the_nearest_kitbag_directory_marks_the_workspace() {
    let fixture =
        Fixture::empty().directory("w/a/b").directory("w/a/inner/.kitbag").directory("w/a/inner/c");
    check(&fixture, "w", ("/t/w", true, ".kitbag"));
    check(&fixture, "w/a/b", ("/t/w", true, ".kitbag"));
    check(&fixture, "w/a/inner/c", ("/t/w/a/inner", true, ".kitbag"));
    check(&fixture, "w/a/./inner/../b", ("/t/w", true, ".kitbag"));
}

#[test]
fn without_a_marker_the_start_is_the_workspace() {
    let fixture = Fixture::empty().directory("elsewhere").file("elsewhere/.kitbag", "a file");
    check(&fixture, "elsewhere", ("/t/elsewhere", false, "default"));
    let mut sources = fixture.sources();
    sources.start = fixture.path("elsewhere");
    let config = load(&sources).unwrap();
    assert!(config.files.is_empty());
    assert_eq!(
        config.tools.keys().map(|name| name.as_str()).collect::<Vec<_>>(),
        ["learn", "notes"]
    );
}

#[test]
fn a_named_workspace_is_not_searched_for() {
    let fixture = Fixture::empty()
        .file("w/.kitbag/config.toml", "broken")
        .directory("other/.kitbag")
        .directory("bare")
        .file("file", "");
    let check = |named: &str, origin: Origin, expected: Result<(&str, bool), &str>| {
        let mut sources = fixture.sources();
        sources.workspace = Some(Sourced { value: named.into(), origin: origin.clone() });
        let result = load(&sources);
        let found = problems(&result, &fixture);
        let found = match &result {
            Ok(config) => {
                assert_eq!(config.root.origin, origin);
                Ok((fixture.redact(config.root.value.to_str().unwrap()), config.has_workspace))
            }
            Err(_) => Err(found.trim_end()),
        };
        assert_eq!(found, expected.map(|(path, exists)| (path.to_owned(), exists)));
    };
    let other = fixture.path("other").to_str().unwrap().to_owned();
    check(&other, Origin::flag("--workspace"), Ok(("/t/other", true)));
    check("../other", Origin::flag("--workspace"), Ok(("/t/other", true)));
    check("../bare", Origin::environment("KITBAG_WORKSPACE"), Ok(("/t/bare", false)));
    check(
        "../none",
        Origin::environment("KITBAG_WORKSPACE"),
        Err("environment KITBAG_WORKSPACE: workspace `/t/none` is not a directory"),
    );
    check(
        "../file",
        Origin::flag("--workspace"),
        Err("flag --workspace: workspace `/t/file` is not a directory"),
    );
}

#[test]
fn files_are_listed_weakest_first() {
    let fixture = Fixture::new("[limits]\n")
        .user("\u{feff}# mine\n")
        .file("w/.kitbag/tools/b.wasm", "")
        .file("w/.kitbag/tools/b.toml", "enable = true\n")
        .file("w/.kitbag/tools/a.wasm", "");
    let config = fixture.load();
    let files: Vec<_> = config
        .files
        .iter()
        .map(|file| (fixture.redact(file.path().to_str().unwrap()), file.text()))
        .collect();
    let file = |path: &str, text| (path.to_owned(), text);
    assert_eq!(
        files,
        [
            file("/t/w/.kitbag/tools/b.toml", "enable = true\n"),
            file("/t/h/config.toml", "# mine\n"),
            file("/t/w/.kitbag/config.toml", "[limits]\n"),
        ]
    );
}

#[test]
fn the_nearest_git_directory_is_the_second_choice() {
    let fixture = Fixture::empty()
        .directory("repo/.git")
        .directory("repo/a/b")
        // A worktree.
        .file("repo/a/tree/.git", "gitdir: elsewhere")
        .directory("repo/a/tree/c")
        .directory("w/inner/.git")
        .directory("h/.git")
        .directory("h/project");
    check(&fixture, "repo/a/b", ("/t/repo", false, ".git"));
    check(&fixture, "repo/a/tree/c", ("/t/repo/a/tree", false, ".git"));
    check(&fixture, "w/inner", ("/t/w", true, ".kitbag"));
    // A home directory under version control is not a project.
    check(&fixture, "h/project", ("/t/h/project", false, "default"));
}

#[test]
fn a_git_directory_of_another_user_is_ignored() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::empty().directory("shared/.git").directory("shared/a");
    let set = |path: &str, mode| {
        set_permissions(fixture.path(path), Permissions::from_mode(mode)).unwrap();
    };
    check(&fixture, "shared/a", ("/t/shared", false, ".git"));
    set("shared", 0o777);
    check(&fixture, "shared/a", ("/t/shared/a", false, "default"));
    set("shared", 0o755);
    set("shared/.git", 0o777);
    check(&fixture, "shared/a", ("/t/shared/a", false, "default"));
}
