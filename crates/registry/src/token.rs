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
    method: &str,
    refused: &Answer,
    credentials: Option<&Credentials>,
) -> Result<Option<String>, RegistryError> {
    let values = refused.headers.get_all("www-authenticate").iter();
    let challenges: Vec<_> = values.flat_map(|value| parse(value.as_bytes())).collect();
    let bearer = challenges.iter().find_map(|challenge| match challenge {
        Challenge::Bearer { realm, service, scope } => Some((realm, service, scope)),
        Challenge::Basic => None,
    });
    if let Some((realm, service, scope)) = bearer {
        // Some registries leave it to the client.
        let scope = scope.clone().unwrap_or_else(|| {
            let actions = if matches!(method, "GET" | "HEAD") { "pull" } else { "pull,push" };
            format!("repository:{}:{actions}", registry.repository)
        });
        let parameters = (service.as_deref(), &*scope);
        return fetch(registry, realm, parameters, credentials).map(Some);
    }
    Ok(match (challenges.contains(&Challenge::Basic), credentials) {
        (true, Some(Credentials::Password { user, password })) => Some(basic(user, password)),
        _ => None,
    })
}

/// Requests a token from the server that the registry names.
fn fetch(
    registry: &Registry<'_>,
    realm: &str,
    (service, scope): (Option<&str>, &str),
    credentials: Option<&Credentials>,
) -> Result<String, RegistryError> {
    let invalid = |problem: &str| RegistryError::invalid(realm, problem);
    let mut url = Url::parse(realm).map_err(|_| invalid("the token server has no valid URL"))?;
    if url.host_str().is_none() || !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("the token server has no valid URL"));
    }
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let host = host.to_owned();
    // Another host may be private only if the user config names it.
    let is_same = host == registry.host;
    let access = if is_same { registry.access } else { registry.web.access(&host).encrypted() };
    if url.scheme() != access.scheme() {
        return Err(invalid("the token server does not use `https`"));
    }
    let mut headers = Vec::new();
    let mut form = Vec::from_iter(service.map(|service| ("service", service)));
    form.push(("scope", scope));
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
            url.query_pairs_mut().extend_pairs(&form);
            ("GET", None)
        }
    };
    let url = url.as_str();
    let outgoing = Outgoing { method, url, headers, body, limit: ANSWER_BYTES };
    let answer = registry.web.send(outgoing, &host, access)?.success(&registry.host)?;
    let token: Token = serde_json::from_slice(&answer.body)
        .map_err(|_| invalid("the token server answered with something that is not a token"))?;
    let is_set = |token: &String| !token.is_empty();
    let token = token.token.filter(is_set).or(token.access_token.filter(is_set));
    let is_plain = |token: &String| token.bytes().all(|byte| (0x21..0x7f).contains(&byte));
    let token = token.filter(is_plain).ok_or_else(|| invalid("the token server sent no token"))?;
    Ok(format!("Bearer {token}"))
}

fn basic(user: &str, password: &str) -> String {
    let text = Zeroizing::new(format!("{user}:{password}"));
    format!("Basic {}", BASE64.encode(text.as_bytes()))
}

/// Parses the challenges of a header field. Parts that are not valid are skipped.
fn parse(value: &[u8]) -> Vec<Challenge> {
    let text = String::from_utf8_lossy(value);
    let mut schemes: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = &*text;
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        let end = rest.find(|c: char| matches!(c, '=' | ',') || c.is_ascii_whitespace());
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        if rest.is_empty() {
            break;
        }
        let parameters = schemes.last_mut().map(|(_, parameters)| parameters);
        match (after.trim_start().strip_prefix('='), parameters) {
            (Some(after), Some(parameters)) => {
                let Some((value, after)) = value_of(after.trim_start()) else { break };
                parameters.push((word.to_ascii_lowercase(), value));
                rest = after;
            }
            // A value that contains a comma, without quotation marks.
            (None, Some(parameters))
                if !is_scheme(word) && (after.is_empty() || after.starts_with(',')) =>
            {
                append(parameters, word);
                rest = after;
            }
            (None, _) => {
                schemes.push((word.to_ascii_lowercase(), Vec::new()));
                rest = after;
            }
            (Some(_), None) => break,
        }
    }
    schemes.into_iter().filter_map(|(scheme, parameters)| challenge(&scheme, &parameters)).collect()
}

fn challenge(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
    let find = |key: &str| {
        let found = parameters.iter().find(|(name, value)| name == key && !value.is_empty());
        found.map(|(_, value)| value.clone())
    };
    match scheme {
        "basic" => Some(Challenge::Basic),
        "bearer" => {
            let (service, scope) = (find("service"), find("scope"));
            Some(Challenge::Bearer { realm: find("realm")?, service, scope })
        }
        _ => None,
    }
}

/// Returns the value at the start of a text, and the text after it. `None`: a quotation mark is
/// missing.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c == ',' || c.is_ascii_whitespace()).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    None
}

fn is_scheme(word: &str) -> bool {
    let schemes = ["basic", "bearer", "digest", "negotiate", "ntlm"];
    schemes.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

fn append(parameters: &mut [(String, String)], word: &str) {
    if let Some((_, value)) = parameters.last_mut() {
        value.push(',');
        value.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        let [service, scope] = [service, scope].map(|text| text.map(str::to_owned));
        Challenge::Bearer { realm: realm.to_owned(), service, scope }
    }

    #[test]
    fn challenges_are_parsed() {
        let check = |text: &str, expected: &[Challenge]| {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        };
        let full = bearer("https://a/token", Some("r.example"), Some("repository:a/b:pull,push"));
        let full = [full];
        check(
            r#"Bearer realm="https://a/token",service="r.example",scope="repository:a/b:pull,push""#,
            &full,
        );
        check(
            "bearer  scope = \"repository:a/b:pull,push\" ,\tservice=r.example, REALM=https://a/token",
            &full,
        );
        check(
            "Bearer realm=https://a/token,scope=repository:a/b:pull,push,service=r.example",
            &full,
        );
        check(
            "Bearer realm=https://a/token,service=r.example,scope=repository:a/b:pull,push",
            &full,
        );
        check("bearer realm=https://a, error=x", &[bearer("https://a", None, None)]);
        check(
            r#"Bearer realm="https://a/\"b\"",scope="""#,
            &[bearer("https://a/\"b\"", None, None)],
        );
        check("Basic realm=\"a\"", &[Challenge::Basic]);
        let both = [Challenge::Basic, bearer("https://a", None, None)];
        check(r#"Basic realm="a, b", charset="UTF-8", Bearer realm="https://a""#, &both);
        check("Negotiate, Basic realm=a, Bearer realm=https://a", &both);
        for text in ["", ",", "Bearer", "Bearer service=\"a\"", "Bearer realm=\"a", "=", "a=b"] {
            check(text, &[]);
        }
        check("Digest realm=a", &[]);
    }
}
