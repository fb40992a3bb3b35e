//! Signs that a value in a client's configuration is a secret.

use kitbag::secrets::Leaks;

/// Words at the end of a part of a name, such as `GITHUB_TOKEN` or `apikey`, whose value is a
/// secret.
const WORDS: [&str; 9] = [
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIALS",
    "CREDENTIAL",
    "AUTHORIZATION",
];

/// The text that is shown in place of a secret.
const HIDDEN: &str = "***";

pub(super) struct SecretSigns(Leaks);

impl SecretSigns {
    pub(super) fn new() -> Self {
        Self(Leaks::new(Vec::new()))
    }

    /// Returns whether the value of a variable, header or parameter looks like a secret.
    pub(super) fn are_on(&self, name: &str, value: &str) -> bool {
        let is_path = value.starts_with(['/', '~']) && value[1..].contains(['/', '.']);
        let is_switch = ["true", "false", ""].contains(&value) || value.parse::<f64>().is_ok();
        // The value is elsewhere.
        let is_reference = value.contains("${");
        self.are_in(value) || is_secret_name(name) && !(is_path || is_switch || is_reference)
    }

    /// Returns whether a text contains a key, a token, or the password of a URL.
    pub(super) fn are_in(&self, text: &str) -> bool {
        self.0.find(text.as_bytes()).next().is_some() || has_password(text)
    }

    /// Returns the position of an argument that is a secret, or contains one.
    pub(super) fn argument(&self, words: &[String]) -> Option<usize> {
        (1..words.len()).find(|at| self.is_secret_argument(words, *at))
    }

    /// Returns the words of a command line without secrets.
    pub(super) fn masked(&self, words: &[String]) -> Vec<String> {
        let mask = |(at, word): (usize, &String)| match self.is_secret_argument(words, at) {
            false => word.clone(),
            true => match word.split_once('=') {
                Some((option, _)) if option.starts_with('-') => format!("{option}={HIDDEN}"),
                _ => HIDDEN.to_owned(),
            },
        };
        words.iter().enumerate().map(mask).collect()
    }

    fn is_secret_argument(&self, words: &[String], at: usize) -> bool {
        let word = &words[at];
        if self.are_in(word) {
            return true;
        }
        let before = at.checked_sub(1).map_or("", |before| &words[before]);
        let is_pair = |separator| {
            word.split_once(separator)
                .is_some_and(|(name, value): (&str, &str)| self.are_on(name, value.trim()))
        };
        let is_value = before.starts_with('-') && !word.starts_with('-');
        is_pair('=') || is_pair(':') || is_value && self.are_on(before, word)
    }
}

fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let mut parts = upper.split(|c: char| !c.is_ascii_alphanumeric());
    parts.any(|part| WORDS.iter().any(|word| part.ends_with(word)))
}

/// Returns whether a text is a URL with a user and a password.
fn has_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_by_name_and_form() {
        let signs = SecretSigns::new();
        let check = |name: &str, value: &str, expected: bool| {
            assert_eq!(signs.are_on(name, value), expected, "{name}={value}");
        };
        check("GITHUB_TOKEN", "anything at all", true);
        check("apiKey", "anything at all", true);
        check("X-Api-Key", "anything at all", true);
        check("MAX_TOKENS", "4096", false);
        check("USE_KEY", "true", false);
        check("GOOGLE_APPLICATION_CREDENTIALS", "/home/ada/key.json", false);
        check("LOG_LEVEL", "debug", false);
        check("DATABASE_URL", "postgres://ada:lovelace@db.example/notes", true);
        check("DATABASE_URL", "postgres://ada@db.example/notes", false);
        check("ANY", &format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"), true);
    }

    #[test]
    fn secret_arguments_are_masked() {
        let signs = SecretSigns::new();
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let check = |text: &str, expected: &str| {
            assert_eq!(signs.masked(&words(text)).join(" "), expected);
            assert_eq!(signs.argument(&words(text)).is_some(), expected.contains(HIDDEN));
        };
        check("npx -y server --api-key hunter2hunter2", "npx -y server --api-key ***");
        check("npx -y server --token=hunter2hunter2", "npx -y server --token=***");
        check("server postgres://ada:lovelace@db/notes", "server ***");
        check("docker run -e API_KEY -e LOG=1 image", "docker run -e API_KEY -e LOG=1 image");
        check("docker run -e API_KEY=hunter2hunter2 image", "docker run -e *** image");
        check("server --key-file /etc/key", "server --key-file /etc/key");
        check("mcp-remote --header Authorization:Bearer+hunter2", "mcp-remote --header ***");
        check("mcp-remote --header Authorization:${A}", "mcp-remote --header Authorization:${A}");
    }
}
