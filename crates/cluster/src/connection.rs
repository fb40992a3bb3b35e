//! The connection to NATS.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use kitbag_base::text::shown;

use crate::identity::Identity;

/// Time for one attempt to connect. Later attempts follow without end, with growing pauses.
const ATTEMPT: Duration = Duration::from_secs(5);

/// How to reach the NATS servers.
#[derive(Clone, Debug, Default)]
pub struct Nats {
    /// URLs: `nats://host:4222`, or `tls://host:4222`, which requires TLS.
    pub urls: Vec<String>,
    /// A credentials file, for servers that check tokens (JWT).
    pub credentials: Option<PathBuf>,
    /// Certificates in PEM that alone may sign the server's certificate. `None`: the system's.
    pub roots: Option<PathBuf>,
}

/// An error of connecting.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// A URL is not one of a NATS server.
    #[error("`{}` is not the URL of a NATS server: write `nats://HOST:PORT` or `tls://HOST:PORT`", shown(.0))]
    Url(String),
    /// The credentials or the certificates cannot be read.
    #[error("`{}` cannot be used: {reason}", shown(path))]
    File {
        /// The path of the file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The server cannot be reached, or refuses the key.
    #[error("no connection to NATS at `{}`: {reason}", shown(urls))]
    Connect {
        /// The URLs.
        urls: String,
        /// The reason.
        reason: String,
    },
}

/// Connects, and logs in with the credentials, or else with the key.
///
/// The connection is renewed without end if it is lost. The first attempt must succeed.
///
/// # Errors
///
/// [`ConnectionError`] names the URL or the file.
pub async fn connect(nats: &Nats, identity: &Identity) -> Result<Client, ConnectionError> {
    let urls = addresses(&nats.urls)?;
    let mut options = ConnectOptions::new()
        .name("kitbag")
        .connection_timeout(ATTEMPT)
        // An inbox that no other member's permissions include.
        .custom_inbox_prefix(inbox(identity.public()))
        .ignore_discovered_servers();
    options = match &nats.credentials {
        Some(path) => {
            let read = options.credentials_file(path).await;
            read.map_err(|error| file(path, error.to_string()))?
        }
        None => options.nkey(identity.seed().to_string()),
    };
    if nats.urls.iter().any(|url| url.starts_with("tls://")) {
        options = options.require_tls(true);
    }
    if let Some(path) = &nats.roots {
        // The system's certificates are then not read.
        options = options.add_root_certificates(path.clone());
    }
    let connected = options.connect(urls).await;
    connected.map_err(|error| ConnectionError::Connect {
        urls: nats.urls.join(", "),
        // The cause, such as a certificate that is not trusted.
        reason: causes(&error),
    })
}

/// The prefix of the subjects on which the owner of a key gets answers of the server.
pub(crate) fn inbox(public: &str) -> String {
    format!("_INBOX.{public}")
}

/// Checks URLs. A URL without a scheme would be accepted without TLS, and one of a web server would
/// wait for the wrong protocol.
fn addresses(urls: &[String]) -> Result<Vec<async_nats::ServerAddr>, ConnectionError> {
    let address = |url: &String| {
        let is_known = url.starts_with("nats://") || url.starts_with("tls://");
        let parsed = url.parse().ok().filter(|_| is_known);
        parsed.ok_or_else(|| ConnectionError::Url(url.clone()))
    };
    urls.iter().map(address).collect()
}

fn file(path: &Path, reason: String) -> ConnectionError {
    ConnectionError::File { path: path.to_string_lossy().into_owned(), reason }
}

/// Joins an error with its causes.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_their_scheme() {
        let check = |url: &str, is_valid: bool| {
            assert_eq!(addresses(&[url.to_owned()]).is_ok(), is_valid, "{url}");
        };
        check("nats://127.0.0.1:4222", true);
        check("tls://nats.example", true);
        check("127.0.0.1:4222", false);
        check("https://nats.example", false);
        check("", false);
    }
}
