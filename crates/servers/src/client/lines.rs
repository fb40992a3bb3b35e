//! A limit on the length of a server's messages.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use memchr::{memchr, memrchr};
use tokio::io::{AsyncRead, ReadBuf};

use super::router::Failure;

/// The longest line, in bytes.
pub(crate) const LINE_BYTES: usize = 16 << 20;

/// Reads lines, and fails at a line that is too long. rmcp would skip it, and its request would
/// never be answered.
pub(crate) struct BoundedLines<R> {
    reader: R,
    /// The bytes since the last line feed.
    bytes: usize,
    failure: Arc<Failure>,
}

impl<R> BoundedLines<R> {
    pub(crate) fn new(reader: R, failure: Arc<Failure>) -> Self {
        Self { reader, bytes: 0, failure }
    }

    /// Counts the bytes that were read. Returns false if a line is too long.
    fn count(&mut self, read: &[u8]) -> bool {
        let Some(first) = memchr(b'\n', read) else {
            self.bytes += read.len();
            return self.bytes <= LINE_BYTES;
        };
        let fits = self.bytes + first <= LINE_BYTES;
        // A buffer is smaller than the limit, and so is a line inside of it.
        self.bytes = read.len() - 1 - memrchr(b'\n', read).unwrap_or(first);
        fits
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.reader).poll_read(context, buffer))?;
        if this.count(&buffer.filled()[before..]) {
            return Poll::Ready(Ok(()));
        }
        this.failure.set(format!("sent a message of more than {} MiB", LINE_BYTES >> 20));
        Poll::Ready(Err(io::ErrorKind::InvalidData.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_lines_fail() {
        let mut lines = BoundedLines::new(io::empty(), Arc::default());
        let half = vec![b'a'; LINE_BYTES / 2];
        assert!(lines.count(&half) && lines.count(&half));
        assert!(lines.count(b"\na\nbc"));
        assert_eq!(lines.bytes, 2);
        assert!(lines.count(&half) && !lines.count(&half));
    }
}
