//! A proxy, where the user's own configuration names one.

use std::fmt;
use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use url::Url;

use crate::client::Shared;
use crate::connect::{Stream, dial};
use crate::error::RequestError;

/// An HTTP proxy through which every connection goes, as a tunnel (`CONNECT`).
///
/// It is told an address and no name, so that the address that was checked is the one that
/// it dials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    host: String,
    port: u16,
    authorization: Option<HeaderValue>,
}

/// Not the URL of a proxy.
#[derive(Debug, thiserror::Error)]
#[error("a proxy is written as `http://HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`")]
pub struct ProxyError;

impl std::str::FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let url = Url::parse(text).map_err(|_| ProxyError)?;
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none();
        let (Some(host), true) = (url.host_str(), url.scheme() == "http" && is_bare) else {
            return Err(ProxyError);
        };
        let authorization = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => {
                let decode = |text| percent_encoding::percent_decode_str(text).collect::<Vec<_>>();
                let mut pair = decode(user);
                pair.push(b':');
                pair.extend(decode(password.unwrap_or_default()));
                let value = format!("Basic {}", STANDARD.encode(pair));
                let mut value = HeaderValue::try_from(value).map_err(|_| ProxyError)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: url.port_or_known_default().unwrap_or(80), authorization })
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Proxy {
    /// A stream through the proxy to exactly this address.
    pub(crate) async fn tunnel(
        &self,
        shared: &Shared,
        origin: &str,
        target: SocketAddr,
    ) -> Result<Box<dyn Stream>, RequestError> {
        let failed = |reason: String| RequestError::Proxy {
            proxy: self.to_string(),
            origin: origin.to_string(),
            reason,
        };
        let addresses = match self.host.parse() {
            Ok(address) => vec![address],
            Err(_) => shared.resolver.addresses(&self.host).await.map_err(failed)?,
        };
        let mut dialled = Err("it has no address".to_owned());
        for address in addresses {
            dialled = dial(SocketAddr::new(address, self.port)).await.map_err(|e| e.to_string());
            if dialled.is_ok() {
                break;
            }
        }
        let stream = TokioIo::new(dialled.map_err(failed)?);
        let broken = |error: hyper::Error| failed(error.to_string());
        let (mut sender, connection) = http1::handshake(stream).await.map_err(broken)?;
        // It ends with the tunnel, which it becomes.
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.method_mut() = Method::CONNECT;
        let authority = target.to_string();
        let host = HeaderValue::try_from(&authority).map_err(|error| failed(error.to_string()))?;
        *request.uri_mut() = Uri::try_from(authority).map_err(|error| failed(error.to_string()))?;
        request.headers_mut().insert(header::HOST, host);
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let response = sender.send_request(request).await.map_err(broken)?;
        if !response.status().is_success() {
            return Err(failed(response.status().to_string()));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
        Ok(Box::new(TokioIo::new(upgraded)))
    }
}
