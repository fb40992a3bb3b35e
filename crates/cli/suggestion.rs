//! The command that a person meant, if the one that was typed does not exist in this form.

use clap::error::ErrorKind;
use kitbag::Kitbag;
use kitbag::contract::shell;
use kitbag::contract::text::nearest;

/// Names of other programs for a command of kitbag's.
const OTHER_NAMES: [(&str, &str); 24] = [
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
    ("test", "check"),
    ("tools", "list"),
    ("uninstall", "remove"),
    ("upgrade", "update"),
    ("validate", "check"),
];

/// The options of `kitbag` itself that take the next word as their value.
const WITH_VALUE: [&str; 2] = ["-w", "--workspace"];

/// The command line that was meant by these words, which come after the name of the program.
/// `options` are those of `kitbag run`. `None`: no command is known for the words.
pub(crate) fn command(kind: ErrorKind, words: &[String], options: &[&str]) -> Option<String> {
    let mut at = 0;
    while words.get(at).is_some_and(|word| word.starts_with('-')) {
        at += 1 + usize::from(WITH_VALUE.contains(&&*words[at]));
    }
    let (before, words) = words.split_at(at.min(words.len()));
    let (first, rest) = words.split_first()?;
    let meant = match kind {
        ErrorKind::InvalidSubcommand if Kitbag::builtin_names().contains(&&**first) => {
            called(first, rest)
        }
        ErrorKind::InvalidSubcommand => {
            let (_, own) = OTHER_NAMES.iter().find(|(other, _)| other == first)?;
            match (*own, rest.split_first()) {
                ("run", Some((tool, arguments))) => called(tool, arguments),
                _ => [&[(*own).to_owned()], rest].concat(),
            }
        }
        ErrorKind::UnknownArgument if first == "run" => {
            let (tool, arguments) = rest.split_first()?;
            let mut keys = arguments.iter().filter_map(|word| word.strip_prefix("--"));
            let is_option = |key: &str| nearest(key, options.iter().copied()).is_some();
            if keys.any(|key| is_option(key.split('=').next().unwrap_or(key))) {
                return None;
            }
            called(tool, arguments)
        }
        _ => return None,
    };
    Some(shell::command([&["kitbag".to_owned()], before, &meant].concat()))
}

/// The call of a tool with arguments that were written as options: `--key value`.
fn called(tool: &str, words: &[String]) -> Vec<String> {
    let mut call = vec!["run".to_owned(), tool.to_owned()];
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let key = word.strip_prefix("--").filter(|key| !key.is_empty());
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
    fn a_mistyped_command_line_gets_the_one_that_was_meant() {
        let check = |kind: ErrorKind, typed: &str, expected: Option<&str>| {
            let words: Vec<_> = typed.split(' ').map(str::to_owned).collect();
            let meant = command(kind, &words, &["time", "memory", "written"]);
            assert_eq!(meant.as_deref(), expected, "{typed}");
        };
        let unknown = ErrorKind::UnknownArgument;
        check(unknown, "run search_files --pattern x", Some("kitbag run search_files pattern=x"));
        check(
            unknown,
            "-w /a run search_files --pattern=x --hidden --max-results 3",
            Some("kitbag -w /a run search_files pattern=x hidden=true max_results=3"),
        );
        check(unknown, "list --nope", None);
        // One of ours, misspelled.
        check(unknown, "run now --tiem 1s", None);
        let unrecognized = ErrorKind::InvalidSubcommand;
        check(unrecognized, "read_file a.txt", Some("kitbag run read_file a.txt"));
        check(unrecognized, "read_file --path a.txt", Some("kitbag run read_file path=a.txt"));
        check(unrecognized, "install ./x.wasm", Some("kitbag add ./x.wasm"));
        check(unrecognized, "call now --zone UTC", Some("kitbag run now zone=UTC"));
        check(unrecognized, "--json test", Some("kitbag --json check"));
        check(unrecognized, "frobnicate", None);
        // It goes to a shell.
        check(unrecognized, "install $(reboot)", Some("kitbag add '$(reboot)'"));
    }

    #[test]
    fn other_names_are_sorted_and_none_is_a_command() {
        assert!(OTHER_NAMES.is_sorted());
    }
}
