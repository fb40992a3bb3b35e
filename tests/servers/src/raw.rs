//! Raw answers that no HTTP library would send.

use std::io::{self, ErrorKind};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::seen::Connection;
use crate::server::Served;
use crate::{Behaviour, SeenRequest, http};

/// Maximum length of a request's head.
const HEAD: usize = 1 << 20;

/// Serves one connection, and closes it after one answer.
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    served: &Served,
    connection: &Connection,
) -> io::Result<()> {
    let request = read(&mut stream, connection).await?;
    match &served.behaviour {
        Behaviour::Raw(bytes) => stream.write_all(bytes).await?,
        Behaviour::RawPieces => {
            let mut pieces = served.pieces.lock().await;
            while let Some(piece) = pieces.recv().await {
                stream.write_all(&piece).await?;
                stream.flush().await?;
            }
        }
        Behaviour::RawEndless(first, more) => {
            stream.write_all(first).await?;
            let more = more.repeat((16 << 10) / more.len() + 1);
            loop {
                stream.write_all(&more).await?;
            }
        }
        Behaviour::Proxy(to) if request.method == "CONNECT" => {
            let mut target = TcpStream::connect(to).await?;
            stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
            copy_bidirectional(&mut stream, &mut target).await?;
        }
        // Other requests to a proxy.
        _ => {
            let body = http::echo(&request).body;
            let fields = "Content-Type: application/json\r\nConnection: close";
            let head =
                format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).await?;
        }
    }
    stream.shutdown().await?;
    // Closing immediately would send a reset, and discard data that the client has not read yet.
    let mut ignored = [0; 4096];
    while stream.read(&mut ignored).await? > 0 {}
    Ok(())
}

/// Reads one request, whose body has a length or is empty.
async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    connection: &Connection,
) -> io::Result<SeenRequest> {
    let mut bytes = Vec::new();
    let (mut request, length, begin) = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if let Some(found) = parse(&bytes, connection.number)? {
            break found;
        }
        if bytes.len() > HEAD {
            return Err(ErrorKind::InvalidData.into());
        }
    };
    let record = &connection.record;
    request.body = bytes.split_off(begin);
    let mut have = request.body.len();
    let index = record.head(request);
    while have < length {
        let mut piece = Vec::new();
        if stream.read_buf(&mut piece).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        have += piece.len();
        record.body(index, &piece);
    }
    Ok(record.complete(index))
}

/// Parses the request, and returns it with the length and the start of its body; `None` if it is
/// incomplete.
fn parse(bytes: &[u8], connection: usize) -> io::Result<Option<(SeenRequest, usize, usize)>> {
    let mut fields = vec![httparse::EMPTY_HEADER; 10_000];
    let mut parsed = httparse::Request::new(&mut fields);
    let begin = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(begin)) => begin,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error)),
    };
    let request = SeenRequest {
        connection,
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        version: format!("HTTP/1.{}", parsed.version.unwrap_or_default()),
        headers: parsed
            .headers
            .iter()
            .map(|field| (field.name.to_owned(), field.value.to_vec()))
            .collect(),
        body: Vec::new(),
        complete: false,
    };
    let length = request.header("content-length").and_then(|length| length.parse().ok());
    Ok(Some((request, length.unwrap_or(0), begin)))
}
