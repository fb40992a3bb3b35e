//! `kitbag secret`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::support::terminal::on_a_terminal;
use crate::support::{Run, Workspace, probe};

const TOKEN: &str = "a-token-of-the-tests";

/// Runs `kitbag secret` with a value on standard input.
fn secret(workspace: &Workspace, arguments: &[&str], value: &str) -> Run {
    workspace.run_with(&[&["secret"], arguments].concat(), value, &[])
}

/// Runs it, and expects this on standard output.
#[track_caller]
fn check(workspace: &Workspace, arguments: &[&str], value: &str, expected: &str) {
    let run = secret(workspace, arguments, value);
    assert_eq!((run.code, &*run.stdout), (0, expected), "{}", run.stderr);
    assert!(value.len() < 8 || !run.stderr.contains(value), "{}", run.stderr);
}

/// Runs it, and expects it to fail with this code and message.
#[track_caller]
fn check_failed(workspace: &Workspace, arguments: &[&str], value: &str, code: i32, message: &str) {
    let run = secret(workspace, arguments, value);
    assert_eq!((run.code, &*run.stdout), (code, ""), "{}", run.stderr);
    assert!(run.stderr.contains(message), "{}", run.stderr);
    assert!(value.is_empty() || !run.stderr.contains(value), "{}", run.stderr);
}

