//! The harness: a separate workspace for each test, the real binary and the real library, and
//! snapshots under `snapshots/`.

pub(crate) mod case_files;
pub(crate) mod cases;
pub(crate) mod crafted;
pub(crate) mod files;
pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod terminal;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use kitbag::base::ByteSize;
use kitbag::config::TOOLSETS;
use kitbag::{
    Builder, CallContext, Cancellation, Invocation, Kitbag, Listener, LogLevel, NoAnswers, Outcome,
    Places, Progress, ToolboxError,
};
use serde_json::Value;

/// A workspace in a temporary directory, with its own home beside it.
pub(crate) struct Workspace {
    directory: tempfile::TempDir,
    cache: PathBuf,
    /// The toolset settings of the user config.
    toolsets: String,
    /// True if the workspace is trusted without approval.
    is_trusted: bool,
}

/// The result of a run of the binary.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A guest that `build.rs` built together with the built-in ones.
pub(crate) fn guest(name: &str) -> PathBuf {
    Path::new(env!("TEST_GUESTS")).join(format!("kitbag_{name}.wasm"))
}

/// Copies the program, to be run from there.
///
/// `cp` writes it: a process that another test starts meanwhile would briefly inherit this
/// process's descriptor, and the copy could not be executed.
pub(crate) fn copy_binary(to: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_kitbag")).arg(to).status();
    assert!(copied.unwrap().success());
}

/// The root of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The peak resident memory of a process, in MiB.
pub(crate) fn peak_mib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// A field of `/proc/PID/stat`: field 0 is the state, which follows the name of the program in
/// parentheses. `None`: there is no such process.
pub(crate) fn process_stat(process: u32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(field).map(str::to_owned)
}

/// Compares a value with a reviewed file under `snapshots/`, in a directory named after the test
/// file: `tests/mcp/serve/tools.rs` uses `snapshots/mcp/serve/tools`.
macro_rules! snapshot {
    ($name:expr, $content:expr $(,)?) => {{
        let (name, content): (&str, &str) = ($name, $content);
        let (settings, name) = $crate::support::snapshot_settings(file!(), name);
        settings.bind(|| insta::assert_snapshot!(name, content));
    }};
}
pub(crate) use snapshot;

/// The directory of the snapshots of a test file, and the file name of one of them.
pub(crate) fn snapshot_settings(test_file: &str, name: &str) -> (insta::Settings, String) {
    let suite = Path::new(test_file).strip_prefix("tests").unwrap().with_extension("");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(repository().join("snapshots").join(suite));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    (settings, name.replace([':', ',', '\''], "").replace(' ', "-"))
}

impl Workspace {
    /// An empty workspace with an empty configuration. It shares its compiled components with the
    /// other tests, which load the same guests.
    ///
    /// The user config disables every toolset except `learn`, so that a test does not depend on the
    /// set of tools; [`with_toolsets`](Self::with_toolsets) is for tests of the other toolsets.
    pub(crate) fn new() -> Self {
        Self::with_toolsets(&[])
    }

    /// Like [`new`](Self::new), with the built-in tools of these toolsets in their default
    /// configuration. `write` among them lets tools change files.
    pub(crate) fn with_toolsets(on: &[&str]) -> Self {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let off = TOOLSETS.iter().filter(|name| **name != "learn" && !on.contains(name));
        let off: String = off.map(|name| format!("{name} = false\n")).collect();
        // Toolsets that are off by default must be enabled.
        let on = ["write", "memory"].into_iter().filter(|name| on.contains(name));
        let on: String = on.map(|name| format!("{name} = true\n")).collect();
        let toolsets = format!("[toolsets]\n{on}{off}");
        let workspace = Self { directory, cache, toolsets, is_trusted: true };
        fs::create_dir_all(workspace.path(".kitbag")).unwrap();
        fs::create_dir_all(workspace.home()).unwrap();
        workspace.own_config("");
        workspace
    }

