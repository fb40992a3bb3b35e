//! README and `docs/` are correct: their examples run, and the tests and messages that they mention
//! exist.

use std::fs;

use kitbag::config::{LIMITS, LimitSpec, TOOLSETS};

use super::{test_names, test_sources};
use crate::support::{Workspace, cargo_run, guest, repository};

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// The first fenced block after a line that contains the marker.
#[track_caller]
fn block_after(document: &str, marker: &str) -> String {
    let (_, rest) = document.split_once(marker).unwrap_or_else(|| panic!("no `{marker}`"));
    let (_, block) = rest.split_once("```").unwrap();
    let (_, block) = block.split_once('\n').unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// Runs a command in the repository, as README shows it.
fn in_repository(arguments: &[&str]) -> String {
    let workspace = Workspace::new();
    let output = workspace.command().current_dir(repository()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the sessions of a page as a reader would: in one workspace and one home, with the files
/// that the page shows. Returns the number of commands, and adds commands with different output to
/// `wrong`.
fn follow(page: &str, wrong: &mut Vec<String>) -> usize {
    let workspace = Workspace::with_toolsets(&[&TOOLSETS[..], &["write"]].concat()).untrusted();
    workspace.remove_own_config();
    let bin = workspace.outside().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(workspace.command().get_program(), bin.join("kitbag")).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let mut count = 0;
    let text = read(page);
    for (before, block) in text.split("```").zip(text.split("```").skip(1)).step_by(2) {
        let marker = before.trim_end().lines().last().unwrap_or_default();
        let content = block.split_once('\n').unwrap().1;
        if let Some(name) = marker.strip_prefix("<!-- file: ") {
            workspace.file(name.trim_end_matches(" -->"), content);
        }
        if marker != "<!-- session -->" {
            continue;
        }
        for session in format!("\n{content}").split("\n$ ").skip(1) {
            let (command, expected) = session.split_once('\n').unwrap_or((session, ""));
            let mut shell = std::process::Command::new("/bin/sh");
            shell.args(["-c", &format!("exec 2>&1\n{command}")]).current_dir(workspace.root());
            shell.env_clear().env("HOME", workspace.home()).env("PATH", &path);
            shell.env("KITBAG_CACHE_DIR", workspace.cache());
            let output = shell.stdin(std::process::Stdio::null()).output().unwrap();
            let shown = workspace.redact(&String::from_utf8(output.stdout).unwrap());
            let shown = shown.replace("<workspace>", "/home/ada/project");
            let shown = shown.replace("<home>", "/home/ada");
            let expected = expected.trim_end_matches('\n');
            let shown = shown.trim_end_matches('\n');
            if !fits(shown, expected) {
                wrong.push(format!("{page}: $ {command}\n{shown}\n--- and not\n{expected}\n"));
            }
            count += 1;
        }
    }
    count
}

/// Returns true if the text matches; `…` matches any text.
fn fits(text: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// The pages of `docs/` and README, without the generated ones.
fn pages() -> Vec<String> {
    let entries = fs::read_dir(repository().join("docs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
    pages.chain(["README.md".to_owned()]).collect()
}

#[test]
fn sessions_on_pages_are_real() {
    let mut wrong = Vec::new();
    let commands: usize = pages().iter().map(|page| follow(page, &mut wrong)).sum();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(commands > 30, "{commands}");
}

#[test]
fn troubleshooting_quotes_existing_messages() {
    // A message may continue on the next line.
    let sources = test_sources();
    let sources: String = sources.split("\\\n").map(str::trim_start).collect();
    let page = read("docs/troubleshooting.md");
    let rows =
        page.lines().filter(|line| line.starts_with("| `") && line.matches(" | ").count() == 2);
    let cells = rows.map(|line| line.split(" | ").next().unwrap());
    let quotes: Vec<_> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let missing: Vec<_> = quotes.iter().filter(|quote| !sources.contains(**quote)).collect();
    assert_eq!(missing, [&""; 0]);
    assert!(quotes.len() > 30, "{}", quotes.len());
}

/// With the component that the page expects in the user config.
#[test]
fn examples_of_grants_pass_the_check() {
    let workspace = Workspace::with_toolsets(&["search"]);
    fs::create_dir_all(workspace.home().join("notes")).unwrap();
    fs::create_dir_all(workspace.home().join("tools")).unwrap();
    let pages = ["grants", "grants-cookbook", "grants-files", "grants-http", "secrets"];
    let page: String = pages.iter().map(|page| read(&format!("docs/{page}.md"))).collect();
    let blocks: Vec<_> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0)
        .filter(|block| block.contains("[tools."))
        .collect();
    for block in &blocks {
        let (before, rest) = block.split_once("[tools.").unwrap();
        let name = &rest[..rest.find(['.', ']']).unwrap()];
        let wasm = workspace.home().join(format!("tools/{name}.wasm"));
        fs::copy(guest("settings"), &wasm).unwrap();
        let own = match block.contains("source = ") {
            true => (*block).to_owned(),
            false => {
                let source = format!("source = \"local\"\nwasm = \"~/tools/{name}.wasm\"\n");
                let table = format!("[tools.{name}]\n");
                match rest.starts_with(&format!("{name}]")) {
                    true => block.replacen(&table, &format!("{table}{source}"), 1),
                    false => format!("{before}{table}{source}[tools.{rest}"),
                }
            }
        };
        workspace.own_config(&own);
        let run = workspace.run(&["check"]);
        assert_eq!(run.code, 0, "{own}\n{}", run.shown());
    }
    assert!(blocks.len() > 10, "{}", blocks.len());
}

#[test]
fn the_page_on_clients_shows_the_printed_entries() {
    let page = read("docs/clients.md");
    let workspace = Workspace::new();
    for (client, heading) in [
        ("claude-code", "## Claude Code"),
        ("claude-desktop", "## Claude Desktop"),
        ("cursor", "## Cursor"),
        ("vscode", "## VS Code"),
        ("codex", "## Codex"),
        ("gemini", "## Gemini CLI"),
        ("windsurf", "## Windsurf"),
        ("cline", "## Windsurf"),
        ("goose", "## Goose"),
        ("opencode", "## opencode"),
        ("zed", "## Zed"),
        ("generic", "## Windsurf"),
    ] {
        let printed = workspace.run(&["mcp-config", client]).success();
        let printed = printed
            .replace(env!("CARGO_BIN_EXE_kitbag"), "/home/ana/.local/bin/kitbag")
            .replace("<workspace>", "/home/ana/project");
        assert_eq!(block_after(&page, &format!("\n{heading}\n")), printed, "{client}");
        let row = format!("| `{client}` |");
        assert!(page.contains(&row), "no row {row}");
    }
}

#[test]
fn without_topics_the_error_explains_how_to_add_one() {
    let workspace = Workspace::new();
    let run = workspace.run(&["run", "learn", "topic=team"]);
    assert_eq!(run.code, 1, "{}", run.shown());
    assert!(
        run.stderr.contains("set `subjects = \"DIRECTORY\"` under `[knowledge.NAME]`"),
        "{}",
        run.shown()
    );
}

#[test]
fn every_document_of_the_topic_can_be_loaded() {
    let all = in_repository(&["run", "learn", "topic=kitbag", "subjects=**", "max_bytes=1000000"]);
    for entry in fs::read_dir(repository().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let is_summary = path.ends_with("SUMMARY.md");
        if !is_summary && path.extension().is_some_and(|extension| extension == "md") {
            let slug = path.file_stem().unwrap().to_str().unwrap();
            // The tag has a suffix if the page contains the tag.
            assert!(all.contains(&format!(" name=\"{slug}\">")), "{slug}");
        }
    }
}

#[test]
fn troubleshooting_has_every_exit_code() {
    let page = read("docs/troubleshooting.md");
    let help = Workspace::new().run(&["--help"]).success();
    let (_, codes) = help.split_once("Exit codes:\n").unwrap();
    for line in codes.lines() {
        let code = line.split_whitespace().next().unwrap();
        assert!(code == "0" || page.contains(&format!("\n| {code} | ")), "{code}");
    }
}

#[test]
fn the_first_command_of_readme_works_through_cargo() {
    let readme = read("README.md");
    let command = "cargo run --release -- run learn topic=kitbag";
    assert!(readme.contains(command));
    // The command in README, except for the profile, which `cargo test` has already built.
    let stdout = cargo_run(&["--", "run", "learn", "topic=kitbag"]);
    assert!(stdout.starts_with("# Topic: kitbag\n"), "{stdout}");
}

#[test]
fn the_configuration_of_getting_started_is_valid() {
    let page = read("docs/getting-started.md");
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.path(".kitbag/tools")).unwrap();
    fs::copy(guest("stranger"), workspace.path(".kitbag/tools/word_count.wasm")).unwrap();
    workspace.config(&block_after(&page, "<!-- configuration -->"));
    let check = workspace.run(&["check"]);
    assert_eq!(check.code, 0, "{}", check.shown());
}

/// Returns true if a word may be the name of a test: at least three underscores, all lower case.
fn is_test_name(word: &str) -> bool {
    word.matches('_').count() > 2
        && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

#[test]
fn pages_name_only_existing_tests() {
    // An option of wasmtime.
    const OTHER_NAMES: [&str; 1] = ["linear_memory_keep_resident"];
    let names = test_names();
    let (mut named, mut missing) = (0, Vec::new());
    for entry in fs::read_dir(repository().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        for name in page.split('`').filter(|word| is_test_name(word)) {
            named += 1;
            if !OTHER_NAMES.contains(&name) && !names.contains(name) {
                missing.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
    assert!(named > 100, "{named}");
}

#[test]
fn the_page_of_limits_has_each_limit() {
    let page = read("docs/limits.md");
    for LimitSpec { key, variable } in LIMITS {
        let option = key.replace('_', "-");
        let row = page.lines().find(|line| line.starts_with(&format!("| `{key}`: ")));
        let row = row.unwrap_or_else(|| panic!("no row for `{key}`"));
        assert!(row.ends_with(&format!("| `--{option}` | `{variable}` |")), "{row}");
    }
}
