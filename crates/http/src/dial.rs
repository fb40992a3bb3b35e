//! TCP connections.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A byte stream to a server.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to exactly this address.
pub(crate) async fn dial(target: SocketAddr) -> io::Result<Box<dyn Stream>> {
    let stream = TcpStream::connect(target).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}
