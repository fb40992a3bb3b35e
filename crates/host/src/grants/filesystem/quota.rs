//! Quota of the bytes that a call may write to files.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use kitbag_base::ByteSize;
use kitbag_contract::LimitKind;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::sys::disk_full;

#[derive(Debug)]
pub(crate) struct Quota {
    left: AtomicU64,
    was_refused: AtomicBool,
}

impl Quota {
    pub(crate) fn new(size: ByteSize) -> Self {
        Self { left: AtomicU64::new(size.as_u64()), was_refused: AtomicBool::new(false) }
    }

    /// Takes bytes from the quota before they are written. The quota is not returned if the write
    /// is refused, or if the data is later overwritten or removed.
    ///
    /// # Errors
    ///
    /// Fails like a full disk if less is left.
    pub(crate) fn take(&self, bytes: u64) -> io::Result<()> {
        let take = |left: u64| left.checked_sub(bytes);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => {
                self.was_refused.store(true, Ordering::Relaxed);
                Err(disk_full())
            }
        }
    }

    pub(crate) fn refused(&self) -> Option<LimitKind> {
        self.was_refused.load(Ordering::Relaxed).then_some(LimitKind::Written)
    }
}

/// Returns how much a file grows when it gets this size, or is written from this offset.
pub(crate) fn growth(file: &File, size: u64) -> io::Result<u64> {
    Ok(size.saturating_sub(file.metadata()?.len()))
}

/// A stream into a file that takes its writes from a call's quota.
pub(super) struct CountedStream {
    stream: DynOutputStream,
    file: Arc<File>,
    /// Offset of the next byte. `None` appends to the file.
    position: Option<u64>,
    quota: Arc<Quota>,
}

impl CountedStream {
    pub(super) fn new(
        stream: DynOutputStream,
        file: Arc<File>,
        position: Option<u64>,
        quota: Arc<Quota>,
    ) -> Self {
        Self { stream, file, position, quota }
    }

    fn take(&mut self, bytes: &Bytes) -> StreamResult<()> {
        let length = bytes.len() as u64;
        let failed = |error: io::Error| StreamError::LastOperationFailed(error.into());
        let hole = match self.position {
            // The file may have been truncated since the last write.
            Some(position) => growth(&self.file, position).map_err(failed)?,
            None => 0,
        };
        self.quota.take(hole.saturating_add(length)).map_err(failed)?;
        self.position = self.position.map(|position| position.saturating_add(length));
        Ok(())
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for CountedStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes)?;
        self.stream.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes)?;
        self.stream.blocking_write_and_flush(bytes).await
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.stream.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.stream.check_write()
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for CountedStream {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sink;

    impl OutputStream for Sink {
        fn write(&mut self, _: Bytes) -> StreamResult<()> {
            Ok(())
        }

        fn flush(&mut self) -> StreamResult<()> {
            Ok(())
        }

        fn check_write(&mut self) -> StreamResult<usize> {
            Ok(1)
        }
    }

    #[wasmtime_wasi::async_trait]
    impl Pollable for Sink {
        async fn ready(&mut self) {}
    }

    #[test]
    fn a_quota_is_taken_completely_or_not_at_all_and_not_returned() {
        let quota = Quota::new(ByteSize::bytes(10));
        quota.take(6).unwrap();
        assert_eq!(quota.refused(), None);
        assert_eq!(quota.take(5).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(quota.refused(), Some(LimitKind::Written));
        quota.take(4).unwrap();
        quota.take(u64::MAX).unwrap_err();
        quota.take(0).unwrap();
    }

    #[test]
    fn holes_count_for_each_created_stream() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let quota = Arc::new(Quota::new(ByteSize::bytes(250)));
        let sink = Box::new(Sink);
        let mut stream = CountedStream::new(sink, Arc::clone(&file), Some(100), Arc::clone(&quota));
        // The first write takes 100 and 5. The sink does not grow the file, so the next takes 105
        // and 5.
        stream.write(Bytes::from_static(b"hello")).unwrap();
        stream.write(Bytes::from_static(b"hello")).unwrap();
        file.set_len(200).unwrap();
        stream.write(Bytes::from_static(b"hello")).unwrap();
        quota.take(30).unwrap();
        stream.write(Bytes::from_static(b"world, world")).unwrap_err();
    }
}
