//! `kitbag serve`.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::ValueEnum;
use kitbag::base::ByteSize;
use kitbag::config::{Origin, Sourced};
use kitbag::contract::LEAST_SERVER_MEMORY;
use kitbag::mcp::{Access, HTTP_PATH, HttpOptions, KEY_BYTES, Load, Server, Token, is_loopback};
#[cfg(feature = "otlp")]
use kitbag::mcp::{Otlp, OtlpError};
use kitbag_fs_guard::sys::{effective_user, mode_of_metadata, owner_of_metadata};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::{LevelFilter, Targets};
#[cfg(not(feature = "otlp"))]
use tracing_subscriber::layer::Identity;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use crate::commands::{Global, LimitArgs};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;
use crate::log::{FlushOnDrop, Log};

/// Maximum time that cancelled calls may take to remove their temporary data.
const ENDING: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag serve
  kitbag serve --workspace ~/project --log info
  kitbag serve --http 127.0.0.1:8620 --allow-host tools.example.com

`kitbag token add NAME` gives a person a token for a server over HTTP.")]
pub(crate) struct Args {
    /// Serve over Streamable HTTP at this address, such as 127.0.0.1:8620 or localhost:8620
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    http: Option<SocketAddr>,
    /// Require the bearer token in FILE, or a token of a person (`kitbag token`) [default: if no
    /// person has a token, generate one and print it]
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with = "no_token")]
    token_file: Option<PathBuf>,
    /// Accept every connection; for loopback addresses only
    #[arg(long, requires = "http")]
    no_token: bool,
    /// Accept this `Host` name, with or without a port; required for an address that is not
    /// loopback
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    /// Let web pages of this origin use the server, such as https://app.example.com
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// Sign the state that clients carry between questions with the key in this file (at least 32
    /// bytes), so that several servers can continue each other's calls
    #[arg(long, value_name = "FILE", requires = "http")]
    state_key_file: Option<PathBuf>,
    /// Limit the memory of the whole server, with its calls, components and messages, such as 4GiB;
    /// at least 384MiB [default: as configured, otherwise 2GiB]
    #[arg(long, value_name = "SIZE")]
    total_memory: Option<ByteSize>,
    /// Offer only the tools that match these names or globs, such as 'search_*,python' [default: as
    /// configured, otherwise every enabled tool]
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    tools: Vec<String>,
    #[command(flatten)]
    limits: LimitArgs,
    #[cfg(feature = "otlp")]
    #[command(flatten)]
    otlp: OtlpArgs,
    #[cfg(feature = "nats")]
    #[command(flatten)]
    cluster: crate::commands::cluster::ClusterArgs,
    /// Log to standard error, from this level up
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LogLevel::Warn)]
    log: LogLevel,
    /// The format of the log
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

// Destination of spans. No doc comment: clap would use it as the command's help.
#[cfg(feature = "otlp")]
#[derive(Debug, clap::Args)]
struct OtlpArgs {
    /// Send a span of each request to the OpenTelemetry collector at this address, such as
    /// http://localhost:4318 [default: the variables OTEL_EXPORTER_OTLP_*]
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    otlp: Option<Option<String>>,
    /// Include arguments and results in the spans of calls
    #[arg(long, requires = "otlp")]
    otlp_content: bool,
}

