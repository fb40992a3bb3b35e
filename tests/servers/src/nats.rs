//! `nats-server` with JetStream: a process that tests stop, kill, pause and start again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Tls;

/// Time for the server to start or stop. A start takes some 10 ms on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A NATS server on loopback. Its directory is removed when it is dropped.
///
/// The port and the data stay the same across [`kill`](Self::kill), [`stop`](Self::stop) and
/// [`start_again`](Self::start_again).
pub struct NatsServer {
    directory: tempfile::TempDir,
    child: Option<Child>,
    /// The server chooses one at the first start.
    port: Option<u16>,
    scheme: &'static str,
    /// The configuration except for the port.
    config: String,
}

impl NatsServer {
    /// Starts a server without accounts and without TLS.
    pub fn start() -> Self {
        Self::start_with("", None)
    }

    /// Starts a server with more lines in its configuration, such as accounts, and with TLS.
    pub fn start_with(config: &str, tls: Option<&Tls>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let scheme = if tls.is_some() { "tls" } else { "nats" };
        let mut server = Self { directory, child: None, port: None, scheme, config: String::new() };
        server.configure(config, tls);
        server.start_again();
        server
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port())
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.port.expect("a server that was started")
    }

    /// The server's directory, for files that must exist as long as it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Ends the server as if the machine had failed.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a running server");
            child.wait().expect("an ended server");
        }
    }

    /// Ends the server as an operator does, with SIGTERM.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        signal(&child, "TERM");
        let start = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            assert!(start.elapsed() < PATIENCE, "nats-server does not stop:\n{}", self.log());
            sleep(Duration::from_millis(5));
        }
    }

    /// Stops the process without closing its connections, as a partition does.
    pub fn pause(&self) {
        signal(self.child.as_ref().expect("a running server"), "STOP");
    }

    /// Ends a [`pause`](Self::pause).
    pub fn resume(&self) {
        signal(self.child.as_ref().expect("a running server"), "CONT");
    }

    /// Starts the server again on the same port with the same data, and waits until it accepts
    /// connections.
    pub fn start_again(&mut self) {
        self.kill();
        let directory = self.directory.path();
        let (config, log) = (directory.join("config"), directory.join("log"));
        let port = self.port.map_or("-1".to_owned(), |port| port.to_string());
        let text = format!("listen: \"127.0.0.1:{port}\"\n{}", self.config);
        fs::write(&config, text).expect("a file");
        // The previous log names a server that is ready.
        let _ = fs::remove_file(&log);
        let child = Command::new(binary())
            .arg("--config")
            .arg(config)
            .arg("--log")
            .arg(log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.expect("nats-server starts");
        let start = Instant::now();
        while !self.log().contains("Server is ready") {
            let ended = child.try_wait().expect("a child").is_some();
            assert!(!ended && start.elapsed() < PATIENCE, "no server:\n{}", self.log());
            sleep(Duration::from_millis(2));
        }
        self.child = Some(child);
        let log = self.log();
        let (_, address) = log.split_once("client connections on 127.0.0.1:").expect("a line");
        let port = address.lines().next().and_then(|port| port.parse().ok());
        self.port = Some(port.expect("a port"));
    }

    /// Replaces the configuration, which takes effect at the next start.
    pub fn configure(&mut self, config: &str, tls: Option<&Tls>) {
        let directory = self.directory.path();
        let mut text = format!("jetstream {{ store_dir: {:?} }}\n", directory.join("jetstream"));
        if let Some(tls) = tls {
            let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
            fs::write(&certificate, tls.certificate_pem()).expect("a file");
            fs::write(&key, tls.key_pem()).expect("a file");
            writeln!(text, "tls {{ cert_file: {certificate:?}, key_file: {key:?} }}")
                .expect("a string");
        }
        text.push_str(config);
        text.push('\n');
        self.config = text;
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The program: `NATS_SERVER`, or else the one that `.ci/nats` installs.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("NATS_SERVER") {
            return path.into();
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/nats");
        let output = Command::new(script).stderr(Stdio::inherit()).output().expect("a script");
        assert!(output.status.success(), "`.ci/nats` does not install nats-server");
        PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim_end())
    })
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "`kill` sends {name}");
}
