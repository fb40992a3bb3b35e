//! Network operations through WASI sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use kitbag_sdk::{Call, ErrorInfo, Stop};
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::ip_name_lookup::resolve_addresses;
use wasip2::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress,
};
use wasip2::sockets::tcp_create_socket::create_tcp_socket;
use wasip2::sockets::udp::OutgoingDatagram;
use wasip2::sockets::udp_create_socket::create_udp_socket;

use crate::arguments::Arguments;
use crate::sentence::{Refusal, Tried, list, sentence, shown};

pub(crate) fn connect(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let address = address(arguments)?;
    Ok(sentence(&format!("connect {address}"), try_connect(address)))
}

/// Like [`connect`], with an error if there is no connection.
pub(crate) fn need_connection(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let address = address(arguments)?;
    let tried = try_connect(address);
    tried.map_err(|Refusal(refusal)| ErrorInfo::new(format!("no connection: {refusal}")).into())
}

pub(crate) fn udp(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let address = address(arguments)?;
    Ok(sentence(&format!("udp {address}"), try_send(address)))
}

pub(crate) fn resolve(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let name = arguments.text("name")?;
    let result = try_resolve(name).map_err(|code| Refusal::of(code.name()));
    Ok(sentence(&format!("resolve {}", shown(name)), result))
}

fn try_connect(address: SocketAddr) -> Tried {
    let network = instance_network();
    let socket = create_tcp_socket(family(address)).map_err(at("create-tcp-socket"))?;
    socket.start_connect(&network, socket_address(address)).map_err(at("start-connect"))?;
    let ready = socket.subscribe();
    let connected = until_ready(|| socket.finish_connect(), || ready.block());
    connected.map_err(at("finish-connect"))?;
    Ok("connected".into())
}

fn try_send(address: SocketAddr) -> Tried {
    let network = instance_network();
    let socket = create_udp_socket(family(address)).map_err(at("create-udp-socket"))?;
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let any = socket_address(SocketAddr::new(any, 0));
    socket.start_bind(&network, any).map_err(at("start-bind"))?;
    let ready = socket.subscribe();
    until_ready(|| socket.finish_bind(), || ready.block()).map_err(at("finish-bind"))?;
    let remote_address = Some(socket_address(address));
    let (_incoming, outgoing) = socket.stream(remote_address).map_err(at("stream"))?;
    outgoing.check_send().map_err(at("check-send"))?;
    let datagram = OutgoingDatagram { data: b"probe".to_vec(), remote_address };
    let sent = outgoing.send(&[datagram]).map_err(at("send"))?;
    Ok(if sent == 1 { "sent".into() } else { "not sent".into() })
}

fn try_resolve(name: &str) -> Result<String, ErrorCode> {
    let stream = resolve_addresses(&instance_network(), name)?;
    let ready = stream.subscribe();
    let mut addresses = Vec::new();
    while let Some(address) = until_ready(|| stream.resolve_next_address(), || ready.block())? {
        let address = match address {
            IpAddress::Ipv4((a, b, c, d)) => Ipv4Addr::new(a, b, c, d).into(),
            IpAddress::Ipv6((a, b, c, d, e, f, g, h)) => {
                IpAddr::from(Ipv6Addr::new(a, b, c, d, e, f, g, h))
            }
        };
        addresses.push(address.to_string());
    }
    addresses.sort();
    addresses.dedup();
    Ok(list(&addresses))
}

/// Completes a started operation, regardless of the number of polls.
fn until_ready<T>(
    finish: impl Fn() -> Result<T, ErrorCode>,
    block: impl Fn(),
) -> Result<T, ErrorCode> {
    loop {
        match finish() {
            Err(ErrorCode::WouldBlock) => block(),
            result => return result,
        }
    }
}

fn at(step: &str) -> impl FnOnce(ErrorCode) -> Refusal {
    move |code| Refusal::at(code.name(), step)
}

fn address(arguments: &Arguments) -> Result<SocketAddr, ErrorInfo> {
    let address = arguments.text("address")?;
    address.parse().map_err(|_| {
        ErrorInfo::new("invalid arguments: `address` is not an IP address with a port")
    })
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