#[test]
fn a_secret_is_kept_encrypted_and_said_where_it_goes() {
    let workspace = Workspace::new();
    fs::write(workspace.own_config_file(), "# Mine.\n[limits]\ntime = \"20s\"\n").unwrap();
    let file = file_of(&workspace);
    let store = "<home>/.local/state/kitbag/secrets.age";
    let to = "https://api.github.com/**";
    let set = secret(&workspace, &["set", "github", "--to", to], TOKEN);
    assert_eq!((set.code, &*set.stderr), (0, &*ungranted(&workspace, "github")));
    let kept = format!("its value is in {store}\nit goes to {to}, as bearer ({file})\n");
    assert_eq!(set.stdout, format!("`github` is set: {kept}"));
    let to = "https://mail.example.com/**";
    let kept = format!(
        "`mail` is set: its value is in {store}\nit goes to {to}, as basic for ada ({file})\n"
    );
    check(&workspace, &["set", "mail", "--to", to, "--basic", "ada"], "a-password\n", &kept);
    let bot = ["set", "bot", "--variable", "BOT_TOKEN", "--header", "X-Bot", "--prefix", "Bot "];
    let read =
        "`bot` is set: its value is read from the variable `BOT_TOKEN` when a request needs it\n";
    check(&workspace, &bot, "", read);
    let ci = ["set", "ci", "--command", "/bin/echo", "--command", "of-the-command"];
    let set = secret(&workspace, &ci, "");
    let nowhere = format!(
        "it goes nowhere yet; to say where: kitbag secret set ci --keep-value --to \
         'https://HOST/**'\n{}",
        ungranted(&workspace, "ci")
    );
    assert_eq!((set.code, &*set.stderr), (0, &*nowhere));
    let read = "`ci` is set: its value is read from `/bin/echo` when a request needs it\n";
    assert_eq!(set.stdout, read);
    assert_eq!(
        fs::read_to_string(workspace.own_config_file()).unwrap(),
        "# Mine.\n[limits]\ntime = \"20s\"\n\n[secret_store]\nkind = \"key-file\"\n\n\
         [secrets.github]\nto = [\"https://api.github.com/**\"]\n\n\
         [secrets.mail]\nto = [\"https://mail.example.com/**\"]\nas = { basic = \"ada\" }\n\n\
         [secrets.bot]\nvariable = \"BOT_TOKEN\"\nas = { header = \"x-bot\", prefix = \"Bot \" }\n\n\
         [secrets.ci]\ncommand = [\"/bin/echo\", \"of-the-command\"]\n"
    );
    check(
        &workspace,
        &["list"],
        "",
        "bot     variable BOT_TOKEN  header x-bot   goes nowhere\n\
         ci      command /bin/echo   bearer         goes nowhere\n\
         github  store               bearer         https://api.github.com/**\n\
         mail    store               basic for ada  https://mail.example.com/**\n",
    );
    let listed = secret(&workspace, &["list", "--json"], "").json();
    assert_eq!(listed[2]["set"], true);
    assert_eq!(listed[2]["to"][0], "https://api.github.com/**");
    let test = secret(&workspace, &["test", "github"], "").stdout;
    let expected = "`github` can be read (store)\ngoes to https://api.github.com/**\nas bearer (";
    assert!(test.starts_with(expected), "{test}");
    let test = secret(&workspace, &["test", "ci"], "").stdout;
    assert!(test.starts_with("`ci` can be read (command /bin/echo)\nit goes nowhere;"), "{test}");
    let unset = "the variable `BOT_TOKEN` is not set";
    check_failed(&workspace, &["test", "bot"], "", 6, unset);

    // Nothing of a value is in a file, and the store is the user's alone.
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
    for name in ["secrets.age", "secrets.key", "config.toml"] {
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

    let deleted = format!("`mail` is deleted from {file}; its value is deleted from {store}\n");
    check(&workspace, &["delete", "mail"], "", &deleted);
    check_failed(&workspace, &["delete", "mail"], "", 2, "there is no secret `mail`");
    assert_eq!(secret(&workspace, &["list"], "").stdout.lines().count(), 3);
}

/// The user's own file, as a command prints it.
fn file_of(workspace: &Workspace) -> String {
    workspace.redact(&workspace.own_config_file().display().to_string())
}

/// The note that no tool is granted a secret.
fn ungranted(workspace: &Workspace, name: &str) -> String {
    let file = file_of(workspace);
    format!(
        "no tool here is granted it; to grant it, add `{name} = {{}}` to \
         `tools.NAME.grants.secrets` of `{file}`\n"
    )
}

/// Grants the secret `github` to `fetch` and to a tool of the workspace.
fn granting() -> Workspace {
    let workspace = Workspace::with_toolsets(&["fetch"]);
    workspace.own_config(
        "[tools.fetch.grants]\nhttp = [\"https://api.github.com/**\"]\nsecrets.github = {}\n",
    );
    workspace.config(&probe("grants.env = [{ name = \"TOKEN\", secret = \"github\" }]\n"));
    workspace
}

const GRANTED: &str = "`github` goes to https://api.github.com/**. Granted to:\n  \
                       tool `fetch`, which may send https://api.github.com/** \
                       (<home>/.config/kitbag/config.toml:";

#[test]
fn a_granted_secret_needs_consent_when_it_first_goes_somewhere() {
    let workspace = granting();
    let own_config = || fs::read_to_string(workspace.own_config_file()).unwrap();
    let before = own_config();
    let set = ["set", "github", "--to", "https://api.github.com/**"];
    let refused = secret(&workspace, &set, TOKEN);
    assert_eq!((refused.code, &*refused.stdout), (3, ""), "{}", refused.stderr);
    assert!(refused.stderr.starts_with(&format!("error: {GRANTED}")), "{}", refused.stderr);
    let probe = "\n  tool `probe`, which may send no requests (.kitbag/config.toml:";
    assert!(refused.stderr.contains(probe), "{}", refused.stderr);
    assert!(refused.stderr.contains("to agree, add `--yes`"), "{}", refused.stderr);
    assert_eq!(own_config(), before);
    // Without a destination there is nothing to agree to yet.
    let kept = secret(&workspace, &["set", "github"], TOKEN);
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    let to = ["set", "github", "--keep-value", "--to", "https://api.github.com/**"];
    assert_eq!(secret(&workspace, &to, "").code, 3);
    let agreed = secret(&workspace, &[&to[..], &["--yes"]].concat(), "");
    assert_eq!((agreed.code, &*agreed.stderr), (0, ""));
    assert!(agreed.stdout.ends_with("\ngranted to `fetch`, `probe`\n"), "{}", agreed.stdout);
    // It has a destination, and a new value is for that.
    assert_eq!(secret(&workspace, &["set", "github"], "another-value-of-it").code, 0);
    let json = secret(&workspace, &["set", "github", "--json"], "another-value-of-it").json();
    assert_eq!(json["tools"], json!(["fetch", "probe"]));
    assert_eq!(json["to"], json!(["https://api.github.com/**"]));
    let deleted = secret(&workspace, &["delete", "github"], "");
    let note = "calls of `fetch`, `probe` fail until it is set again or no longer granted: kitbag \
                secret set github\n";
    assert!(deleted.code == 0 && deleted.stderr.ends_with(note), "{}", deleted.stderr);
}

#[test]
fn a_person_is_asked_on_their_terminal_about_a_granted_secret() {
    let workspace = granting();
    let own_config = || fs::read_to_string(workspace.own_config_file()).unwrap();
    let before = own_config();
    let to = "https://api.github.com/**";
    let set = ["secret", "set", "github", "--variable", "TOKEN", "--to", to];
    for (typed, is_set) in [("\nperhaps\nn\n", false), ("", false), ("y\n", true)] {
        let (_, seen) = on_a_terminal(&workspace, &set, typed);
        assert!(seen.contains("Granted to:"), "{seen}");
        assert!(seen.contains("Give it to them? [y]es / [n]o: "), "{seen}");
        assert_eq!(seen.contains("nothing was set"), !is_set, "{seen}");
        assert_eq!(own_config() != before, is_set, "{seen}");
    }
}

#[test]
fn what_is_no_secret_or_no_place_for_one_changes_nothing() {
    let workspace = Workspace::new();
    let own_config = || fs::read_to_string(workspace.own_config_file()).unwrap();
    let before = own_config();
    let check = |arguments: &[&str], value: &str, message: &str| {
        check_failed(&workspace, &[&["set", "github"], arguments].concat(), value, 2, message);
    };
    check(&["--to", "http://api.github.com/**"], TOKEN, "would send the secret unencrypted");
    check(&["--to", "https://*.github.com/**"], TOKEN, "name each, or add `--wildcard`");
    check(&["--to", "https://api.github.com/**"], "short", "the value has 5 bytes");
    check(&[], "two\nlines of it", "a secret is one line");
    check(&["--header", "Host"], TOKEN, "controls how a request is sent");
    check(&["--header", "a", "--query", "b"], TOKEN, "cannot be used with");
    check(&["--variable", "A", "--command", "b"], "", "cannot be used with");
    check(&["--keep-value"], "", "there is no secret `github`");
    check(&["--basic"], "ada-and-no-password", "it has no `:`");
    check(&["--basic"], "ada.lovelace:1234567", "the password has 7 bytes");
    check_failed(&workspace, &["set", "a b"], TOKEN, 2, "is not the name of a secret");
    check_failed(&workspace, &["delete", "github"], "", 2, "there is no secret `github`");
    assert_eq!(own_config(), before);
}

#[test]
fn a_store_is_chosen_once_and_a_passphrase_opens_it() {
    let workspace = Workspace::new();
    let run = |arguments: &[&str], value: &str, passphrase: Option<&str>| {
        let env: Vec<_> = passphrase.map(|text| ("KITBAG_PASSPHRASE", text)).into_iter().collect();
        let run = workspace.run_with(&[&["secret"], arguments].concat(), value, &env);
        (run.code, run.stderr)
    };
    let own = Some("the passphrase of it");
    let set = ["set", "github", "--store", "passphrase", "--to", "https://api.github.com/**"];
    let done = (0, ungranted(&workspace, "github"));
    let (code, message) = run(&set, TOKEN, None);
    assert_eq!(code, 6);
    assert!(message.contains("the variable `KITBAG_PASSPHRASE` is not set"), "{message}");
    assert_eq!(run(&set, TOKEN, own), done);
    assert_eq!(run(&["test", "github"], "", own), (0, String::new()));
    let (code, message) = run(&["test", "github"], "", Some("another passphrase"));
    assert_eq!(code, 6);
    assert!(message.contains("cannot be opened with its passphrase"), "{message}");
    let (code, message) = run(&["set", "mail", "--store", "key-file"], TOKEN, own);
    assert_eq!(code, 2);
    assert!(message.contains("the store is `passphrase` already"), "{message}");
    assert!(message.contains("it keeps github; delete those first"), "{message}");
    assert_eq!(run(&["delete", "github"], "", own), (0, String::new()));
    let (code, message) = run(&["set", "mail", "--store", "key-file"], TOKEN, own);
    assert_eq!(code, 2);
    assert!(message.contains("secrets.age` first"), "{message}");
    fs::remove_file(workspace.home().join(".local/state/kitbag/secrets.age")).unwrap();
    let (code, message) = run(&["set", "mail", "--store", "key-file"], TOKEN, None);
    assert_eq!(code, 0, "{message}");
    assert_eq!(run(&["test", "mail"], "", None), (0, String::new()));
}

#[test]
fn what_opens_no_store_is_said_once_and_changes_nothing() {
    let workspace = Workspace::new();
    let set = ["secret", "set", "github", "--to", "https://a.example/**"];
    let run = |arguments: &[&str], passphrase: &str| {
        let run = workspace.run_with(arguments, TOKEN, &[("KITBAG_PASSPHRASE", passphrase)]);
        (run.code, run.stderr)
    };
    let own_config = || fs::read_to_string(workspace.own_config_file()).unwrap();
    let before = own_config();
    let new = [&set[..], &["--store", "passphrase"]].concat();
    let closed = "error: the store of secrets cannot be opened\n\
                  caused by: the passphrase has 5 bytes, and one has at least 8\n";
    assert_eq!(run(&new, "short"), (6, closed.to_owned()));
    assert_eq!(own_config(), before);
    assert_eq!(run(&new, "the passphrase of it"), (0, ungranted(&workspace, "github")));
    assert_eq!(run(&set, "short"), (6, closed.to_owned()));
    let before = own_config();
    let moved = ["secret", "set", "github", "--to", "https://b.example/**"];
    let (code, message) = run(&moved, "another passphrase");
    assert_eq!((code, message.lines().count()), (6, 1), "{message}");
    assert!(message.contains("secrets.age` cannot be opened with its passphrase"), "{message}");
    assert_eq!(own_config(), before);
}

#[test]
fn a_value_is_no_argument_and_no_message_repeats_it() {
    let workspace = Workspace::new();
    let before = fs::read_to_string(workspace.own_config_file()).unwrap();
    let token = format!("ghp_{}", "notARealToken01234567890123456789012");
    for arguments in [
        &["set", "github", &token][..],
        &["set", "github", "a-value", &token, "--to", "https://a.example/**"],
        &["set", &token],
    ] {
        let run = secret(&workspace, arguments, TOKEN);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{}", run.stderr);
        assert!(run.stderr.contains("a value is no argument"), "{}", run.stderr);
        assert!(run.stderr.contains("| kitbag secret set"), "{}", run.stderr);
        assert!(!run.stderr.contains(&token) && !run.stderr.contains("a-value"), "{}", run.stderr);
    }
    assert_eq!(fs::read_to_string(workspace.own_config_file()).unwrap(), before);
}

#[test]
fn many_that_set_secrets_at_once_lose_nothing_and_leave_nothing_behind() {
    let workspace = Workspace::new();
    let names: Vec<_> = (0..12).map(|number| format!("secret-{number}")).collect();
    thread::scope(|scope| {
        for name in &names {
            let workspace = &workspace;
            scope.spawn(move || {
                let to = format!("https://{name}.example/**");
                let run = secret(workspace, &["set", name, "--to", &to], &format!("value-{name}"));
                assert_eq!(run.code, 0, "{}", run.stderr);
            });
        }
    });
    let listed = secret(&workspace, &["list", "--json"], "").json();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), names.len());
    for secret in listed {
        let to = format!("https://{}.example/**", secret["name"].as_str().unwrap());
        assert_eq!((&secret["set"], &secret["to"][0]), (&true.into(), &to.into()), "{secret}");
    }
    let directory = workspace.own_config_file().parent().unwrap().read_dir().unwrap();
    let mut left: Vec<_> = directory.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["config.toml", "secrets.key"]);
}

