//! The access of a local tool.

use kitbag_config::{BuiltinTool, Config, Sourced, Sources, load};
use kitbag_policy::Access;

use crate::support::{Fixture, check_problems, check_problems_of, problems};

/// Returns a workspace with directories, and a tool `t` with these grants.
fn fixture(filesystem: &str) -> Fixture {
    Fixture::new(&format!(
        "[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\ngrants.filesystem = {filesystem}\n"
    ))
    .directory("w/docs/in")
    .directory("w/.git/hooks")
    .directory("data")
    .file("w/file", "")
    .link("w/docs-link", "docs")
}

fn granted(config: &Config, fixture: &Fixture) -> Vec<String> {
    let grants = config.tools["t"].grants.value.directories.iter();
    grants
        .map(|grant| {
            fixture.redact(&format!("{} at {} {}", grant.host.display(), grant.guest, grant.access))
        })
        .collect()
}

#[track_caller]
fn check_refused(filesystem: &str, expected: &[&str]) {
    check_problems_of(&fixture(filesystem), expected);
}

#[test]
fn the_workspace_is_granted_by_its_canonical_path() {
    let fixture =
        Fixture::new("[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n").link("link", "w");
    let mut sources = fixture.sources();
    sources.start = fixture.path("link");
    let config = load(&sources).unwrap();
    assert_eq!(config.root.value, fixture.path("link"));
    assert_eq!(granted(&config, &fixture), ["/t/w at /workspace ro"]);
}

#[test]
fn a_parent_of_a_protected_file_may_be_granted() {
    let grant = r#"[{ host = "~", guest = "/a", mode = "rw" }]"#;
    let fixture = fixture(grant).user("");
    // The host protects the file itself.
    assert_eq!(granted(&fixture.load(), &fixture), ["/t/h at /a rw"]);
}

#[test]
fn a_repository_without_a_working_tree_is_never_writable() {
    for host in ["bare", "bare/refs", "bare/refs/heads"] {
        let fixture = fixture(&format!("[{{ host = \"{host}\", guest = \"/a\", mode = \"rw\" }}]"));
        std::fs::create_dir_all(fixture.path("w/bare/refs/heads")).unwrap();
        std::fs::write(fixture.path("w/bare/HEAD"), "ref: refs/heads/main").unwrap();
        let refused = format!(
            "C:4:31: `/t/w/{host}` cannot be granted for writing: `/t/w/bare` looks like a bare \
             git repository, in which a tool could leave commands for git to run; use `mode = \
             \"ro\"`, or another directory"
        );
        check_problems_of(&fixture, &[&refused]);
    }
}

#[test]
fn kernel_file_systems_cannot_be_granted() {
    for host in ["/proc", "/proc/self/cwd", "/sys"] {
        let fixture = fixture(&format!("[{{ host = \"{host}\", guest = \"/a\" }}]"));
        let errors = load(&fixture.sources()).unwrap_err().to_string();
        assert!(errors.contains("which gives access to the kernel"), "{errors}");
    }
}

#[test]
fn protected_directories_are_never_writable() {
    let check = |host: &str, protected: &str, expected: &str| {
        let fixture = fixture(&format!("[{{ host = \"{host}\", guest = \"/a\", mode = \"rw\" }}]"));
        let mut sources = fixture.sources();
        sources.protected = vec![fixture.path(protected)];
        let expected = match expected {
            "" => String::new(),
            guarded => {
                let host = fixture.path("w").join(host).canonicalize().unwrap();
                let host = fixture.redact(host.to_str().unwrap());
                format!(
                    ".kitbag/config.toml:4:31: `{host}` cannot be granted for writing: no tool may change \
                     `{guarded}`; use `mode = \"ro\"`, or another directory\n",
                )
            }
        };
        assert_eq!(problems(&load(&sources), &fixture), expected);
    };
    check("../data", "data/cache/not/yet", "");
    check("../data", "data", "/t/data");
    check("docs/in", "w/docs", "/t/w/docs");
    check("../data", "w/docs", "");
    check("../data", "database", "");
    // The host protects files inside of a directory.
    check(".", "w/.kitbag/trust", "");
}

#[test]
fn the_number_of_directories_of_a_tool_is_bounded() {
    let list = |count: usize| {
        let grants = (0..count).map(|number| format!("{{ host = \".\", guest = \"/g{number}\" }}"));
        format!("[{}]", grants.collect::<Vec<_>>().join(", "))
    };
    fixture(&list(64)).load();
    check_refused(
        &list(65),
        &["C:4:21: 65 directories are granted; the limit is 64: grant one that contains them"],
    );
}

#[test]
fn a_built_in_takes_grants_like_any_tool() {
    let granted = |config: &str| {
        let fixture = Fixture::new(config).directory("w/docs");
        let config = fixture.load();
        let tool = &config.tools["learn"];
        let lines = tool.grants.value.lines(&[]).join("; ");
        fixture.redact(&format!("{lines} [{}]", tool.grants.origin()))
    };
    assert_eq!(granted(""), "no directory, no environment, no network [the tool itself]");
    assert_eq!(granted("[tools.learn]\n"), granted(""));
    assert_eq!(
        granted("[tools.learn]\ngrants.filesystem = [{ host = \"docs\", guest = \"/docs\" }]\n"),
        "ro  /docs ← /t/w/docs; no environment, no network [.kitbag/config.toml:2:21]",
    );
    assert_eq!(
        granted("[tools.learn]\ngrants.filesystem = []\n"),
        "no directory, no environment, no network [.kitbag/config.toml:2:21]",
    );
    check_problems(
        "[tools.learn]\ngrants.filesystem = [{ host = \".\", guest = \"/subjects/in\" }]\n",
        &["C:2:22: `/subjects/in` overlaps `/subjects`, which every call of the built-in `learn` \
             receives automatically; use another guest path"],
    );
}

