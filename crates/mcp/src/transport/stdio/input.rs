//! Standard input, line by line.

use std::io;

use crate::transport::message::Skim;
use crate::transport::sys::{Handle, Pipe};

/// Maximum length of a message: 16 MiB.
pub const LINE_BYTES: usize = 16 << 20;

/// Number of bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

pub(super) struct LineReader {
    pipe: Pipe,
    chunk: Box<[u8]>,
    /// Input that was read but not returned yet: part of a line, or several lines.
    buffer: Vec<u8>,
    /// Length of the part of the buffer without a line ending.
    searched: usize,
    /// Scans a line that is too long to store.
    skim: Option<Skim>,
}

impl LineReader {
    pub(super) fn new(input: Handle) -> io::Result<Self> {
        Ok(Self {
            pipe: Pipe::input(input)?,
            chunk: vec![0; CHUNK_BYTES].into(),
            buffer: Vec::new(),
            searched: 0,
            skim: None,
        })
    }

    /// Returns the next line without its line ending. `None`: the input has ended.
    ///
    /// May be cancelled at any point and called again.
    pub(super) async fn line(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let end = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            if let Some(end) = end {
                let end = self.searched + end;
                self.searched = 0;
                // Copied at once: collecting the iterator would copy byte by byte.
                let line = self.buffer[..end].to_vec();
                self.buffer.drain(..=end);
                return Ok(Some(self.finish(line)));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > LINE_BYTES || self.skim.is_some() {
                self.skim.get_or_insert_default().feed(&self.buffer);
                self.buffer.clear();
                self.searched = 0;
            }
            let read = self.pipe.read(&mut self.chunk).await?;
            self.buffer.extend_from_slice(&self.chunk[..read]);
            if read == 0 {
                if self.buffer.is_empty() && self.skim.is_none() {
                    return Ok(None);
                }
                self.searched = 0;
                let rest = std::mem::take(&mut self.buffer);
                return Ok(Some(self.finish(rest)));
            }
        }
    }

    fn finish(&mut self, line: Vec<u8>) -> InputLine {
        let is_too_long = line.len() > LINE_BYTES;
        match self.skim.take().or_else(|| is_too_long.then(Skim::default)) {
            Some(mut skim) => {
                skim.feed(&line);
                InputLine::TooLong(skim)
            }
            None => InputLine::Line(line),
        }
    }
}

pub(super) enum InputLine {
    Line(Vec<u8>),
    TooLong(Skim),
}
