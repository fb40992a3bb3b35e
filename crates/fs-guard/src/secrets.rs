//! Names of files that look like secrets: the one list, and what a configuration changes of
//! it.

use std::cell::Cell;
use std::ffi::OsStr;
use std::iter;
use std::path::Path;

use kitbag_glob::{Glob, Include};

use crate::names::{fold, is_short_name};
use crate::protected::ProtectedNames;

/// Names of files and directories that hold secrets, in lower case. They start with `.` or
/// `i`; see [`is_ordinary`]. Copies of them are secrets as well; see [`original`].
const NAMES: [&str; 34] = [
    ".env",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".git-credentials",
    ".credentials.json",
    ".htpasswd",
    ".dockercfg",
    ".terraformrc",
    ".vault-token",
    ".boto",
    ".s3cfg",
    ".databrickscfg",
    ".password-store",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".kaggle",
    ".oci",
    // Agents and package managers keep tokens in these.
    ".claude.json",
    ".aider.conf.yml",
    ".yarnrc.yml",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
];

/// Names of files that hold secrets in a directory of this name, in lower case. Elsewhere
/// they are ordinary.
const STORES: [(&str, &[&str]); 24] = [
    // Addresses of remotes may hold tokens.
    (".git", &["config", "config.worktree", "credentials"]),
    (".docker", &["config.json"]),
    ("gh", &["hosts.yml"]),
    (".cargo", &["credentials", "credentials.toml"]),
    (".m2", &["settings.xml", "settings-security.xml"]),
    (".gradle", &["gradle.properties"]),
    (".gem", &["credentials"]),
    (".bundle", &["config"]),
    (".composer", &["auth.json"]),
    ("composer", &["auth.json"]),
    ("nuget", &["nuget.config"]),
    // Agents and command lines of model providers.
    (".codex", &["auth.json"]),
    (".gemini", &["oauth_creds.json", "google_accounts.json"]),
    (".qwen", &["oauth_creds.json"]),
    ("opencode", &["auth.json", "mcp-auth.json"]),
    ("goose", &["secrets.yaml"]),
    ("github-copilot", &["hosts.json", "apps.json"]),
    ("io.datasette.llm", &["keys.json"]),
    ("huggingface", &["token", "stored_tokens"]),
    // Command lines of platforms.
    ("glab-cli", &["config.yml"]),
    ("doctl", &["config.yaml"]),
    (".fly", &["config.yml"]),
    ("com.vercel.cli", &["auth.json"]),
    ("age", &["keys.txt"]),
];

/// How the names of further ones start: `.env.local`.
const START: &str = ".env.";

/// How the names of further ones end: keys, and stores of keys, passwords and tokens. A
/// state of Terraform holds the passwords of what it describes.
const EXTENSIONS: [&str; 22] = [
    ".pem",
    ".key",
    ".p8",
    ".p12",
    ".pfx",
    ".ppk",
    ".jks",
    ".kdbx",
    ".keytab",
    ".kubeconfig",
    ".tfstate",
    ".tfstate.backup",
    "credentials.tfrc.json",
    // What Terraform loads by itself.
    "terraform.tfvars",
    "terraform.tfvars.json",
    ".auto.tfvars",
    ".auto.tfvars.json",
    "rclone.conf",
    // What Google's command line keeps.
    "application_default_credentials.json",
    "legacy_credentials",
    "credentials.db",
    "access_tokens.db",
];

/// Names among them of templates, which are shared and hold no secrets.
const TEMPLATES: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];

/// What editors, package managers and people add to the name of a file for a copy of it.
const COPIES: [&str; 14] = [
    "~", "#", ".bak", ".backup", ".old", ".orig", ".save", ".saved", ".copy", " copy", ".swp",
    ".swo", ".swn", ".tmp",
];

/// Tells names that look like secrets. Default: by the built-in list alone.
#[derive(Clone, Debug, Default)]
pub struct SecretNames {
    more: Vec<Glob>,
    except: Vec<Glob>,
}

impl SecretNames {
    /// The built-in list with globs of further names, and without the names that the globs
    /// of `except` match. Case does not matter. A text that is no glob is left out.
    pub fn new(more: &[String], except: &[String]) -> Self {
        let globs = |texts: &[String]| -> Vec<Glob> {
            texts.iter().filter_map(|text| Glob::new(&fold(text)).ok()).collect()
        };
        Self { more: globs(more), except: globs(except) }
    }

