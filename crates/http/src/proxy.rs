//! Tunnels through a configured proxy.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kitbag_policy::http::Proxy;

use crate::client::Shared;
use crate::dial::{Stream, dial};
use crate::error::RequestError;

/// Opens a stream through a proxy to exactly this target: an address, or a name that the proxy
/// resolves, with a port.
pub(crate) async fn tunnel(
    proxy: &Proxy,
    shared: &Shared,
    origin: &str,
    authority: String,
) -> Result<Box<dyn Stream>, RequestError> {
    let failed = |reason: String| RequestError::Proxy {
        proxy: proxy.to_string(),
        origin: origin.to_string(),
        reason,
    };
    let addresses = match proxy.host().parse() {
        Ok(address) => vec![address],
        Err(_) => shared.resolver.addresses(proxy.host()).await.map_err(failed)?,
    };
    let mut dialled = Err("it has no address".to_owned());
    for address in addresses {
        dialled = dial(SocketAddr::new(address, proxy.port())).await.map_err(|e| e.to_string());
        if dialled.is_ok() {
            break;
        }
    }
    let stream = TokioIo::new(dialled.map_err(failed)?);
    let broken = |error: hyper::Error| failed(error.to_string());
    let (mut sender, connection) = http1::handshake(stream).await.map_err(broken)?;
    // The task ends with the tunnel that it becomes.
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = Method::CONNECT;
    let host = HeaderValue::try_from(&authority).map_err(|error| failed(error.to_string()))?;
    *request.uri_mut() = Uri::try_from(authority).map_err(|error| failed(error.to_string()))?;
    request.headers_mut().insert(header::HOST, host);
    if let Some((user, password)) = proxy.credentials() {
        let value = format!("Basic {}", STANDARD.encode([user, b":", password].concat()));
        let mut value = HeaderValue::try_from(value).map_err(|error| failed(error.to_string()))?;
        value.set_sensitive(true);
        request.headers_mut().insert(header::PROXY_AUTHORIZATION, value);
    }
    let response = sender.send_request(request).await.map_err(broken)?;
    if !response.status().is_success() {
        return Err(failed(response.status().to_string()));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
    Ok(Box::new(TokioIo::new(upgraded)))
}