#[cfg(feature = "otlp")]
impl OtlpArgs {
    fn exporter(&self) -> Result<Option<Otlp>, CliError> {
        let Some(address) = &self.otlp else { return Ok(None) };
        match Otlp::new(address.as_deref()) {
            Ok(otlp) => Ok(Some(otlp)),
            Err(error @ OtlpError::Address(_)) => Err(CliError::Usage(error.to_string())),
            Err(error) => Err(CliError::Serve("the server cannot start".into(), error.into())),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// A line of text
    Text,
    /// A line with a JSON object
    Json,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        // Kept until the end, when it sends the remaining spans.
        #[cfg(feature = "otlp")]
        let exporter = self.otlp.exporter()?;
        #[cfg(feature = "otlp")]
        let _log = self.start_log(exporter.as_ref().map(Otlp::layer));
        #[cfg(not(feature = "otlp"))]
        let _log = self.start_log(None::<Identity>);
        let limits = self.limits;
        let secrets = self.secret_files()?;
        let tools = (!self.tools.is_empty())
            .then(|| Sourced { value: self.tools.clone(), origin: Origin::flag("--tools") });
        #[cfg(feature = "nats")]
        let remote = match self.cluster.is_used() {
            true => Some(crate::commands::cluster::Remote::start(&self.cluster, &global)?),
            false => None,
        };
        #[cfg(feature = "nats")]
        let of_remote = remote.clone();
        let begin = move || {
            #[cfg(feature = "nats")]
            let builder = match &of_remote {
                Some(remote) => remote.builder(&global),
                None => global.builder(),
            };
            #[cfg(not(feature = "nats"))]
            let builder = global.builder();
            let builder = builder.limits(limits.into()).private(secrets.clone());
            let builder = builder.as_server().isolate_own();
            match &tools {
                Some(tools) => builder.served_tools(tools.clone()),
                None => builder,
            }
        };
        let mut builder = begin();
        if let Some(memory) = self.total_memory {
            if memory < LEAST_SERVER_MEMORY {
                return Err(CliError::Usage(format!(
                    "`--total-memory` is `{memory}`; a server needs at least `{LEAST_SERVER_MEMORY}`"
                )));
            }
            builder = builder.memory(memory);
        }
        let toolbox = builder.build()?.toolbox().clone();
        #[cfg(feature = "nats")]
        let toolbox = match &remote {
            Some(remote) => remote.attach(&toolbox),
            None => toolbox,
        };
        let config = toolbox.config();
        kitbag::mcp::log_broken(&config.broken, &[]);
        for warning in config.warnings.iter().chain(&config.unmatched).chain(&config.absent) {
            tracing::warn!("{warning}");
        }
        if let Some(ignored) = &toolbox.config().ignored {
            tracing::warn!("{ignored}");
        }
        if let Some(notice) = toolbox.config().trust_notice() {
            tracing::warn!("{notice}");
        }
        let session_idle = config.session_idle.value;
        let has_people = !config.people.is_empty();
        let host = toolbox.host().clone();
        let of_host = host.clone();
        let load: Load = Box::new(move || match begin().host(of_host.clone()).build() {
            #[cfg(feature = "nats")]
            Ok(kitbag) => Ok(match &remote {
                Some(remote) => remote.attach(kitbag.toolbox()),
                None => kitbag.toolbox().clone(),
            }),
            #[cfg(not(feature = "nats"))]
            Ok(kitbag) => Ok(kitbag.toolbox().clone()),
            Err(errors) => Err(CliError::from(errors).report()),
        });
        let key = self.state_key_file.as_deref().map(read_key).transpose()?;
        let server = Server::new(toolbox, load, key.as_deref())
            .map_err(|error| failed("the server cannot start", error))?;
        #[cfg(feature = "otlp")]
        if self.otlp.otlp_content {
            server.trace_content();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed("the server cannot start", error))?;
        if let Err(error) = server.watch() {
            output::warn(&format!("changes of files will not be noticed: {error}"));
        }
        let served = match self.http {
            Some(address) => {
                let (listener, options) = self.listen(address, session_idle, has_people)?;
                runtime.block_on(serve_http(&server, listener, options))
            }
            None => runtime.block_on(serve_stdio(&server)),
        };
        // Calls have now removed their temporary data, except calls that do not return.
        let _ = runtime.block_on(async { tokio::time::timeout(ENDING, host.idle()).await });
        server.finish();
        // A running ahead-of-time compilation does not delay the exit.
        runtime.shutdown_background();
        served.map(|()| Exit::Done)
    }

    /// Returns the absolute paths of the server's key and token files, which tools must not
    /// replace.
    fn secret_files(&self) -> Result<Vec<PathBuf>, CliError> {
        let files = [&self.state_key_file, &self.token_file].into_iter().flatten();
        files
            .map(|path| std::path::absolute(path).map_err(|source| unreadable(path, source)))
            .collect()
    }

    /// Listens at an address. Called before a token is generated for its clients.
    fn listen(
        &self,
        address: SocketAddr,
        session_idle: Duration,
        has_people: bool,
    ) -> Result<(TcpListener, HttpOptions), CliError> {
        let mut actions = Vec::new();
        if self.no_token {
            actions.push("remove `--no-token`");
        }
        if self.allow_host.is_empty() {
            actions.push("add `--allow-host HOST` with the host name that clients use");
        }
        if !is_loopback(&address) && !actions.is_empty() {
            return Err(CliError::Usage(format!(
                "`{address}` can be reached from other machines: {}",
                actions.join(" and ")
            )));
        }
        if self.no_token && has_people {
            return Err(CliError::Usage(
                "`--no-token` would let anyone in, but your user config has tokens for people: \
                 remove `--no-token`, or `[serve.tokens]`"
                    .into(),
            ));
        }
        let from_file = self.token_file.as_deref().map(|path| {
            let text = String::from_utf8_lossy(&read_secret(path)?).into_owned();
            Token::new(&text)
                .map_err(|error| CliError::Usage(format!("`{}`: {error}", path.display())))
        });
        let from_file = from_file.transpose()?;
        let listener = TcpListener::bind(address).map_err(|error| cannot_listen(address, error))?;
        let access = match (from_file, self.no_token) {
            (_, true) => Access::Anyone,
            (Some(token), false) => Access::Token(token),
            (None, false) if has_people => Access::People,
            (None, false) => {
                let made = Token::random();
                let (token, text) = made.map_err(|error| failed("no token can be made", error))?;
                output::note(&format!("token: {text}"));
                output::note("send it with each request: `Authorization: Bearer TOKEN`");
                Access::Token(token)
            }
        };
        let options = HttpOptions {
            access,
            allowed_hosts: self.allow_host.clone(),
            allowed_origins: self.allow_origin.clone(),
            session_idle,
            ..HttpOptions::default()
        };
        Ok((listener, options))
    }

    /// Logs events to standard error, and to another listener. Messages of the protocol library
    /// include arguments and answers, so they are logged only at level `trace`.
    ///
    /// `None` in place of a layer that drops everything: a layer without a level would enable every
    /// span and event of every library.
    fn start_log(&self, other: Option<impl Layer<Registry> + Send + Sync>) -> FlushOnDrop {
        let level = match self.log {
            LogLevel::Off => LevelFilter::OFF,
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        };
        let library =
            if self.log == LogLevel::Trace { level } else { level.min(LevelFilter::ERROR) };
        let filter = Targets::new().with_default(library).with_target("kitbag", level);
        let log = Log::new(self.log_format == LogFormat::Json);
        let layer = fmt::layer().with_writer(log.clone()).with_ansi(false);
        let layer = match self.log_format {
            LogFormat::Text => layer.boxed(),
            LogFormat::Json => layer.json().boxed(),
        };
        tracing_subscriber::registry().with(other).with(layer.with_filter(filter)).init();
        log.flush_on_drop()
    }
}

/// Parses an address to listen at. Host names are not resolved: `localhost` is the loopback address
/// everywhere, and any other name could be reachable by others.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, &'static str> {
    let loopback = |port: &str| Some((Ipv4Addr::LOCALHOST, port.parse().ok()?).into());
    let named = || text.strip_prefix("localhost:").and_then(loopback);
    text.parse()
        .ok()
        .or_else(named)
        .ok_or("write an IP address and a port, such as `127.0.0.1:8620`, or `localhost:8620`")
}

