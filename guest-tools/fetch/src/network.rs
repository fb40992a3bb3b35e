//! Network access through `wasi:http`.

use std::io::{self, Read};

use kitbag_sdk::ErrorInfo;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    DnsErrorPayload, ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingRequest,
    Scheme, http_error_code,
};
use wasip2::io::streams::{InputStream, StreamError};

use crate::arguments;
use crate::request::Request;
use crate::response::Response;

const AGENT: &str = concat!("kitbag/", env!("CARGO_PKG_VERSION"));

/// Sends a request and waits for the start of its response.
pub(crate) fn send(request: &Request) -> Result<Response, ErrorInfo> {
    let response = exchange(request).map_err(|code| explain(request, &code))?;
    let status = response.status();
    let headers = response.headers().entries();
    let failed = || ErrorInfo::new("the response has no body");
    let body = response.consume().map_err(|()| failed())?;
    let stream = body.stream().map_err(|()| failed())?;
    let body = Box::new(Body { stream, _body: body, _response: response });
    Ok(Response { status, headers, body })
}

fn exchange(request: &Request) -> Result<IncomingResponse, ErrorCode> {
    let headers =
        [("accept", request.accept), ("accept-encoding", "gzip, deflate"), ("user-agent", AGENT)];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let headers = Fields::from_list(&headers)
        .map_err(|_| ErrorCode::InternalError(Some("the header fields were refused".into())))?;
    let outgoing = OutgoingRequest::new(headers);
    let method = match request.method {
        arguments::Method::Get => Method::Get,
        arguments::Method::Head => Method::Head,
    };
    let scheme = match request.url.scheme() {
        "https" => Scheme::Https,
        _ => Scheme::Http,
    };
    let invalid = |()| ErrorCode::HttpRequestUriInvalid;
    outgoing.set_method(&method).map_err(invalid)?;
    outgoing.set_scheme(Some(&scheme)).map_err(invalid)?;
    outgoing.set_authority(Some(request.url.authority())).map_err(invalid)?;
    let path = &request.url[kitbag_url::Position::BeforePath..kitbag_url::Position::AfterQuery];
    outgoing.set_path_with_query(Some(path)).map_err(invalid)?;
    let future = outgoing_handler::handle(outgoing, None)?;
    let lost = || ErrorCode::InternalError(Some("no response".into()));
    loop {
        match future.get() {
            Some(response) => return response.map_err(|()| lost())?,
            None => future.subscribe().block(),
        }
    }
}

/// A body. Bytes of a previous body are dropped first.
struct Body {
    stream: InputStream,
    _body: IncomingBody,
    _response: IncomingResponse,
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        match self.stream.blocking_read(into.len() as u64) {
            Ok(bytes) => {
                into[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
            Err(StreamError::Closed) => Ok(0),
            Err(StreamError::LastOperationFailed(error)) => {
                let words = match http_error_code(&error) {
                    Some(code) => words(&code),
                    None => "the response ended early".to_owned(),
                };
                Err(io::Error::other(words))
            }
        }
    }
}

/// Explains why there is no response.
fn explain(request: &Request, code: &ErrorCode) -> ErrorInfo {
    let error = ErrorInfo::new(format!("`{}` failed: {}", request.shown(), words(code)));
    match code {
        ErrorCode::DnsTimeout
        | ErrorCode::ConnectionTerminated
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::ConnectionLimitReached
        | ErrorCode::DestinationUnavailable
        | ErrorCode::HttpResponseTimeout => error.transient(),
        _ => error,
    }
}

/// Describes an error code.
fn words(code: &ErrorCode) -> String {
    let text = match code {
        ErrorCode::InternalError(Some(text)) => return text.clone(),
        ErrorCode::DnsError(DnsErrorPayload { rcode: Some(reason), .. }) => {
            return format!("the host name cannot be resolved: {reason}");
        }
        ErrorCode::DnsTimeout | ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => {
            "the host name cannot be resolved"
        }
        ErrorCode::DestinationUnavailable => "cannot connect to the server",
        ErrorCode::DestinationIpProhibited => "the address of the host is not allowed",
        ErrorCode::ConnectionRefused => "the server refused the connection",
        ErrorCode::ConnectionTerminated => "the server closed the connection",
        ErrorCode::TlsCertificateError => "the certificate of the server is not valid",
        ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => {
            "TLS with the server failed"
        }
        ErrorCode::HttpRequestDenied => "the request is not allowed",
        ErrorCode::HttpRequestMethodInvalid => "the method is not allowed",
        ErrorCode::HttpRequestUriInvalid => "the URL is refused",
        ErrorCode::HttpResponseIncomplete => "the response ended early",
        ErrorCode::HttpResponseBodySize(_) => "the response exceeds the size limit",
        ErrorCode::HttpResponseContentCoding(Some(coding)) => {
            return format!("the response has the encoding `{coding}`, which was not requested");
        }
        ErrorCode::HttpUpgradeFailed => "the server switches to another protocol",
        ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::HttpResponseTimeout => "the server took too long",
        ErrorCode::HttpProtocolError => "the server broke the protocol",
        ErrorCode::LoopDetected => "the redirects form a loop",
        ErrorCode::HttpResponseHeaderSectionSize(_)
        | ErrorCode::HttpResponseHeaderSize(_)
        | ErrorCode::HttpResponseTrailerSectionSize(_)
        | ErrorCode::HttpResponseTrailerSize(_) => "the header of the response is too large",
        ErrorCode::HttpRequestBodySize(_) => "the body of the request exceeds the size limit",
        ErrorCode::HttpResponseTransferCoding(_) => "the response has an unknown encoding",
        _ => "the request failed",
    };
    text.to_owned()
}
