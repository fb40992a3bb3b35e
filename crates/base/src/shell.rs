//! Quoting for POSIX shells. Every command that kitbag prints for a person to paste goes through
//! this module.

use crate::text::is_hidden;

/// Quotes one word of a command line, so that `sh`, `bash` and `zsh` read exactly this text.
///
/// Plain words are not quoted; of an option such as `--user=NAME`, only the value is. The result
/// has no character that a terminal acts on or that [`printable`](crate::text::printable) would
/// change. NUL is dropped, since no argument can contain it.
pub fn quoted(word: &str) -> String {
    if word.is_empty() {
        return "''".to_owned();
    }
    if word.bytes().all(is_plain) && !word.starts_with('=') {
        return word.to_owned();
    }
    if let Some((option, value)) = word.split_once('=')
        && option.starts_with("--")
        && option.bytes().all(is_plain)
    {
        return format!("{option}={}", in_quotes(value));
    }
    in_quotes(word)
}

/// Joins words to a command line and quotes each word.
pub fn command<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| quoted(word.as_ref())).collect();
    words.join(" ")
}

/// Returns true if no shell gives this byte a meaning inside a word. zsh interprets a leading `=`,
/// and shells expand `~` after `=` and `:`.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte)
}

/// Puts a word in single quotes, even if it is plain. Writes characters that a terminal acts on
/// with `printf`.
pub fn in_quotes(word: &str) -> String {
    let mut text = String::from("'");
    let is_escaped = |c: char| is_hidden(c) && c != '\n';
    let mut rest = word;
    while let Some(start) = rest.find(|c| is_escaped(c) || c == '\'') {
        let (before, after) = rest.split_at(start);
        text.push_str(before);
        if let Some(after) = after.strip_prefix('\'') {
            text.push_str("'\\''");
            rest = after;
            continue;
        }
        let end = after.find(|c| !is_escaped(c)).unwrap_or(after.len());
        let (escaped, after) = after.split_at(end);
        // A command substitution drops trailing newlines, so newlines are not written this way.
        text.push_str("'\"$(printf '");
        for byte in escaped.bytes().filter(|byte| *byte != 0) {
            text.push_str(&format!("\\{byte:03o}"));
        }
        text.push_str("')\"'");
        rest = after;
    }
    text.push_str(rest);
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;
    use crate::text::printable;

    /// Words that a shell could interpret.
    const HOSTILE: [&str; 40] = [
        "",
        " ",
        "a b",
        "'",
        "''",
        "it's",
        "\"",
        "\\",
        "\\'",
        "a\\",
        "$HOME",
        "$(touch PWNED)",
        "`touch PWNED`",
        "${IFS}",
        "a; touch PWNED",
        "a && touch PWNED",
        "a | cat",
        "a > PWNED",
        "a\ntouch PWNED\n",
        "\n",
        "a\n\n",
        "\t",
        "a\r\nb",
        "\u{1b}[31m\u{7}",
        "\u{202e}gnp\u{200b}",
        "größe 日本",
        "~",
        "~root",
        "a=~/x",
        "--user=~",
        "--user=$(touch PWNED)",
        "-n",
        "--",
        "!!",
        "!$ {a,b} *?[x]",
        "#comment",
        "=ls",
        "%1",
        "^a^b",
        "*",
    ];

    /// Returns the words that a shell reads from a command line.
    fn read_by(shell: &str, line: &str) -> Vec<String> {
        // The `x` preserves a newline at the end of the last word.
        let script = format!("printf '%s\\0' {line}; printf x");
        let output = Command::new(shell).arg("-c").arg(&script).output().unwrap();
        assert!(output.status.success(), "{shell}: {script}");
        let text = String::from_utf8(output.stdout).unwrap();
        let words = text.strip_suffix("\0x").unwrap_or_else(|| panic!("{shell}: {text:?}"));
        words.split('\0').map(str::to_owned).collect()
    }

    /// The shells to test. `KITBAG_TEST_SHELLS` adds more, such as `zsh`.
    fn shells() -> Vec<String> {
        let more = std::env::var("KITBAG_TEST_SHELLS").unwrap_or_default();
        let more = more.split_whitespace().map(str::to_owned);
        ["sh", "bash"].map(str::to_owned).into_iter().chain(more).collect()
    }

    #[test]
    fn shells_read_hostile_words_unchanged() {
        for shell in shells() {
            assert_eq!(read_by(&shell, &command(HOSTILE)), HOSTILE, "{shell}");
        }
    }

    #[test]
    fn plain_words_and_names_of_options_are_not_quoted() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word), expected);
        check("weather-1.3", "weather-1.3");
        check("--to", "--to");
        check("https://a.example/**", "'https://a.example/**'");
        check("--basic=a b", "--basic='a b'");
        check("a b=c", "'a b=c'");
        check("it's", "'it'\\''s'");
        check("a\u{1b}b", "'a'\"$(printf '\\033')\"'b'");
        assert_eq!(command(["kitbag", "run", "a b"]), "kitbag run 'a b'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn shells_read_any_words_unchanged(
            words in prop::collection::vec("[^\0]{0,12}|[-=~!$'\"`\\\\\n\t *;&|<>(){}#%^\u{1b}ä]{1,8}", 1..20),
        ) {
            let line = command(&words);
            prop_assert_eq!(printable(&line).to_string(), line.clone());
            for shell in shells() {
                prop_assert_eq!(read_by(&shell, &line), words.clone(), "{}", shell);
            }
        }
    }
}
