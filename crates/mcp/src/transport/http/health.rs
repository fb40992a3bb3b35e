//! The check of a running server by another process, such as the health check of a container.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The path that answers while the server runs. It needs no token and is not logged.
pub(super) const PATH: &str = "/healthz";

/// The body of its answer.
pub(super) const BODY: &str = "ok\n";

/// The size of an answer in bytes that is read at most.
const ANSWER_BYTES: u64 = 4 << 10;

/// Returns whether a server answers at an address. Each step may take up to `patience`.
///
/// # Errors
///
/// If there is no connection, or the answer is not that of a server of kitbag.
pub fn check_health(address: SocketAddr, patience: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let request = format!("GET {PATH} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES).read_to_end(&mut answer)?;
    let is_healthy = answer.starts_with(b"HTTP/1.1 200 ")
        && answer.ends_with(format!("\r\n\r\n{BODY}").as_bytes());
    match is_healthy {
        true => Ok(()),
        false => Err(io::Error::other("another program answers")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn only_the_answer_of_a_server_is_healthy() {
        for (answer, is_healthy) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n", true),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", false),
            ("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 3\r\n\r\nok\n", false),
            ("SSH-2.0-OpenSSH\r\n", false),
            ("", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 256];
                let length = stream.read(&mut request).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                String::from_utf8_lossy(&request[..length]).into_owned()
            });
            assert_eq!(check_health(address, PATIENCE).is_ok(), is_healthy, "{answer}");
            let request = server.join().unwrap();
            assert!(request.starts_with("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:"), "{request}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_not_healthy() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(check_health(address, Duration::from_millis(20)).is_err());
        drop(listener);
        assert!(check_health(address, PATIENCE).is_err());
    }
}
