//! Trust covers the requests of the shown files: an edit that requests more has no effect.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{assert_untrusted, greedy};
use crate::support::{Workspace, repository};

/// The files that configure the workspace.
const FILES: [&str; 4] = [
    ".kitbag/config.toml",
    ".kitbag/kitbag.lock",
    ".kitbag/tools/planted.toml",
    ".kitbag/scripts/steal.py",
];

/// The disabled tools, each with the reason.
fn off(workspace: &Workspace) -> Vec<(String, String)> {
    let listed = workspace.run(&["list", "--json"]).json();
    let tools = listed.as_array().unwrap().iter();
    let off = tools.filter_map(|tool| {
        let reason = tool["disabled"].as_str()?;
        reason
            .starts_with("off because")
            .then(|| (tool["name"].as_str().unwrap().to_owned(), reason.to_owned()))
    });
    off.collect()
}

#[test]
fn a_comment_keeps_trust_and_is_shown_as_a_difference() {
    let workspace = greedy();
    workspace.trust();
    for file in FILES {
        let path = workspace.path(file);
        let before = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{before}# changed\n")).unwrap();
        assert!(workspace.runs_planted(), "{file}");
        let expected = match file.ends_with(".py") {
            // A script runs exactly as its bytes were trusted.
            true => vec![(
                "steal".to_owned(),
                format!("off because `{file}` changed since you trusted it; run `kitbag trust`"),
            )],
            false => Vec::new(),
        };
        assert_eq!(off(&workspace), expected, "{file}");
        let asked = workspace.run(&["trust"]);
        assert_eq!(asked.code, 3, "{file}");
        let shown = format!("{file} (changed):\n| + # changed\n");
        assert!(asked.stdout.contains(&shown), "{file}: {}", asked.shown());
        let bars = asked.stdout.lines().filter(|line| line.starts_with("| "));
        assert_eq!(bars.collect::<Vec<_>>(), ["| + # changed"], "{file}");
        fs::write(&path, before).unwrap();
        assert_eq!(off(&workspace), [], "{file}");
    }
}

#[test]
fn a_record_of_0_1_0_keeps_its_trust() {
    let workspace = Workspace::with_toolsets(&["python"]).untrusted();
    workspace.config("[limits]\ntime = \"20s\"\n");
    workspace.file(".kitbag/scripts/hello.py", "print(\"hello\")\n");
    let root = workspace.root().canonicalize().unwrap();
    let directory = workspace.home().join(".local/state/kitbag/trust");
    // Creates the directory, and names the files of the workspace.
    workspace.trust();
    let record = workspace.record();
    let copies = repository().join("tests/cli/trusting/0.1.0");
    let copy = |name: &str| fs::read_to_string(copies.join(name)).unwrap();
    let restore = || {
        let text = copy("record.json").replace("WORKSPACE", root.to_str().unwrap());
        fs::write(&record, text).unwrap();
        fs::write(record.with_extension("shown"), copy("record.shown")).unwrap();
    };
    restore();
    assert!(record.starts_with(directory));
    let hello = || workspace.run(&["run", "hello"]);
    assert_eq!(hello().success(), "hello\n");
    workspace.config("# edited\n[limits]\ntime = \"10s\"\n");
    let run = hello();
    assert_eq!((&*run.stdout, &*run.stderr), ("hello\n", ""), "{}", run.shown());
    // Without the stored content, only the digests of the trusted files are known.
    fs::remove_file(record.with_extension("shown")).unwrap();
    let run = hello();
    assert_untrusted(&run);
    let cause = "warning: `.kitbag/config.toml` changed since you trusted it: until you run `kitbag \
                 trust`, only settings";
    assert!(run.stderr.starts_with(cause), "{}", run.shown());
    workspace.config("[limits]\ntime = \"20s\"\n");
    assert_eq!(hello().success(), "hello\n");
}

