//! Bounded capture of a guest's output.
//!
//! A guest's standard output never reaches the host's own: over a stdio protocol, the guest could
//! use it to forge an answer.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// The output of a guest on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The first bytes as text, with invalid UTF-8 replaced. Untrusted.
    pub text: String,
    /// Number of bytes printed in total.
    pub total_bytes: u64,
    /// Number of printed bytes that are not in `text`.
    pub dropped_bytes: u64,
    last: String,
}

impl CapturedOutput {
    /// Iterates over the captured text: its beginning and its end.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        [&mut self.text, &mut self.last].into_iter()
    }

    /// Returns the end of the output as text. Untrusted.
    pub(crate) fn end(&self) -> &str {
        if self.dropped_bytes == 0 { &self.text } else { &self.last }
    }
}

/// A stream that keeps its first and last bytes and counts the others.
///
/// It never fails and never blocks, so a guest cannot tell that it is bounded.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    capacity: usize,
    written: Arc<Mutex<StreamContent>>,
}

#[derive(Debug, Default)]
struct StreamContent {
    kept: Vec<u8>,
    /// The last bytes that did not fit, at most twice [`LAST_BYTES`].
    last: Vec<u8>,
    total_bytes: u64,
}

/// Number of last bytes kept: the final output tells why a tool failed.
const LAST_BYTES: usize = 4 << 10;

/// Number of bytes that a guest may write at once; the value is arbitrary.
const PERMIT: usize = 64 << 10;

impl Capture {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, written: Arc::default() }
    }

    pub(crate) fn captured(&self) -> CapturedOutput {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        CapturedOutput {
            text: String::from_utf8_lossy(&written.kept).into_owned(),
            total_bytes: written.total_bytes,
            dropped_bytes: written.total_bytes - written.kept.len() as u64,
            last: String::from_utf8_lossy(tail(&written.last)).into_owned(),
        }
    }

    /// Returns the output and forgets it.
    pub(crate) fn take(&self) -> CapturedOutput {
        let captured = self.captured();
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = StreamContent::default();
        captured
    }

    fn append(&self, bytes: &[u8]) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.capacity - written.kept.len();
        let (kept, dropped) = bytes.split_at(bytes.len().min(room));
        written.kept.extend_from_slice(kept);
        written.last.extend_from_slice(tail(dropped));
        if written.last.len() > 2 * LAST_BYTES {
            let surplus = written.last.len() - LAST_BYTES;
            written.last.drain(..surplus);
        }
        written.total_bytes = written.total_bytes.saturating_add(bytes.len() as u64);
    }
}

fn tail(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(LAST_BYTES)..]
}

impl IsTerminal for Capture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Capture {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.append(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Capture {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Capture {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.append(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_are_kept_and_the_rest_is_counted() {
        let capture = Capture::new(5);
        let mut stream = capture.clone();
        stream.write(Bytes::from_static(b"abc")).unwrap();
        assert_eq!(capture.captured().end(), "abc");
        stream.write(Bytes::from_static(b"defg")).unwrap();
        let expected = CapturedOutput {
            text: "abcde".into(),
            total_bytes: 7,
            dropped_bytes: 2,
            last: "fg".into(),
        };
        assert_eq!(capture.captured(), expected);
    }

    #[test]
    fn the_last_bytes_are_always_kept() {
        let capture = Capture::new(5);
        for number in 0..10_000 {
            capture.append(format!("{number}\n").as_bytes());
            assert!(capture.written.lock().unwrap().last.len() <= 2 * LAST_BYTES);
        }
        capture.append(&[b'x'; 100_000]);
        capture.append(b"the end");
        let captured = capture.captured();
        assert_eq!(captured.end().len(), LAST_BYTES);
        assert!(captured.end().ends_with("xxthe end"));
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        let capture = Capture::new(10);
        capture.append(b"a\xffb");
        assert_eq!(capture.captured().text, "a\u{fffd}b");
    }
}