    /// Whether a file or directory of this name looks like a secret, in any spelling that
    /// some file system takes for it. This is asked for each entry of a listing.
    pub fn matches(&self, name: &str) -> bool {
        if self.more.is_empty() && is_ordinary(name) {
            return false;
        }
        let folded = fold(name);
        let original = original(&folded);
        (is_listed(&folded) || is_listed(original))
            && !TEMPLATES.contains(&original)
            && !self.is_excepted(&folded)
            || self.is_named(&folded)
    }

    fn is_named(&self, folded: &str) -> bool {
        self.more.iter().any(|glob| glob.matches(folded)) && !self.is_excepted(folded)
    }

    fn is_excepted(&self, folded: &str) -> bool {
        self.except.iter().any(|glob| glob.matches(folded))
    }

    /// Whether what has this name looks like a secret in a directory of that one: by
    /// itself, or because of the two together. `None`: the directory is not known.
    pub fn matches_in(&self, directory: Option<&str>, name: &str) -> bool {
        let stored = || {
            let mut names = self.kept_in(directory?).peekable();
            names.peek()?;
            let folded = fold(name);
            let original = original(&folded);
            let is_stored =
                |stored| stored == folded || stored == original || is_short_file(&folded, stored);
            names.any(is_stored).then_some(())
        };
        self.matches(name) || stored().is_some()
    }

    /// Whether one of the names on a path looks like a secret.
    pub fn are_on(&self, path: &str) -> bool {
        let names = path.split('/').filter(|name| !name.is_empty());
        let above = iter::once(None).chain(names.clone().map(Some));
        above.zip(names).any(|(above, name)| self.matches_in(above, name))
    }

    /// Whether a relative path leads into a place that only an explicit grant opens: a name on it
    /// looks like a secret, or is a directory whose files look like secrets by its name.
    pub fn are_entered_by(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.are_on(&path) || path.split('/').any(|name| self.kept_in(name).next().is_some())
    }

    /// Whether a directory, by its path relative to a granted one, is reached only by a grant of
    /// its own: a grant by name opens what the outer grant does not. That is so if a name on the
    /// path starts with a dot or looks like a secret, or is in `protected`.
    pub fn need_own_grant(
        &self,
        granted: &Path,
        below: &Path,
        protected: Option<&ProtectedNames>,
    ) -> bool {
        let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
        below.iter().any(is_hidden)
            || self.are_entered_by(below)
            || protected.is_some_and(|names| names.are_on(granted, &below.to_string_lossy()))
    }

    /// Whether a grant of a directory opens what lies at an absolute path although names on
    /// it look like secrets: the grant includes them, or its directory looks like a secret
    /// itself, or lies in one that does. Then all in it is meant.
    pub fn are_let_in(
        &self,
        granted: &Path,
        include: &Include,
        path: &Path,
        is_directory: bool,
    ) -> bool {
        let Some(path) = path.strip_prefix(granted).ok().and_then(Path::to_str) else {
            return false;
        };
        // It is asked for each name, in their order.
        let passed = Cell::new(0);
        let keeps_out = |name: &str, _| {
            let above = path[..passed.get()].rsplit('/').nth(1);
            passed.set(passed.get() + name.len() + 1);
            self.matches_in(above, name)
        };
        self.are_in_store(granted) || include.lets_in(path, is_directory, keeps_out)
    }

    /// Whether a directory looks like a secret itself, or lies in a directory that does: a
    /// grant of it is deliberate, and opens what is in it.
    pub fn are_in_store(&self, granted: &Path) -> bool {
        granted.iter().any(|name| self.matches(&name.to_string_lossy()))
    }

    /// The names of the files that hold secrets in a directory of this name, and would not
    /// look like it in another.
    pub fn kept_in(&self, directory: &str) -> impl Iterator<Item = &'static str> + use<'_> {
        let is_plain = directory.is_ascii() && !directory.ends_with(['.', ' ']);
        let is_it = |store: &str| match is_plain && !directory.contains([':', '~']) {
            true => directory.eq_ignore_ascii_case(store),
            false => {
                let folded = fold(directory);
                folded == store || is_short_name(&folded, store.trim_start_matches('.'))
            }
        };
        let store = STORES.iter().find(|(store, _)| is_it(store));
        let names = store.into_iter().flat_map(|(_, names)| names.iter().copied());
        names.filter(|name| !self.except.iter().any(|glob| glob.matches(name)))
    }
}

