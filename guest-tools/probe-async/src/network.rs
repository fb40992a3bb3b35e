//! Sockets and requests.

use std::net::SocketAddr;

use serde_json::Value;

use crate::bindings::wasi::http::client::send;
use crate::bindings::wasi::http::types::{Fields, Method, Request, Scheme};
use crate::bindings::wasi::sockets::ip_name_lookup::resolve_addresses;
use crate::bindings::wasi::sockets::types::{
    IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress, TcpSocket, UdpSocket,
};
use crate::bindings::wit_future;
use crate::sentence::{Tried, count, refused, refused_at, sentence, shown};
use crate::{Answer, text, texts};

pub(crate) async fn connect(arguments: &Value) -> Answer {
    let address = address(arguments)?;
    Ok(sentence(&format!("connect {address}"), try_connect(address).await))
}

async fn try_connect(address: SocketAddr) -> Tried {
    let (family, address) = (family(address), socket_address(address));
    let socket = TcpSocket::create(family).map_err(|code| refused_at(&code, "create"))?;
    socket.connect(address).await.map_err(|code| refused_at(&code, "connect"))?;
    Ok("connected".to_owned())
}

pub(crate) async fn udp(arguments: &Value) -> Answer {
    let address = address(arguments)?;
    Ok(sentence(&format!("udp {address}"), try_send(address).await))
}

async fn try_send(address: SocketAddr) -> Tried {
    let (family, address) = (family(address), socket_address(address));
    let socket = UdpSocket::create(family).map_err(|code| refused_at(&code, "create"))?;
    let sent = socket.send(b"probe".to_vec(), Some(address)).await;
    sent.map_err(|code| refused_at(&code, "send"))?;
    Ok("sent".to_owned())
}

pub(crate) async fn resolve(arguments: &Value) -> Answer {
    let name = text(arguments, "name")?;
    let result = resolve_addresses(name.to_owned()).await;
    let result = result
        .map(|found| count(found.len(), "address", "addresses"))
        .map_err(|code| refused(&code));
    Ok(sentence(&format!("resolve {}", shown(name)), result))
}

/// Sends a request without a body.
pub(crate) async fn request(arguments: &Value) -> Answer {
    let url = text(arguments, "url")?;
    let (scheme, rest) = url.split_once("://").ok_or("invalid arguments: `url` has no scheme")?;
    let path = rest.find('/').unwrap_or(rest.len());
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    let method = match arguments["method"].as_str().unwrap_or("GET") {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "CONNECT" => Method::Connect,
        "TRACE" => Method::Trace,
        other => Method::Other(other.to_owned()),
    };
    let fields = texts(arguments, "headers").into_iter().filter_map(|field| field.split_once(": "));
    let fields: Vec<_> =
        fields.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).collect();
    let result = async {
        let fields = Fields::from_list(&fields).map_err(|error| refused_at(&error, "headers"))?;
        let (_, trailers) = wit_future::new(|| Ok(None));
        let (request, _sent) = Request::new(fields, None, trailers, None);
        let invalid = |step: &'static str| move |()| format!("refused at {step}");
        request.set_method(&method).map_err(invalid("method"))?;
        request.set_scheme(Some(&scheme)).map_err(invalid("scheme"))?;
        request.set_authority(Some(&rest[..path])).map_err(invalid("authority"))?;
        request.set_path_with_query(Some(&rest[path..])).map_err(invalid("path"))?;
        let response = send(request).await.map_err(|code| refused(&code))?;
        Ok(format!("status {}", response.get_status_code()))
    };
    let result: Tried = result.await;
    Ok(result.unwrap_or_else(|refusal| refusal))
}

fn address(arguments: &Value) -> Result<SocketAddr, String> {
    let address = text(arguments, "address")?;
    address.parse().map_err(|_| "invalid arguments: `address` is not an IP address".to_owned())
}

fn family(address: SocketAddr) -> IpAddressFamily {
    match address {
        SocketAddr::V4(_) => IpAddressFamily::Ipv4,
        SocketAddr::V6(_) => IpAddressFamily::Ipv6,
    }
}

fn socket_address(address: SocketAddr) -> IpSocketAddress {
    match address {
        SocketAddr::V4(address) => {
            let [a, b, c, d] = address.ip().octets();
            IpSocketAddress::Ipv4(Ipv4SocketAddress { port: address.port(), address: (a, b, c, d) })
        }
        SocketAddr::V6(address) => {
            let [a, b, c, d, e, f, g, h] = address.ip().segments();
            IpSocketAddress::Ipv6(Ipv6SocketAddress {
                port: address.port(),
                flow_info: address.flowinfo(),
                address: (a, b, c, d, e, f, g, h),
                scope_id: address.scope_id(),
            })
        }
    }
}
