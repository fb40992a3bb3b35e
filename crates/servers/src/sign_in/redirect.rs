//! The redirect of a browser to this machine (RFC 8252, section 7.3).

use std::time::Duration;

use kitbag_base::text::shown;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::SignInError;

/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 16 << 10;

/// The time in which a browser must send its request.
const REQUEST: Duration = Duration::from_secs(5);

/// The most other requests, such as for an icon, before the listener gives up.
const MOST_OTHERS: usize = 50;

/// Waits for one redirect on a random port of this machine.
pub struct RedirectListener {
    listener: TcpListener,
    port: u16,
}

/// The parameters of a redirect. Untrusted.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Callback {
    /// The state of the authorization request.
    pub state: Option<String>,
    /// The authorization code.
    pub code: Option<String>,
    /// The issuer.
    pub iss: Option<String>,
    /// The code of an error.
    pub error: Option<String>,
}

impl RedirectListener {
    /// Opens a random port of the loopback interface.
    ///
    /// # Errors
    ///
    /// [`SignInError`] if there is no port.
    pub async fn open() -> Result<Self, SignInError> {
        let failed = |error| SignInError(format!("no port for the browser's redirect: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    /// Returns the URL to which the browser is redirected.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    /// Waits for the redirect, and closes the port.
    ///
    /// # Errors
    ///
    /// [`SignInError`] if it does not arrive within `time`.
    pub async fn wait(self, time: Duration) -> Result<Callback, SignInError> {
        match timeout(time, self.accept()).await {
            Ok(callback) => callback,
            Err(_) => {
                Err(SignInError(format!("there was no sign-in within {} seconds", time.as_secs())))
            }
        }
    }

    async fn accept(self) -> Result<Callback, SignInError> {
        let (found, mut finds) = tokio::sync::mpsc::channel(1);
        for _ in 0..MOST_OTHERS {
            let stream = tokio::select! {
                stream = self.listener.accept() => stream,
                Some(callback) = finds.recv() => return Ok(callback),
            };
            let Ok((stream, _)) = stream else { continue };
            // A browser may open connections that it does not use.
            let (found, port) = (found.clone(), self.port);
            tokio::spawn(async move {
                if let Ok(Some(callback)) = timeout(REQUEST, answer(stream, port)).await {
                    let _ = found.send(callback).await;
                }
            });
        }
        drop(found);
        let none = || SignInError::new("too many other requests arrived at the redirect");
        finds.recv().await.ok_or_else(none)
    }
}

/// Reads one request and answers it. Returns the parameters of a redirect.
async fn answer(mut stream: TcpStream, port: u16) -> Option<Callback> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 1024];
        let length = stream.read(&mut part).await.ok()?;
        head.extend_from_slice(&part[..length]);
        if length == 0 || head.len() > HEAD_BYTES {
            return None;
        }
    }
    let head = str::from_utf8(&head).ok()?;
    let callback = callback(head, port);
    let (status, text) = match &callback {
        Some(_) => ("200 OK", "kitbag received the answer. You can close this window.\n"),
        None => ("404 Not Found", "kitbag waits for a sign-in.\n"),
    };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nCache-Control: \
         no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    callback
}

/// Returns the parameters of a redirect. `None`: it is another request.
fn callback(head: &str, port: u16) -> Option<Callback> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    // A name of another host that resolves to this machine is not ours.
    let hosts = lines.filter_map(|line| line.split_once(':'));
    let mut hosts = hosts.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let is_ours = hosts.next().is_some_and(|(_, host)| host.trim() == format!("127.0.0.1:{port}"));
    let query = target.strip_prefix("/callback?").filter(|_| is_ours && method == "GET")?;
    let mut callback = Callback::default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let field = match &*name {
            "state" => &mut callback.state,
            "code" => &mut callback.code,
            "iss" => &mut callback.iss,
            "error" => &mut callback.error,
            _ => continue,
        };
        // A repeated parameter is ambiguous.
        if field.replace(value.into_owned()).is_some() {
            return None;
        }
    }
    (callback.code.is_some() || callback.error.is_some()).then_some(callback)
}

impl Callback {
    /// Returns the code, if the redirect answers this authorization request.
    pub(crate) fn code(
        self,
        state: &str,
        issuer: &str,
        names_issuer: bool,
    ) -> Result<String, SignInError> {
        use subtle::ConstantTimeEq as _;
        let own = self.state.unwrap_or_default();
        if !bool::from(own.as_bytes().ct_eq(state.as_bytes())) {
            return Err(SignInError::new(
                "the redirect is refused: its `state` is not that of this sign-in",
            ));
        }
        match &self.iss {
            Some(iss) if iss != issuer => {
                return Err(SignInError(format!(
                    "the redirect is refused: it is from the issuer `{}`, not from `{}`",
                    shown(iss),
                    shown(issuer)
                )));
            }
            None if names_issuer => {
                return Err(SignInError::new("the redirect is refused: it names no issuer"));
            }
            _ => {}
        }
        if let Some(error) = self.error {
            let error = shown(&error[..error.floor_char_boundary(100)]).to_string();
            return Err(SignInError(format!("the authorization server answered `{error}`")));
        }
        self.code.ok_or_else(|| SignInError::new("the redirect has no code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_redirects_to_this_port_are_read() {
        let check = |target: &str, host: &str, expected: bool| {
            let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(callback(&head, 7).is_some(), expected, "{target} {host}");
        };
        check("/callback?code=a&state=b", "127.0.0.1:7", true);
        check("/callback?error=access_denied", "127.0.0.1:7", true);
        check("/callback?code=a&state=b", "evil.example:7", false);
        check("/callback?code=a&code=b", "127.0.0.1:7", false);
        check("/callback?state=b", "127.0.0.1:7", false);
        check("/favicon.ico", "127.0.0.1:7", false);
    }

    #[test]
    fn redirects_answer_their_own_request() {
        let check = |callback: (&str, Option<&str>), announced: bool, expected: &str| {
            let (state, iss) = callback;
            let iss = iss.map(str::to_owned);
            let (state, code) = (Some(state.to_owned()), Some("code".to_owned()));
            let callback = Callback { state, code, iss, error: None };
            let found = callback.code("own", "https://a.example", announced);
            assert_eq!(found.unwrap_or_else(|error| error.to_string()), expected);
        };
        let state = "the redirect is refused: its `state` is not that of this sign-in";
        check(("own", None), false, "code");
        check(("own", Some("https://a.example")), true, "code");
        check(("other", None), false, state);
        check(("", None), false, state);
        check(("own", None), true, "the redirect is refused: it names no issuer");
        check(
            ("own", Some("https://b.example")),
            false,
            "the redirect is refused: it is from the issuer `https://b.example`, not from \
             `https://a.example`",
        );
    }
}