/// The name that a folded name is a copy of, or the name itself: `.env` of `.env~`, `#.env#`,
/// `.env.bak` and `.env (1)`.
fn original(folded: &str) -> &str {
    /// More than anyone adds to a name.
    const MOST: usize = 8;
    let mut name = folded.strip_prefix(".#").or(folded.strip_prefix('#')).unwrap_or(folded);
    for _ in 0..MOST {
        let without_end = COPIES.iter().find_map(|end| name.strip_suffix(end));
        // `id_rsa (1)`, and `id_rsa.~1~` of Emacs.
        let without_number = [(" (", ")"), (".~", "~")].iter().find_map(|(open, close)| {
            let inner = name.strip_suffix(close)?;
            inner.trim_end_matches(|char: char| char.is_ascii_digit()).strip_suffix(open)
        });
        match without_number.or(without_end) {
            Some(shorter) if !shorter.is_empty() => name = shorter,
            _ => break,
        }
    }
    name
}

/// Whether a folded name is what FAT and NTFS call another one with an extension.
fn is_short_file(folded: &str, long: &str) -> bool {
    let split = |name| str::split_once(name, '.').unwrap_or((name, ""));
    let ((base, extension), (long, long_extension)) = (split(folded), split(long));
    let kept = long_extension.get(..3).unwrap_or(long_extension);
    extension == kept && is_short_name(base, long)
}

/// Whether a name is none on the list at the first glance, as almost all are: it folds to
/// nothing but its lower case, and neither its beginning nor its extension is one of those.
fn is_ordinary(name: &str) -> bool {
    let bytes = name.as_bytes();
    let folds = |byte: &u8| !byte.is_ascii() || matches!(byte, b':' | b'~');
    let has_end = |extension: &&str| {
        let start = bytes.len().saturating_sub(extension.len());
        bytes[start..].eq_ignore_ascii_case(extension.as_bytes())
    };
    let [first, .., last] = bytes else { return false };
    let has_listed_end = ENDS[usize::from(*last)] && EXTENSIONS.iter().chain(&COPIES).any(has_end);
    !matches!(first, b'.' | b'i' | b'I' | b'#')
        && !matches!(last, b')')
        && !matches!(last, b'.' | b' ')
        && !bytes.iter().any(folds)
        && !has_listed_end
}

/// Whether one of the [`EXTENSIONS`] or [`COPIES`] ends in a byte, in either case: most names end
/// in none of these.
const ENDS: [bool; 256] = with_ends(with_ends([false; 256], &EXTENSIONS), &COPIES);

const fn with_ends(mut ends: [bool; 256], names: &[&str]) -> [bool; 256] {
    let mut at = 0;
    while at < names.len() {
        if let Some(last) = names[at].as_bytes().last() {
            ends[last.to_ascii_lowercase() as usize] = true;
            ends[last.to_ascii_uppercase() as usize] = true;
        }
        at += 1;
    }
    ends
}

