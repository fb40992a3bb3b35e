//! The cost of a request through the broker compared with a request by `hyper` alone: both over a
//! reused connection that is driven by a separate thread.
//!
//! `cargo bench -p kitbag-http` prints both and fails if the first takes more than twice as long as
//! the second.

#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kitbag_http::{Account, CallLimits, Client, OutgoingBody, RequestTimes, Requests};
use kitbag_policy::http::{HttpGrant, HttpGrants, UrlPattern};
use kitbag_test_servers::{Answer, Behaviour, Server};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Mutex, oneshot};

/// The number of requests per call.
const REQUESTS: u32 = 50;

/// The number of measured calls of each kind, which alternate.
const CALLS: usize = 100;

fn main() -> ExitCode {
    let server = Server::start(Behaviour::Answer(Answer::ok("text/plain", vec![b'a'; 1024])));
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let client = Client::default();
    let url = format!("{}/measured", server.url());
    let pattern = UrlPattern::parse(&format!("{}/**", server.url())).expect("a pattern");
    let grants = HttpGrants::from(vec![HttpGrant::new(pattern)]);
    let alone = Alone::connect(&server);
    let mut measured = [Vec::new(), Vec::new()];
    for _ in 0..CALLS {
        let (account, limits) = (Account::default(), CallLimits::default());
        let requests = Requests::new(&client, "bench", account, grants.clone(), limits, None);
        let (start, broker) = (Instant::now(), || through_the_broker(&runtime, &requests, &url));
        (0..REQUESTS).for_each(|_| broker());
        measured[0].push(start.elapsed() / REQUESTS);
        let start = Instant::now();
        (0..REQUESTS).for_each(|_| alone.get(&runtime));
        measured[1].push(start.elapsed() / REQUESTS);
    }
    let [broker, hyper] = measured.map(median);
    let ratio = broker.as_secs_f64() / hyper.as_secs_f64();
    println!("broker {broker:.1?}, hyper {hyper:.1?}: {ratio:.2} times");
    if ratio <= 2.0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn through_the_broker(runtime: &Runtime, requests: &Requests, url: &str) {
    let body: OutgoingBody = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let response = requests.send(url, Request::new(body), RequestTimes::default());
    let body = runtime.block_on(async { response.await?.into_body().whole().await });
    assert_eq!(body.expect("a response").len(), 1024);
}

/// A `hyper` connection on a separate thread.
struct Alone {
    handle: Handle,
    sender: Arc<Mutex<http1::SendRequest<Empty<Bytes>>>>,
    host: String,
}

impl Alone {
    fn connect(server: &Server) -> Self {
        let address = server.address();
        let (send, connected) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let stream = tokio::net::TcpStream::connect(address).await.expect("a server");
                stream.set_nodelay(true).expect("a socket");
                let handshake = http1::handshake(TokioIo::new(stream)).await;
                let (sender, connection) = handshake.expect("a connection");
                let _ = send.send((Handle::current(), Arc::new(Mutex::new(sender))));
                let _ = connection.await;
            });
        });
        let (handle, sender) = connected.recv().expect("a connection");
        Self { handle, sender, host: address.to_string() }
    }

    fn get(&self, runtime: &Runtime) {
        let (send, response) = oneshot::channel();
        let sender = Arc::clone(&self.sender);
        let request = Request::get("/measured").header("host", &self.host).body(Empty::new());
        let request = request.expect("a request");
        self.handle.spawn(async move {
            let mut sender = sender.lock().await;
            sender.ready().await.expect("a connection");
            let _ = send.send(sender.send_request(request).await);
        });
        let body = runtime.block_on(async {
            let response = response.await.expect("a response").expect("a response");
            response.into_body().collect().await.expect("a body").to_bytes()
        });
        assert_eq!(body.len(), 1024);
    }
}
