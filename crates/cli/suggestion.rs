//! Suggests the intended command if the typed command line is invalid.

use clap::Command;
use clap::error::ErrorKind;
use kitbag::Kitbag;
use kitbag::base::shell;
use kitbag::base::text::nearest;

/// Command names of other programs for kitbag's commands.
const OTHER_NAMES: [(&str, &str); 26] = [
    ("call", "run"),
    ("config-mcp", "mcp-config"),
    ("delete", "remove"),
    ("doctor", "check"),
    ("exec", "run"),
    ("execute", "run"),
    ("get", "add"),
    ("info", "describe"),
    ("install", "add"),
    ("invoke", "run"),
    ("lint", "check"),
    ("log", "audit"),
    ("logs", "audit"),
    ("ls", "list"),
    ("mcp", "serve"),
    ("rm", "remove"),
    ("server", "serve"),
    ("show", "describe"),
    ("start", "serve"),
    ("tool", "list"),
    ("tools", "list"),
    ("uninstall", "remove"),
    ("upgrade", "update"),
    ("v", "--version"),
    ("validate", "check"),
    ("version", "--version"),
];

/// The options of `kitbag` itself that take the next word as their value.
const WITH_VALUE: [&str; 2] = ["-w", "--workspace"];

/// Words that precede a command in other programs, as in `tools list`.
const GROUPS: [&str; 5] = ["help", "mcp", "server", "tool", "tools"];

/// Options that pass a prompt in programs that run a model.
const PROMPTS: [&str; 3] = ["-p", "--print", "--prompt"];

/// Returns a hint with the likely intended command line. `words` follow the program name, and
/// `kitbag` is the program with all of its commands. `None` if no command matches.
pub(crate) fn hint(kind: ErrorKind, words: &[String], kitbag: &Command) -> Option<String> {
    if kind == ErrorKind::UnknownArgument
        && words.first().is_some_and(|word| PROMPTS.contains(&word.as_str()))
    {
        return Some(
            "kitbag does not run a model: `kitbag serve` serves the tools to a client that does, \
             and `kitbag run TOOL` calls one"
                .into(),
        );
    }
    if kind == ErrorKind::MissingRequiredArgument && words == ["run"] {
        return Some("`kitbag list` shows the tools".into());
    }
    let mut at = 0;
    while words.get(at).is_some_and(|word| word.starts_with('-') && !is_command(kitbag, word)) {
        at += 1 + usize::from(WITH_VALUE.contains(&&*words[at]));
    }
    let (before, words) = words.split_at(at.min(words.len()));
    // An unreadable word such as `-p` gives no better suggestion.
    let meant = meant(kind, words, kitbag).filter(|meant| meant != words)?;
    let command = shell::command([&["kitbag".to_owned()], before, &meant].concat());
    Some(format!("did you mean `{command}`?"))
}

/// Returns whether a word is the name or an option of a command, of this program or of others.
fn is_command(kitbag: &Command, word: &str) -> bool {
    own_name(kitbag, word.trim_start_matches('-')).is_some()
}

/// Returns the command that a word means.
fn own_name(kitbag: &Command, word: &str) -> Option<String> {
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == word);
    match other {
        Some((_, own)) => Some((*own).to_owned()),
        None => kitbag.find_subcommand(word).map(|command| command.get_name().to_owned()),
    }
}

/// Returns the intended words, without leading options of `kitbag`.
fn meant(kind: ErrorKind, words: &[String], kitbag: &Command) -> Option<Vec<String>> {
    let (first, rest) = words.split_first()?;
    let options = |command: &str| -> Vec<&str> {
        let command = kitbag.find_subcommand(command);
        let arguments = command.into_iter().flat_map(Command::get_arguments);
        arguments.filter_map(clap::Arg::get_long).collect()
    };
    match kind {
        ErrorKind::InvalidSubcommand if Kitbag::builtin_names().contains(&&**first) => {
            Some(called(first, rest, &options("run")))
        }
        ErrorKind::InvalidSubcommand
            if GROUPS.contains(&&**first)
                && rest.first().is_some_and(|second| own_name(kitbag, second).is_some()) =>
        {
            let mut meant = vec![own_name(kitbag, &rest[0])?];
            meant.extend_from_slice(&rest[1..]);
            meant.extend((first == "help").then(|| "--help".to_owned()));
            Some(meant)
        }
        ErrorKind::InvalidSubcommand
            if first == "help"
                && rest.first().is_some_and(|tool| Kitbag::builtin_names().contains(&&**tool)) =>
        {
            Some([&["describe".to_owned()], rest].concat())
        }
        ErrorKind::InvalidSubcommand if first != "help" => {
            let own = own_name(kitbag, first)?;
            Some(match (&*own, rest.split_first()) {
                ("run", Some((tool, arguments))) => called(tool, arguments, &options("run")),
                _ => [&[own], rest].concat(),
            })
        }
        ErrorKind::UnknownArgument if first.starts_with('-') => {
            // `--log info serve` has an option of `serve` before the command.
            if rest.iter().any(|word| is_command(kitbag, word)) {
                return None;
            }
            Some([&[own_name(kitbag, first.trim_start_matches('-'))?], rest].concat())
        }
        ErrorKind::UnknownArgument if first == "run" => {
            let (tool, arguments) = rest.split_first()?;
            let mut keys = arguments.iter().filter_map(|word| word.strip_prefix("--"));
            let options = options("run");
            let is_option = |key: &str| {
                !options.contains(&key) && nearest(key, options.iter().copied()).is_some()
            };
            if keys.any(|key| is_option(key.split('=').next().unwrap_or(key))) {
                return None;
            }
            Some(called(tool, arguments, &options))
        }
        ErrorKind::UnknownArgument if first == "serve" => match rest {
            [option, port] if option == "--port" && port.parse::<u16>().is_ok() => {
                Some(["serve", "--http", &format!("127.0.0.1:{port}")].map(str::to_owned).into())
            }
            _ => None,
        },
        // `config show` means `config --show`.
        ErrorKind::UnknownArgument => {
            let (option, others) = rest.split_first()?;
            let is_option = options(first).contains(&&**option);
            is_option.then(|| [&[first.clone(), format!("--{option}")], others].concat())
        }
        _ => None,
    }
}

