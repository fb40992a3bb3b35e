//! Ownership and permissions that a configuration must have to take effect.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::mcp::Client;
use crate::support::{CallInTest, Workspace, guest, probe};

/// A user who is neither the caller nor root.
const STRANGER: u32 = 65534;

/// A workspace with a local tool, and with a topic that points to a secret of the caller.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let secret = workspace.home().join(".ssh");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("key.txt"), "the secret\n").unwrap();
    workspace.config(&format!("[knowledge.keys]\nsubjects = {secret:?}\n"));
    fs::create_dir(workspace.path(".kitbag/tools")).unwrap();
    fs::copy(guest("probe"), workspace.path(".kitbag/tools/probe.wasm")).unwrap();
    fs::write(workspace.path(".kitbag/tools/probe.toml"), "description = \"tries things\"\n")
        .unwrap();
    for path in [".", ".kitbag", ".kitbag/tools"] {
        mode(&workspace.path(path), 0o755);
    }
    for path in ["config.toml", "tools/probe.toml", "tools/probe.wasm"] {
        mode(&workspace.path(".kitbag").join(path), 0o644);
    }
    workspace
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A change to a workspace, its path, and the new mode or owner. Only root can give a file to
/// another user.
fn changes() -> Vec<(&'static str, &'static str, u32)> {
    let mut changes = vec![
        ("mode", "", 0o777),
        ("mode", ".kitbag", 0o777),
        ("mode", ".kitbag", 0o1777),
        ("mode", ".kitbag/config.toml", 0o666),
        ("mode", ".kitbag/tools", 0o757),
        ("mode", ".kitbag/tools/probe.toml", 0o646),
        ("mode", ".kitbag/tools/probe.wasm", 0o777),
    ];
    if rustix::process::geteuid().is_root() {
        for path in [
            "",
            ".kitbag",
            ".kitbag/config.toml",
            ".kitbag/tools",
            ".kitbag/tools/probe.toml",
            ".kitbag/tools/probe.wasm",
        ] {
            changes.push(("owner", path, STRANGER));
        }
    }
    changes
}

fn change(workspace: &Workspace, (what, path, value): (&str, &str, u32)) {
    let path = workspace.path(path);
    match what {
        "mode" => mode(&path, value),
        _ => chown(path, Some(value), None).unwrap(),
    }
}

/// Grants rights to a file to a user who is neither the caller nor root, and limits the rights of
/// everyone except the owner by a mask: `rwx` as numbers.
fn grant(path: &Path, rights: u16, mask: u16) {
    // The version, and then for each entry: its kind, the rights, the ID.
    let [owner, user, group, of_mask, others] = [1_u16, 2, 4, 16, 32];
    const NONE: u32 = u32::MAX;
    let entries = [
        (owner, 6, NONE),
        (user, rights, STRANGER),
        (group, 4, NONE),
        (of_mask, mask, NONE),
        (others, 4, NONE),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let file = fs::File::open(path).unwrap();
    let name = "system.posix_acl_access";
    rustix::fs::fsetxattr(&file, name, &list, rustix::fs::XattrFlags::empty()).unwrap();
}

#[test]
fn only_access_control_lists_with_write_access_matter() {
    let says = |path: &str, rights: u16, mask: u16| {
        let workspace = workspace();
        let path = workspace.path(path);
        grant(&path, rights, mask);
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        // The mask is stored in the bits of the group, so no list lets another user write a file
        // whose mode allows writing only for the owner.
        assert_eq!(mode, 0o604 | u32::from(mask) << 3);
        workspace.run(&["list"])
    };
    for path in [".kitbag/config.toml", ".kitbag/tools/probe.toml", ".kitbag/tools/probe.wasm"] {
        let ignored = says(path, 6, 6);
        assert!(!ignored.stdout.contains("probe"), "{path}: {}", ignored.shown());
        assert!(ignored.stderr.contains("writable by group"), "{path}: {}", ignored.shown());
        for (rights, mask) in [(4, 4), (6, 4)] {
            let read = says(path, rights, mask);
            assert!(read.stdout.contains("probe"), "{path}: {}", read.shown());
            assert_eq!(read.stderr, "", "{path}");
        }
    }
}

#[test]
fn configuration_that_others_can_write_is_ignored() {
    for case in changes() {
        let workspace = workspace();
        let load = ["run", "learn", "topic=keys", "subjects=key"];
        assert_eq!(workspace.run(&load).success(), "the secret\n");
        change(&workspace, case);

        let run = workspace.run(&load);
        assert_eq!(run.code, 1, "{case:?}: {}", run.shown());
        assert!(!run.stdout.contains("secret"), "{case:?}: {}", run.shown());
        assert!(
            run.stderr
                .starts_with("warning: the configuration in `<workspace>/.kitbag` is ignored: "),
            "{case:?}: {}",
            run.shown()
        );
        assert!(run.stderr.contains("[trust] directories"), "{case:?}: {}", run.shown());

        let run = workspace.run(&["list", "--json"]);
        let names: Vec<_> = workspace.listed().iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["learn"], "{case:?}: {}", run.shown());
        assert!(run.stderr.starts_with("warning: "), "{case:?}: {}", run.shown());

        let run = workspace.run(&["check", "--json"]);
        assert_eq!(run.code, 4, "{case:?}: {}", run.shown());
        assert_eq!(
            run.json()["problems"].as_array().unwrap().len(),
            1,
            "{case:?}: {}",
            run.shown()
        );
    }
}