async fn serve_stdio(server: &Server) -> Result<(), CliError> {
    if io::stdin().is_terminal() {
        output::note(
            "kitbag now serves MCP on standard input and output, and waits for a client; press \
             Ctrl-D to stop",
        );
    }
    let (input, output) = kitbag::mcp::take_over_stdio()
        .map_err(|error| failed("standard input and output cannot be used", error))?;
    let served = server.serve_stdio(input, output).await;
    served.map_err(|error| CliError::Serve("the session ended".into(), error.into()))
}

async fn serve_http(
    server: &Server,
    listener: TcpListener,
    options: HttpOptions,
) -> Result<(), CliError> {
    let address = listener.local_addr();
    let address = address.map_err(|error| failed("the address cannot be determined", error))?;
    output::note(&format!("listening at http://{address}{HTTP_PATH}"));
    let end = end_on_signal().map_err(|error| failed("signals cannot be handled", error))?;
    let served = server.serve_http(listener, options, end).await;
    served.map_err(|error| cannot_listen(address, error))
}

fn cannot_listen(address: SocketAddr, error: io::Error) -> CliError {
    let more = match error.kind() {
        io::ErrorKind::AddrInUse => "; another program does, perhaps another kitbag server",
        _ => "",
    };
    failed(&format!("cannot listen at `{address}`{more}"), error)
}

/// Returns a token that Ctrl-C and the termination signal cancel. The second signal ends the
/// process as usual.
fn end_on_signal() -> io::Result<CancellationToken> {
    let (mut reader, writer) = io::pipe()?;
    for signal in [SIGINT, SIGTERM] {
        let again = Arc::new(AtomicBool::new(false));
        flag::register_conditional_default(signal, Arc::clone(&again))?;
        flag::register(signal, again)?;
        low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    let end = CancellationToken::new();
    let ended = end.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if reader.read_exact(&mut [0]).is_ok() {
            ended.cancel();
        }
    })?;
    Ok(end)
}

fn read_key(path: &Path) -> Result<Vec<u8>, CliError> {
    let key = read_secret(path)?;
    match key.len() {
        length if length < KEY_BYTES => Err(CliError::Usage(format!(
            "`{}` has {length} bytes; a key must have at least {KEY_BYTES}",
            path.display()
        ))),
        _ => Ok(key),
    }
}

/// Reads a file that no other user may read. The file is opened once, and the open file is checked.
fn read_secret(path: &Path) -> Result<Vec<u8>, CliError> {
    /// Far more than any token or key needs.
    const SECRET_BYTES: u64 = 64 << 10;
    let unreadable = |source| unreadable(path, source);
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let (owner, mode) = (owner_of_metadata(&metadata), mode_of_metadata(&metadata) & 0o777);
    let name = path.display();
    if owner != 0 && owner != effective_user() {
        return Err(CliError::Usage(format!(
            "`{name}` belongs to another user (uid {owner}), who knows the secret in it; use a \
             file of your own"
        )));
    }
    if mode & 0o077 != 0 {
        return Err(CliError::Usage(format!(
            "`{name}` can be read or written by others (mode {mode:04o}); run `chmod 600 {name}`"
        )));
    }
    let mut secret = Vec::new();
    file.take(SECRET_BYTES).read_to_end(&mut secret).map_err(unreadable)?;
    Ok(secret)
}

fn unreadable(path: &Path, source: io::Error) -> CliError {
    CliError::Read { path: path.display().to_string(), source }
}

fn failed(what: &str, error: io::Error) -> CliError {
    CliError::Serve(what.to_owned(), error.into())
}
