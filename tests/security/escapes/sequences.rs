//! Deterministic sequences of operations by two tools: files outside their grants are not reached,
//! and sealed files are not changed.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{CallInTest, Workspace, guest};

/// A pseudo-random generator with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// A path of meaningful names, at most three levels deep.
    fn path(&mut self, roots: &[&str]) -> String {
        const NAMES: &[&str] = &[
            "data",
            "notes",
            "shared",
            "build",
            "tool.wasm",
            "out",
            "rules.md",
            ".git",
            "HEAD",
            "refs",
            "..",
        ];
        let mut path = self.pick(roots).to_owned();
        for _ in 0..=self.below(2) {
            let plain = self.below(3) > 0;
            path = format!("{path}/{}", self.pick(if plain { &["a", "b"] } else { NAMES }));
        }
        path
    }

    fn operation(&mut self, roots: &[&str]) -> Value {
        const OPERATIONS: &[&str] = &[
            "read", "list", "write", "write", "append", "mkdir", "mkdir", "mkdir", "rmdir",
            "remove", "truncate", "rename", "rename", "link", "symlink", "symlink",
        ];
        const TARGETS: &[&str] = &[
            "..",
            "../..",
            "../outside",
            "a",
            "../shared",
            "../../outside/secret.md",
            "/etc",
            "../data",
        ];
        let (action, path) = (self.pick(OPERATIONS), self.path(roots));
        match action {
            "rename" | "link" => json!({ "do": action, "old": path, "new": self.path(roots) }),
            "symlink" => json!({ "do": action, "target": self.pick(TARGETS), "path": path }),
            _ => json!({ "do": action, "path": path, "text": "written" }),
        }
    }
}

/// Every file below a directory with its content, and every link with its target.
fn tree(directory: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut ahead = vec![directory.to_owned()];
    while let Some(directory) = ahead.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let (path, kind) =
                entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
            match () {
                () if kind.is_dir() => ahead.push(path.clone()),
                () if kind.is_file() => found.push((path.clone(), fs::read(&path).unwrap())),
                () => {}
            }
            found.push((path, Vec::new()));
        }
    }
    found.sort();
    found
}

#[test]
fn random_operations_of_two_tools_stay_within_their_grants() {
    let mut done = 0;
    for seed in 0..12 {
        let workspace = Workspace::new();
        let tool = |name: &str, grants: &str| {
            format!(
                "[tools.{name}]\nsource = \"local\"\nwasm = {:?}\ndescription = \"x\"\n\
                 grants.filesystem = [{grants}]\n",
                guest("probe"),
            )
        };
        let all = "{ host = \".\", guest = \"/workspace\", mode = \"rw\" }";
        let some = "{ host = \"shared\", guest = \"/shared\", mode = \"rw\" }, \
                    { host = \"data\", guest = \"/data\" }";
        workspace.config(&format!(
            "{}{}[tools.built]\nsource = \"local\"\nwasm = \"build/tool.wasm\"\n\
             [knowledge.team]\nsubjects = \"notes\"\n",
            tool("all", all),
            tool("some", some),
        ));
        for path in ["notes/rules.md", "build/tool.wasm", ".git/config", "repo/HEAD", "repo/refs/x"]
        {
            workspace.file(path, "sealed");
        }
        for path in ["a/config", "shared/a/b/config", "data/a/config"] {
            workspace.file(path, "inside");
        }
        let outside = workspace.outside().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret.md"), "the secret").unwrap();
        fs::hard_link(workspace.path("build/tool.wasm"), workspace.path("shared/tool.wasm"))
            .unwrap();
        symlink("../outside", workspace.path("out")).unwrap();
        symlink("../../outside", workspace.path("shared/out")).unwrap();

        let sealed = [".kitbag", ".git", "notes", "build", "repo"].map(|name| workspace.path(name));
        let kept =
            |paths: &[std::path::PathBuf]| paths.iter().map(|path| tree(path)).collect::<Vec<_>>();
        let kinds = || {
            ["shared", "data", "notes", "build"].map(|name| {
                let found = fs::symlink_metadata(workspace.path(name)).unwrap();
                std::os::unix::fs::MetadataExt::ino(&found)
            })
        };
        // A tool may write beside `tool.wasm`, so only that file of `build` is compared.
        let component = || fs::read(workspace.path("build/tool.wasm")).unwrap();
        let of_sealed = || {
            let mut found = kept(&sealed);
            found[3].clear();
            found
        };
        let before = (of_sealed(), kinds(), component(), tree(&outside));
        let kitbag = workspace.kitbag();
        let mut numbers = Numbers(seed);
        let mut steps = Vec::new();
        for _ in 0..100 {
            let tool = numbers.pick(&["all", "some"]);
            let roots: &[&str] = if tool == "all" {
                &["/workspace", "/workspace/shared"]
            } else {
                &["/shared", "/data"]
            };
            let operation = numbers.operation(roots);
            let got = kitbag.call_in_test(tool, operation.clone());
            done += usize::from(!got.contains("refused"));
            assert!(!got.starts_with("failed"), "{got}");
            steps.push(format!("{tool} {got}"));
            let log = || steps.join("\n");
            assert!(!got.contains("the secret") && !got.contains("secret.md ("), "{}", log());
            let after = (of_sealed(), kinds(), component(), tree(&outside));
            assert!(after == before, "{}", log());
        }
        // The configuration has the same meaning for another process as before.
        let run = workspace.run(&["run", "some", "do=read", "path=/data/a/config"]);
        assert_eq!(run.success(), "read /data/a/config: 6 bytes: inside\n");
        let run = workspace.run(&["run", "learn", "topic=team", "subjects=rules"]);
        assert_eq!(run.success(), "sealed\n");
    }
    assert!(done > 100, "only {done} operations were done");
}