/// A workspace whose tool `probe` has its component at this path, with all directories on the way
/// closed to other users; and the path.
fn with_component_at(inside: &str) -> (Workspace, PathBuf) {
    let workspace = Workspace::new();
    let place = workspace.file(inside, fs::read(guest("probe")).unwrap()).canonicalize().unwrap();
    workspace.config(&format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {inside:?}\ndescription = \"tries\"\n"
    ));
    for path in place.ancestors().take_while(|path| *path != workspace.outside()) {
        mode(path, if path == place { 0o644 } else { 0o755 });
    }
    mode(&workspace.path(".kitbag"), 0o755);
    mode(&workspace.path(".kitbag/config.toml"), 0o644);
    (workspace, place)
}

const ECHO: [&str; 4] = ["run", "probe", "do=echo", "text=hello"];

#[test]
fn a_component_that_another_user_can_change_is_not_run() {
    let check = |inside: &str, above: usize, how: &dyn Fn(&Path)| {
        let (workspace, place) = with_component_at(inside);
        assert_eq!(workspace.run(&ECHO).success(), "hello\n", "{inside}");
        let changed = place.ancestors().nth(above).unwrap();
        how(changed);

        let run = workspace.run(&ECHO);
        assert_eq!((run.code, &*run.stdout), (6, ""), "{inside} {changed:?}: {}", run.shown());
        for said in
            ["error: kitbag does not run `", "another user can change it: `", "[trust] directories"]
        {
            assert!(run.stderr.contains(said), "{inside} {changed:?}: {}", run.shown());
        }
        let run = workspace.run(&["check"]);
        assert_eq!(run.code, 6, "{inside} {changed:?}: {}", run.shown());

        let holds = place.parent().unwrap().to_owned();
        let is_inside = holds.starts_with(workspace.root());
        for trusted in [Some(holds), is_inside.then(|| workspace.root())].into_iter().flatten() {
            workspace.own_config(&format!("[trust]\ndirectories = [{trusted:?}]\n"));
            assert_eq!(workspace.run(&ECHO).success(), "hello\n", "{inside} {changed:?}");
        }
    };
    let is_root = rustix::process::geteuid().is_root();
    for inside in
        ["build/out/probe.wasm", ".kitbag/tools/deep/probe.wasm", "../bin/deep/probe.wasm"]
    {
        check(inside, 0, &|path| mode(path, 0o666));
        check(inside, 1, &|path| mode(path, 0o777));
        if is_root {
            check(inside, 0, &|path| chown(path, Some(STRANGER), None).unwrap());
            check(inside, 1, &|path| chown(path, Some(STRANGER), None).unwrap());
        }
        // With the directory `tools`, the whole configuration has no effect.
        if !inside.starts_with(".kitbag") {
            check(inside, 2, &|path| mode(path, 0o777));
        }
    }
}

