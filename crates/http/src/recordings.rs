//! Recorded responses, which replace servers while tools are tested.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kitbag_policy::http::HttpRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use crate::dial::Stream;

/// The size of the pipe between a request and its recorded response.
const PIPE_BYTES: usize = 64 << 10;

/// The largest head of a request that is read.
const HEAD_BYTES: usize = 1 << 20;

/// One response, and the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedResponse {
    /// The request.
    pub request: HttpRequest,
    /// The status of the response.
    pub status: u16,
    /// The header fields of the response. `content-length` is added.
    pub headers: Vec<(String, String)>,
    /// The body of the response.
    pub body: Vec<u8>,
}

/// The responses that a client returns instead of connecting to servers. No name is resolved and no
/// connection is opened. Clones share the list of unanswered requests.
#[derive(Clone, Default)]
pub struct Recordings(Arc<Inner>);

#[derive(Default)]
struct Inner {
    responses: Vec<RecordedResponse>,
    unanswered: Mutex<Vec<String>>,
}

impl Recordings {
    /// Creates recordings. If several match a request, the first one answers it.
    pub fn new(responses: Vec<RecordedResponse>) -> Self {
        Self(Arc::new(Inner { responses, unanswered: Mutex::default() }))
    }

    /// Returns the requests without a recorded response, each as `METHOD URL`.
    pub fn unanswered(&self) -> Vec<String> {
        self.0.unanswered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns a stream whose other end answers one request to this origin. Must be called inside
    /// the runtime of the connections.
    pub(crate) fn open(&self, origin: &HttpRequest) -> Box<dyn Stream> {
        let (near, far) = duplex(PIPE_BYTES);
        let (recordings, origin) = (self.clone(), origin.clone());
        tokio::spawn(async move { recordings.answer(far, origin).await });
        Box::new(near)
    }

    /// Answers one request, and closes the stream. A request without a response is recorded and its
    /// stream is closed.
    async fn answer(self, mut stream: DuplexStream, origin: HttpRequest) {
        let Some((method, path)) = read_head(&mut stream).await else { return };
        let url = format!("{}{path}", origin.origin_url());
        let asked = HttpRequest::new(&method, &url).ok();
        let is_it = |it: &&RecordedResponse| asked.as_ref() == Some(&it.request);
        let Some(response) = self.0.responses.iter().find(is_it) else {
            let mut unanswered = self.0.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
            unanswered.push(format!("{method} {url}"));
            return;
        };
        let (mut reader, mut writer) = tokio::io::split(stream);
        // A request with a large body is read to its end, or it could not be sent.
        tokio::spawn(async move {
            let mut body = vec![0; PIPE_BYTES];
            while reader.read(&mut body).await.is_ok_and(|count| count > 0) {}
        });
        let _ = writer.write_all(&response.bytes()).await;
        let _ = writer.shutdown().await;
    }
}

impl RecordedResponse {
    fn bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} -\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        head.push_str("connection: close\r\n\r\n");
        let is_head = self.request.method().as_str() == "HEAD";
        let body: &[u8] = if is_head { &[] } else { &self.body };
        [head.as_bytes(), body].concat()
    }
}

/// Reads a request up to the end of its header fields. Returns its method and path.
async fn read_head(stream: &mut DuplexStream) -> Option<(String, String)> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

impl fmt::Debug for Recordings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recordings").field(&self.0.responses).finish()
    }
}
