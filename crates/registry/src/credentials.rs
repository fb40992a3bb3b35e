//! Credentials, and Docker's configuration of them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kitbag_base::text::shown;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::error::RegistryError;

/// The most bytes of the configuration and of a helper's answer.
const MOST_BYTES: u64 = 1 << 20;

/// The time for a helper, which may unlock a keyring.
const HELPER_TIME: Duration = Duration::from_secs(60);

/// Docker's name of its own registry.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// The user name with which a helper returns an identity token.
const TOKEN_USER: &str = "<token>";

/// Credentials for one registry.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user name and a password or an access token.
    Password {
        /// The user name.
        user: String,
        /// The password.
        password: Zeroizing<String>,
    },
    /// A token that is exchanged for access tokens.
    IdentityToken(Zeroizing<String>),
}

/// Docker's `config.json`, as `docker login` writes it.
#[derive(Debug, Default)]
pub struct DockerConfig {
    path: PathBuf,
    content: Content,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    auths: HashMap<String, Entry>,
    #[serde(default)]
    cred_helpers: HashMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Default, Deserialize)]
struct Entry {
    auth: Option<String>,
    identitytoken: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

impl DockerConfig {
    /// Reads the configuration in a directory. A file that does not exist has no credentials.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Credentials`] for a file that cannot be read.
    pub fn read(directory: &Path) -> Result<Self, RegistryError> {
        let path = directory.join("config.json");
        let unreadable = |reason: &dyn ToString| {
            let reason = reason.to_string();
            RegistryError::Credentials(format!("`{}` cannot be read: {reason}", path.display()))
        };
        let mut text = Zeroizing::new(String::new());
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path, ..Self::default() });
            }
            Err(error) => return Err(unreadable(&error)),
            Ok(file) => {
                let read = file.take(MOST_BYTES).read_to_string(&mut text);
                read.map_err(|error| unreadable(&error))?;
            }
        }
        // The message of the parser could contain a part of a value.
        let content = serde_json::from_str(&text)
            .map_err(|error| unreadable(&format!("line {} is not valid", error.line())))?;
        Ok(Self { path, content })
    }

    /// Returns the credentials for a registry: of its helper, of the store, or in the file.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Credentials`] if a helper fails, or an entry is not valid.
    pub fn credentials(&self, host: &str) -> Result<Option<Credentials>, RegistryError> {
        let is_hub = matches!(host, "docker.io" | "index.docker.io" | "registry-1.docker.io");
        let name = if is_hub { DOCKER_HUB } else { host };
        let content = &self.content;
        if let Some(helper) = content.cred_helpers.get(name) {
            return ask_helper(helper, name);
        }
        if let Some(store) = &content.creds_store
            && let Some(credentials) = ask_helper(store, name)?
        {
            return Ok(Some(credentials));
        }
        let names = [name.to_owned(), format!("https://{name}"), format!("https://{name}/v1/")];
        let Some(entry) = names.iter().find_map(|name| content.auths.get(name)) else {
            return Ok(None);
        };
        if let Some(token) = entry.identitytoken.as_ref().filter(|token| !token.is_empty()) {
            return Ok(Some(Credentials::IdentityToken(Zeroizing::new(token.clone()))));
        }
        let Some(auth) = entry.auth.as_ref().filter(|auth| !auth.is_empty()) else {
            return Ok(None);
        };
        let invalid = || {
            RegistryError::Credentials(format!(
                "the entry of `{}` in `{}` is not valid",
                shown(name),
                self.path.display()
            ))
        };
        let decoded = Zeroizing::new(BASE64.decode(auth.trim()).map_err(|_| invalid())?);
        let text = str::from_utf8(&decoded).map_err(|_| invalid())?;
        let (user, password) = text.split_once(':').ok_or_else(invalid)?;
        let password = Zeroizing::new(password.trim_end_matches('\0').to_owned());
        Ok(Some(Credentials::Password { user: user.to_owned(), password }))
    }
}

