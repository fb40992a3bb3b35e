//! Sockets, which no grant allows: an attempt is noted for the error of the call.
//!
//! The context of each call refuses every address and every name; these interfaces forward to it.

use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{self, ResolveAddressStream};
use wasmtime_wasi::p2::bindings::sockets::network::{self, ErrorCode, IpAddress, IpAddressFamily};
use wasmtime_wasi::p2::bindings::sockets::{tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{DynPollable, Network, SocketError, SocketResult, TcpSocket, UdpSocket};
use wasmtime_wasi::sockets::WasiSocketsCtxView;

/// Names the data behind the interfaces with which a guest starts to use sockets.
pub(crate) struct RefusedSockets;

/// The sockets of WASI, with a note of their use.
pub(crate) struct SocketsView<'a> {
    pub(crate) wasi: WasiSocketsCtxView<'a>,
    pub(crate) tried: &'a mut bool,
}

/// Advice for the author of a component that uses sockets.
pub const SOCKETS_ADVICE: &str = "uses sockets, which kitbag never grants; use `wasi:http`, for \
                                  example the crate `wstd`";

impl HasData for RefusedSockets {
    type Data<'a> = SocketsView<'a>;
}

impl network::Host for SocketsView<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        network::Host::convert_error_code(&mut self.wasi, error)
    }

    fn network_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        network::Host::network_error_code(&mut self.wasi, error)
    }
}

impl network::HostNetwork for SocketsView<'_> {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        network::HostNetwork::drop(&mut self.wasi, network)
    }
}

impl tcp_create_socket::Host for SocketsView<'_> {
    fn create_tcp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        *self.tried = true;
        tcp_create_socket::Host::create_tcp_socket(&mut self.wasi, family)
    }
}

impl udp_create_socket::Host for SocketsView<'_> {
    async fn create_udp_socket(
        &mut self,
        family: IpAddressFamily,
    ) -> SocketResult<Resource<UdpSocket>> {
        *self.tried = true;
        udp_create_socket::Host::create_udp_socket(&mut self.wasi, family).await
    }
}

impl ip_name_lookup::Host for SocketsView<'_> {
    fn resolve_addresses(
        &mut self,
        network: Resource<Network>,
        name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        *self.tried = true;
        ip_name_lookup::Host::resolve_addresses(&mut self.wasi, network, name)
    }
}

impl ip_name_lookup::HostResolveAddressStream for SocketsView<'_> {
    fn resolve_next_address(
        &mut self,
        stream: Resource<ResolveAddressStream>,
    ) -> SocketResult<Option<IpAddress>> {
        ip_name_lookup::HostResolveAddressStream::resolve_next_address(&mut self.wasi, stream)
    }

    fn subscribe(
        &mut self,
        stream: Resource<ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        ip_name_lookup::HostResolveAddressStream::subscribe(&mut self.wasi, stream)
    }

    fn drop(&mut self, stream: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        ip_name_lookup::HostResolveAddressStream::drop(&mut self.wasi, stream)
    }
}
