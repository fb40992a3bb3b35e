//! Sign-in to remote servers, with a provider on loopback that tells the truth or lies.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kitbag_policy::server::{RemoteServer, ServerAddress, ServerName};
use kitbag_servers::sign_in::{
    Login, LoginOptions, Reach, RedirectListener, SignIn, SignInStatus, SignInStore, StoreLock,
    revoke,
};
use kitbag_servers::{
    CallEvents, ServerCall, ServerTarget, Servers, ServersOptions, TargetSecrets,
};
use kitbag_test_servers::OAuthServer;
use serde_json::{Map, json};

use crate::fake::{Events, definition, text};

/// Keeps sign-ins in memory. Clones are like several processes.
#[derive(Clone, Default)]
struct Memory {
    kept: Arc<Mutex<HashMap<String, SignIn>>>,
    locked: Arc<AtomicBool>,
}

struct Unlock(Arc<AtomicBool>);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl SignInStore for Memory {
    fn status(&self, server: &str) -> Option<SignInStatus> {
        self.kept.lock().unwrap().get(server).map(SignIn::status)
    }

    fn read(&self, server: &str) -> Result<Option<SignIn>, String> {
        Ok(self.kept.lock().unwrap().get(server).cloned())
    }

    fn write(&self, sign_in: &SignIn) -> Result<(), String> {
        self.kept.lock().unwrap().insert(sign_in.server().to_owned(), sign_in.clone());
        Ok(())
    }

    fn delete(&self, server: &str) -> Result<bool, String> {
        Ok(self.kept.lock().unwrap().remove(server).is_some())
    }

    fn try_lock(&self, _: &str) -> Result<Option<StoreLock>, String> {
        let is_free = !self.locked.swap(true, Ordering::SeqCst);
        Ok(is_free.then(|| Box::new(Unlock(Arc::clone(&self.locked))) as StoreLock))
    }
}

fn options(server: &OAuthServer) -> LoginOptions {
    LoginOptions { server: server.url(), ..LoginOptions::default() }
}

/// Signs in as a person with a browser does.
async fn sign_in(server: &OAuthServer) -> Result<SignIn, String> {
    let signed_in = async {
        let login = Login::find(options(server)).await?;
        let listener = RedirectListener::open().await?;
        let authorization = login.authorize(&listener.url()).await?;
        let url = authorization.url.clone();
        tokio::task::spawn_blocking(move || OAuthServer::get(&OAuthServer::approve(&url)));
        let callback = listener.wait(Duration::from_secs(20)).await?;
        login.finish(authorization, callback).await
    };
    signed_in.await.map_err(|error: kitbag_servers::sign_in::SignInError| error.to_string())
}

fn target(url: String) -> ServerTarget {
    let remote = RemoteServer { url, secret: None, headers: Vec::new(), addresses: Vec::new() };
    ServerTarget {
        name: ServerName::new("docs").unwrap(),
        address: Arc::new(ServerAddress::Remote(remote)),
        era: None,
        idle: ServerTarget::IDLE,
        secrets: TargetSecrets::default(),
        deny: Arc::default(),
    }
}

fn servers(store: &Memory) -> Servers {
    let sign_ins: Option<Arc<dyn SignInStore>> = Some(Arc::new(store.clone()));
    Servers::new(ServersOptions { sign_ins, ..ServersOptions::default() })
}

