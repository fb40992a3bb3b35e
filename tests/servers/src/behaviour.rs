//! The behaviours of a server, including answers that are not valid HTTP.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::SeenRequest;

/// The way in which a server answers.
#[derive(Clone)]
pub enum Behaviour {
    /// Answers 200 with the request as JSON: `method`, `target`, `version`, `headers` as a list of
    /// `[name, value]`, and `body`. Invalid UTF-8 in values and in the body is replaced.
    Echo,
    /// Answers every request with this answer.
    Answer(Answer),
    /// Answers with the result of the function, which receives the request with its complete body.
    Respond(Arc<dyn Fn(&SeenRequest) -> Answer + Send + Sync>),
    /// Redirects: `/STATUS/N` to `/STATUS/N-1` until `/STATUS/0`, `/loop` to itself,
    /// `/to/STATUS?TARGET` to `TARGET` unchanged. Any other path is an echo.
    Redirects,
    /// Answers 200, and a body of the pieces from [`Server::send`](crate::Server::send), until
    /// [`Server::end`](crate::Server::end).
    Pieces,
    /// Answers 200 with an endless body, as fast as the client reads.
    Endless,
    /// Answers 200 with compressed zeros, in this many mebibytes.
    Bomb(Coding, u32),
    /// Answers 200 with this many header fields, `x-0: value` and so on.
    Fields(usize),
    /// Accepts a request, also over TLS, and never answers.
    Silent,
    /// Accepts connections and never sends anything: neither TLS nor HTTP.
    Mute,
    /// HTTP/1.1: answers each request with these bytes and closes the connection.
    Raw(Vec<u8>),
    /// HTTP/1.1: answers with the bytes from [`Server::send`](crate::Server::send), including the
    /// head, until [`Server::end`](crate::Server::end) closes the connection.
    RawPieces,
    /// HTTP/1.1: sends the first bytes, and then repeats the second ones endlessly.
    RawEndless(Vec<u8>, Vec<u8>),
    /// A proxy for HTTP/1.1: `CONNECT` connects to this address, regardless of its target; any
    /// other request is an echo.
    Proxy(SocketAddr),
}

impl Behaviour {
    /// Answers with the result of the function.
    pub fn respond(respond: impl Fn(&SeenRequest) -> Answer + Send + Sync + 'static) -> Self {
        Self::Respond(Arc::new(respond))
    }

    /// Declares a body of 100 bytes, sends 10 and closes the connection.
    pub fn too_short() -> Self {
        Self::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789".to_vec())
    }

    /// Declares a body of 10 bytes, and sends a complete second answer after them.
    pub fn too_long() -> Self {
        let forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789{forged}");
        Self::Raw(text.into_bytes())
    }

    /// Two lengths that contradict each other.
    pub fn two_lengths() -> Self {
        let lengths = "Content-Length: 4\r\nContent-Length: 10";
        Self::Raw(format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\n0123456789").into_bytes())
    }

    /// A length together with a chunked body, whose chunks are shorter.
    pub fn length_and_chunks() -> Self {
        let fields = "Content-Length: 10\r\nTransfer-Encoding: chunked";
        Self::Raw(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n3\r\nabc\r\n0\r\n\r\n").into_bytes())
    }

    /// A chunked body that ends within a chunk.
    pub fn broken_chunk() -> Self {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        Self::Raw(format!("{head}3\r\nabc\r\nff\r\nshort").into_bytes())
    }

    /// Switches to another protocol, and uses it immediately.
    pub fn switching_protocols() -> Self {
        let fields = "Connection: upgrade\r\nUpgrade: websocket";
        Self::Raw(
            format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n\r\n\x01\x02").into_bytes(),
        )
    }

    /// A header value with NUL in it.
    pub fn nul_in_header() -> Self {
        Self::with_field(b"X-Bad: a\0b")
    }

    /// A header value with a carriage return in it.
    pub fn carriage_return_in_header() -> Self {
        Self::with_field(b"X-Bad: a\rX-Forged: b")
    }

    /// A header value that continues on the next line, as HTTP once allowed.
    pub fn folded_header() -> Self {
        Self::with_field(b"X-Bad: a\r\n b")
    }

    /// A header value that is not UTF-8.
    pub fn latin_header() -> Self {
        Self::with_field(b"X-Latin: caf\xe9")
    }

    /// An answer with this raw header field.
    fn with_field(field: &[u8]) -> Self {
        let head: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n";
        Self::Raw([head, field, b"\r\n\r\nok"].concat())
    }

    /// Endless header fields.
    pub fn endless_fields() -> Self {
        Self::RawEndless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"X-More: of the same\r\n".to_vec())
    }

    /// An endless header value.
    pub fn endless_field() -> Self {
        Self::RawEndless(b"HTTP/1.1 200 OK\r\nX-Long: ".to_vec(), vec![b'a'; 4096])
    }

    /// Endless interim answers.
    pub fn endless_interim() -> Self {
        Self::RawEndless(Vec::new(), b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec())
    }

    /// Endless trailer fields after a chunked body.
    pub fn endless_trailers() -> Self {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
        Self::RawEndless(head.to_vec(), b"X-More: of the same\r\n".to_vec())
    }
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Echo => write!(formatter, "Echo"),
            Self::Answer(answer) => write!(formatter, "Answer({answer:?})"),
            Self::Respond(_) => write!(formatter, "Respond"),
            Self::Redirects => write!(formatter, "Redirects"),
            Self::Pieces => write!(formatter, "Pieces"),
            Self::Endless => write!(formatter, "Endless"),
            Self::Bomb(coding, mebibytes) => write!(formatter, "Bomb({coding:?}, {mebibytes})"),
            Self::Fields(count) => write!(formatter, "Fields({count})"),
            Self::Silent => write!(formatter, "Silent"),
            Self::Mute => write!(formatter, "Mute"),
            Self::Raw(bytes) => write!(formatter, "Raw({})", bytes.escape_ascii()),
            Self::RawPieces => write!(formatter, "RawPieces"),
            Self::RawEndless(first, more) => {
                write!(formatter, "RawEndless({}, {})", first.escape_ascii(), more.escape_ascii())
            }
            Self::Proxy(address) => write!(formatter, "Proxy({address})"),
        }
    }
}

/// The compression of a bomb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`.
    Gzip,
    /// `deflate`, which is zlib's format.
    Deflate,
    /// `br`: always 64 MiB.
    Brotli,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, such as 200.
    pub status: u16,
    /// The header fields, without the length, which is derived from the body.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer without header fields.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// 200, with a body of this type.
    pub fn ok(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, body).header("content-type", content_type)
    }

    /// A redirect.
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::new(status, "moved").header("location", location)
    }

    /// Adds a header field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}