#[test]
fn places_change_with_the_value_or_without_it() {
    let workspace = Workspace::new();
    let set = |arguments: &[&str], value: &str| {
        let run = secret(&workspace, &[&["set"], arguments].concat(), value);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    };
    set(&["github", "--to", "https://a.example/**"], TOKEN);
    let kept = ["github", "--keep-value", "--to", "https://b.example/**", "--header", "X-A"];
    let file = file_of(&workspace);
    let changed = "`github` is changed; its value is kept\n\
                   it goes to https://b.example/**, as header x-a";
    assert_eq!(set(&kept, "another-value-of-it"), format!("{changed} ({file})\n"));
    let listed = "github  store  header x-a  https://b.example/**\n";
    check(&workspace, &["list"], "", listed);
    set(&["ci", "--variable", "CI_TOKEN"], "");
    set(&["ci", "--keep-value", "--to", "https://c.example/**"], "");
    let listed = "ci      variable CI_TOKEN  bearer      https://c.example/**\n\
                  github  store              header x-a  https://b.example/**\n";
    check(&workspace, &["list"], "", listed);
    for given in [&["--variable", "A"][..], &["--command", "a"], &["--store", "key-file"]] {
        let arguments = [&["set", "github", "--keep-value"], given].concat();
        check_failed(&workspace, &arguments, "", 2, "cannot be used with");
    }
    // Without the option a value is read, and an empty one is none.
    let to = ["set", "github", "--to", "https://d.example/**"];
    check_failed(&workspace, &to, "", 2, "the value has 0 bytes");
}