/// Calls a tool, and returns its text or the error.
async fn call(servers: &Servers, url: String, tool: &str) -> String {
    let mut definition = definition(tool);
    definition.description = Some(if tool == "echo" { "Echoes" } else { "Administers" }.into());
    definition.input_schema = json!({ "type": "object" });
    let sink: Arc<dyn CallEvents> = Arc::new(Events::default());
    let mut call = ServerCall::new(servers, target(url), Arc::new(definition), Map::new());
    match call.run(&Map::new(), &sink).await {
        Ok(round) => text(Ok(round)),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_and_the_server_is_called() {
    let (server, store) = (OAuthServer::start(), Memory::default());
    let answer = call(&servers(&store), server.url(), "echo").await;
    let needed = "the server `docs` requires a sign-in: a person has to run `kitbag login docs`";
    assert_eq!(answer, needed);
    store.write(&sign_in(&server).await.unwrap()).unwrap();
    let servers = servers(&store);
    let answer = call(&servers, server.url(), "echo").await;
    let token = server.state().access[0].clone();
    // The token is masked like other secrets.
    assert_eq!(answer, format!("called with {}", "*".repeat(token.len())));
    let answer = call(&servers, server.url(), "admin").await;
    let scopes = "the server `docs` requires a sign-in with the scopes `read admin`: a person has \
                  to run `kitbag login docs --scope read --scope admin`";
    assert_eq!(answer, scopes);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_refresh_a_token_once() {
    let (server, store) = (OAuthServer::start(), Memory::default());
    server.state().expires_in = 1;
    store.write(&sign_in(&server).await.unwrap()).unwrap();
    server.state().expires_in = 3600;
    let (one, other) = (servers(&store), servers(&store));
    let (one, other) =
        tokio::join!(call(&one, server.url(), "echo"), call(&other, server.url(), "echo"));
    assert!(one.starts_with("called with *") && one == other, "{one} {other}");
    let state = server.state();
    let refreshes = state.seen.iter().filter(|it| *it == "token refresh_token").count();
    assert_eq!(refreshes, 1);
    assert!(!state.seen.contains(&"tools/call false".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_tokens_are_refreshed_within_the_call() {
    let (server, store) = (OAuthServer::start(), Memory::default());
    store.write(&sign_in(&server).await.unwrap()).unwrap();
    let servers = servers(&store);
    assert!(call(&servers, server.url(), "echo").await.starts_with("called with *"));
    server.state().access.clear();
    assert!(call(&servers, server.url(), "echo").await.starts_with("called with *"));
    // A stolen refresh token that was used elsewhere ends the sign-in.
    server.state().access.clear();
    server.state().refresh.clear();
    let answer = call(&servers, server.url(), "echo").await;
    assert!(answer.ends_with("a person has to run `kitbag login docs`"), "{answer}");
    assert_eq!(store.status(&server.url()), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_sent_to_their_own_server_only() {
    let (server, other, store) = (OAuthServer::start(), OAuthServer::start(), Memory::default());
    let signed_in = sign_in(&server).await.unwrap();
    // As if the store had the sign-in under another server.
    store.kept.lock().unwrap().insert(other.url(), signed_in);
    let answer = call(&servers(&store), other.url(), "echo").await;
    assert!(answer.ends_with("a person has to run `kitbag login docs`"), "{answer}");
    let sent = other.state().sent.join("\n");
    assert!(!sent.contains("access-") && !sent.contains("refresh-"), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_code_signs_in_and_logout_revokes() {
    let server = OAuthServer::start();
    let login = Login::find(options(&server)).await.unwrap();
    let device = login.device().await.unwrap();
    assert_eq!(device.user_code, "WDJB-MJHT");
    let signed_in = login.wait(device).await.unwrap();
    assert_eq!(server.state().access.len(), 1);
    let revoked = revoke(&Reach::default(), &signed_in).await;
    assert_eq!(revoked, Ok(true));
    assert!(server.state().access.is_empty() && server.state().refresh.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn lying_metadata_is_refused() {
    let cases = [
        ("resource", json!("https://other.example/mcp"), "it is for `https://other.example/mcp`"),
        ("issuer", json!("https://honest.example"), "it is of the issuer `https://honest.example`"),
        ("token_endpoint", json!("http://10.0.0.1/token"), "`http://10.0.0.1/token` is not https"),
        (
            "token_endpoint",
            json!("https://169.254.169.254/token"),
            "`https://169.254.169.254/token` is a private address",
        ),
        ("authorization_endpoint", json!("file:///etc/passwd"), "only `https` and `http`"),
        ("authorization_endpoint", json!("javascript://a/%0aalert(1)"), "only `https` and `http`"),
        ("authorization_servers", json!(["http://192.168.0.1"]), "is not https"),
        ("code_challenge_methods_supported", json!(["plain"]), "does not support PKCE"),
        ("scopes_supported", json!(vec!["x".repeat(1000); 100]), "cannot be used"),
    ];
    for (key, lie, expected) in cases {
        let server = OAuthServer::start();
        server.state().lies.insert(key, lie);
        let error = sign_in(&server).await.unwrap_err();
        assert!(error.contains(expected), "{key}: {error}");
        let tokens = server.state().seen.iter().filter(|it| it.starts_with("token")).count();
        assert_eq!(tokens, 0, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_from_another_issuer_are_refused() {
    let server = OAuthServer::start();
    server.state().iss = Some("https://honest.example".to_owned());
    let error = sign_in(&server).await.unwrap_err();
    let expected = "it is from the issuer `https://honest.example`";
    assert!(error.contains(expected), "{error}");
    assert!(!server.state().seen.contains(&"token authorization_code".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn redirected_token_requests_are_refused() {
    let (server, thief) = (OAuthServer::start(), OAuthServer::start());
    server.state().token_redirect = Some(format!("{}/token", thief.origin()));
    let error = sign_in(&server).await.unwrap_err();
    let expected = "the token endpoint cannot be used: it redirects elsewhere, which is refused";
    assert_eq!(error, expected);
    assert!(thief.state().sent.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_taken_once_with_its_state() {
    let server = OAuthServer::start();
    let login = Login::find(options(&server)).await.unwrap();
    let listener = RedirectListener::open().await.unwrap();
    let url = listener.url();
    let authorization = login.authorize(&url).await.unwrap();
    let forged = format!("{url}?code=stolen&state=other");
    let sent = tokio::task::spawn_blocking(move || OAuthServer::get(&forged));
    let callback = listener.wait(Duration::from_secs(20)).await.unwrap();
    let error = login.finish(authorization, callback).await.unwrap_err().to_string();
    assert_eq!(error, "the redirect is refused: its `state` is not that of this sign-in");
    sent.await.unwrap();
    // The port is closed, so that the redirect cannot be replayed.
    let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    assert!(std::net::TcpStream::connect(address).is_err());
    assert!(!server.state().seen.contains(&"token authorization_code".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_has_bounded_time() {
    let listener = RedirectListener::open().await.unwrap();
    let error = listener.wait(Duration::from_millis(1)).await.err().unwrap().to_string();
    assert_eq!(error, "there was no sign-in within 0 seconds");
}

#[tokio::test(flavor = "multi_thread")]
async fn replayed_codes_are_refused() {
    let server = OAuthServer::start();
    sign_in(&server).await.unwrap();
    server.state().replays = true;
    let error = sign_in(&server).await.unwrap_err();
    assert_eq!(error, "the token endpoint answered `invalid_grant` (HTTP 400 Bad Request)");
    assert_eq!(server.state().access.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_do_not_repeat_codes() {
    let server = OAuthServer::start();
    server.state().echoes = true;
    let error = sign_in(&server).await.unwrap_err();
    for code in &server.state().issued {
        assert!(!error.contains(code.as_str()), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn announced_issuers_must_be_in_the_redirect() {
    let server = OAuthServer::start();
    let login = Login::find(options(&server)).await.unwrap();
    let listener = RedirectListener::open().await.unwrap();
    let authorization = login.authorize(&listener.url()).await.unwrap();
    let redirect = OAuthServer::approve(&authorization.url);
    let (without, _) = redirect.split_once("&iss=").unwrap();
    let without = without.to_owned();
    tokio::task::spawn_blocking(move || OAuthServer::get(&without));
    let callback = listener.wait(Duration::from_secs(20)).await.unwrap();
    let error = login.finish(authorization, callback).await.unwrap_err().to_string();
    assert_eq!(error, "the redirect is refused: it names no issuer");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_for_the_whole_host_need_its_own_metadata() {
    let server = OAuthServer::start();
    let origin = server.origin();
    // As a tenant of a host with several does.
    server.state().lies.insert("resource", json!(origin));
    let error = sign_in(&server).await.unwrap_err();
    let expected = format!("it is for `{origin}`, not for `{}`", server.url());
    assert!(error.contains(&expected), "{error}");
}
