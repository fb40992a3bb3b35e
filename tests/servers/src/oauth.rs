//! An MCP server with sign-in, and its authorization server, which can lie.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A server on loopback. It answers until the process ends.
pub struct OAuthServer {
    address: SocketAddr,
    state: Arc<Mutex<OAuthState>>,
}

/// The tokens and lies of an [`OAuthServer`].
#[derive(Default)]
pub struct OAuthState {
    /// Values that replace those of metadata documents, by key.
    pub lies: HashMap<&'static str, Value>,
    /// The issuer in redirects. `None`: the true one.
    pub iss: Option<String>,
    /// The target of a redirect from the token endpoint.
    pub token_redirect: Option<String>,
    /// The lifetime of access tokens, in seconds.
    pub expires_in: u64,
    /// True if the token endpoint answers with the request as an error.
    pub echoes: bool,
    /// True if no refresh tokens are issued.
    pub has_no_refresh: bool,
    /// True if the revocation endpoint answers with an error.
    pub keeps_tokens: bool,
    /// True if an authorization request is answered with a code that was used.
    pub replays: bool,
    /// Every token and code that was issued.
    pub issued: Vec<String>,
    /// The valid access tokens.
    pub access: Vec<String>,
    /// The valid refresh tokens. Each can be used once.
    pub refresh: Vec<String>,
    /// The requests: the path, for tokens with the grant, for calls with whether a token was sent.
    pub seen: Vec<String>,
    /// The bodies and credentials of all requests.
    pub sent: Vec<String>,
    codes: HashMap<String, (String, String)>,
    used: Vec<String>,
    device_polls: u32,
    made: u32,
}

impl OAuthServer {
    /// Starts a server.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = OAuthState { expires_in: 3600, ..OAuthState::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || answer(stream, address, &state));
            }
        });
        Self { address, state }
    }

    /// Returns the origin.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the URL of the MCP server.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin())
    }

    /// Returns the state.
    pub fn state(&self) -> MutexGuard<'_, OAuthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows an authorization URL as a browser does, and returns the URL of the redirect.
    pub fn approve(url: &str) -> String {
        let (status, location) = get(url);
        assert!(status.contains("302"), "{status}");
        location
    }

    /// Requests a URL, and returns the line of the status and the `Location`.
    pub fn get(url: &str) -> (String, String) {
        get(url)
    }
}

fn get(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").expect("a loopback URL");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("a connection");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let status = text.lines().next().unwrap_or_default().to_owned();
    let location = text.lines().find_map(|line| line.strip_prefix("Location: "));
    (status, location.unwrap_or_default().to_owned())
}

fn answer(mut stream: TcpStream, address: SocketAddr, state: &Mutex<OAuthState>) -> Option<()> {
    let mut read = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    read.read_line(&mut first).ok()?;
    let (mut length, mut bearer) = (0, None);
    let mut credentials = String::new();
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).ok()? == 0 || line == "\r\n" {
            break;
        }
        let (name, value) = line.split_once(':')?;
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => {
                value.trim().clone_into(&mut credentials);
                bearer = value.trim().strip_prefix("Bearer ").map(str::to_owned);
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.sent.push(format!("{credentials}\n{body}"));
    let request = Request { method, target, body: &body, bearer };
    let (status, headers, body) = state.respond(&format!("http://{address}"), &request);
    drop(state);
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .ok()
}

struct Request<'a> {
    method: &'a str,
    target: &'a str,
    body: &'a str,
    bearer: Option<String>,
}

