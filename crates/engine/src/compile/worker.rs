//! A process that compiles one component and ends.
//!
//! Compiling takes what a component makes it take: here that ends at limits of
//! memory and time that the kernel enforces, and with the process that waits for it. The
//! component goes in through standard input, and a frame comes back through standard
//! output: a byte that says what it holds, its length, and that many bytes. This is
//! not a sandbox: its output is executed.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use kitbag_base::ByteSize;

use super::code::CompiledCode;
use super::in_process::{STACK_BYTES, artifact};
use super::share::Share;
use crate::engines::SETTINGS;
use crate::limits::COMPONENT_BYTES;
use crate::load_error::{InvalidComponent, LoadError};
use crate::metering::Metering;
use crate::sys::{
    ExitCause, ProcessLimits, close_inherited, exit_cause, limit_this_process, lower_priority,
    set_nonblocking, set_process_name, wait_for_pipes,
};
use crate::wait::Wait;

/// The first argument of a process that compiles.
pub const COMPILE_COMMAND: &str = "__compile";

/// Addresses that a thread reserves without using them: those of glibc's allocator.
const ADDRESSES_PER_THREAD: u64 = 128 << 20;

/// The longest artifact that is taken: four times the largest component.
const ARTIFACT_BYTES: u64 = 4 * COMPONENT_BYTES.as_u64();

/// How much is repeated of what the process said against itself.
const REASON_BYTES: u64 = 4 << 10;

/// The length of a frame's head.
const HEAD_BYTES: usize = 9;

/// The last argument.
const LOW_PRIORITY: &str = "low";
const NORMAL_PRIORITY: &str = "normal";

/// What a low priority adds to the niceness of the process that waits: little, since a call
/// may come that waits for it, too.
const NICENESS: i32 = 5;

/// What a frame holds.
const ARTIFACT: u8 = 0;
const REFUSED: u8 = 1;
const NO_ENGINE: u8 = 2;

/// Compiles a component in a process of its own.
///
/// Gives the component back where the program cannot be started at all.
pub(super) fn compile(
    program: &Path,
    wait: &Wait<'_>,
    content: Vec<u8>,
    metering: Metering,
    share: Share,
) -> Result<Result<CompiledCode, LoadError>, Vec<u8>> {
    match start(program, metering, share, wait) {
        Ok(child) => Ok(Worker::new(child, content, share.memory)
            .map_err(|error| broke_off(wait, error.to_string()))
            .and_then(|worker| worker.finish(wait))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            Err(content)
        }
        Err(error) => Ok(Err(broke_off(wait, error.to_string()))),
    }
}

