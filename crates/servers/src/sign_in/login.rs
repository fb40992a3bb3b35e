//! Signing in, refreshing a sign-in, and revoking it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use kitbag_base::text::shown;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};
use url::Url;

use super::challenge::{Challenge, is_scope, scopes};
use super::exchange::{Exchange, OAuthError, Reach};
use super::metadata::{self, Metadata};
use super::store::{ClientCredentials, SignIn, now};
use super::{Callback, SignInError, random};

const TOKEN: &str = "the token endpoint";
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The options of a sign-in.
#[derive(Clone, Default)]
pub struct LoginOptions {
    /// The connections.
    pub reach: Reach,
    /// The URL of the MCP server.
    pub server: String,
    /// The client, and its secret. `None`: kitbag registers one.
    pub client: Option<(String, Option<String>)>,
    /// The scopes to request. Empty: those that the server names.
    pub scopes: Vec<String>,
}

/// A sign-in whose authorization server is known.
pub struct Login {
    exchange: Exchange,
    options: LoginOptions,
    metadata: Metadata,
    scopes: Vec<String>,
}

/// An authorization request, which a person answers in a browser.
pub struct Authorization {
    /// The URL to open. Only for the person.
    pub url: String,
    redirect: String,
    state: String,
    verifier: String,
    client: ClientCredentials,
}

/// A code that a person enters in a browser, also on another device.
pub struct DeviceCode {
    /// The code to enter.
    pub user_code: String,
    /// The page that asks for the code.
    pub url: String,
    code: String,
    interval: Duration,
    time: Duration,
    client: ClientCredentials,
}

