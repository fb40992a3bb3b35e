//! Sign-in to remote servers: OAuth 2.1 with PKCE, as MCP defines it.
//!
//! [`Login`] finds the authorization server of a remote server, and signs a person in. The result is
//! a [`SignIn`], which a [`SignInStore`] keeps. Connections read it, refresh it, and send its access
//! token to the URL of its server only.
//!
//! Metadata and answers of authorization servers are untrusted: documents are bounded, each names
//! its own issuer and resource, and every endpoint is checked before a request.

mod access;
mod challenge;
mod exchange;
mod login;
mod metadata;
mod redirect;
mod store;

pub(crate) use access::{Access, required};
pub(crate) use challenge::Challenge;
pub use exchange::Reach;
pub use login::{Authorization, DeviceCode, Login, LoginOptions, revoke};
pub use redirect::{Callback, RedirectListener};
pub use store::{SignIn, SignInStatus, SignInStore, StoreLock, key};

/// Why a person could not be signed in. The text contains no token, code or secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SignInError(pub(crate) String);

impl SignInError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Returns random bytes as URL-safe text.
pub(crate) fn random(bytes: usize) -> Result<String, SignInError> {
    use base64::Engine as _;
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random)
        .map_err(|error| SignInError(format!("no random numbers: {error}")))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random))
}