/// Returns the call of a tool whose arguments were written as options: `--key value`. `options` are
/// those of `kitbag run`, which are kept.
fn called(tool: &str, words: &[String], options: &[&str]) -> Vec<String> {
    let mut call = vec!["run".to_owned(), tool.to_owned()];
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let key = word.strip_prefix("--").filter(|key| {
            !key.is_empty() && !options.contains(&key.split('=').next().unwrap_or(key))
        });
        let Some(key) = key else {
            call.push(word.clone());
            continue;
        };
        let (key, value) = match key.split_once('=') {
            Some((key, value)) => (key, value.to_owned()),
            None => match words.next_if(|next| !next.starts_with("--")) {
                Some(value) => (key, value.clone()),
                None => (key, "true".to_owned()),
            },
        };
        call.push(format!("{}={value}", key.replace('-', "_")));
    }
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_command_line_gets_a_suggestion() {
        let option = |long| clap::Arg::new(long).long(long);
        let kitbag = Command::new("kitbag").subcommands([
            Command::new("run").args(["time", "memory", "written"].map(option)),
            Command::new("config").args(["show", "schema"].map(option)),
            Command::new("list"),
            Command::new("serve").arg(option("http")),
        ]);
        let check = |kind: ErrorKind, typed: &str, expected: Option<&str>| {
            let words: Vec<_> = typed.split(' ').map(str::to_owned).collect();
            let expected = expected.map(|command| format!("did you mean `{command}`?"));
            assert_eq!(hint(kind, &words, &kitbag), expected, "{typed}");
        };
        let unknown = ErrorKind::UnknownArgument;
        check(unknown, "run search_files --pattern x", Some("kitbag run search_files pattern=x"));
        check(
            unknown,
            "-w /a run search_files --pattern=x --hidden --max-results 3",
            Some("kitbag -w /a run search_files pattern=x hidden=true max_results=3"),
        );
        check(unknown, "list --nope", None);
        check(unknown, "--list", Some("kitbag list"));
        check(unknown, "--json --tools", Some("kitbag --json list"));
        check(unknown, "--log info serve", None);
        check(unknown, "-v", Some("kitbag --version"));
        check(unknown, "config show", Some("kitbag config --show"));
        check(unknown, "config nope", None);
        check(unknown, "serve --port 80", Some("kitbag serve --http 127.0.0.1:80"));
        check(unknown, "serve --port x", None);
        check(unknown, "run now --zone UTC --time 1s", Some("kitbag run now zone=UTC --time 1s"));
        check(unknown, "run search_files -p x", None);
        // A misspelled option of kitbag.
        check(unknown, "run now --tiem 1s", None);
        let unrecognized = ErrorKind::InvalidSubcommand;
        check(unrecognized, "read_file a.txt", Some("kitbag run read_file a.txt"));
        check(unrecognized, "read_file --path a.txt", Some("kitbag run read_file path=a.txt"));
        check(unrecognized, "install ./x.wasm", Some("kitbag add ./x.wasm"));
        check(unrecognized, "call now --zone UTC", Some("kitbag run now zone=UTC"));
        check(unrecognized, "--json validate", Some("kitbag --json check"));
        check(unrecognized, "tools list", Some("kitbag list"));
        check(unrecognized, "tools", Some("kitbag list"));
        check(unrecognized, "tools --json", Some("kitbag list --json"));
        check(unrecognized, "help frobnicate", None);
        check(unrecognized, "mcp list", Some("kitbag list"));
        check(unrecognized, "help tools", Some("kitbag list --help"));
        check(unrecognized, "help read_file", Some("kitbag describe read_file"));
        check(unrecognized, "version", Some("kitbag --version"));
        check(unrecognized, "frobnicate", None);
        // The suggestion is quoted for a shell.
        check(unrecognized, "install $(reboot)", Some("kitbag add '$(reboot)'"));
    }

    #[test]
    fn prompt_option_gets_the_list_of_commands() {
        let words = |typed: &str| typed.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let kitbag = Command::new("kitbag");
        for typed in ["-p hello", "--prompt hello", "--print", "-p"] {
            let hint = hint(ErrorKind::UnknownArgument, &words(typed), &kitbag).unwrap();
            assert!(hint.starts_with("kitbag does not run a model"), "{hint}");
        }
        let hint = hint(ErrorKind::MissingRequiredArgument, &words("run"), &kitbag).unwrap();
        assert_eq!(hint, "`kitbag list` shows the tools");
    }

    #[test]
    fn other_names_are_sorted_and_not_commands() {
        assert!(OTHER_NAMES.is_sorted());
    }
}