/// A `kitbag secret set` that has been given its value, and waits for the store.
fn waiting(workspace: &Workspace, arguments: &[&str], value: &str) -> Child {
    let mut command = workspace.command();
    command.args(["secret", "set"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    child
}

#[test]
fn a_new_value_never_goes_to_the_old_places_and_one_that_is_killed_shows_what_is_there() {
    let workspace = Workspace::new();
    let old = ["set", "github", "--to", "https://old.example/**"];
    assert_eq!(secret(&workspace, &old, TOKEN).code, 0);
    let own_config = || fs::read_to_string(workspace.own_config_file()).unwrap();
    let lock = workspace.home().join(".local/state/kitbag/secrets.age.lock");
    for (name, to, listed) in [
        ("github", "https://new.example/**", "github  store  bearer  goes nowhere\n"),
        (
            "other",
            "https://other.example/**",
            "github  store     bearer  goes nowhere\nother   no value  bearer  goes nowhere\n",
        ),
    ] {
        // The store waits for this, so that no value is kept yet.
        let lock = File::open(&lock).unwrap();
        lock.lock().unwrap();
        let before = own_config();
        let mut child = waiting(&workspace, &[name, "--to", to], "the-new-value-of-it");
        // A minute at most, where it fails.
        for _ in 0..12_000 {
            if own_config() != before || child.try_wait().unwrap().is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        drop(lock);
        assert!(!own_config().contains("old.example") && !own_config().contains(to));
        check(&workspace, &["list"], "", listed);
    }
}

#[test]
fn without_a_keyring_the_error_says_what_keeps_values_else() {
    let workspace = Workspace::new();
    let before = fs::read_to_string(workspace.own_config_file()).unwrap();
    let bus = [("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at-all")];
    let set = ["secret", "set", "github", "--store", "keyring"];
    let run = workspace.run_with(&set, TOKEN, &bus);
    assert_eq!((run.code, &*run.stdout), (6, ""), "{}", run.stderr);
    assert!(run.stderr.contains("no system keyring is available"), "{}", run.stderr);
    assert!(run.stderr.contains("`--store key-file` keeps values in a file"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(workspace.own_config_file()).unwrap(), before);
}

#[test]
fn ctrl_c_ends_the_program_that_is_waited_for() {
    let workspace = Workspace::new();
    let fifo = workspace.home().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // What is left of it says so after a while.
    let script = format!("exec 3>{fifo:?}; echo started >&3; sleep 30; echo left >&3");
    let program = ["--command", "/bin/sh", "--command", "-c", "--command", &script];
    assert_eq!(secret(&workspace, &[&["set", "ci"], &program[..]].concat(), "").code, 0);
    let mut command = workspace.command();
    command.args(["secret", "test", "ci"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(File::open(&fifo).unwrap());
    let mut text = String::new();
    said.read_line(&mut text).unwrap();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), None, "the signal ends it");
    said.read_to_string(&mut text).unwrap();
    assert_eq!(text, "started\n");
}