#[test]
fn descriptions_of_components_writable_by_others_are_dropped() {
    let (mut workspace, place) = with_component_at("build/out/tool.wasm");
    workspace.use_own_cache();
    fs::copy(guest("probe"), &place).unwrap();
    workspace.config("[tools.probe]\nsource = \"local\"\nwasm = \"build/out/tool.wasm\"\n");
    let description = || {
        let list = workspace.run(&["list", "--json"]).json();
        let tool = list.as_array().unwrap().iter().find(|tool| tool["name"] == "probe").unwrap();
        tool["description"].as_str().unwrap_or_default().to_owned()
    };
    workspace.run(&ECHO).success();
    assert_ne!(description(), "");
    mode(&place, 0o666);
    assert_eq!(description(), "");
    let trusting = format!("[trust]\ndirectories = [{:?}]\n", workspace.root());
    workspace.own_config(&trusting);
    assert_ne!(description(), "");
    // Only the description is stored, but not the native code.
    let uncompiled = || {
        for entry in fs::read_dir(workspace.cache()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "kitbag") {
                fs::remove_file(path).unwrap();
            }
        }
    };
    uncompiled();
    assert_ne!(description(), "");
    workspace.own_config("");
    assert_eq!(description(), "");
    assert_eq!(workspace.run(&["describe", "probe"]).code, 6);
}

#[test]
fn a_component_behind_an_exchangeable_link_is_refused() {
    let (workspace, place) = with_component_at("build/out/probe.wasm");
    let shared = workspace.outside().join("shared");
    fs::create_dir(&shared).unwrap();
    symlink(&place, shared.join("current.wasm")).unwrap();
    mode(&shared, 0o755);
    workspace.config(
        "[tools.probe]\nsource = \"local\"\nwasm = \"../shared/current.wasm\"\n\
         description = \"tries\"\n",
    );
    let check = |is_run: bool| {
        let run = workspace.run(&ECHO);
        match is_run {
            true => assert_eq!(run.success(), "hello\n"),
            false => assert_eq!(run.code, 6, "{}", run.shown()),
        }
    };
    check(true);
    mode(&shared, 0o777);
    check(false);
    // In a directory with the sticky bit, only the owner of a link can replace it.
    mode(&shared, 0o1777);
    check(true);
    if rustix::process::geteuid().is_root() {
        lchown(shared.join("current.wasm"), Some(STRANGER), None).unwrap();
        check(false);
    }
}

/// Checks paths through a link in a directory beside the workspace: `check` receives the expected
/// message if the path is refused. Other users may write the directory, or own the link.
fn with_shared_link(workspace: &Workspace, target: &Path, check: &dyn Fn(&Path, Option<&str>)) {
    let shared = workspace.outside().join("shared");
    fs::create_dir(&shared).unwrap();
    let link = shared.join("link");
    symlink(target, &link).unwrap();
    mode(&shared, 0o755);
    check(&link, None);
    mode(&shared, 0o777);
    check(&link, Some("`<outside>/shared` is writable by every user (mode 0777)"));
    // In a directory with the sticky bit, only the owner of a link can replace it.
    mode(&shared, 0o1777);
    check(&link, None);
    if rustix::process::geteuid().is_root() {
        lchown(&link, Some(STRANGER), None).unwrap();
        check(&link, Some("`<outside>/shared/link` belongs to user 65534"));
    }
}

#[test]
fn a_workspace_behind_an_exchangeable_link_is_ignored() {
    let workspace = workspace();
    with_shared_link(&workspace, &workspace.root(), &|link, said| {
        let link = link.to_str().unwrap();
        let load = ["run", "learn", "topic=keys", "subjects=key"];
        for (flags, variables) in
            [(vec!["-w", link], vec![]), (vec![], vec![("KITBAG_WORKSPACE", link)])]
        {
            let load = || workspace.run_with(&[&*flags, &load].concat(), "", &variables);
            let Some(said) = said else {
                assert_eq!(load().success(), "the secret\n");
                continue;
            };
            let run = load();
            assert_eq!(run.code, 1, "{}", run.shown());
            let warning =
                "warning: the configuration in `<outside>/shared/link/.kitbag` is ignored";
            assert!(run.stderr.starts_with(&format!("{warning}: {said}; ")), "{}", run.shown());
            workspace.own_config(&format!("[trust]\ndirectories = [{:?}]\n", workspace.root()));
            assert_eq!(load().success(), "the secret\n");
            workspace.own_config("");
        }
    });
}