#[test]
fn a_forged_trusted_text_is_not_compared() {
    let workspace = greedy();
    workspace.trust();
    let shown = workspace.record().with_extension("shown");
    let text = fs::read_to_string(&shown).unwrap();
    fs::write(&shown, text.replace("evil.example", "worse.example")).unwrap();
    workspace.config(&super::CONFIG.replace("evil.example", "worse.example"));
    assert_untrusted(&workspace.run(&["run", "greedy"]));
    assert!(!workspace.runs_planted());
}

#[test]
fn a_component_runs_only_as_it_was_trusted() {
    let workspace = greedy();
    workspace.trust();
    workspace.keep_later();
    for (tool, file) in [("planted", ".kitbag/tools/planted.wasm"), ("greedy", "bin/greedy.wasm")] {
        let path = workspace.path(file);
        let call = ["run", tool, "do=echo", "text=here"];
        assert_eq!(workspace.run(&call).success(), "here\n");
        let before = fs::read(&path).unwrap();
        // A custom section with one byte, which does not change the behaviour.
        fs::write(&path, [&*before, b"\x00\x03\x01x\x00"].concat()).unwrap();
        let run = workspace.run(&call);
        assert_untrusted(&run);
        assert!(run.stderr.contains("the trust record"), "{}", run.shown());
        let asked = workspace.run(&["trust"]);
        let shown = asked.stdout.lines().find(|line| line.starts_with(&format!("  {file}: ")));
        assert!(shown.unwrap().contains(", was "), "{}", asked.shown());
        assert_eq!(asked.code, 3);
        fs::write(&path, before).unwrap();
        assert_eq!(workspace.run(&call).success(), "here\n");
    }
}

/// Moves a directory.
fn rename(from: &Path, to: &Path) {
    fs::rename(from, to).unwrap();
}

#[test]
fn another_workspace_at_a_trusted_path_gets_nothing_more() {
    let trusted = greedy();
    trusted.trust();
    let (root, aside) = (trusted.root(), trusted.outside().join("aside"));
    let evil = trusted.outside().join("evil");
    // The same tools, and a configuration that requests more.
    let copied = std::process::Command::new("cp").arg("-r").arg(&root).arg(&evil).status();
    assert!(copied.unwrap().success());
    let config = fs::read_to_string(evil.join(".kitbag/config.toml")).unwrap();
    fs::write(evil.join(".kitbag/config.toml"), config.replace("\"LANG\"", "\"LANG\", \"CI\""))
        .unwrap();

    rename(&root, &aside);
    rename(&evil, &root);
    // Only the trusted content runs.
    assert_untrusted(&trusted.run(&["run", "greedy"]));
    assert!(trusted.runs_planted());
    rename(&root, &evil);
    symlink(&evil, &root).unwrap();
    assert!(!trusted.runs_planted());
    fs::remove_file(&root).unwrap();
    rename(&aside, &root);
    assert!(trusted.runs_planted());
}

#[test]
fn a_trusted_workspace_is_not_trusted_at_another_path() {
    let trusted = greedy();
    trusted.trust();
    let other = trusted.outside().join("other");
    let copied =
        std::process::Command::new("cp").arg("-r").arg(trusted.root()).arg(&other).status();
    assert!(copied.unwrap().success());
    let call = ["run", "planted", "do=echo", "text=here", "--workspace"];
    let at = |path: &Path| trusted.run(&[&call[..], &[path.to_str().unwrap()]].concat());
    assert_eq!(at(&trusted.root()).code, 0);
    assert_untrusted(&at(&other));
    // A link to a trusted workspace is the same workspace.
    let link = trusted.outside().join("link");
    symlink(trusted.root(), &link).unwrap();
    assert_eq!(at(&link).code, 0);
}

