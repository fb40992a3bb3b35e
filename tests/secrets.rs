//! `kitbag secret`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Run, Workspace};

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
    let file = secret(&workspace, &["set", "github", "--to", "https://api.github.com/**"], TOKEN);
    assert_eq!((file.code, &*file.stderr), (0, ""));
    let file = &*file.stdout;
    assert!(file.ends_with("/.config/kitbag/config.toml\n"), "{file}");
    let to = "https://mail.example.com/**";
    check(&workspace, &["set", "mail", "--to", to, "--basic", "ada"], "a-password\n", file);
    let bot = ["set", "bot", "--variable", "BOT_TOKEN", "--header", "X-Bot", "--prefix", "Bot "];
    check(&workspace, &bot, "", file);
    let ci = ["set", "ci", "--command", "/bin/echo", "--command", "of-the-command"];
    check(&workspace, &ci, "", file);
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
    assert!(test.starts_with("`ci` can be read (command /bin/echo)\nit may go nowhere;"), "{test}");
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

    check(&workspace, &["delete", "mail"], "", file_of(&workspace).as_str());
    check_failed(&workspace, &["delete", "mail"], "", 2, "there is no secret `mail`");
    assert_eq!(secret(&workspace, &["list"], "").stdout.lines().count(), 3);
}

/// The user's own file, as a command prints it.
fn file_of(workspace: &Workspace) -> String {
    workspace.redact(&format!("{}\n", workspace.own_config_file().display()))
}

#[test]
fn what_is_no_secret_or_no_place_for_one_changes_nothing() {
    let workspace = Workspace::new();
    let own_config = || fs::read_to_string(workspace.own_config_file()).unwrap();
    let before = own_config();
    let check = |arguments: &[&str], value: &str, message: &str| {
        check_failed(&workspace, &[&["set", "github"], arguments].concat(), value, 2, message);
    };
    check(&["--to", "http://api.github.com/**"], TOKEN, "would send it unencrypted");
    check(&["--to", "https://*.github.com/**"], TOKEN, "name each, or add `--wildcard`");
    check(&["--to", "https://api.github.com/**"], "short", "the value has 5 bytes");
    check(&[], "two\nlines of it", "a secret is one line");
    check(&["--header", "Host"], TOKEN, "says how a request is sent");
    check(&["--header", "a", "--query", "b"], TOKEN, "cannot be used with");
    check(&["--variable", "A", "--command", "b"], "", "cannot be used with");
    check(&["the-value-as-an-argument"], "", "unexpected argument");
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
    let (code, message) = run(&set, TOKEN, None);
    assert_eq!(code, 6);
    assert!(message.contains("the variable `KITBAG_PASSPHRASE` is not set"), "{message}");
    assert_eq!(run(&set, TOKEN, own), (0, String::new()));
    assert_eq!(run(&["test", "github"], "", own), (0, String::new()));
    let (code, message) = run(&["test", "github"], "", Some("another passphrase"));
    assert_eq!(code, 6);
    assert!(message.contains("cannot be opened with its passphrase"), "{message}");
    let (code, message) = run(&["set", "mail", "--store", "key-file"], TOKEN, own);
    assert_eq!(code, 2);
    assert!(message.contains("the store is `passphrase` already"), "{message}");
}
