//! Tokens of registries.
//!
//! Source: distribution's "Token Authentication Specification", and RFC 9110, section 11.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use crate::credentials::Credentials;
use crate::error::RegistryError;
use crate::registry::{ANSWER_BYTES, Registry};
use crate::web::{Answer, Outgoing};

/// A challenge of a registry.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

/// The answer of a token server.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// Returns the value of `Authorization` for a refused request. `None`: the registry has no
/// challenge that can be met.
pub(crate) fn authorize(
    registry: &Registry<'_>,
    refused: &Answer,
    credentials: Option<&Credentials>,
) -> Result<Option<String>, RegistryError> {
    let challenges = refused.headers.get_all("www-authenticate").iter();
    let challenge = challenges.filter_map(|value| parse(value.to_str().ok()?)).next();
    match (challenge, credentials) {
        (Some(Challenge::Basic), Some(Credentials::Password { user, password })) => {
            Ok(Some(basic(user, password)))
        }
        (Some(Challenge::Bearer { realm, service, scope }), credentials) => {
            fetch(registry, &realm, service.as_deref(), scope.as_deref(), credentials).map(Some)
        }
        _ => Ok(None),
    }
}

/// Requests a token from the server that the registry names.
fn fetch(
    registry: &Registry<'_>,
    realm: &str,
    service: Option<&str>,
    scope: Option<&str>,
    credentials: Option<&Credentials>,
) -> Result<String, RegistryError> {
    let invalid = |problem: &str| RegistryError::invalid(realm, problem);
    let mut url = Url::parse(realm).map_err(|_| invalid("the token server has no valid URL"))?;
    if url.host_str().is_none() || !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("the token server has no valid URL"));
    }
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let host = host.to_owned();
    // Only the registry itself may be unencrypted or private.
    let is_same = host == registry.host;
    let access = if is_same { registry.access } else { registry.access.encrypted() };
    if url.scheme() != access.scheme() {
        return Err(invalid("the token server does not use `https`"));
    }
    let mut headers = Vec::new();
    let mut form = Vec::from_iter(service.map(|service| ("service", service)));
    form.extend(scope.map(|scope| ("scope", scope)));
    let (method, body) = match credentials {
        Some(Credentials::IdentityToken(token)) => {
            form.extend([
                ("grant_type", "refresh_token"),
                ("client_id", "kitbag"),
                ("refresh_token", token.as_str()),
            ]);
            let body =
                url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&form).finish();
            headers.push(("content-type", "application/x-www-form-urlencoded".to_owned()));
            ("POST", Some(Bytes::from(body)))
        }
        other => {
            if let Some(Credentials::Password { user, password }) = other {
                headers.push(("authorization", basic(user, password)));
            }
            if !form.is_empty() {
                url.query_pairs_mut().extend_pairs(&form);
            }
            ("GET", None)
        }
    };
    let url = url.as_str();
    let outgoing = Outgoing { method, url, headers, body, limit: ANSWER_BYTES, follows: false };
    let answer = registry.web.send(outgoing, &host, access)?.success(&registry.host)?;
    let token: Token = serde_json::from_slice(&answer.body)
        .map_err(|_| invalid("the token server answered with something that is not a token"))?;
    let token = token.token.or(token.access_token);
    let is_plain = |token: &String| token.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    let token = token.filter(is_plain).ok_or_else(|| invalid("the token server sent no token"))?;
    Ok(format!("Bearer {token}"))
}

fn basic(user: &str, password: &str) -> String {
    let text = Zeroizing::new(format!("{user}:{password}"));
    format!("Basic {}", BASE64.encode(text.as_bytes()))
}

/// Parses the first challenge of a header field.
fn parse(value: &str) -> Option<Challenge> {
    let (scheme, rest) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut scope) = (None, None, None);
    let mut rest = rest.trim_start();
    while let Some((key, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        match key.trim().to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value.to_owned()),
            "service" => service = Some(value.to_owned()),
            "scope" => scope = Some(value.to_owned()),
            _ => {}
        }
        rest = after.trim_start_matches([',', ' ']);
    }
    Some(Challenge::Bearer { realm: realm?, service, scope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_parsed() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            let [service, scope] = [service, scope].map(|text| text.map(str::to_owned));
            Some(Challenge::Bearer { realm: realm.to_owned(), service, scope })
        };
        assert_eq!(
            parse(
                r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push""#
            ),
            bearer(
                "https://auth.example/token",
                Some("registry.example"),
                Some("repository:a/b:pull,push")
            )
        );
        assert_eq!(parse("bearer realm=https://a, error=x"), bearer("https://a", None, None));
        assert_eq!(parse("Basic realm=\"a\""), Some(Challenge::Basic));
        for text in ["", "Bearer", "Bearer service=\"a\"", "Bearer realm=\"a", "Digest realm=a"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
