//! Sign-ins that outlive the process.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The time before its end at which a token is refreshed.
const EARLY: u64 = 30;

/// Keeps the sign-ins of one person, each for the URL of one server.
pub trait SignInStore: Send + Sync {
    /// Returns the state of a sign-in without reading its tokens.
    fn status(&self, server: &str) -> Option<SignInStatus>;

    /// Reads the sign-in to the server at this URL.
    ///
    /// # Errors
    ///
    /// The reason, without any part of a token.
    fn read(&self, server: &str) -> Result<Option<SignIn>, String>;

    /// Stores a sign-in, instead of an older one to the same server.
    ///
    /// # Errors
    ///
    /// The reason, without any part of a token.
    fn write(&self, sign_in: &SignIn) -> Result<(), String>;

    /// Deletes the sign-in to a server. Returns true if it existed.
    ///
    /// # Errors
    ///
    /// The reason.
    fn delete(&self, server: &str) -> Result<bool, String>;

    /// Locks the sign-in to a server against other processes. `None`: another process has the lock.
    ///
    /// # Errors
    ///
    /// The reason.
    fn try_lock(&self, server: &str) -> Result<Option<StoreLock>, String>;
}

/// A lock, which is released when this is dropped.
pub type StoreLock = Box<dyn Send>;

/// The state of a sign-in. It is not secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInStatus {
    /// The URL of the server.
    pub server: String,
    /// The authorization server.
    pub issuer: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The end of the access token, in seconds since 1970. `None`: unknown.
    pub expires_at: Option<u64>,
    /// True if an expired access token can be refreshed.
    pub is_refreshable: bool,
}

/// A sign-in to one server, with its tokens.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    pub(crate) server: String,
    pub(crate) resource: String,
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) client: ClientCredentials,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    pub(crate) expires_at: Option<u64>,
    pub(crate) scopes: Vec<String>,
}

/// The client that kitbag is for an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientCredentials {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    pub(crate) secret_in_form: bool,
    /// True if a person named the client, and false if it was registered for this sign-in.
    pub(crate) is_configured: bool,
}

impl SignIn {
    /// Returns the URL of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the sign-in as one line of JSON, with its tokens.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers")
    }

    /// Reads the JSON of [`to_json`](Self::to_json).
    pub fn of_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the state without the tokens.
    pub fn status(&self) -> SignInStatus {
        SignInStatus {
            server: self.server.clone(),
            issuer: self.issuer.clone(),
            scopes: self.scopes.clone(),
            expires_at: self.expires_at,
            is_refreshable: self.refresh_token.is_some(),
        }
    }

    /// Returns the client that a person named at the last sign-in, with its secret.
    pub fn configured_client(&self) -> Option<(&str, Option<&str>)> {
        let ClientCredentials { id, secret, is_configured, .. } = &self.client;
        is_configured.then_some((id, secret.as_deref()))
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.expires_at.is_none_or(|end| end > now() + EARLY)
    }
}

impl SignInStatus {
    /// Returns the state as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers")
    }

    /// Reads the JSON of [`to_json`](Self::to_json).
    pub fn of_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the state in words.
    pub fn words(&self) -> String {
        match (self.is_over(), self.is_refreshable, self.remaining()) {
            (true, ..) => "the sign-in expired".to_owned(),
            (_, true, _) => "signed in".to_owned(),
            (_, false, None) => "signed in, until the server refuses the token".to_owned(),
            (_, false, Some(left)) => {
                let minutes = Duration::from_secs(left.as_secs().div_ceil(60) * 60);
                format!("signed in for {}", kitbag_base::format_duration(minutes))
            }
        }
    }

    /// Returns the remaining time of the access token. `None`: unknown.
    pub fn remaining(&self) -> Option<Duration> {
        self.expires_at.map(|end| Duration::from_secs(end.saturating_sub(now())))
    }

    /// Returns true if the person has to sign in again.
    pub fn is_over(&self) -> bool {
        !self.is_refreshable && self.remaining() == Some(Duration::ZERO)
    }
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SignIn").field(&self.status()).finish()
    }
}

/// Returns the name under which the sign-in to a server is stored.
pub fn key(server: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(server.as_bytes());
    let digits: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sign-in-{digits}")
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