    /// Gives calls enough time for a slow machine.
    pub(crate) fn with_time(self) -> Self {
        self.own_config("[limits]\ntime = \"1h\"\n");
        self
    }

    /// Makes the files of the workspace take effect only when trusted, as for a person.
    pub(crate) fn untrusted(mut self) -> Self {
        self.is_trusted = false;
        self
    }

    /// Like [`new`](Self::new), with a separate cache that does not exist yet.
    pub(crate) fn with_own_cache() -> Self {
        let mut workspace = Self::new();
        workspace.use_own_cache();
        workspace
    }

    /// Uses a separate cache from now on, which does not exist yet.
    pub(crate) fn use_own_cache(&mut self) {
        self.cache = self.directory.path().join("cache");
    }

    /// Like [`new`](Self::new), with the tool `probe` under these tables.
    pub(crate) fn with_probe(tables: &str) -> Self {
        let workspace = Self::new();
        workspace.config(&probe(tables));
        workspace
    }

    /// Sets the modification time of all files back. Otherwise a server that starts now would treat
    /// them as possibly changed since its start.
    pub(crate) fn date_back(&self) {
        let before = SystemTime::now() - Duration::from_secs(60);
        let mut paths = vec![self.root(), self.home()];
        while let Some(path) = paths.pop() {
            if path.is_dir() {
                paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            fs::File::open(path).unwrap().set_modified(before).unwrap();
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// The directory that contains the workspace; its other files are outside the workspace.
    pub(crate) fn outside(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    /// The only entry of the cache.
    pub(crate) fn cached(&self) -> PathBuf {
        let paths = fs::read_dir(&self.cache).unwrap().map(|entry| entry.unwrap().path());
        let mut entries = paths.filter(|path| path.extension().is_some_and(|it| it == "kitbag"));
        let entry = entries.next().unwrap();
        assert_eq!(entries.next(), None);
        entry
    }

    /// Removes the only entry of the cache, and claims it like a process that compiles it again.
    /// Dropping the claim has the same effect as the end of that process.
    pub(crate) fn claim(&self) -> fs::File {
        let entry = self.cached();
        fs::remove_file(&entry).unwrap();
        let name = format!(".lock-{}", entry.file_stem().unwrap().to_str().unwrap());
        let claim = fs::File::create(self.cache.join(name)).unwrap();
        claim.lock().unwrap();
        claim
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    /// Writes a file of the workspace, and creates its parent directories.
    pub(crate) fn file(&self, relative: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes the configuration of the workspace atomically, so that a server never reads half of
    /// it.
    pub(crate) fn config(&self, text: &str) {
        let written = self.file(".kitbag/config.new", text);
        fs::rename(written, self.path(".kitbag/config.toml")).unwrap();
    }

    /// Writes the user config, followed by the toolset settings.
    pub(crate) fn own_config(&self, text: &str) {
        let file = self.own_config_file();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        fs::write(file, format!("{text}{end}{}", self.toolsets)).unwrap();
    }

    /// Adds tables to the user config.
    pub(crate) fn add_to_own_config(&self, text: &str) {
        let own = fs::read_to_string(self.own_config_file()).unwrap();
        fs::write(self.own_config_file(), format!("{own}{text}")).unwrap();
    }

    /// Removes the user config and its directory.
    pub(crate) fn remove_own_config(&self) {
        fs::remove_dir_all(self.home().join(".config")).unwrap();
    }

    /// The path of the user config.
    pub(crate) fn own_config_file(&self) -> PathBuf {
        self.home().join(".config/kitbag/config.toml")
    }

    /// The enabled tools in the output of `kitbag list --json`.
    pub(crate) fn listed(&self) -> Vec<Value> {
        let listed = self.run(&["list", "--json"]).json();
        let tools = listed.as_array().unwrap().iter();
        tools.filter(|tool| tool["disabled"].is_null()).cloned().collect()
    }

    /// Runs the binary in the workspace.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, "", &[])
    }

    /// Runs commands and returns their output in order, as in a snapshot.
    pub(crate) fn session(&self, commands: &[&[&str]]) -> String {
        let show = |command: &&[&str]| {
            format!("$ kitbag {}\n{}\n", command.join(" "), self.run(command).shown())
        };
        commands.iter().map(show).collect()
    }

    /// Runs the binary with this standard input and these variables.
    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &str, env: &[(&str, &str)]) -> Run {
        let mut command = self.command();
        command.args(arguments).envs(env.iter().copied());
        self.finish(command, stdin)
    }

    /// Runs a command with this standard input to its end.
    pub(crate) fn finish(&self, mut command: Command, stdin: &str) -> Run {
        use std::io::Write;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // A process that does not read its input may end before the input is written.
        let _ = input.write_all(stdin.as_bytes());
        drop(input);
        self.finished(child.wait_with_output().unwrap())
    }

    fn finished(&self, output: Output) -> Run {
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: self.redact(&String::from_utf8_lossy(&output.stdout)),
            stderr: self.redact(&String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// Runs the binary, and ends it when it exceeds this limit for private writable memory.
    pub(crate) fn run_within(&self, data: ByteSize, arguments: &[&str]) -> Run {
        self.run_limited(&format!("-d {}", data.as_u64() >> 10), arguments)
    }

    /// Runs the binary with this limit of the shell's `ulimit`.
    pub(crate) fn run_limited(&self, limit: &str, arguments: &[&str]) -> Run {
        let limited = format!("ulimit {limit} && exec \"$0\" \"$@\"");
        let binary = self.command();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &limited]).arg(binary.get_program()).args(arguments);
        command.current_dir(self.root()).env_clear();
        command.envs(binary.get_envs().filter_map(|(name, value)| Some((name, value?))));
        self.finished(command.stdin(Stdio::null()).output().unwrap())
    }

    /// The binary in the workspace, with only the home and the cache of the test in its
    /// environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kitbag"));
        command
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.home())
            .env("KITBAG_CACHE_DIR", &self.cache);
        if self.is_trusted {
            command.env("KITBAG_TRUST_WORKSPACE", "1");
        }
        command
    }

    /// The library on the same workspace.
    pub(crate) fn kitbag(&self) -> Kitbag {
        self.builder().build().unwrap()
    }

    /// A builder for the library on the same workspace.
    pub(crate) fn builder(&self) -> Builder {
        let places = Places {
            cache: Some(self.cache.clone()),
            user_file: Some(self.own_config_file()),
            ..Places::default()
        };
        let builder = Kitbag::builder().workspace(self.root()).places(places);
        if self.is_trusted { builder.trust_workspace(true) } else { builder }
    }

    /// The library on the same workspace, and a listener that records the reports of its tools.
    pub(crate) fn kitbag_with_ears(&self) -> (Kitbag, Arc<Heard>) {
        let heard = Arc::<Heard>::default();
        let builder = self.builder();
        (builder.listener(Arc::<Heard>::clone(&heard)).build().unwrap(), heard)
    }

    /// Calls a tool in the library and returns the result in one sentence.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> String {
        let call = self.kitbag().call_in_test(tool, arguments);
        self.redact(&call)
    }

    /// Replaces the directories of this workspace by names.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (path, name) in self.directories() {
            text = text.replace(&*path.to_string_lossy(), name);
            if let Ok(real) = path.canonicalize() {
                text = text.replace(&*real.to_string_lossy(), name);
            }
        }
        text
    }

    /// Replaces the names of [`redact`](Self::redact) by directories.
    pub(crate) fn expand(&self, text: &str) -> String {
        let names = self.directories().into_iter();
        names
            .fold(text.to_owned(), |text, (path, name)| text.replace(name, &path.to_string_lossy()))
    }

    fn directories(&self) -> [(PathBuf, &'static str); 5] {
        [
            (self.cache.clone(), "<cache>"),
            (self.root(), "<workspace>"),
            (self.home(), "<home>"),
            (self.directory.path().to_owned(), "<outside>"),
            (PathBuf::from(env!("TEST_GUESTS")), "<guests>"),
        ]
    }
}

