//! Metadata of protected resources (RFC 9728) and of authorization servers (RFC 8414, OpenID).

use kitbag_base::text::shown;
use serde_json::Value;

use super::SignInError;
use super::challenge::{Challenge, is_scope};
use super::exchange::Exchange;

/// The authorization server of an MCP server.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    /// The protected resource, for which tokens are requested.
    pub(crate) resource: String,
    pub(crate) issuer: String,
    pub(crate) authorization: Option<String>,
    pub(crate) token: String,
    pub(crate) registration: Option<String>,
    pub(crate) device: Option<String>,
    pub(crate) revocation: Option<String>,
    /// True if answers to authorization requests name the issuer.
    pub(crate) names_issuer: bool,
    pub(crate) has_pkce: bool,
    /// True if a client's secret is sent in the form, because `Basic` is not supported.
    pub(crate) secret_in_form: bool,
    /// The scopes that the resource lists.
    pub(crate) scopes: Vec<String>,
}

/// Finds the authorization server.
pub(crate) async fn find(
    exchange: &Exchange,
    challenge: &Challenge,
    server: &str,
) -> Result<Metadata, SignInError> {
    let (resource, issuer, scopes) = resource(exchange, challenge, server).await?;
    authorization_server(exchange, resource, issuer, scopes).await
}

/// Returns the resource, its issuer and its scopes.
async fn resource(
    exchange: &Exchange,
    challenge: &Challenge,
    server: &str,
) -> Result<(String, String, Vec<String>), SignInError> {
    let what = "the metadata of the protected resource";
    let origin = exchange.origin();
    let path = exchange.path().trim_end_matches('/');
    let well_known = "/.well-known/oauth-protected-resource";
    let mut urls = Vec::new();
    match &challenge.resource_metadata {
        Some(url) => {
            let request = exchange.check(what, url)?;
            if request.origin_url() != origin {
                return Err(SignInError(format!(
                    "{what} is refused: `{}` is not at the origin of the server, `{origin}`",
                    shown(url)
                )));
            }
            urls.push(url.clone());
        }
        None => {
            urls.push(format!("{origin}{well_known}{path}"));
            if !path.is_empty() {
                urls.push(format!("{origin}{well_known}"));
            }
        }
    }
    for url in &urls {
        let Some(document) = exchange.document(what, url).await? else { continue };
        let resource = text(&document, "resource")
            .ok_or_else(|| SignInError(format!("{what} has no `resource`")))?;
        // A path above the URL needs the document at its own well-known URL: on a host with several
        // tenants, one of them must not get tokens for all.
        let is_own = resource.trim_end_matches('/') == server.trim_end_matches('/');
        let place = resource.strip_prefix(&*origin).unwrap_or_default().trim_end_matches('/');
        let is_above =
            contains(&resource, server) && *url == format!("{origin}{well_known}{place}");
        if !is_own && !is_above {
            return Err(SignInError(format!(
                "{what} is refused: it is for `{}`, not for `{}`",
                shown(&resource),
                shown(server)
            )));
        }
        let issuer = document["authorization_servers"].as_array().and_then(|list| list.first());
        let issuer = issuer.and_then(Value::as_str);
        let issuer =
            issuer.ok_or_else(|| SignInError(format!("{what} names no authorization server")))?;
        let scopes = list(&document, "scopes_supported").into_iter().filter(|it| is_scope(it));
        return Ok((resource, issuer.to_owned(), scopes.collect()));
    }
    if challenge.resource_metadata.is_some() {
        return Err(SignInError(format!("{what} does not exist at `{}`", shown(&urls[0]))));
    }
    // Servers of the revision 2025-03-26 are their own issuer.
    Ok((server.to_owned(), origin, Vec::new()))
}

/// Returns true if a resource is the URL of a server, or a path above it at the same origin.
fn contains(resource: &str, server: &str) -> bool {
    let Some(rest) = server.strip_prefix(resource) else {
        return resource.strip_suffix('/') == Some(server);
    };
    // An origin without a path must end where the origin of the server ends.
    let is_whole = rest.is_empty() || rest.starts_with(['/', '?']) || resource.ends_with('/');
    is_whole && has_host(resource)
}

fn has_host(url: &str) -> bool {
    url.split_once("://").is_some_and(|(_, rest)| !rest.is_empty() && !rest.starts_with('/'))
}

async fn authorization_server(
    exchange: &Exchange,
    resource: String,
    issuer: String,
    scopes: Vec<String>,
) -> Result<Metadata, SignInError> {
    let what = "the metadata of the authorization server";
    let request = exchange.check("the authorization server", &issuer)?;
    let origin = request.origin_url();
    let path = request.path().trim_end_matches('/');
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    for url in urls {
        let Some(document) = exchange.document(what, &url).await? else { continue };
        let named = text(&document, "issuer").unwrap_or_default();
        let is_same = named == issuer || path.is_empty() && named.trim_end_matches('/') == origin;
        if !is_same {
            return Err(SignInError(format!(
                "{what} is refused: it is of the issuer `{}`, not of `{}`",
                shown(&named),
                shown(&issuer)
            )));
        }
        let endpoint = |key: &str, what: &str| match text(&document, key) {
            Some(url) => exchange.check(what, &url).map(|_| Some(url)),
            None => Ok(None),
        };
        let token = endpoint("token_endpoint", "the token endpoint")?;
        let methods = list(&document, "token_endpoint_auth_methods_supported");
        let has_method = |name: &str| methods.iter().any(|method| method == name);
        return Ok(Metadata {
            resource,
            // The form that the authorization server uses in its answers.
            issuer: named,
            authorization: endpoint("authorization_endpoint", "the authorization endpoint")?,
            token: token.ok_or_else(|| SignInError(format!("{what} has no `token_endpoint`")))?,
            registration: endpoint("registration_endpoint", "the registration endpoint")?,
            device: endpoint("device_authorization_endpoint", "the device endpoint")?,
            revocation: endpoint("revocation_endpoint", "the revocation endpoint")?,
            names_issuer: document["authorization_response_iss_parameter_supported"] == true,
            has_pkce: list(&document, "code_challenge_methods_supported")
                .iter()
                .any(|method| method == "S256"),
            secret_in_form: has_method("client_secret_post") && !has_method("client_secret_basic"),
            scopes,
        });
    }
    let issuer = shown(&issuer);
    Err(SignInError(format!("`{issuer}` has no metadata of an authorization server")))
}

fn text(document: &Value, key: &str) -> Option<String> {
    document[key].as_str().map(str::to_owned)
}

fn list(document: &Value, key: &str) -> Vec<String> {
    const MOST: usize = 100;
    let list = document[key].as_array().into_iter().flatten();
    list.filter_map(Value::as_str).take(MOST).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_contain_the_url_of_the_server() {
        let check = |resource: &str, expected: bool| {
            assert_eq!(contains(resource, "https://a.example/mcp/v1"), expected, "{resource}");
        };
        for resource in ["", "/", "/mcp", "/mcp/", "/mcp/v1", "/mcp/v1/"] {
            check(&format!("https://a.example{resource}"), true);
        }
        check("https://a.example/mc", false);
        check("https://a.example/mcp/v1/x", false);
        check("https://a.exampl", false);
        check("https://b.example/mcp/v1", false);
        check("http://a.example/mcp/v1", false);
        check("https://", false);
        check("https:/", false);
        check("", false);
    }
}