impl Login {
    /// Finds the authorization server of an MCP server.
    ///
    /// # Errors
    ///
    /// [`SignInError`] if the server has none, or its metadata is refused.
    pub async fn find(options: LoginOptions) -> Result<Self, SignInError> {
        if let Some(scope) = options.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(SignInError(format!("`{}` is not the name of a scope", shown(scope))));
        }
        let exchange = Exchange::new(&options.reach, &options.server)?;
        let probe = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": { "name": "kitbag", "version": env!("CARGO_PKG_VERSION") },
            },
        });
        let answer = exchange.json("the server", &options.server, &probe).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            let status = answer.status;
            return Err(SignInError(format!("the server requires no sign-in (HTTP {status})")));
        }
        let challenge = answer.challenge().unwrap_or_default();
        let metadata = metadata::find(&exchange, &challenge, &options.server).await?;
        let scopes = Self::requested(&options, &challenge, &metadata);
        Ok(Self { exchange, options, metadata, scopes })
    }

    fn requested(
        options: &LoginOptions,
        challenge: &Challenge,
        metadata: &Metadata,
    ) -> Vec<String> {
        let mut scopes = match (&*options.scopes, &*challenge.scopes) {
            ([], []) => metadata.scopes.clone(),
            ([], scopes) | (scopes, _) => scopes.to_vec(),
        };
        scopes.dedup();
        scopes
    }

    /// Returns the authorization server.
    pub fn issuer(&self) -> &str {
        &self.metadata.issuer
    }

    /// Returns the requested scopes.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the URL of the token endpoint, which receives the secret of a client.
    pub fn token_endpoint(&self) -> &str {
        &self.metadata.token
    }

    /// Starts a sign-in in a browser, which is redirected to `redirect`.
    ///
    /// # Errors
    ///
    /// [`SignInError`] if the authorization server does not support it.
    pub async fn authorize(&self, redirect: &str) -> Result<Authorization, SignInError> {
        let none = || SignInError::new("the authorization server has no authorization endpoint");
        let endpoint = self.metadata.authorization.as_ref().ok_or_else(none)?;
        if !self.metadata.has_pkce {
            return Err(SignInError::new(
                "the authorization server does not support PKCE with S256, which protects the code",
            ));
        }
        let grants = ["authorization_code", "refresh_token"];
        let client = self.client(&grants, &[redirect]).await?;
        let (state, verifier) = (random(32)?, random(32)?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let mut url = Url::parse(endpoint).map_err(|_| none())?;
        let scope = self.scopes.join(" ");
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect)
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.metadata.resource);
        if !scope.is_empty() {
            query.append_pair("scope", &scope);
        }
        drop(query);
        let redirect = redirect.to_owned();
        Ok(Authorization { url: url.into(), redirect, state, verifier, client })
    }

    /// Completes a sign-in with the redirect of the browser.
    ///
    /// # Errors
    ///
    /// [`SignInError`] if the redirect or the tokens are refused.
    pub async fn finish(
        &self,
        authorization: Authorization,
        callback: Callback,
    ) -> Result<SignIn, SignInError> {
        let Authorization { redirect, state, verifier, client, .. } = authorization;
        let metadata = &self.metadata;
        let code = callback.code(&state, &metadata.issuer, metadata.names_issuer)?;
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("redirect_uri", &*redirect),
            ("code_verifier", &*verifier),
            ("resource", &*metadata.resource),
        ];
        let tokens = token(&self.exchange, &metadata.token, &client, &fields).await?;
        self.signed_in(client, tokens)
    }

    /// Starts a sign-in with a code (RFC 8628).
    ///
    /// # Errors
    ///
    /// [`SignInError`] if the authorization server does not support it.
    pub async fn device(&self) -> Result<DeviceCode, SignInError> {
        const WHAT: &str = "the device endpoint";
        let none = || SignInError::new("the authorization server offers no sign-in with a code");
        let endpoint = self.metadata.device.as_ref().ok_or_else(none)?;
        let client = self.client(&[DEVICE_GRANT, "refresh_token"], &[]).await?;
        let scope = self.scopes.join(" ");
        let mut fields = vec![("client_id", &*client.id), ("resource", &*self.metadata.resource)];
        if !scope.is_empty() {
            fields.push(("scope", &*scope));
        }
        let value = self.exchange.form(WHAT, endpoint, &fields, None).await?.success(WHAT)?;
        let text = |key: &str| {
            let text = value[key].as_str().map(str::to_owned);
            text.ok_or_else(|| SignInError(format!("{WHAT} sent no `{key}`")))
        };
        let url = text("verification_uri")?;
        self.exchange.check("the page for the code", &url)?;
        let user_code = text("user_code")?;
        let is_code = |c: char| c.is_ascii_graphic() || c == ' ';
        if user_code.len() > 100 || !user_code.chars().all(is_code) {
            return Err(SignInError(format!("{WHAT} sent a code that cannot be shown")));
        }
        Ok(DeviceCode {
            user_code,
            url,
            code: text("device_code")?,
            interval: Duration::from_secs(value["interval"].as_u64().unwrap_or(5).clamp(1, 60)),
            time: Duration::from_secs(value["expires_in"].as_u64().unwrap_or(600).min(1800)),
            client,
        })
    }

    /// Waits until the person has entered the code.
    ///
    /// # Errors
    ///
    /// [`SignInError`] if the person refused, or the code expired.
    pub async fn wait(&self, device: DeviceCode) -> Result<SignIn, SignInError> {
        let DeviceCode { code, mut interval, time, client, .. } = device;
        let end = Instant::now() + time;
        let fields = [
            ("grant_type", DEVICE_GRANT),
            ("device_code", &*code),
            ("resource", &*self.metadata.resource),
        ];
        while Instant::now() + interval < end {
            sleep(interval).await;
            match token(&self.exchange, &self.metadata.token, &client, &fields).await {
                Ok(tokens) => return self.signed_in(client, tokens),
                Err(error) => match error.code.as_deref() {
                    Some("authorization_pending") => {}
                    Some("slow_down") => interval += Duration::from_secs(5),
                    _ => return Err(error.into()),
                },
            }
        }
        Err(SignInError::new("the code expired before the sign-in was complete"))
    }

    /// Returns the configured client, or registers one (RFC 7591).
    async fn client(
        &self,
        grants: &[&str],
        redirects: &[&str],
    ) -> Result<ClientCredentials, SignInError> {
        const WHAT: &str = "the registration endpoint";
        let secret_in_form = self.metadata.secret_in_form;
        if let Some((id, secret)) = &self.options.client {
            let (id, secret) = (id.clone(), secret.clone());
            return Ok(ClientCredentials { id, secret, secret_in_form, is_configured: true });
        }
        let none = || {
            SignInError::new(
                "the authorization server registers no clients: register kitbag there as a native \
                 application, and pass its id with `--client-id`",
            )
        };
        let endpoint = self.metadata.registration.as_ref().ok_or_else(none)?;
        let mut client = json!({
            "client_name": "kitbag",
            "application_type": "native",
            "grant_types": grants,
            "token_endpoint_auth_method": "none",
        });
        if !redirects.is_empty() {
            client["redirect_uris"] = json!(redirects);
            client["response_types"] = json!(["code"]);
        }
        if !self.scopes.is_empty() {
            client["scope"] = json!(self.scopes.join(" "));
        }
        let value = self.exchange.json(WHAT, endpoint, &client).await?.success(WHAT)?;
        let id = value["client_id"].as_str().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| SignInError(format!("{WHAT} sent no `client_id`")))?.to_owned();
        let secret = value["client_secret"].as_str().map(str::to_owned);
        let method = value["token_endpoint_auth_method"].as_str();
        let secret = secret.filter(|_| method != Some("none"));
        let secret_in_form = secret_in_form || method == Some("client_secret_post");
        Ok(ClientCredentials { id, secret, secret_in_form, is_configured: false })
    }

    fn signed_in(&self, client: ClientCredentials, tokens: Tokens) -> Result<SignIn, SignInError> {
        Ok(SignIn {
            server: self.options.server.clone(),
            resource: self.metadata.resource.clone(),
            issuer: self.metadata.issuer.clone(),
            token_endpoint: self.metadata.token.clone(),
            revocation_endpoint: self.metadata.revocation.clone(),
            client,
            access_token: tokens.access,
            refresh_token: tokens.refresh,
            expires_at: tokens.expires_at,
            scopes: tokens.scopes.unwrap_or_else(|| self.scopes.clone()),
        })
    }
}

