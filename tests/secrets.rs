//! `kitbag secret`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Run, Workspace, snapshot};

const TOKEN: &str = "a-token-of-the-tests";

/// Runs `kitbag secret` with a value on standard input.
fn secret(workspace: &Workspace, arguments: &[&str], value: &str) -> Run {
    workspace.run_with(&[&["secret"], arguments].concat(), value, &[])
}

fn shown(arguments: &[&str], run: &Run) -> String {
    format!("$ kitbag secret {}\n{}\n", arguments.join(" "), run.shown())
}

#[test]
fn a_secret_is_kept_encrypted_and_said_where_it_goes() {
    let workspace = Workspace::new();
    workspace.own_config("# Mine.\n[limits]\ntime = \"20s\"\n");
    let mut report = String::new();
    for (arguments, value) in [
        (&["list"][..], ""),
        (&["test", "github"], ""),
        (&["set", "github", "--to", "https://api.github.com/**"], TOKEN),
        (&["set", "mail", "--to", "https://mail.example.com/**", "--basic", "ada"], "a-password\n"),
        (&["set", "bot", "--variable", "BOT_TOKEN", "--header", "X-Bot", "--prefix", "Bot "], ""),
        (&["set", "ci", "--command", "/bin/echo", "--command", "-n-of-the-command"], ""),
        (&["list"], ""),
        (&["list", "--json"], ""),
        (&["test", "github"], ""),
        (&["test", "bot"], ""),
        (&["test", "ci"], ""),
        (&["delete", "mail"], ""),
        (&["delete", "mail"], ""),
        (&["list"], ""),
    ] {
        report.push_str(&shown(arguments, &secret(&workspace, arguments, value)));
    }
    let config = fs::read_to_string(workspace.own_config_file()).unwrap();
    report.push_str(&format!("config.toml:\n{config}"));
    snapshot!("a secret is kept", &report);

    // Nothing of a value is on the screen, in the configuration or in a file.
    let mut files = Vec::new();
    let mut directories = vec![workspace.home()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    let names = ["secrets.age", "secrets.key", "config.toml"];
    for name in names {
        assert!(files.iter().any(|file| file.ends_with(name)), "{name} in {files:?}");
    }
    for file in files {
        let content = fs::read(&file).unwrap();
        for value in [TOKEN, "a-password"] {
            let is_in = content.windows(value.len()).any(|part| part == value.as_bytes());
            assert!(!is_in, "{}", file.display());
        }
        if file.to_string_lossy().contains("secrets.") {
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    for value in [TOKEN, "a-password", "of-the-command"] {
        let shown = report.matches(value).count();
        // What was typed on the command line to write it.
        assert_eq!(shown, usize::from(value == "of-the-command"), "{value}");
    }
}

#[test]
fn what_is_no_secret_or_no_place_for_one_changes_nothing() {
    let workspace = Workspace::new();
    let mut report = String::new();
    for (arguments, value) in [
        (&["set", "github", "--to", "http://api.github.com/**"][..], TOKEN),
        (&["set", "github", "--to", "https://*.github.com/**"], TOKEN),
        (&["set", "github", "--to", "https://api.github.com/**"], "short"),
        (&["set", "github"], "two\nlines of it"),
        (&["set", "a b"], TOKEN),
        (&["set", "github", "--header", "Host"], TOKEN),
        (&["set", "github", "--header", "a", "--query", "b"], TOKEN),
        (&["set", "github", "--variable", "A", "--command", "b"], ""),
        (&["set", "github", "the-value-as-an-argument"], ""),
        (&["delete", "github"], ""),
    ] {
        report.push_str(&shown(arguments, &secret(&workspace, arguments, value)));
    }
    snapshot!("no secret", &report);
    assert!(!workspace.own_config_file().exists());
}

#[test]
fn a_store_is_chosen_once_and_a_passphrase_opens_it() {
    let workspace = Workspace::new();
    let run = |arguments: &[&str], value: &str, passphrase: &str| {
        let arguments = [&["secret"], arguments].concat();
        let env: &[_] = &[("KITBAG_PASSPHRASE", passphrase)];
        let run = workspace.run_with(&arguments, value, if passphrase.is_empty() { &[] } else { env });
        shown(&arguments[1..], &run)
    };
    let set = ["set", "github", "--store", "passphrase", "--to", "https://api.github.com/**"];
    let report = [
        run(&set, TOKEN, ""),
        run(&set, TOKEN, "the passphrase of it"),
        run(&["test", "github"], "", "the passphrase of it"),
        run(&["test", "github"], "", "another passphrase"),
        run(&["set", "mail", "--store", "key-file"], TOKEN, "the passphrase of it"),
    ];
    snapshot!("a passphrase", &report.concat());
}