/// The table of the tool `probe`, with further tables after it.
pub(crate) fn probe(tables: &str) -> String {
    format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {:?}\ndescription = \"tries things\"\n{tables}",
        guest("probe"),
    )
}

/// Calls for tests, which are not asynchronous.
pub(crate) trait CallInTest {
    fn call_in_test(&self, tool: &str, arguments: Value) -> String;

    /// Calls on this thread; questions are not answered.
    fn call_blocking(
        &self,
        tool: &str,
        arguments: Value,
        cancellation: &Cancellation,
    ) -> Result<Outcome, ToolboxError>;
}

impl CallInTest for Kitbag {
    fn call_in_test(&self, tool: &str, arguments: Value) -> String {
        match block_on(self.call(tool, arguments)) {
            Ok(Outcome::Success(content)) => content,
            Ok(Outcome::Error(error)) => format!("error: {}", error.message),
            Ok(Outcome::NeedsInput(question)) => format!("question: {}", question.text),
            Err(error) => format!("failed: {error}"),
        }
    }

    fn call_blocking(
        &self,
        tool: &str,
        arguments: Value,
        cancellation: &Cancellation,
    ) -> Result<Outcome, ToolboxError> {
        let invocation = Invocation::tool(tool, arguments);
        let context = CallContext::default().with_cancellation(cancellation.clone());
        let ended = self.toolbox().call_blocking(invocation, context, &mut NoAnswers)?;
        let Ok(completion) = ended.completion();
        Ok(completion.result?)
    }
}