type Response = (&'static str, String, String);

fn ok(value: &Value) -> Response {
    ("200 OK", String::new(), value.to_string())
}

fn error(code: &str) -> Response {
    ("400 Bad Request", String::new(), json!({ "error": code }).to_string())
}

impl OAuthState {
    fn respond(&mut self, origin: &str, request: &Request<'_>) -> Response {
        let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
        let (query, form) = (fields(query), fields(request.body));
        let text =
            |map: &HashMap<String, String>, key: &str| map.get(key).cloned().unwrap_or_default();
        match (request.method, path) {
            ("POST", "/mcp") => self.call(origin, request),
            ("GET", "/.well-known/oauth-protected-resource/mcp") => {
                self.seen.push("resource".to_owned());
                ok(&self.lie(json!({
                    "resource": format!("{origin}/mcp"),
                    "authorization_servers": [format!("{origin}/as")],
                    "scopes_supported": ["read"],
                })))
            }
            ("GET", "/.well-known/oauth-authorization-server/as") => {
                self.seen.push("issuer".to_owned());
                ok(&self.lie(json!({
                    "issuer": format!("{origin}/as"),
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "revocation_endpoint": format!("{origin}/revoke"),
                    "device_authorization_endpoint": format!("{origin}/device"),
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true,
                })))
            }
            ("POST", "/register") => {
                self.seen.push("register".to_owned());
                ok(&json!({ "client_id": "client-1" }))
            }
            ("GET", "/authorize") => {
                let used = self.used.last().filter(|_| self.replays).cloned();
                let code = used.unwrap_or_else(|| self.make("code"));
                let challenge = text(&query, "code_challenge");
                let is_right = text(&query, "code_challenge_method") == "S256"
                    && text(&query, "resource") == format!("{origin}/mcp");
                if !is_right {
                    return error("invalid_request");
                }
                if !self.used.contains(&code) {
                    self.codes.insert(code.clone(), (challenge, text(&query, "redirect_uri")));
                }
                let iss = self.iss.clone().unwrap_or_else(|| format!("{origin}/as"));
                let (redirect, state) = (text(&query, "redirect_uri"), text(&query, "state"));
                let location = format!("{redirect}?code={code}&state={state}&iss={iss}");
                ("302 Found", format!("Location: {location}\r\n"), String::new())
            }
            ("POST", "/device") => ok(&json!({
                "device_code": "device-code-1", "user_code": "WDJB-MJHT", "interval": 1,
                "verification_uri": format!("{origin}/enter"), "expires_in": 60,
            })),
            ("POST", "/token") => {
                let grant = text(&form, "grant_type");
                self.seen.push(format!("token {grant}"));
                if let Some(location) = &self.token_redirect {
                    let location = format!("Location: {location}\r\n");
                    return ("307 Temporary Redirect", location, String::new());
                }
                if self.echoes {
                    return error(request.body);
                }
                if text(&form, "resource") != format!("{origin}/mcp") {
                    return error("invalid_target");
                }
                match grant.as_str() {
                    "authorization_code" => {
                        let known = self.codes.remove(&text(&form, "code"));
                        self.used.push(text(&form, "code"));
                        let digest = Sha256::digest(text(&form, "code_verifier"));
                        let request = (URL_SAFE_NO_PAD.encode(digest), text(&form, "redirect_uri"));
                        let is_known = known == Some(request);
                        if is_known { self.tokens() } else { error("invalid_grant") }
                    }
                    "refresh_token" => {
                        let token = text(&form, "refresh_token");
                        let before = self.refresh.len();
                        self.refresh.retain(|known| *known != token);
                        if self.refresh.len() < before {
                            self.tokens()
                        } else {
                            error("invalid_grant")
                        }
                    }
                    _ => {
                        self.device_polls += 1;
                        match self.device_polls {
                            1 => error("authorization_pending"),
                            _ => self.tokens(),
                        }
                    }
                }
            }
            ("POST", "/revoke") => {
                let token = text(&form, "token");
                self.seen.push(format!("revoke {}", text(&form, "token_type_hint")));
                if self.keeps_tokens {
                    return ("503 Service Unavailable", String::new(), String::new());
                }
                self.access.retain(|known| *known != token);
                self.refresh.retain(|known| *known != token);
                ("200 OK", String::new(), String::new())
            }
            _ => ("404 Not Found", String::new(), String::new()),
        }
    }

    fn lie(&self, mut value: Value) -> Value {
        for (key, lie) in &self.lies {
            if value.get(key).is_some() {
                value[*key] = lie.clone();
            }
        }
        value
    }

    fn make(&mut self, kind: &str) -> String {
        self.made += 1;
        let made = format!("{kind}-0123456789abcdef-{}", self.made);
        self.issued.push(made.clone());
        made
    }

    fn tokens(&mut self) -> Response {
        let (access, refresh) = (self.make("access"), self.make("refresh"));
        self.access.push(access.clone());
        let mut tokens = json!({
            "access_token": access, "token_type": "Bearer", "expires_in": self.expires_in,
            "scope": "read",
        });
        if !self.has_no_refresh {
            self.refresh.push(refresh.clone());
            tokens["refresh_token"] = refresh.into();
        }
        ok(&tokens)
    }

    fn call(&mut self, origin: &str, request: &Request<'_>) -> Response {
        let message: Value = serde_json::from_str(request.body).unwrap_or_default();
        let name = message["method"].as_str().unwrap_or_default().to_owned();
        let bearer = request.bearer.clone();
        let is_valid = bearer.as_ref().is_some_and(|token| self.access.contains(token));
        self.seen.push(format!("{name} {is_valid}"));
        if !is_valid {
            let url = format!("{origin}/.well-known/oauth-protected-resource/mcp");
            let challenge =
                format!("WWW-Authenticate: Bearer resource_metadata=\"{url}\", scope=\"read\"\r\n");
            return ("401 Unauthorized", challenge, String::new());
        }
        let result = match name.as_str() {
            "initialize" => json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "signed", "version": "1" },
            }),
            "tools/list" => json!({ "tools": [
                { "name": "echo", "description": "Echoes", "inputSchema": { "type": "object" } },
                { "name": "admin", "description": "Administers", "inputSchema": { "type": "object" } },
            ] }),
            "tools/call" if message["params"]["name"] == "admin" => {
                let challenge = "WWW-Authenticate: Bearer error=\"insufficient_scope\", \
                                 scope=\"read admin\"\r\n";
                return ("403 Forbidden", challenge.to_owned(), String::new());
            }
            "tools/call" => {
                let text = format!("called with {}", bearer.unwrap_or_default());
                json!({ "content": [{ "type": "text", "text": text }] })
            }
            "notifications/initialized" => return ("202 Accepted", String::new(), String::new()),
            _ => return error("unknown"),
        };
        ok(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
    }
}

/// Reads a form.
fn fields(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or_default() as u8;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let (high, low) = (rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0'));
                bytes.push(digit(high) << 4 | digit(low));
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