fn start(program: &Path, metering: Metering, share: Share, wait: &Wait<'_>) -> io::Result<Child> {
    let mut command = Command::new(program);
    set_process_name(&mut command, "kitbag");
    command
        .arg(COMPILE_COMMAND)
        .arg(build())
        .arg(metering_name(metering))
        .arg(share.threads.to_string())
        .arg(share.memory.as_u64().to_string())
        .arg(wait.limit().as_millis().div_ceil(1000).to_string())
        .arg(std::process::id().to_string())
        .arg(if wait.is_background() { LOW_PRIORITY } else { NORMAL_PRIORITY })
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn broke_off(wait: &Wait<'_>, reason: String) -> LoadError {
    LoadError::Compiler { path: wait.path().to_owned(), reason }
}

/// What tells two builds apart whose artifacts differ.
fn build() -> String {
    format!("{}; {SETTINGS}", env!("CARGO_PKG_VERSION"))
}

/// The process, until it is dropped.
struct Worker {
    child: Child,
    /// Until all of the component is written.
    input: Option<ChildStdin>,
    output: ChildStdout,
    content: Vec<u8>,
    written: usize,
    received: Vec<u8>,
    /// What it may take.
    memory: ByteSize,
}

impl Worker {
    fn new(mut child: Child, content: Vec<u8>, memory: ByteSize) -> io::Result<Self> {
        let ends = child.stdin.take().zip(child.stdout.take());
        let (input, output) = ends.expect("both are pipes");
        let received = Vec::new();
        let worker =
            Self { child, input: Some(input), output, content, written: 0, received, memory };
        set_nonblocking(&worker.output)?;
        worker.input.as_ref().map_or(Ok(()), set_nonblocking)?;
        Ok(worker)
    }

    /// Waits for what comes of it. Whatever that is, the process has ended then.
    fn finish(mut self, wait: &Wait<'_>) -> Result<CompiledCode, LoadError> {
        let invalid = |problem| Err(LoadError::invalid(wait.path(), problem));
        let done = wait.until(wait.limit(), |slice| self.step(slice).transpose());
        match done {
            Some(Ok(true)) => {
                let kind = self.received[0];
                self.received.drain(..HEAD_BYTES);
                let received = std::mem::take(&mut self.received);
                let text = || String::from_utf8_lossy(&received).into_owned();
                match kind {
                    ARTIFACT => Ok(CompiledCode::new(received)),
                    REFUSED => invalid(InvalidComponent::Compile(text())),
                    _ => Err(LoadError::Engine(text())),
                }
            }
            Some(Ok(false)) => {
                let ended = wait.poll(wait.limit(), || self.child.try_wait().transpose());
                let said = self.said();
                match ended {
                    Some(Ok(status)) => Err(died(wait, status, &said, self.memory)),
                    _ => Err(broke_off(wait, "it does not end".into())),
                }
            }
            Some(Err(error)) => Err(broke_off(wait, error.to_string())),
            None if wait.is_cancelled() => Err(LoadError::Cancelled),
            None => invalid(InvalidComponent::TooSlow { limit: wait.limit() }),
        }
    }

    /// Writes and reads what can be, and waits for that no longer than a slice.
    /// `true` when the frame is whole, `false` when it never will be.
    fn step(&mut self, slice: Duration) -> io::Result<Option<bool>> {
        wait_for_pipes(&self.output, self.input.as_ref(), slice)?;
        self.write()?;
        self.read()
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        while self.written < self.content.len() {
            match input.write(&self.content[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // It has ended; why, its output says.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                Err(error) => return Err(error),
            }
        }
        self.input = None;
        self.content = Vec::new();
        Ok(())
    }

    fn read(&mut self) -> io::Result<Option<bool>> {
        loop {
            let whole = match self.received.first_chunk::<HEAD_BYTES>() {
                None => HEAD_BYTES,
                Some([_, length @ ..]) => {
                    let length = u64::from_le_bytes(*length);
                    let length = usize::try_from(length.min(ARTIFACT_BYTES + 1)).unwrap_or(0);
                    if length as u64 > ARTIFACT_BYTES {
                        let limit = ByteSize::bytes(ARTIFACT_BYTES);
                        return Err(io::Error::other(format!("it made more than {limit}")));
                    }
                    HEAD_BYTES + length
                }
            };
            let missing = whole - self.received.len();
            if missing == 0 {
                return Ok(Some(true));
            }
            self.received.try_reserve_exact(missing)?;
            let mut part = (&mut self.output).take(missing as u64);
            match part.read_to_end(&mut self.received) {
                Ok(0) => return Ok(Some(false)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// What it wrote to standard error, once it has ended.
    fn said(&mut self) -> String {
        let mut said = Vec::new();
        if let Some(stderr) = self.child.stderr.take()
            && set_nonblocking(&stderr).is_ok()
        {
            // What is there is there; that more may come does not matter.
            let _ = stderr.take(REASON_BYTES).read_to_end(&mut said);
        }
        String::from_utf8_lossy(&said).trim().to_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What it means that the process ended without a frame.
fn died(wait: &Wait<'_>, status: ExitStatus, said: &str, memory: ByteSize) -> LoadError {
    let invalid = |problem| LoadError::invalid(wait.path(), problem);
    match exit_cause(status) {
        Some(ExitCause::OutOfTime) => invalid(InvalidComponent::TooSlow { limit: wait.limit() }),
        // Rust's own words where there is no memory left.
        Some(ExitCause::Aborted) if said.contains("memory allocation of") => {
            invalid(InvalidComponent::TooMuchMemory { limit: memory })
        }
        _ if said.is_empty() => broke_off(wait, status.to_string()),
        _ => broke_off(wait, format!("{status}: {}", kitbag_base::text::shown(said))),
    }
}

fn metering_name(metering: Metering) -> &'static str {
    match metering {
        Metering::Off => "plain",
        Metering::Fuel => "fuel",
    }
}

/// Is a process that compiles: reads a component from standard input and writes what
/// comes of it to standard output.
///
/// A program that names itself in `HostOptions::compiler` calls
/// this first of all, where its first argument is [`COMPILE_COMMAND`], with those
/// after it.
///
/// # Errors
///
/// Says why nothing was written.
pub fn compile_worker(arguments: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let arguments: Vec<_> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let &[caller, metering, threads, memory, seconds, parent, priority] = &*arguments else {
        return Err("this is for kitbag itself, which starts it to compile a component".into());
    };
    if caller != build() {
        return Err(format!("this is kitbag {}, and `{caller}` asks", build()));
    }
    let numbers = (parent.parse(), threads.parse(), memory.parse(), seconds.parse());
    let (Ok(parent), Ok(threads), Ok(memory), Ok(seconds)) = numbers else {
        return Err("invalid arguments".into());
    };
    if io::stdin().is_terminal() {
        return Err("the component is read from standard input, which is a terminal".into());
    }
    let metering = match metering {
        "plain" => Metering::Off,
        "fuel" => Metering::Fuel,
        other => return Err(format!("invalid metering `{other}`")),
    };
    match priority {
        LOW_PRIORITY => lower_priority(NICENESS),
        NORMAL_PRIORITY => {}
        other => return Err(format!("invalid priority `{other}`")),
    }
    close_inherited();
    limit_this_process(parent, limits(threads, memory, seconds))
        .map_err(|error| format!("no limits can be set: {error}"))?;
    let mut content = Vec::new();
    let mut input = io::stdin().lock().take(COMPONENT_BYTES.as_u64() + 1);
    input.read_to_end(&mut content).map_err(|error| error.to_string())?;
    let compiled = catch_unwind(AssertUnwindSafe(|| artifact(&content, metering, None, threads)));
    let compiled = compiled
        .unwrap_or_else(|_| Ok(Err(InvalidComponent::Compile("the compiler panicked".into()))));
    let (kind, bytes) = match compiled {
        Ok(Ok(compiled)) => (ARTIFACT, compiled.into_bytes()),
        Ok(Err(InvalidComponent::Compile(reason))) => (REFUSED, reason.into_bytes()),
        Ok(Err(problem)) => (REFUSED, problem.to_string().into_bytes()),
        Err(error) => (NO_ENGINE, error.into_bytes()),
    };
    let mut output = io::stdout().lock();
    let length = (bytes.len() as u64).to_le_bytes();
    let written = output
        .write_all(&[kind])
        .and_then(|()| output.write_all(&length))
        .and_then(|()| output.write_all(&bytes))
        .and_then(|()| output.flush());
    written.map_err(|error| error.to_string())
}

/// What this process may use.
fn limits(threads: usize, memory: u64, seconds: u64) -> ProcessLimits {
    let threads = threads as u64;
    let reserved = threads.saturating_mul(ADDRESSES_PER_THREAD + STACK_BYTES as u64);
    let (addresses, seconds) = (memory.saturating_add(reserved), seconds.saturating_mul(threads));
    ProcessLimits { memory, addresses, seconds }
}
