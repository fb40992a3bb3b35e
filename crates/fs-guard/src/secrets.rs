//! Names of files that look like secrets: the built-in list and changes by configuration.

use std::cell::Cell;
use std::ffi::OsStr;
use std::iter;
use std::path::Path;

use kitbag_glob::{Glob, Include};

use crate::names::{fold, is_short_name};
use crate::protected_names::ProtectedNames;

/// Names of files and directories that contain secrets, in lower case. They start with `.` or `i`;
/// see [`is_ordinary`]. Copies of them are secrets as well; see [`original`].
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
    // Agents and package managers store tokens in these files.
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

/// Names of files that contain secrets in a directory with this name, in lower case. In other
/// directories they are ordinary.
const STORES: [(&str, &[&str]); 24] = [
    // Remote URLs may contain tokens.
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

/// The prefix of other secret names: `.env.local`.
const START: &str = ".env.";

/// Extensions of keys and of stores of keys, passwords and tokens. A Terraform state contains the
/// passwords of the resources it describes.
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
    // Terraform loads this file automatically.
    "terraform.tfvars",
    "terraform.tfvars.json",
    ".auto.tfvars",
    ".auto.tfvars.json",
    "rclone.conf",
    // Google's command line stores this file.
    "application_default_credentials.json",
    "legacy_credentials",
    "credentials.db",
    "access_tokens.db",
];

/// Names of templates, which are shared and contain no secrets.
const TEMPLATES: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];

/// Suffixes that editors, package managers and people give to copies of files.
const COPIES: [&str; 14] = [
    "~", "#", ".bak", ".backup", ".old", ".orig", ".save", ".saved", ".copy", " copy", ".swp",
    ".swo", ".swn", ".tmp",
];

/// Recognizes names that look like secrets. Default: the built-in list.
#[derive(Clone, Debug, Default)]
pub struct SecretNames {
    more: Vec<Glob>,
    except: Vec<Glob>,
}

impl SecretNames {
    /// Creates the built-in list plus the globs in `more`, minus names that match `except`. Case is
    /// ignored. Invalid globs are skipped.
    pub fn new(more: &[String], except: &[String]) -> Self {
        let globs = |texts: &[String]| -> Vec<Glob> {
            texts.iter().filter_map(|text| Glob::new(&fold(text)).ok()).collect()
        };
        Self { more: globs(more), except: globs(except) }
    }

    /// Returns true if a file or directory name looks like a secret, in any spelling that a file
    /// system may treat as equal. Called for each entry of a listing.
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

    /// Returns true if a name looks like a secret, alone or in a directory with the given name.
    /// `None`: the directory's name is unknown.
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

    /// Returns true if any name on a path looks like a secret.
    pub fn are_on(&self, path: &str) -> bool {
        let names = path.split('/').filter(|name| !name.is_empty());
        let above = iter::once(None).chain(names.clone().map(Some));
        above.zip(names).any(|(above, name)| self.matches_in(above, name))
    }

    /// Returns true if a relative path enters a location that only an explicit grant opens: a name
    /// on it looks like a secret, or a directory's name makes its files look like secrets.
    pub fn are_entered_by(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.are_on(&path) || path.split('/').any(|name| self.kept_in(name).next().is_some())
    }

    /// Returns true if a directory, given by its path relative to a granted directory, needs its
    /// own grant: an explicit grant opens directories that the outer grant does not. This applies
    /// if a name on the path starts with a dot, looks like a secret, or is in `protected`.
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

    /// Returns true if a grant of a directory opens an absolute path although names on it look like
    /// secrets: the grant includes secrets, or the directory itself looks like a secret or is in
    /// one that does, so the grant is meant for everything in it.
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
        // Called for each name, in order.
        let passed = Cell::new(0);
        let keeps_out = |name: &str, _| {
            let above = path[..passed.get()].rsplit('/').nth(1);
            passed.set(passed.get() + name.len() + 1);
            self.matches_in(above, name)
        };
        self.are_in_store(granted) || include.lets_in(path, is_directory, keeps_out)
    }

    /// Returns true if a directory looks like a secret or is in one that does. A grant of such a
    /// directory is deliberate and opens everything in it.
    pub fn are_in_store(&self, granted: &Path) -> bool {
        granted.iter().any(|name| self.matches(&name.to_string_lossy()))
    }

    /// Returns the names of files that contain secrets in a directory with this name but not in
    /// others.
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

/// Returns the name that a folded name is a copy of, or the name itself: `.env` for `.env~`,
/// `#.env#`, `.env.bak` and `.env (1)`.
fn original(folded: &str) -> &str {
    /// More suffixes than any real copy has.
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

/// Returns true if a folded name is the 8.3 name of a name with an extension.
fn is_short_file(folded: &str, long: &str) -> bool {
    let split = |name| str::split_once(name, '.').unwrap_or((name, ""));
    let ((base, extension), (long, long_extension)) = (split(folded), split(long));
    let kept = long_extension.get(..3).unwrap_or(long_extension);
    extension == kept && is_short_name(base, long)
}

/// Returns true if a quick check rules out the list, as for almost all names: folding only lowers
/// the case, and neither the beginning nor the extension of the name is listed.
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

/// Marks the last bytes of [`EXTENSIONS`] and [`COPIES`], in either case: most names end in other
/// bytes.
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

/// Returns true if a folded name is listed or is the 8.3 name of a listed dot file.
fn is_listed(name: &str) -> bool {
    /// The length of a shortened name.
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
    fn secret_names_are_known_in_every_spelling() {
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
    fn credential_stores_look_like_secrets() {
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
    fn globs_extend_and_shorten_the_list() {
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