/// Whether a folded name is on the list, or is what FAT and NTFS call a dot file that is, in
/// eight characters and three.
fn is_listed(name: &str) -> bool {
    /// What is left of a longer name.
    const KEPT: usize = 6;
    let is_short = |long: &str| {
        long.strip_prefix('.')
            .is_some_and(|long| is_short_name(name, &long[..long.len().min(KEPT)]))
    };
    NAMES.contains(&name)
        || name.starts_with(START)
        || EXTENSIONS.iter().any(|extension| name.ends_with(extension))
        || name.contains('~') && NAMES.iter().any(|long| is_short(long))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().copied().map(String::from).collect()
    }

    #[test]
    fn a_name_that_looks_like_a_secret_is_known_in_every_spelling() {
        let names = SecretNames::default();
        for name in [
            ".env",
            ".ENV",
            ".e\u{200c}nv",
            ".env.",
            ".env::$DATA",
            "\u{ff0e}env",
            ".env.local",
            ".env.production.local",
            "ENV~1",
            "GIT-CR~1",
            ".\u{17f}sh",
            ".AWS",
            "id_rsa",
            "ID_ED25519",
            "server.PEM",
            "a.b.key",
            ".pem",
            "Vault.kdbx",
            ".env~",
            "#.env#",
            ".#.env",
            ".env.~1~",
            ".ENV.bak",
            "id_rsa.old",
            "id_rsa (1)",
            "id_rsa.bak.bak",
            "server.pem.bak",
            "Server.key~",
            ".npmrc copy",
            ".npmrc.swp",
            "prod.auto.tfvars",
            "terraform.tfvars",
            "terraform.tfvars.bak",
            ".claude.json",
            ".yarnrc.yml",
        ] {
            assert!(names.matches(name), "{name:?}");
        }
        for name in [
            "env",
            ".environment",
            ".env.example",
            ".ENV.Sample",
            "id_rsa.pub",
            "id_rsa~1x",
            "keys",
            "pem",
            "monkey",
            "a.keys",
            "environment~1",
            "notes~",
            "notes.bak",
            "#notes#",
            "notes (1)",
            ".env.example~",
            ".env.sample.bak",
            "keys.old",
            "~",
            "#",
            ".bak",
            "(1)",
            "..",
            ".",
            "",
        ] {
            assert!(!names.matches(name), "{name:?}");
        }
    }

    #[test]
    fn credential_stores_look_like_secrets_and_what_repositories_hold_does_not() {
        let names = SecretNames::default();
        for path in [
            ".docker/config.json",
            ".Docker/CONFIG.json",
            "DOCKER~1/CONFIG~1.JSO",
            "gh/hosts.yml",
            ".cargo/credentials",
            ".cargo/credentials.toml",
            ".m2/settings.xml",
            ".m2/settings-security.xml",
            ".gradle/gradle.properties",
            ".gradle/GRADLE~1.PRO",
            "a/.azure",
            "a/.my.cnf",
            "a/.vault-token",
            "a/.terraformrc",
            "a/credentials.tfrc.json",
            "a/rclone.conf",
            "a/prod.tfstate",
            "a/terraform.tfstate.backup",
            "gcloud/application_default_credentials.json",
            "gcloud/credentials.db",
            "gcloud/legacy_credentials",
            "a/admin.kubeconfig",
            "a/id_ed25519_sk",
            ".git/config",
            ".git/config~",
            ".codex/auth.json",
            ".codex/auth.json.bak",
            ".gemini/oauth_creds.json",
            "opencode/auth.json",
            "huggingface/token",
            ".config/.env",
        ] {
            let (directory, name) = path.split_once('/').unwrap();
            assert!(names.matches_in(Some(directory), name), "{path}");
        }
        for path in [
            "app/config.json",
            ".vscode/config.json",
            ".docker/Dockerfile",
            ".docker/config.json.md",
            ".cargo/config.toml",
            "src/credentials",
            "src/credentials.rs",
            "android/gradle.properties",
            ".gradle/caches",
            ".mvn/settings.xml",
            "ansible/hosts.yml",
            "gh/main.go",
            "pkg/kubeconfig",
            "pkg/gcloud",
            "infra/main.tf",
            "infra/prod.tfvars",
            "src/access_tokens.rs",
            "docs/keytab",
            ".git/HEAD",
            "src/auth.json",
            "docs/token",
            ".codex/config.toml",
            "infra/dev.tfvars.json",
        ] {
            let (directory, name) = path.split_once('/').unwrap();
            assert!(!names.matches_in(Some(directory), name), "{path}");
        }
        assert!(!names.matches_in(None, "config.json"));
        let none = SecretNames::new(&[], &texts(&["config.json"]));
        assert!(!none.matches_in(Some(".docker"), "config.json"));
        assert!(none.matches_in(Some("gh"), "hosts.yml"));
    }

    #[test]
    fn the_list_is_extended_and_cut_by_globs_in_any_case() {
        let check = |more: &[&str], except: &[&str], name: &str, expected: bool| {
            let names = SecretNames::new(&texts(more), &texts(except));
            assert_eq!(names.matches(name), expected, "{more:?} {except:?} {name}");
        };
        check(&["*.TFvars"], &[], "Prod.tfVARS", true);
        check(&["*.tfvars"], &[], "prod.tfvars.json", false);
        check(&["vault[0-9].*"], &[], "vault1.txt", true);
        check(&[], &[".npmrc"], ".npmrc", false);
        check(&[], &[".npmrc"], ".env", true);
        check(&[], &["*"], ".env", false);
        check(&["*.txt"], &["a.*"], "a.txt", false);
        check(&[".env.example"], &[], ".env.example", true);
    }
}
