//! Names of files that look like secrets: the one list, and what a configuration changes of
//! it.

use kitbag_glob::Glob;

use crate::names::{fold, is_short_name};

/// Names of files and directories that hold secrets, in lower case. They start with `.` or
/// `i`; see [`is_ordinary`].
const NAMES: [&str; 15] = [
    ".env",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".htpasswd",
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
];

/// How the names of further ones start: `.env.local`.
const START: &str = ".env.";

/// How the names of further ones end: keys, and stores of keys and passwords.
const EXTENSIONS: [&str; 6] = [".pem", ".key", ".p12", ".pfx", ".jks", ".kdbx"];

/// Names among them of templates, which are shared and hold no secrets.
const TEMPLATES: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];

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
        (is_listed(&folded) && !TEMPLATES.contains(&&*folded)
            || self.more.iter().any(|glob| glob.matches(&folded)))
            && !self.except.iter().any(|glob| glob.matches(&folded))
    }
}

/// Whether a name is none on the list at the first glance, as almost all are: it folds to
/// nothing but its lower case, and neither its beginning nor its extension is one of those.
fn is_ordinary(name: &str) -> bool {
    let bytes = name.as_bytes();
    let folds = |byte: &u8| !byte.is_ascii() || matches!(byte, b':' | b'~');
    let has_extension = |extension: &&str| {
        let start = bytes.len().saturating_sub(extension.len());
        bytes[start..].eq_ignore_ascii_case(extension.as_bytes())
    };
    !matches!(bytes, [] | [b'.' | b'i' | b'I', ..] | [.., b'.' | b' '])
        && !bytes.iter().any(folds)
        && !EXTENSIONS.iter().any(has_extension)
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
            "..",
            ".",
            "",
        ] {
            assert!(!names.matches(name), "{name:?}");
        }
    }

    #[test]
    fn the_list_is_extended_and_cut_by_globs_in_any_case() {
        let check = |more: &[&str], except: &[&str], name: &str, expected: bool| {
            let names = SecretNames::new(&texts(more), &texts(except));
            assert_eq!(names.matches(name), expected, "{more:?} {except:?} {name}");
        };
        check(&["*.TFstate"], &[], "Prod.tfSTATE", true);
        check(&["*.tfstate"], &[], "prod.tfstate.json", false);
        check(&["vault[0-9].*"], &[], "vault1.txt", true);
        check(&[], &[".npmrc"], ".npmrc", false);
        check(&[], &[".npmrc"], ".env", true);
        check(&[], &["*"], ".env", false);
        check(&["*.txt"], &["a.*"], "a.txt", false);
        check(&[".env.example"], &[], ".env.example", true);
    }
}
