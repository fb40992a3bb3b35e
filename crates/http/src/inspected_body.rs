//! The response body after decoding and masking secrets.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::write::{GzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING,
};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use kitbag_secrets::{RedactionFilter, Redactor};

use crate::active_request::ActiveRequest;
use crate::error::RequestError;
use crate::secrets::redact_headers;

/// The number of bytes that are decompressed at once. They expand to at most a thousand times as
/// much.
const STEP_BYTES: usize = 1 << 10;

/// Requests encodings that can be decoded.
pub(crate) fn ask(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate"));
}

/// A body that is decoded and masked as it arrives.
pub(crate) struct InspectedBody {
    body: UnsyncBoxBody<Bytes, RequestError>,
    decoder: Decoder,
    redactor: Arc<Redactor>,
    /// `None` after the end.
    filter: Option<RedactionFilter>,
    allowed: ActiveRequest,
    /// The number of encoded and decoded bytes.
    bytes: (u64, u64),
    /// Trailers, which follow the last bytes of the filter.
    trailers: Option<HeaderMap>,
}

enum Decoder {
    Plain,
    Gzip(GzDecoder<Vec<u8>>),
    Deflate(ZlibDecoder<Vec<u8>>),
}

impl InspectedBody {
    /// Masks the header fields, and the body as it arrives.
    ///
    /// # Errors
    ///
    /// [`RequestError::Encoding`] if the body has another encoding.
    pub(crate) fn new(
        body: UnsyncBoxBody<Bytes, RequestError>,
        headers: &mut HeaderMap,
        redactor: Arc<Redactor>,
        allowed: ActiveRequest,
    ) -> Result<Self, RequestError> {
        redact_headers(&redactor, headers);
        let decoder = match body.is_end_stream() {
            true => Decoder::Plain,
            false => {
                only_in_chunks(headers)?;
                Decoder::of(headers)?
            }
        };
        if !matches!(decoder, Decoder::Plain) {
            headers.remove(CONTENT_ENCODING);
            headers.remove(CONTENT_LENGTH);
        }
        let filter = Some(redactor.filter());
        Ok(Self { body, decoder, redactor, filter, allowed, bytes: (0, 0), trailers: None })
    }

    /// Decodes bytes and returns those that can be released.
    fn take(&mut self, packed: &[u8]) -> Result<Vec<u8>, RequestError> {
        self.bytes.0 = self.bytes.0.saturating_add(packed.len() as u64);
        self.allowed.response_bytes(self.bytes.0)?;
        let mut masked = Vec::new();
        for step in packed.chunks(STEP_BYTES) {
            let plain = self.decoder.push(step).map_err(|error| broken(&error))?;
            self.give(&plain, &mut masked)?;
        }
        Ok(masked)
    }

    /// Returns the remaining bytes at the end.
    fn finish(&mut self) -> Result<Vec<u8>, RequestError> {
        let (mut masked, plain) = (Vec::new(), self.decoder.finish());
        self.give(&plain.map_err(|error| broken(&error))?, &mut masked)?;
        masked.extend(self.filter.take().map(RedactionFilter::finish).unwrap_or_default());
        Ok(masked)
    }

    fn give(&mut self, plain: &[u8], masked: &mut Vec<u8>) -> Result<(), RequestError> {
        self.bytes.1 = self.bytes.1.saturating_add(plain.len() as u64);
        self.allowed.response_bytes(self.bytes.1)?;
        if let Some(filter) = &mut self.filter {
            masked.extend(filter.push(plain));
        }
        Ok(())
    }
}

impl Body for InspectedBody {
    type Data = Bytes;
    type Error = RequestError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestError>>> {
        let this = self.get_mut();
        loop {
            if this.filter.is_none() {
                return Poll::Ready(
                    this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))),
                );
            }
            let masked = match ready!(Pin::new(&mut this.body).poll_frame(context)).transpose()? {
                Some(frame) => match frame.into_data() {
                    Ok(data) => this.take(&data)?,
                    Err(frame) => {
                        let mut trailers = frame.into_trailers().unwrap_or_default();
                        redact_headers(&this.redactor, &mut trailers);
                        this.trailers = Some(trailers);
                        this.finish()?
                    }
                },
                None => this.finish()?,
            };
            if !masked.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(masked.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.filter.is_none() && self.trailers.is_none()
    }
}

/// Refuses a transfer encoding other than `chunked`. No request asks for one, and lower layers
/// decode only chunks.
fn only_in_chunks(headers: &HeaderMap) -> Result<(), RequestError> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match codings.find(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        None => Ok(()),
        Some(coding) => {
            let coding = String::from_utf8_lossy(coding.as_bytes()).trim().to_ascii_lowercase();
            Err(RequestError::Encoding(coding.escape_debug().take(64).collect()))
        }
    }
}

impl Decoder {
    fn of(headers: &HeaderMap) -> Result<Self, RequestError> {
        let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
        let (Some(encoding), None) = (encodings.next(), encodings.next()) else {
            return match headers.contains_key(CONTENT_ENCODING) {
                true => Err(RequestError::Encoding("more than one".to_owned())),
                false => Ok(Self::Plain),
            };
        };
        let encoding = String::from_utf8_lossy(encoding.as_bytes()).trim().to_ascii_lowercase();
        match &*encoding {
            "" | "identity" => Ok(Self::Plain),
            "gzip" | "x-gzip" => Ok(Self::Gzip(GzDecoder::new(Vec::new()))),
            "deflate" => Ok(Self::Deflate(ZlibDecoder::new(Vec::new()))),
            _ => Err(RequestError::Encoding(encoding.escape_debug().take(64).collect())),
        }
    }

    fn push(&mut self, packed: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(packed.to_vec()),
            Self::Gzip(decoder) => {
                decoder.write_all(packed)?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Self::Deflate(decoder) => {
                decoder.write_all(packed)?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }

    fn finish(&mut self) -> io::Result<Vec<u8>> {
        match std::mem::replace(self, Self::Plain) {
            Self::Plain => Ok(Vec::new()),
            Self::Gzip(decoder) => decoder.finish(),
            Self::Deflate(decoder) => decoder.finish(),
        }
    }
}

fn broken(error: &io::Error) -> RequestError {
    RequestError::Protocol(format!("its body cannot be unpacked: {error}"))
}