/// A listener that records log messages and progress.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) logs: Mutex<Vec<(LogLevel, String)>>,
    pub(crate) progress: Mutex<Vec<Progress>>,
}

impl Heard {
    /// Takes the messages and progress since the last call.
    pub(crate) fn take(&self) -> (Vec<(LogLevel, String)>, Vec<Progress>) {
        let logs = std::mem::take(&mut *self.logs.lock().unwrap());
        (logs, std::mem::take(&mut *self.progress.lock().unwrap()))
    }
}

impl Listener for Heard {
    fn log(&self, level: LogLevel, message: &str) {
        self.logs.lock().unwrap().push((level, message.to_owned()));
    }

    fn progress(&self, progress: &Progress) {
        self.progress.lock().unwrap().push(progress.clone());
    }
}

/// Waits for a future; the library needs no particular executor.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

impl Run {
    /// The complete output, as in a snapshot.
    pub(crate) fn shown(&self) -> String {
        let mut text = format!("exit code: {}\n", self.code);
        for (name, content) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !content.is_empty() {
                text.push_str(&format!("--- {name}\n{content}"));
                if !content.ends_with('\n') {
                    text.push('\n');
                }
            }
        }
        text
    }

    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert_eq!(self.code, 0, "{}", self.shown());
        self.stdout
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.shown()))
    }
}

/// Runs a program of this repository with cargo, and returns its standard output.
#[track_caller]
pub(crate) fn cargo_run(arguments: &[&str]) -> String {
    cargo_run_with(arguments, &[])
}

/// Like [`cargo_run`], with these variables.
#[track_caller]
pub(crate) fn cargo_run_with(arguments: &[&str], env: &[(&str, &str)]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    // Remove the variables that cargo has set for this test. A build script that reads them would
    // run again, and all dependent crates would be compiled again, both here and by the next cargo.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|it| name.starts_with(it)) {
            command.env_remove(&*name);
        }
    }
    command.env_remove("OUT_DIR");
    let output = command
        .args(["run", "--quiet", "--offline"])
        .args(arguments)
        .envs(env.iter().copied())
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Polls until something has happened.
#[track_caller]
pub(crate) fn until(has_happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !has_happened() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}
