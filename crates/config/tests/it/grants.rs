//! What a local tool may reach.

use kitbag_config::{BuiltinTool, Config, Sourced, Sources, load};
use kitbag_policy::Access;

use crate::support::{Fixture, check_problems, check_problems_of, check_rows, problems};

/// A workspace with directories, and a tool `t` with these grants.
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
fn check(filesystem: &str, expected: &[&str]) {
    let fixture = fixture(filesystem);
    assert_eq!(granted(&fixture.load(), &fixture), expected);
}

#[track_caller]
fn check_refused(filesystem: &str, expected: &[&str]) {
    check_problems_of(&fixture(filesystem), expected);
}

#[test]
fn a_tool_that_says_nothing_of_files_reads_the_workspace() {
    let config = "[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n";
    let expected = r#"tools.t.grants.filesystem = [{"host":"/t/w","guest":"/workspace","mode":"ro"}] # default"#;
    check_rows(&Fixture::new(config), "tools.t.grants", &[expected]);
    check_rows(&Fixture::new(&format!("{config}grants = {{}}\n")), "tools.t.grants", &[expected]);
}

#[test]
fn any_list_replaces_that_also_an_empty_one() {
    check_rows(
        &fixture("[]"),
        "tools.t.grants",
        &["tools.t.grants.filesystem = [] # .kitbag/config.toml:4:21"],
    );
    check(
        r#"[{ host = "docs", guest = "/in" }, { host = "../data", guest = "/out", mode = "rw" }]"#,
        &["/t/w/docs at /in ro", "/t/data at /out rw"],
    );
}

#[test]
fn host_directories_are_canonical() {
    check(
        r#"[
            { host = "./docs-link/../docs-link/in", guest = "/a" },
            { host = "~", guest = "/b" },
            { host = "~/../data", guest = "/c", mode = "ro" },
        ]"#,
        &["/t/w/docs/in at /a ro", "/t/h at /b ro", "/t/data at /c ro"],
    );
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
fn a_host_directory_must_be_one() {
    check_refused(
        r#"[{ host = "none", guest = "/a" }, { host = "file", guest = "/b" }, { host = "", guest = "/c" }, { host = "a\u0000b", guest = "/d" }]"#,
        &[
            "C:4:31: directory `/t/w/none` cannot be granted: it does not exist",
            "C:4:64: directory `/t/w/file` cannot be granted: it is not a directory",
            "C:4:97: the path is empty; write `.` for the workspace",
            "C:4:126: directory `/t/w/a\\0b` cannot be granted: invalid argument",
        ],
    );
}

