//! The trust screens of workspaces that request more than they should: one file for each.

use std::fs;
use std::path::PathBuf;

use crate::support::{Workspace, guest, repository, snapshot};

/// Largest number of lines of a screen.
const MOST_LINES: usize = 40;

/// A workspace that requests more than it should.
struct Greedy {
    /// The user config.
    own: String,
    /// The configuration of the workspace.
    config: String,
    /// Other files of the workspace, with their contents.
    files: toml::Table,
}

impl Greedy {
    fn workspace(&self) -> Workspace {
        let workspace = Workspace::with_toolsets(&["files", "python", "fetch"]).untrusted();
        for directory in [".ssh", "other"] {
            fs::create_dir(workspace.home().join(directory)).unwrap();
        }
        workspace.own_config(&self.own);
        fs::create_dir(workspace.path("bin")).unwrap();
        fs::copy(guest("probe"), workspace.path("bin/probe.wasm")).unwrap();
        for (path, content) in &self.files {
            workspace.file(path, content.as_str().unwrap());
        }
        workspace.config(&self.config);
        workspace
    }
}

fn cases() -> Vec<(String, Greedy)> {
    let directory = repository().join("tests/cli/trusting/screens");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let case = |path: PathBuf| {
        let case = fs::read_to_string(&path).unwrap().parse::<toml::Table>().unwrap();
        let text = |key: &str| case.get(key).map_or("", |text| text.as_str().unwrap()).to_owned();
        let files = case.get("files").map(|files| files.as_table().unwrap().clone());
        let files = files.unwrap_or_default();
        let greedy = Greedy { own: text("own"), config: text("config"), files };
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), greedy)
    };
    paths.into_iter().map(case).collect()
}

/// Replaces digests of components, which change with the guests.
fn without_digests(text: &str) -> String {
    let line = |line: &str| match line.split_once(".wasm: ") {
        Some((path, _)) => format!("{path}.wasm: <digest>\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn greedy_workspaces_fit_on_a_screen() {
    let cases = cases();
    assert!(cases.len() >= 25, "{}", cases.len());
    for (name, greedy) in cases {
        let run = greedy.workspace().run(&["trust"]);
        assert_eq!(run.code, 3, "{name}: {}", run.shown());
        assert!(run.stdout.lines().count() <= MOST_LINES, "{name}: {}", run.stdout);
        snapshot!(&name, &without_digests(&run.stdout));
    }
}

#[test]
fn a_new_request_comes_before_sixty_that_are_trusted() {
    let cases = cases();
    let (_, sixty) = cases.iter().find(|(name, _)| name == "sixty-tools").unwrap();
    let workspace = sixty.workspace();
    workspace.trust();
    let more =
        sixty.config.replace("[tools.tool_30]", "[tools.tool_30]\ngrants.env = [\"NPM_TOKEN\"]");
    workspace.config(&more);
    let run = workspace.run(&["trust"]);
    assert!(run.stdout.lines().count() <= MOST_LINES, "{}", run.stdout);
    snapshot!("changed", &without_digests(&run.stdout));
}

#[test]
fn all_of_a_long_request_is_shown_on_request() {
    let cases = cases();
    let (_, sixty) = cases.iter().find(|(name, _)| name == "sixty-tools").unwrap();
    let run = sixty.workspace().run(&["trust", "--all"]);
    assert_eq!(run.code, 3, "{}", run.shown());
    for number in 0..59 {
        let line = format!("tool `tool_{number:02}` reads the workspace\n");
        assert!(run.stdout.contains(&line), "{line}: {}", run.stdout);
    }
    assert!(run.stdout.contains("| + [tools.tool_58]\n"), "{}", run.stdout);
    assert!(run.stdout.contains("\nWorst: the whole file system (`zz_last`)"), "{}", run.stdout);
}