#[test]
fn grants_and_topics_behind_exchangeable_links_are_refused() {
    let read = ["run", "probe", "do=read", "path=/data/key.txt"];
    let load = ["run", "learn", "topic=linked", "subjects=key"];
    let granted = |mode: &str| {
        probe(&format!(
            "grants.filesystem = [{{ host = \"../shared/link\", guest = \"/data\", \
             mode = {mode:?} }}]\n"
        ))
    };
    let topic = "[knowledge.linked]\nsubjects = \"../shared/link\"\n".to_owned();
    for (config, command, code) in
        [(granted("ro"), read, 4), (granted("rw"), read, 4), (topic, load, 1)]
    {
        let workspace = workspace();
        fs::remove_dir_all(workspace.path(".kitbag/tools")).unwrap();
        workspace.config(&config);
        mode(&workspace.path(".kitbag/config.toml"), 0o644);
        with_shared_link(&workspace, &workspace.home().join(".ssh"), &|_, said| {
            let run = workspace.run(&command);
            match said {
                None => assert!(run.clone().success().contains("the secret"), "{}", run.shown()),
                Some(said) => {
                    assert_eq!(run.code, code, "{}", run.shown());
                    assert!(!run.shown().contains("the secret"), "{}", run.shown());
                    assert!(run.shown().contains(said), "{}", run.shown());
                }
            }
        });
    }
}

#[test]
fn the_library_reports_ignored_configuration() {
    let workspace = workspace();
    mode(&workspace.path(".kitbag"), 0o777);
    let kitbag = workspace.kitbag();
    let ignored = kitbag.toolbox().config().ignored.as_ref().unwrap();
    assert_eq!(ignored.root, workspace.root());
    assert_eq!(ignored.path, workspace.path(".kitbag"));
    assert_eq!(
        kitbag.call_in_test("learn", json!({ "topic": "keys" })),
        "error: there is no topic `keys`; no topics are configured; to add one, set `subjects = \
         \"DIRECTORY\"` under `[knowledge.NAME]` in `.kitbag/config.toml`"
    );
}

#[test]
fn a_server_drops_configuration_writable_by_others() {
    let workspace = workspace();
    let names = |client: &mut Client| {
        let list = client.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut client = Client::with_handshake(&workspace, json!({}));
    assert_eq!(names(&mut client), ["learn", "probe"]);
    mode(&workspace.path(".kitbag/config.toml"), 0o666);
    client.notification("notifications/tools/list_changed");
    assert_eq!(names(&mut client), ["learn"]);
    let (_, stderr) = client.close();
    assert!(stderr.contains("WARN") && stderr.contains("is ignored: `"), "{stderr}");

    let mut client = Client::with_handshake(&workspace, json!({}));
    assert_eq!(names(&mut client), ["learn"]);
    let (_, stderr) = client.close();
    assert!(stderr.contains("WARN") && stderr.contains("is ignored: `"), "{stderr}");
}

#[test]
fn a_user_config_behind_an_exchangeable_link_is_an_error() {
    let workspace = Workspace::new();
    workspace.own_config("[limits]\ntime = \"7s\"\n");
    let (all, own) = (workspace.home().join(".config"), workspace.home().join(".config/kitbag"));
    [&workspace.home(), &all, &own].into_iter().for_each(|path| mode(path, 0o755));
    mode(&own.join("config.toml"), 0o644);
    let check = |said: Option<&str>| {
        let run = workspace.run(&["config", "--show"]);
        match said {
            None => assert!(run.success().contains("7s")),
            Some(said) => {
                assert_eq!(run.code, 4, "{}", run.shown());
                assert!(run.stderr.contains(said), "{}", run.shown());
            }
        }
    };
    check(None);
    for (path, name) in [(&all, "<home>/.config"), (&workspace.home(), "<home>")] {
        mode(path, 0o777);
        check(Some(&format!("`{name}` is writable by every user (mode 0777); use `chmod o-w`")));
        mode(path, 0o1777);
        check(None);
        mode(path, 0o755);
    }
    // Each link of a chain is checked.
    let moved = workspace.outside().join("mine.toml");
    fs::rename(own.join("config.toml"), &moved).unwrap();
    symlink(workspace.outside().join("shared/link"), own.join("config.toml")).unwrap();
    with_shared_link(&workspace, &moved, &|_, said| check(said));
}