/// Runs a program that returns credentials. Its name cannot be a path.
///
/// Source: docker-credential-helpers, "Development".
fn ask_helper(helper: &str, host: &str) -> Result<Option<Credentials>, RegistryError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let program = format!("docker-credential-{helper}");
    let failed = |reason: &dyn ToString| {
        let reason = reason.to_string();
        RegistryError::Credentials(format!("`{}`: {reason}", shown(&program)))
    };
    if helper.is_empty() || !helper.bytes().all(is_plain) {
        return Err(failed(&"is not the name of a credential helper"));
    }
    let mut child = Command::new(&program)
        .arg("get")
        // Not the current directory, which may be a workspace.
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(&error))?;
    if let Some(mut input) = child.stdin.take() {
        // A helper may answer without reading everything.
        let _ = input.write_all(host.as_bytes());
    }
    let output = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Zeroizing::new(String::new());
        let read = output.map(|output| output.take(MOST_BYTES).read_to_string(&mut text));
        read.transpose().map(|_| text)
    });
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| failed(&error))? {
            Some(status) => break status,
            None if start.elapsed() > HELPER_TIME => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(&"it did not answer in time"));
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let text = reader.join().map_err(|_| failed(&"its answer cannot be read"))?;
    let text = text.map_err(|error| failed(&error))?;
    if !status.success() {
        // The message of all helpers, on standard output.
        return match text.contains("credentials not found") {
            true => Ok(None),
            false => Err(failed(&status)),
        };
    }
    let answer: HelperAnswer =
        serde_json::from_str(&text).map_err(|_| failed(&"its answer is not valid"))?;
    let HelperAnswer { username: user, secret } = answer;
    let secret = Zeroizing::new(secret);
    Ok(Some(match user == TOKEN_USER {
        true => Credentials::IdentityToken(secret),
        false => Credentials::Password { user, password: secret },
    }))
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(…)")
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entry(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> (tempfile::TempDir, Result<DockerConfig, RegistryError>) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("config.json"), text).unwrap();
        let read = DockerConfig::read(directory.path());
        (directory, read)
    }

    fn password(user: &str, password: &str) -> Option<Credentials> {
        let password = Zeroizing::new(password.to_owned());
        Some(Credentials::Password { user: user.to_owned(), password })
    }

    #[test]
    fn entries_of_docker_login_are_read() {
        let text = r#"{"auths": {"ghcr.io": {"auth": "YWRhOnM6MQ=="}, "other.example": {},
            "https://index.docker.io/v1/": {"auth": "YWRhOmh1Yg=="},
            "id.example": {"identitytoken": "abc"}}}"#;
        let (_directory, config) = config(text);
        let config = config.unwrap();
        assert_eq!(config.credentials("ghcr.io").unwrap(), password("ada", "s:1"));
        assert_eq!(config.credentials("docker.io").unwrap(), password("ada", "hub"));
        assert_eq!(config.credentials("other.example").unwrap(), None);
        assert_eq!(config.credentials("evil.example").unwrap(), None);
        let token = Credentials::IdentityToken(Zeroizing::new("abc".to_owned()));
        assert_eq!(config.credentials("id.example").unwrap(), Some(token));
    }

    #[test]
    fn mistakes_show_no_values() {
        let (_directory, read) = config("{\"auths\": {\"ghcr.io\": {\"auth\": SECRET}}}");
        let error = read.unwrap_err().to_string();
        assert!(error.contains("line 1 is not valid") && !error.contains("SECRET"), "{error}");
        let (_directory, read) = config(r#"{"auths": {"ghcr.io": {"auth": "SECRET"}}}"#);
        let error = read.unwrap().credentials("ghcr.io").unwrap_err().to_string();
        assert!(error.contains("is not valid") && !error.contains("SECRET"), "{error}");
        assert_eq!(format!("{:?}", password("a", "b").unwrap()), "Credentials(…)");
    }

    #[test]
    fn helpers_cannot_be_paths() {
        let (_directory, read) = config(r#"{"credsStore": "../../tmp/evil"}"#);
        let error = read.unwrap().credentials("ghcr.io").unwrap_err().to_string();
        assert!(error.contains("is not the name of a credential helper"), "{error}");
    }
}