#[test]
fn a_trust_record_in_the_workspace_is_ignored() {
    let workspace = greedy();
    workspace.trust();
    let state = workspace.home().join(".local/state/kitbag");
    let inside = workspace.path(".kitbag/state");
    let copied = std::process::Command::new("cp").arg("-r").arg(&state).arg(&inside).status();
    assert!(copied.unwrap().success());
    let run = |arguments: &[&str], state: &Path| {
        workspace.run_with(arguments, "", &[("KITBAG_STATE_DIR", state.to_str().unwrap())])
    };
    let call = ["run", "planted", "do=echo", "text=here"];
    assert_eq!(run(&call, &state).code, 0);
    // Also through a link.
    let link = workspace.outside().join("state");
    symlink(&inside, &link).unwrap();
    for state in [&inside, &link] {
        let refused = run(&call, state);
        assert_untrusted(&refused);
        assert!(
            refused.stderr.contains("is inside it, so it could contain"),
            "{}",
            refused.shown()
        );
        let asked = run(&["trust", "--yes"], state);
        assert_eq!(asked.code, 6, "{}", asked.shown());
        assert!(asked.stderr.contains("set `KITBAG_STATE_DIR` to another"), "{}", asked.shown());
    }
}

#[test]
fn a_damaged_or_shared_trust_record_is_ignored() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = greedy();
    workspace.trust();
    let record = workspace.record();
    let whole = fs::read(&record).unwrap();
    fs::write(&record, &whole[..whole.len() - 1]).unwrap();
    assert!(!workspace.runs_planted());
    fs::write(&record, &whole).unwrap();
    assert!(workspace.runs_planted());
    fs::set_permissions(&record, fs::Permissions::from_mode(0o622)).unwrap();
    assert!(!workspace.runs_planted());
    let run = workspace.run(&["list"]);
    assert!(run.stderr.contains("it is open to others (mode 622)"), "{}", run.shown());
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    // The record of another workspace.
    let other = String::from_utf8(whole.clone()).unwrap();
    let root = workspace.root().canonicalize().unwrap();
    fs::write(&record, other.replace(root.to_str().unwrap(), "/another")).unwrap();
    assert!(!workspace.runs_planted());
    // A new approval replaces the unreadable record.
    workspace.trust();
    assert!(workspace.runs_planted());
}

#[test]
fn the_trust_question_mentions_later_builds() {
    let workspace = greedy();
    let own = fs::read_to_string(workspace.own_config_file()).unwrap();
    workspace.own_config("[tools.planted]\ndev = true\n");
    let asked = workspace.run(&["trust", "--all"]).stdout;
    let line = "tool `planted` runs `.kitbag/tools/planted.wasm`, and each later build of it (`dev = \
                true`, <home>/.config/kitbag/config.toml:2:7)\n";
    assert!(asked.contains(line), "{asked}");
    let greedy = "  tool `greedy` runs `bin/greedy.wasm`\n";
    assert!(asked.contains(greedy), "{asked}");
    workspace.trust();
    let path = workspace.path(".kitbag/tools/planted.wasm");
    let before = fs::read(&path).unwrap();
    fs::write(&path, [&*before, b"\x00\x03\x01x\x00"].concat()).unwrap();
    assert!(workspace.runs_planted());
    // A component that is no longer a development build is compared with the trusted one.
    fs::write(workspace.own_config_file(), own).unwrap();
    assert!(!workspace.runs_planted());
}

#[test]
fn components_are_bounded_together() {
    let workspace = Workspace::new().untrusted();
    for number in 0..9 {
        let path = workspace.file(&format!(".kitbag/tools/t{number}.wasm"), "");
        // A sparse file, without content on the disk.
        fs::File::options().write(true).open(path).unwrap().set_len(128 << 20).unwrap();
    }
    let run = workspace.run(&["trust", "--yes"]);
    assert_ne!(run.code, 0, "{}", run.shown());
    let expected = ".kitbag/tools/t8.wasm` cannot be examined: the components of the workspace in \
                    total are larger than 1 GiB";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    fs::remove_file(workspace.path(".kitbag/tools/t8.wasm")).unwrap();
    workspace.run(&["trust", "--yes"]).success();
}
