//! Files around a server, and runs of attacks.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kitbag_policy::server::{Confinement, ServerProcess, ServerValue, ServerVariable};
use kitbag_servers::process::{self, RunningServer, Start, StartError};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use crate::attacks;

/// A home directory with a key, kitbag's state, and directories for the server.
pub(crate) struct World {
    root: TempDir,
    pub(crate) environment: HashMap<OsString, OsString>,
}

/// How a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Unconfined,
    Namespaces,
    NoNamespaces,
}

pub(crate) const CONFINED: [Mode; 2] = [Mode::Namespaces, Mode::NoNamespaces];

impl World {
    pub(crate) fn new() -> Self {
        if let Err(reason) = process::support().confinement() {
            panic!("these tests need a kernel that can confine servers: {reason}");
        }
        if let Err(reason) = &process::support().namespaces {
            let allowed = std::env::var_os("KITBAG_TEST_WITHOUT_NAMESPACES").is_some();
            assert!(
                allowed,
                "namespaces are not available: {reason}; set KITBAG_TEST_WITHOUT_NAMESPACES=1 to \
                 test without them"
            );
        }
        let root = tempfile::tempdir().unwrap();
        for directory in ["home/.ssh", "state", "read", "write/fixed", "other", "temporary"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        for file in
            ["home/.ssh/id_rsa", "state/trust", "read/page", "write/fixed/config", "other/x"]
        {
            fs::write(root.path().join(file), "content").unwrap();
        }
        let mut environment: HashMap<_, _> =
            std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LANG").collect();
        environment.insert("HOME".into(), root.path().join("home").into());
        environment.insert("TOKEN_OF_KITBAG".into(), "hunter2".into());
        Self { root, environment }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Returns the path as text.
    pub(crate) fn at(&self, path: &str) -> String {
        self.path(path).to_str().unwrap().to_owned()
    }

    pub(crate) fn confinement(&self) -> Confinement {
        Confinement {
            read: vec![self.path("read")],
            write: vec![self.path("write")],
            ..Confinement::default()
        }
    }

    pub(crate) fn server(&self, attack: &str, confine: Option<Confinement>) -> ServerProcess {
        let variable = |name: &str, value: &str| ServerVariable {
            name: name.parse().unwrap(),
            value: ServerValue::Text(value.to_owned()),
        };
        let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        let arguments = ["attacker", "--exact", "--nocapture", "--test-threads=1"];
        ServerProcess {
            command: [program].into_iter().chain(arguments.map(str::to_owned)).collect(),
            directory: self.path("write"),
            environment: vec![
                variable(attacks::VARIABLE, attack),
                // Finds the processes of this world.
                variable("WORLD", &self.at("")),
            ],
            confine,
        }
    }

    pub(crate) fn start(
        &self,
        server: &ServerProcess,
        mode: Mode,
    ) -> Result<RunningServer, StartError> {
        let (hidden, fixed) = ([self.path("state")], [self.path("write/fixed")]);
        // Without namespaces nothing below `write` can be protected.
        let fixed = if mode == Mode::NoNamespaces { &[][..] } else { &fixed[..] };
        process::start(
            server,
            &Start {
                name: "test",
                secrets: &[],
                environment: &self.environment,
                temporary: &self.path("temporary"),
                hidden: &hidden,
                fixed,
                namespaces: mode == Mode::Namespaces,
            },
        )
    }

    /// Performs an attack, and returns its result.
    pub(crate) fn run(&self, mode: Mode, attack: &str) -> Result<String, String> {
        let confine = (mode != Mode::Unconfined).then(|| self.confinement());
        self.run_confined(mode, confine, attack)
    }

    pub(crate) fn run_confined(
        &self,
        mode: Mode,
        confine: Option<Confinement>,
        attack: &str,
    ) -> Result<String, String> {
        let server = self.server(attack, confine);
        let output = in_runtime(async {
            let mut running = self.start(&server, mode).unwrap();
            drop(running.stdin);
            let mut output = String::new();
            running.stdout.read_to_string(&mut output).await.unwrap();
            let ended = running.process.ended().await;
            format!("{output}\n{ended}\n{}", running.process.last_errors())
        });
        let line = output.lines().find_map(|line| line.split_once("RESULT "));
        let (_, line) = line.unwrap_or_else(|| panic!("{mode:?} {attack}: no result in {output}"));
        match line.split_once(' ') {
            Some(("ok", text)) => Ok(text.to_owned()),
            Some(("error", text)) => Err(text.to_owned()),
            _ => panic!("{line}"),
        }
    }

    /// Performs an attack that must succeed without confinement and fail with it.
    pub(crate) fn assert_prevented(&self, attack: &str) {
        if let Err(error) = self.run(Mode::Unconfined, attack) {
            panic!("{attack} fails without confinement: {error}");
        }
        for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
            if let Ok(result) = self.run(mode, attack) {
                panic!("{attack} succeeds with {mode:?}: {result}");
            }
        }
    }

    /// Performs actions that must succeed in all modes.
    pub(crate) fn assert_possible(&self, actions: &[String]) {
        for mode in CONFINED.into_iter().filter(|mode| is_available(*mode)) {
            for action in actions {
                if let Err(error) = self.run(mode, action) {
                    panic!("{action} fails with {mode:?}: {error}");
                }
            }
        }
    }

    /// Returns the processes of servers of this world.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mark = format!("WORLD={}", self.at(""));
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|it| it == mark.as_bytes()) {
                found.push(entry.file_name().to_str().unwrap().to_owned());
            }
        }
        found
    }

    /// Waits until a condition holds.
    pub(crate) fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        for _ in 0..1_000 {
            if condition(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{what}: {:?}", self.processes());
    }
}

pub(crate) fn is_available(mode: Mode) -> bool {
    mode != Mode::Namespaces || process::support().namespaces.is_ok()
}

pub(crate) fn in_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long")
    })
}

pub(crate) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
