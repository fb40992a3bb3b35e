//! A server whose messages are scripted, and a caller.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kitbag_contract::{LogLevel, Progress};
use kitbag_policy::SecretName;
use kitbag_policy::server::{Era, ServerAddress, ServerName, ServerProcess, ToolDefinition};
use kitbag_secrets::SecretValue;
use kitbag_servers::{
    Answered, CallEvents, Connect, Link, Round, ServerCall, ServerError, ServerTarget, Servers,
    ServersOptions, TargetSecrets,
};
use serde_json::{Map, Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
    split,
};

/// The server's side of a connection.
pub(crate) struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Peer {
    /// Returns the next message of the client. `None`: it closed the connection.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok()??;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Returns the next request or notification with this method. Others are ignored.
    pub(crate) async fn wait_for(&mut self, method: &str) -> Option<Value> {
        loop {
            let message = self.receive().await?;
            if message["method"] == method {
                return Some(message);
            }
        }
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.write(&format!("{message}\n")).await;
    }

    pub(crate) async fn write(&mut self, text: &str) {
        let _ = self.writer.write_all(text.as_bytes()).await;
    }

    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    pub(crate) async fn refuse(&mut self, request: &Value, code: i32, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    }

    /// Shakes hands as a server of the older era, with these tools.
    pub(crate) async fn initialize(&mut self, tools: &Value) -> Option<()> {
        loop {
            let message = self.receive().await?;
            match message["method"].as_str() {
                Some("server/discover") => self.refuse(&message, -32601, "no such method").await,
                Some("initialize") => {
                    let result = json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": { "tools": { "listChanged": true }, "logging": {} },
                        "serverInfo": { "name": "fake", "version": "1" },
                    });
                    self.answer(&message, result).await;
                }
                Some("tools/list") => {
                    self.answer(&message, json!({ "tools": tools })).await;
                    return Some(());
                }
                _ => {}
            }
        }
    }

    /// Answers `server/discover` as a server of the newer era, with these tools.
    pub(crate) async fn discover(&mut self, tools: &Value) -> Option<()> {
        let message = self.wait_for("server/discover").await?;
        let result = json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
            "ttlMs": 0,
            "cacheScope": "private",
        });
        self.answer(&message, result).await;
        let message = self.wait_for("tools/list").await?;
        let result = json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" });
        self.answer(&message, result).await;
        Some(())
    }
}

pub(crate) type Behaviour =
    Arc<dyn Fn(Peer) -> Pin<Box<dyn Future<Output = Option<()>> + Send>> + Send + Sync>;

/// Starts servers with one behaviour, and counts them.
pub(crate) struct Fake {
    behaviour: Behaviour,
    pub(crate) starts: AtomicUsize,
}

impl Connect for Fake {
    fn connect(
        &self,
        _: &ServerName,
        _: &ServerProcess,
        _: &[(SecretName, Arc<SecretValue>)],
    ) -> Result<Link, String> {
        self.starts.fetch_add(1, Ordering::SeqCst);
        let (client, server) = duplex(64 << 10);
        let (reader, writer) = split(server);
        let peer = Peer { lines: BufReader::new(reader).lines(), writer };
        tokio::spawn((self.behaviour)(peer));
        let (reader, writer) = split(client);
        Ok(Link { read: Box::new(reader), write: Box::new(writer), process: None })
    }
}

/// One server with a behaviour.
pub(crate) struct Fixture {
    pub(crate) servers: Servers,
    pub(crate) target: ServerTarget,
    pub(crate) fake: Arc<Fake>,
    pub(crate) events: Arc<Events>,
}

/// A report of a server.
#[derive(Default)]
pub(crate) struct Events(pub(crate) Mutex<Vec<String>>);

impl CallEvents for Events {
    fn progress(&self, progress: Progress) {
        let message = progress.message.unwrap_or_default();
        self.0.lock().unwrap().push(format!("{} {message}", progress.done));
    }

    fn log(&self, level: LogLevel, message: &str) {
        self.0.lock().unwrap().push(format!("{level}: {message}"));
    }
}

impl Fixture {
    pub(crate) fn new<F>(
        era: Option<Era>,
        behaviour: impl Fn(Peer) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Option<()>> + Send + 'static,
    {
        let behaviour: Behaviour = Arc::new(move |peer| Box::pin(behaviour(peer)));
        let fake = Arc::new(Fake { behaviour, starts: AtomicUsize::new(0) });
        let connect: Arc<dyn Connect> = Arc::clone(&fake) as _;
        let servers = Servers::new(ServersOptions { connect: Some(connect), ..Default::default() });
        let process = ServerProcess::new("fake", "/");
        let target = ServerTarget {
            name: ServerName::new("fake").unwrap(),
            address: Arc::new(ServerAddress::Process(process)),
            era,
            idle: ServerTarget::IDLE,
            secrets: TargetSecrets::default(),
            deny: Arc::default(),
        };
        Self { servers, target, fake, events: Arc::default() }
    }

    /// Creates a server of the older era with the tool `echo`, which handles calls with `work`.
    pub(crate) fn calls<F>(work: impl Fn(Peer, Value) -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Peer> + Send,
    {
        Self::new(Some(Era::Initialize), move |mut peer| {
            let work = work.clone();
            async move {
                peer.initialize(&json!([tool("echo")])).await?;
                loop {
                    let call = peer.wait_for("tools/call").await?;
                    peer = work(peer, call).await;
                }
            }
        })
    }

    pub(crate) fn starts(&self) -> usize {
        self.fake.starts.load(Ordering::SeqCst)
    }

    pub(crate) fn call(&self, arguments: Value) -> ServerCall {
        self.call_of(definition("echo"), arguments)
    }

    pub(crate) fn call_of(&self, tool: ToolDefinition, arguments: Value) -> ServerCall {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        ServerCall::new(&self.servers, self.target.clone(), Arc::new(tool), arguments)
    }

    /// Runs a call to its next end.
    pub(crate) async fn run(
        &self,
        call: &mut ServerCall,
        answers: Value,
    ) -> Result<Round, ServerError> {
        let answers = match answers {
            Value::Object(answers) => answers,
            _ => Map::new(),
        };
        let events: Arc<dyn CallEvents> = Arc::clone(&self.events) as _;
        let run = call.run(&answers, &events);
        tokio::time::timeout(Duration::from_secs(20), run).await.expect("the call ends")
    }

    /// Makes a call without questions, and returns its text or error.
    pub(crate) async fn say(&self, arguments: Value) -> String {
        text(self.run(&mut self.call(arguments), Value::Null).await)
    }
}

pub(crate) fn text(round: Result<Round, ServerError>) -> String {
    match round {
        Ok(Round::Answered(Answered { is_error: true, text, .. })) => format!("error: {text}"),
        Ok(Round::Answered(answered)) => answered.text,
        Ok(Round::Asks(question)) => format!("asks {}", question.id),
        Err(error) => format!("failed: {error}"),
    }
}

pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "Says it.", "inputSchema": { "type": "object" } })
}

pub(crate) fn definition(name: &str) -> ToolDefinition {
    serde_json::from_value(tool(name)).unwrap()
}

pub(crate) fn content(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