#[test]
fn a_builtin_reads_by_declaration_and_writes_by_grant() {
    let grants = |workspace: Access, config: &str| {
        let builtins = [BuiltinTool { workspace: Some(workspace), .."edit".into() }];
        let fixture = Fixture::new(config);
        let sources = Sources { builtins: &builtins, ..fixture.sources() };
        let config = load(&sources).unwrap();
        fixture.redact(&config.tools["edit"].grants.value.lines(&[]).join("; "))
    };
    let (reads, writes) = (Access::ReadOnly, Access::ReadWrite);
    let (none, read) = ("no directory, no environment, no network", "ro  /workspace ← /t/w");
    assert_eq!(grants(reads, ""), format!("{read}; no environment, no network"));
    assert_eq!(grants(writes, ""), none);
    assert_eq!(grants(reads, "[tools.edit]\ngrants.filesystem = []\n"), none);
    assert_eq!(
        grants(
            writes,
            "[tools.edit]\n\
             grants.filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n"
        ),
        "rw  /workspace ← /t/w; no environment, no network",
    );
}

#[test]
fn directories_of_kitbags_secrets_cannot_be_granted() {
    let grants = r#"[{ host = "../s", guest = "/a" }, { host = "../link/deep", guest = "/b" }, { host = "../keys", guest = "/c", mode = "rw" }, { host = "..", guest = "/d" }]"#;
    let fixture = fixture(grants)
        .directory("s/deep")
        .directory("keys/in")
        .link("link", "s")
        .user("[secret_store]\nkind = \"key-file\"\nkey_file = \"/nowhere/key\"\n");
    let state = Some(Sourced::default(fixture.path("s")));
    let sources = Sources { state, private: vec![fixture.path("keys")], ..fixture.sources() };
    let problems = problems(&load(&sources), &fixture);
    let refused = |at: &str, host: &str, private: &str| {
        format!(
            ".kitbag/config.toml:4:{at}: `{host}` cannot be granted: no tool may read `{private}`, \
             where kitbag keeps secrets; grant another directory\n"
        )
    };
    let expected = [
        refused("31", "/t/s", "/t/s"),
        refused("64", "/t/s/deep", "/t/s"),
        refused("105", "/t/keys", "/t/keys"),
    ];
    assert_eq!(problems, expected.concat());
}

#[test]
fn parents_of_kitbags_secrets_are_granted_without_them() {
    let fixture = fixture(r#"[{ host = "..", guest = "/d" }]"#)
        .file("s/secrets.age", "")
        .file("h/store.age", "")
        .file("h/secrets.key", "")
        .file("h/other", "")
        .user("[secret_store]\nkind = \"key-file\"\nfile = \"~/store.age\"\n");
    let state = Some(Sourced::default(fixture.path("s")));
    let config = load(&Sources { state, ..fixture.sources() }).unwrap();
    let guard = config.guard();
    let is_private = |path: &str| guard.private_above(&fixture.path(path)).is_some();
    assert!(
        is_private("s/secrets.age") && is_private("h/store.age") && is_private("h/secrets.key")
    );
    assert!(!is_private("h/other") && !is_private("h/config.toml"));
}

#[test]
fn a_root_is_a_directory_or_a_name() {
    let fixture = fixture(
        r#"[{ host = "$ROOT/data/in", guest = "/a" }, { host = "$ROOT/other", guest = "/b", mode = "rw" }]"#,
    )
    .directory("root/in");
    let roots = [("data".to_owned(), fixture.path("root"))].into();
    let config = load(&Sources { roots, ..fixture.sources() }).unwrap();
    let tool = config.tools.values().find(|tool| !tool.grants.value.directories.is_empty());
    let grants = &tool.unwrap().grants.value.directories;
    assert_eq!(grants[0].host, fixture.path("root/in"));
    assert_eq!((grants[0].missing_root(), grants[0].identity.is_some()), (None, true));
    assert_eq!((grants[1].missing_root(), grants[1].identity), (Some("other"), None));
    let named: Vec<_> = config.named_places().into_iter().map(|place| place.path).collect();
    let inside = fixture.path("root/in").to_string_lossy().into_owned();
    assert!(named.contains(&"$ROOT/other".to_owned()) && named.contains(&inside), "{named:?}");
}

#[test]
fn a_root_is_not_left() {
    let refused = |host: &str| {
        let grants = format!(r#"[{{ host = "{host}", guest = "/a" }}]"#);
        let fixture = fixture(&grants).directory("root").directory("out").link("root/up", "../out");
        let roots = [("data".to_owned(), fixture.path("root"))].into();
        problems(&load(&Sources { roots, ..fixture.sources() }), &fixture)
    };
    assert!(refused("$ROOT/data/up").contains("a link leads out of the root"));
    for host in ["$ROOT", "$ROOT/", "$ROOT/data/../..", "$ROOT/Data", "$ROOT/data//etc"] {
        let refused = refused(host);
        assert!(refused.contains("is not a directory in a root: write `$ROOT/NAME`"), "{refused}");
    }
}