/// The tokens of an answer.
struct Tokens {
    access: String,
    refresh: Option<String>,
    expires_at: Option<u64>,
    scopes: Option<Vec<String>>,
}

/// Requests tokens.
async fn token(
    exchange: &Exchange,
    endpoint: &str,
    client: &ClientCredentials,
    fields: &[(&str, &str)],
) -> Result<Tokens, OAuthError> {
    let failed = |message: String| OAuthError { code: None, message };
    let value = post(exchange, TOKEN, endpoint, client, fields).await?.success(TOKEN)?;
    let is_bearer =
        value["token_type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !is_bearer {
        return Err(failed(format!("{TOKEN} sent a token that is not a bearer token")));
    }
    let token = |key: &str| value[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let access = token("access_token");
    let access = access.ok_or_else(|| failed(format!("{TOKEN} sent no access token")))?;
    if !access.bytes().all(|byte| byte.is_ascii_graphic()) || access.len() < 8 {
        return Err(failed(format!("{TOKEN} sent an access token that cannot be sent")));
    }
    let seconds = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let expires_in = seconds(&value["expires_in"]);
    Ok(Tokens {
        access,
        refresh: token("refresh_token"),
        expires_at: expires_in.map(|seconds| now().saturating_add(seconds)),
        scopes: value["scope"].as_str().map(scopes),
    })
}

/// Posts a form with the credentials of the client.
async fn post(
    exchange: &Exchange,
    what: &str,
    endpoint: &str,
    client: &ClientCredentials,
    fields: &[(&str, &str)],
) -> Result<super::exchange::Answer, OAuthError> {
    let mut fields = fields.to_vec();
    let mut basic = None;
    match &client.secret {
        Some(secret) if !client.secret_in_form => basic = Some((&*client.id, &**secret)),
        Some(secret) => {
            fields.extend([("client_id", &*client.id), ("client_secret", &**secret)]);
        }
        None => fields.push(("client_id", &*client.id)),
    }
    let answer = exchange.form(what, endpoint, &fields, basic).await;
    answer.map_err(|error| OAuthError { code: None, message: error.0 })
}

/// Refreshes the tokens of a sign-in. `None`: the authorization server refuses, and the person has
/// to sign in again.
pub(crate) async fn refresh(
    reach: &Reach,
    sign_in: &SignIn,
) -> Result<Option<SignIn>, SignInError> {
    let Some(refresh_token) = &sign_in.refresh_token else { return Ok(None) };
    let exchange = Exchange::new(reach, &sign_in.server)?;
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &**refresh_token),
        ("resource", &*sign_in.resource),
    ];
    match token(&exchange, &sign_in.token_endpoint, &sign_in.client, &fields).await {
        Ok(tokens) => Ok(Some(SignIn {
            access_token: tokens.access,
            refresh_token: tokens.refresh.or_else(|| sign_in.refresh_token.clone()),
            expires_at: tokens.expires_at,
            scopes: tokens.scopes.unwrap_or_else(|| sign_in.scopes.clone()),
            ..sign_in.clone()
        })),
        Err(error) => match error.code.as_deref() {
            Some("invalid_grant" | "invalid_client" | "unauthorized_client") => Ok(None),
            _ => Err(error.into()),
        },
    }
}

/// Revokes the tokens of a sign-in (RFC 7009). Returns false if the authorization server cannot
/// revoke tokens.
///
/// # Errors
///
/// [`SignInError`] if the authorization server did not revoke them.
pub async fn revoke(reach: &Reach, sign_in: &SignIn) -> Result<bool, SignInError> {
    const WHAT: &str = "the revocation endpoint";
    let Some(endpoint) = &sign_in.revocation_endpoint else { return Ok(false) };
    let exchange = Exchange::new(reach, &sign_in.server)?;
    let refresh = sign_in.refresh_token.as_deref().map(|token| (token, "refresh_token"));
    for (token, hint) in refresh.into_iter().chain([(&*sign_in.access_token, "access_token")]) {
        let fields = [("token", token), ("token_type_hint", hint)];
        let answer = post(&exchange, WHAT, endpoint, &sign_in.client, &fields).await?;
        if !answer.status.is_success() {
            answer.success(WHAT)?;
        }
    }
    Ok(true)
}
