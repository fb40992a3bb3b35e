//! Responses.

use std::io::{self, Read};

use flate2::read::{GzDecoder, ZlibDecoder};
use kitbag_sdk::ErrorInfo;

/// Maximum size of a body that is read, decompressed. A call has 64 MiB of memory in total.
const MOST_BYTES: u64 = 8 << 20;

/// A response whose body has not been read.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Box<dyn Read>,
}

/// A body.
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    /// The reason why the body is incomplete.
    pub(crate) truncated: Option<String>,
}

impl Response {
    /// Returns the value of a header field as a string.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let (_, value) = self.headers.iter().find(|(is, _)| is.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(value).trim().to_owned())
    }

    /// Returns the target of a redirect.
    pub(crate) fn location(&self) -> Option<String> {
        matches!(self.status, 300..=399).then(|| self.header("location")).flatten()
    }

    /// Returns the media type without parameters, in lower case.
    pub(crate) fn media_type(&self) -> Option<String> {
        let value = self.header("content-type")?;
        let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        (!essence.is_empty()).then_some(essence)
    }

    /// Returns the encoding that the media type names.
    pub(crate) fn charset(&self) -> Option<&'static encoding_rs::Encoding> {
        let value = self.header("content-type")?;
        let mut parameters = value.split(';').skip(1);
        parameters.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let label = value.trim().trim_matches(['"', '\'']);
            name.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| encoding_rs::Encoding::for_label(label.as_bytes()))
                .flatten()
        })
    }

    /// Reads the body up to the limit, as far as it arrives.
    pub(crate) fn read(self) -> Result<Body, ErrorInfo> {
        let coding = self.header("content-encoding").unwrap_or_default().to_ascii_lowercase();
        let body: Box<dyn Read> = match &*coding {
            "" | "identity" => self.body,
            "gzip" | "x-gzip" => Box::new(GzDecoder::new(self.body)),
            "deflate" => Box::new(ZlibDecoder::new(self.body)),
            coding => {
                return Err(ErrorInfo::new(format!(
                    "the response has the encoding `{coding}`, which was not requested"
                )));
            }
        };
        let mut bytes = Vec::new();
        let truncated = match body.take(MOST_BYTES + 1).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 > MOST_BYTES => {
                bytes.truncate(MOST_BYTES as usize);
                Some(format!("only the first {} MiB are read", MOST_BYTES >> 20))
            }
            Ok(_) => None,
            Err(error) if bytes.is_empty() => return Err(broken(&error)),
            Err(error) => Some(error.to_string()),
        };
        Ok(Body { bytes, truncated })
    }
}

/// Returns the error that ended the reading of a body.
fn broken(error: &io::Error) -> ErrorInfo {
    ErrorInfo::new(format!("the response has no readable body: {error}")).transient()
}
