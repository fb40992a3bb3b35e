//! `kitbag secret`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{Run, Workspace};

const TOKEN: &str = "a-token-of-the-tests";

/// Runs `kitbag secret` with a value on standard input.
fn secret(workspace: &Workspace, arguments: &[&str], value: &str) -> Run {
    workspace.run_with(&[&["secret"], arguments].concat(), value, &[])
}

/// Runs `kitbag secret`, and expects this on standard output.
#[track_caller]
fn check(workspace: &Workspace, arguments: &[&str], value: &str, expected: &str) {
    let run = secret(workspace, arguments, value);
    assert_eq!((run.code, &*run.stdout), (0, expected), "{}", run.stderr);
    assert!(value.len() < 8 || !run.stderr.contains(value), "{}", run.stderr);
}

/// Runs `kitbag secret`, and expects it to fail with this code and message.
#[track_caller]
fn check_failed(workspace: &Workspace, arguments: &[&str], value: &str, code: i32, message: &str) {
    let run = secret(workspace, arguments, value);
    assert_eq!((run.code, &*run.stdout), (code, ""), "{}", run.stderr);
    assert!(run.stderr.contains(message), "{}", run.stderr);
    assert!(value.is_empty() || !run.stderr.contains(value), "{}", run.stderr);
}

#[test]
fn a_secret_is_stored_encrypted_and_its_destination_shown() {
    let workspace = Workspace::new();
    fs::write(workspace.own_config_file(), "# Mine.\n[limits]\ntime = \"20s\"\n").unwrap();
    let file = file_of(&workspace);
    let store = "<home>/.local/state/kitbag/secrets.age";
    let to = "https://api.github.com/**";
    let set = secret(&workspace, &["set", "github", "--to", to], TOKEN);
    assert_eq!((set.code, &*set.stderr), (0, &*ungranted(&workspace, "github")));
    let kept = format!("its value is in {store}\nit is sent to {to}, as bearer ({file})\n");
    assert_eq!(set.stdout, format!("`github` is set: {kept}"));
    let to = "https://mail.example.com/**";
    let kept = format!(
        "`mail` is set: its value is in {store}\nit is sent to {to}, as basic for ada ({file})\n"
    );
    check(&workspace, &["set", "mail", "--to", to, "--basic", "ada"], "a-password\n", &kept);
    let bot = ["set", "bot", "--variable", "BOT_TOKEN", "--header", "X-Bot", "--prefix", "Bot "];
    let read =
        "`bot` is set: its value is read from the variable `BOT_TOKEN` when a request needs it\n";
    check(&workspace, &bot, "", read);
    let ci = ["set", "ci", "--command", "/bin/echo", "--command", "of-the-command"];
    let set = secret(&workspace, &ci, "");
    let nowhere = format!(
        "it is sent nowhere yet; to choose where: kitbag secret set ci --keep-value --to \
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
    let expected =
        "`github` can be read (store)\nis sent to https://api.github.com/**\nas bearer (";
    assert!(test.starts_with(expected), "{test}");
    let test = secret(&workspace, &["test", "ci"], "").stdout;
    assert!(
        test.starts_with("`ci` can be read (command /bin/echo)\nit is sent nowhere;"),
        "{test}"
    );
    let unset = "the variable `BOT_TOKEN` is not set";
    check_failed(&workspace, &["test", "bot"], "", 6, unset);

    // No file contains a value in plain text, and only the user can read the store.
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
    check_failed(&workspace, &["delete", "mail"], "", 2, "no secret is named `mail`");
    assert_eq!(secret(&workspace, &["list"], "").stdout.lines().count(), 3);
}

/// The path of the user config, as a command prints it.
fn file_of(workspace: &Workspace) -> String {
    workspace.redact(&workspace.own_config_file().display().to_string())
}

/// The note that no tool is granted a secret.
fn ungranted(workspace: &Workspace, name: &str) -> String {
    let file = file_of(workspace);
    format!(
        "no tool here has a grant for it; to grant it, add `{name} = {{}}` to \
         `tools.NAME.grants.secrets` of `{file}`\n"
    )
}

#[test]
fn concurrent_commands_lose_no_secrets() {
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

/// A `kitbag secret set` that has received its value, and waits for the store.
fn waiting(workspace: &Workspace, arguments: &[&str], value: &str) -> Child {
    let mut command = workspace.command();
    command.args(["secret", "set"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    child
}

#[test]
fn a_new_value_is_never_sent_to_the_old_destinations() {
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
        // The store waits for this lock, so the value is not stored yet.
        let lock = File::open(&lock).unwrap();
        lock.lock().unwrap();
        let before = own_config();
        let mut child = waiting(&workspace, &[name, "--to", to], "the-new-value-of-it");
        // A minute at most, if it fails.
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
fn ctrl_c_ends_the_program_of_a_secret() {
    let workspace = Workspace::new();
    let fifo = workspace.home().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // If the program survived, it would write `left` later.
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
