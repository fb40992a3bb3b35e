//! Valid HTTP answers: 1.1 and 2, with `hyper`.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::spawn_local;

use crate::seen::{Connection, Record};
use crate::server::Served;
use crate::{Answer, Behaviour, Coding, SeenRequest};

type AnyBody = UnsyncBoxBody<Bytes, Infallible>;

/// Serves one connection until the client closes it.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    served: Rc<Served>,
    connection: Connection,
) {
    let connection = Rc::new(connection);
    let service = service_fn(|request| {
        let (served, connection) = (served.clone(), connection.clone());
        async move {
            let answered = answer(request, served, &connection).await;
            // The error ends the connection.
            answered.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
        }
    });
    let mut builder = Builder::new(LocalTasks);
    builder.http1().timer(TokioTimer::new()).max_headers(10_000).max_buf_size(1 << 22);
    builder.http2().timer(TokioTimer::new()).max_header_list_size(1 << 22);
    // This is an error if the client aborts the connection.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// Spawns tasks on the server's own thread.
#[derive(Clone)]
struct LocalTasks;

impl<F: Future + 'static> hyper::rt::Executor<F> for LocalTasks {
    fn execute(&self, task: F) {
        spawn_local(async move {
            task.await;
        });
    }
}

/// Answers a request. `None`: its body was aborted.
async fn answer(
    request: Request<Incoming>,
    served: Rc<Served>,
    connection: &Connection,
) -> Option<Response<AnyBody>> {
    let record = &connection.record;
    let (head, body) = request.into_parts();
    let index = record.head(SeenRequest {
        connection: connection.number,
        method: head.method.to_string(),
        target: head.uri.to_string(),
        version: format!("{:?}", head.version),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
            .collect(),
        body: Vec::new(),
        complete: false,
    });
    let request = read(record, index, body).await?;
    Some(match &served.behaviour {
        Behaviour::Answer(answer) => respond(answer.clone()),
        Behaviour::Respond(function) => respond(function(&request)),
        Behaviour::Redirects => respond(redirect(&request)),
        Behaviour::Pieces => {
            let (send, receive) = mpsc::channel(1);
            let served = served.clone();
            spawn_local(async move {
                let mut pieces = served.pieces.lock().await;
                while let Some(piece) = pieces.recv().await {
                    if send.send(piece).await.is_err() {
                        break;
                    }
                }
            });
            Response::new(Pieces(receive).boxed_unsync())
        }
        Behaviour::Endless => Response::new(Endless.boxed_unsync()),
        Behaviour::Bomb(coding, _) => {
            let name = match coding {
                Coding::Gzip => "gzip",
                Coding::Deflate => "deflate",
                Coding::Brotli => "br",
            };
            respond(Answer::ok("text/plain", served.bomb.clone()).header("content-encoding", name))
        }
        Behaviour::Fields(count) => {
            let answer = (0..*count).fold(Answer::new(200, "ok"), |answer, number| {
                answer.header(&format!("x-{number}"), "value")
            });
            respond(answer)
        }
        Behaviour::Silent => pending().await,
        // The other behaviours are handled elsewhere.
        _ => respond(echo(&request)),
    })
}

/// Reads a body to its end.
async fn read(record: &Record, index: usize, body: Incoming) -> Option<SeenRequest> {
    let mut body = pin!(body);
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        if let Ok(bytes) = frame.ok()?.into_data() {
            record.body(index, &bytes);
        }
    }
    Some(record.complete(index))
}

/// Returns the request as JSON.
pub(crate) fn echo(request: &SeenRequest) -> Answer {
    let headers: Vec<_> = request
        .headers
        .iter()
        .map(|(name, value)| json!([name, String::from_utf8_lossy(value)]))
        .collect();
    let text = json!({
        "method": request.method,
        "target": request.target,
        "version": request.version,
        "headers": headers,
        "body": String::from_utf8_lossy(&request.body),
    });
    Answer::ok("application/json", text.to_string())
}

fn redirect(request: &SeenRequest) -> Answer {
    let parts: Vec<_> = request.path().split('/').skip(1).collect();
    let query = request.target.split_once('?').map(|(_, query)| query);
    match (parts.as_slice(), query) {
        (["loop"], _) => Answer::redirect(302, "/loop"),
        (["to", status], Some(target)) if status.parse::<u16>().is_ok() => {
            Answer::redirect(status.parse().unwrap_or(302), target)
        }
        ([status, left], _) => match (status.parse(), left.parse::<u32>()) {
            (Ok(status), Ok(left)) if left > 0 => {
                Answer::redirect(status, &format!("/{status}/{}", left - 1))
            }
            _ => echo(request),
        },
        _ => echo(request),
    }
}

fn respond(answer: Answer) -> Response<AnyBody> {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let body = match answer.status {
        204 | 304 => Empty::new().boxed_unsync(),
        _ => Full::new(Bytes::from(answer.body)).boxed_unsync(),
    };
    response.body(body).expect("an answer that a test wrote is valid")
}

/// A body that is sent in pieces.
struct Pieces(mpsc::Receiver<Vec<u8>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece.into()))))
    }
}

/// An endless body.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'a'; 16 << 10])))))
    }
}