#[test]
fn a_guest_path_must_be_absolute_and_clean_in_every_layer() {
    let form = "must be absolute, such as `/data`, without empty, `.` or `..` components";
    check_problems_of(
        &fixture(r#"[{ host = ".", guest = "data" }, { host = ".", guest = "/a/../b" }]"#)
            .user("[tools.t]\ngrants.filesystem = [{ host = \"none\", guest = \"/x/\" }]\n"),
        &[
            &format!("/t/h/config.toml:2:47: guest path `/x/` {form}"),
            &format!("C:4:44: guest path `data` {form}"),
            &format!("C:4:76: guest path `/a/../b` {form}"),
        ],
    );
}

#[test]
fn two_directories_at_one_guest_path_are_refused() {
    let same = "two directories are granted as `/a`; give one of them another guest path";
    check_refused(
        r#"[{ host = "docs", guest = "/a" }, { host = "../data", guest = "/a" }]"#,
        &[&format!("C:4:55: {same}")],
    );
    check_refused(
        r#"[{ host = "docs", guest = "/a" }, { host = "none", guest = "/a", mode = "rw" }]"#,
        &[
            &format!("C:4:55: {same}"),
            "C:4:64: directory `/t/w/none` cannot be granted: it does not exist",
        ],
    );
}

#[test]
fn grants_that_overlap_need_one_mode() {
    let overlap = |at: &str, a: &str, b: &str| {
        format!("C:4:{at}: `{a}` and `{b}` overlap; give them the same mode, or keep them apart")
    };
    check_refused(
        r#"[{ host = "docs", guest = "/a" }, { host = "../data", guest = "/a/b", mode = "rw" }]"#,
        &[&overlap("55", "/a/b` (`rw`)", "/a` (`ro`)").replace(")`", ")")],
    );
    check_refused(
        r#"[{ host = "docs", guest = "/a" }, { host = "docs-link/in", guest = "/b", mode = "rw" }]"#,
        &[&overlap("55", "/t/w/docs/in` (`rw`)", "/t/w/docs` (`ro`)").replace(")`", ")")],
    );
    check_refused(
        r#"[{ host = "docs", guest = "/a", mode = "rw" }, { host = "docs-link", guest = "/b" }]"#,
        &[&overlap("68", "/t/w/docs` (`ro`)", "/t/w/docs` (`rw`)").replace(")`", ")")],
    );
    check_refused(
        r#"[{ host = "docs/in", guest = "/a", mode = "rw" }, { host = "docs", guest = "/b" }]"#,
        &[&overlap("71", "/t/w/docs` (`ro`)", "/t/w/docs/in` (`rw`)").replace(")`", ")")],
    );
    check(
        r#"[{ host = "docs", guest = "/a" }, { host = "docs/in", guest = "/a/b" }, { host = "docs", guest = "/c" }]"#,
        &["/t/w/docs at /a ro", "/t/w/docs/in at /a/b ro", "/t/w/docs at /c ro"],
    );
    check(
        r#"[{ host = "docs", guest = "/a" }, { host = "../data", guest = "/ab", mode = "rw" }]"#,
        &["/t/w/docs at /a ro", "/t/data at /ab rw"],
    );
}

#[test]
fn what_decides_what_a_tool_may_do_is_never_writable() {
    let refused = |at: &str, host: &str, guarded: &str| {
        format!(
            "C:4:{at}: `{host}` cannot be granted for writing: no tool may change `{guarded}`; use \
             `mode = \"ro\"`, or another directory"
        )
    };
    check_refused(
        r#"[{ host = ".git", guest = "/a", mode = "rw" }]"#,
        &[&refused("31", "/t/w/.git", "/t/w/.git")],
    );
    check_refused(
        r#"[{ host = ".git/hooks", guest = "/a", mode = "rw" }]"#,
        &[&refused("31", "/t/w/.git/hooks", "/t/w/.git")],
    );
    check_refused(
        r#"[{ host = ".kitbag", guest = "/a", mode = "rw" }]"#,
        &[&refused("31", "/t/w/.kitbag", "/t/w/.kitbag")],
    );
    check_problems_of(
        &fixture(r#"[{ host = "hooks", guest = "/a", mode = "rw" }]"#)
            .link("w/hooks", ".git/hooks"),
        &[&refused("31", "/t/w/.git/hooks", "/t/w/.git")],
    );
    // Below the workspace, the host keeps both read-only.
    check(r#"[{ host = ".", guest = "/a", mode = "rw" }]"#, &["/t/w at /a rw"]);
    check(r#"[{ host = ".git", guest = "/a" }]"#, &["/t/w/.git at /a ro"]);
}

#[test]
fn what_only_holds_what_is_never_writable_may_be_granted() {
    let grant = r#"[{ host = "~", guest = "/a", mode = "rw" }]"#;
    let fixture = fixture(grant).user("");
    // The host keeps the file itself as it is.
    assert_eq!(granted(&fixture.load(), &fixture), ["/t/h at /a rw"]);
}

#[test]
fn a_repository_without_a_working_tree_is_never_writable() {
    for host in ["bare", "bare/refs", "bare/refs/heads"] {
        let fixture = fixture(&format!("[{{ host = \"{host}\", guest = \"/a\", mode = \"rw\" }}]"));
        std::fs::create_dir_all(fixture.path("w/bare/refs/heads")).unwrap();
        std::fs::write(fixture.path("w/bare/HEAD"), "ref: refs/heads/main").unwrap();
        let refused = format!(
            "C:4:31: `/t/w/{host}` cannot be granted for writing: git takes `/t/w/bare` for a \
             repository without a working tree, in which a tool could leave commands that git runs; \
             use `mode = \"ro\"`, or another directory"
        );
        check_problems_of(&fixture, &[&refused]);
    }
}

#[test]
fn a_link_is_followed_where_no_tool_writes_what_it_lies_in() {
    check(
        r#"[{ host = "docs-link", guest = "/a" }, { host = "../data", guest = "/b", mode = "rw" }]"#,
        &["/t/w/docs at /a ro", "/t/data at /b rw"],
    );
    let grants = r#"[{ host = "../data/inner", guest = "/a" }, { host = "../data", guest = "/b", mode = "rw" }]"#;
    check_problems_of(
        &fixture(grants).link("data/inner", "../w/docs"),
        &[
            "C:4:31: directory `/t/w/../data/inner` cannot be granted: `/t/data/inner` is a symbolic \
           link in a directory that a tool may write; grant the directory that it leads to",
        ],
    );
}

#[test]
fn the_kernels_own_file_systems_are_not_granted() {
    for host in ["/proc", "/proc/self/cwd", "/sys"] {
        let fixture = fixture(&format!("[{{ host = \"{host}\", guest = \"/a\" }}]"));
        let errors = load(&fixture.sources()).unwrap_err().to_string();
        assert!(errors.contains("through which the kernel can be reached"), "{errors}");
    }
}

#[test]
fn directories_that_the_caller_protects_are_never_writable() {
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
    // What a directory only holds, the host keeps as it is.
    check(".", "w/.kitbag/trust", "");
}

#[test]
fn a_tool_that_is_not_enabled_is_checked_for_form_only() {
    let disabled = |filesystem: &str| {
        let config = format!(
            "[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\ngrants.filesystem = {filesystem}\nenable = false\n"
        );
        Fixture::new(&config)
    };
    let fixture = disabled(
        r#"[{ host = "none", guest = "/a", mode = "rw" }, { host = "none/in", guest = "/b" }]"#,
    );
    assert_eq!(granted(&fixture.load(), &fixture), ["/t/w/none at /a rw", "/t/w/none/in at /b ro"]);
    check_problems_of(
        &disabled(
            r#"[{ host = "none", guest = "a" }, { host = "x", guest = "/b" }, { host = "y", guest = "/b" }]"#,
        ),
        &[
            "C:4:47: guest path `a` must be absolute, such as `/data`, without empty, `.` or `..` components",
            "C:4:84: two directories are granted as `/b`; give one of them another guest path",
        ],
    );
}

#[test]
fn a_tool_holds_a_bounded_number_of_directories() {
    let list = |count: usize| {
        let grants = (0..count).map(|number| format!("{{ host = \".\", guest = \"/g{number}\" }}"));
        format!("[{}]", grants.collect::<Vec<_>>().join(", "))
    };
    fixture(&list(64)).load();
    check_refused(
        &list(65),
        &["C:4:21: 65 directories are granted, and 64 is the most; grant one that holds them"],
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
        &[
            "C:2:22: `/subjects/in` overlaps `/subjects`, which each call of the built-in `learn` is \
           given by itself; use another guest path",
        ],
    );
}

#[test]
fn a_built_in_reads_the_workspace_where_its_declaration_says_so_and_writes_it_where_you_say_so() {
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
fn no_tool_is_granted_a_directory_of_kitbags_own_secrets() {
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
            ".kitbag/config.toml:4:{at}: `{host}` cannot be granted: no tool reads `{private}`, \
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
fn what_holds_kitbags_own_secrets_is_granted_without_them() {
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
