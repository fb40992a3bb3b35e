//! A process that compiles one component.
//!
//! The component determines the cost of compiling it. In this process, the cost is limited by
//! memory and time limits of the kernel, and by the end of the waiting process. The component is
//! sent through standard input, and a frame is returned through standard output: a byte for its
//! kind, its length, and its content. This is not a sandbox: the output is executed.

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
use crate::model::Model;
use crate::sys::{
    ExitCause, ProcessLimits, close_inherited, exit_cause, limit_this_process, lower_priority,
    set_nonblocking, set_process_name, wait_for_pipes,
};
use crate::wait::Wait;

/// The first argument of a compiling process.
pub const COMPILE_COMMAND: &str = "__compile";

/// The addresses that glibc's allocator reserves for a thread without using them.
const ADDRESSES_PER_THREAD: u64 = 128 << 20;

/// Maximum size of an accepted artifact: four times the largest component.
const ARTIFACT_BYTES: u64 = 4 * COMPONENT_BYTES.as_u64();

/// Maximum number of bytes of the process's standard error in a message.
const REASON_BYTES: u64 = 4 << 10;

/// The length of a frame header.
const HEAD_BYTES: usize = 9;

/// The last argument.
const LOW_PRIORITY: &str = "low";
const NORMAL_PRIORITY: &str = "normal";

/// The niceness of a low-priority process relative to its parent: small, since a call may start to
/// wait for it.
const NICENESS: i32 = 5;

/// The kind of a frame.
const ARTIFACT: u8 = 0;
const REFUSED: u8 = 1;
const NO_ENGINE: u8 = 2;

/// Compiles a component in a separate process.
///
/// Returns the component if the program cannot be started.
pub(super) fn compile(
    program: &Path,
    wait: &Wait<'_>,
    content: Vec<u8>,
    (metering, model): (Metering, Model),
    share: Share,
) -> Result<Result<CompiledCode, LoadError>, Vec<u8>> {
    match start(program, (metering, model), share, wait) {
        Ok(child) => Ok(Worker::new(child, content, model, share.memory)
            .map_err(|error| broke_off(wait, error.to_string()))
            .and_then(|worker| worker.finish(wait))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            Err(content)
        }
        Err(error) => Ok(Err(broke_off(wait, error.to_string()))),
    }
}

fn start(
    program: &Path,
    (metering, model): (Metering, Model),
    share: Share,
    wait: &Wait<'_>,
) -> io::Result<Child> {
    let mut command = Command::new(program);
    set_process_name(&mut command, "kitbag");
    command
        .arg(COMPILE_COMMAND)
        .arg(build())
        .arg(engine_name(metering, model))
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

/// Returns a string that identifies builds with different artifacts.
fn build() -> String {
    format!("{}; {SETTINGS}", env!("CARGO_PKG_VERSION"))
}

/// The process, which is killed when this is dropped.
struct Worker {
    child: Child,
    /// `None` once the whole component is written.
    input: Option<ChildStdin>,
    output: ChildStdout,
    content: Vec<u8>,
    model: Model,
    written: usize,
    received: Vec<u8>,
    /// The memory limit.
    memory: ByteSize,
}

impl Worker {
    fn new(mut child: Child, content: Vec<u8>, model: Model, memory: ByteSize) -> io::Result<Self> {
        let ends = child.stdin.take().zip(child.stdout.take());
        let (input, output) = ends.expect("both are pipes");
        let received = Vec::new();
        let worker = Self {
            child,
            input: Some(input),
            output,
            content,
            model,
            written: 0,
            received,
            memory,
        };
        set_nonblocking(&worker.output)?;
        worker.input.as_ref().map_or(Ok(()), set_nonblocking)?;
        Ok(worker)
    }

    /// Waits for the result. The process has ended when this returns.
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
                    ARTIFACT => Ok(CompiledCode::new(received, self.model)),
                    REFUSED => invalid(InvalidComponent::Compile(text())),
                    _ => Err(LoadError::Engine(text())),
                }
            }
            Some(Ok(false)) => {
                let ended = wait.poll(wait.limit(), || self.child.try_wait().transpose());
                let message = self.message();
                match ended {
                    Some(Ok(status)) => Err(died(wait, status, &message, self.memory)),
                    _ => Err(broke_off(wait, "it did not end".into())),
                }
            }
            Some(Err(error)) => Err(broke_off(wait, error.to_string())),
            None if wait.is_cancelled() => Err(LoadError::Cancelled),
            None => invalid(InvalidComponent::TooSlow { limit: wait.limit() }),
        }
    }

    /// Writes and reads without blocking, and waits at most one slice. `true` when the frame is
    /// complete, `false` when it never will be.
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
                // The process has ended; its output has the reason.
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
                        return Err(io::Error::other(format!("its output exceeds {limit}")));
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

    /// Returns its standard error after it has ended.
    fn message(&mut self) -> String {
        let mut message = Vec::new();
        if let Some(stderr) = self.child.stderr.take()
            && set_nonblocking(&stderr).is_ok()
        {
            // Reads what is available; further output does not matter.
            let _ = stderr.take(REASON_BYTES).read_to_end(&mut message);
        }
        String::from_utf8_lossy(&message).trim().to_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Converts the end of the process without a frame to an error.
fn died(wait: &Wait<'_>, status: ExitStatus, message: &str, memory: ByteSize) -> LoadError {
    let invalid = |problem| LoadError::invalid(wait.path(), problem);
    match exit_cause(status) {
        Some(ExitCause::OutOfTime) => invalid(InvalidComponent::TooSlow { limit: wait.limit() }),
        // The message of Rust when memory is exhausted.
        Some(ExitCause::Aborted) if message.contains("memory allocation of") => {
            invalid(InvalidComponent::TooMuchMemory { limit: memory })
        }
        _ if message.is_empty() => broke_off(wait, status.to_string()),
        _ => broke_off(wait, format!("{status}: {}", kitbag_base::text::shown(message))),
    }
}

/// The engines, by their names in the arguments.
const ENGINES: [(&str, Metering, Model); 4] = [
    ("plain", Metering::Off, Model::Basic),
    ("fuel", Metering::Fuel, Model::Basic),
    ("async", Metering::Off, Model::Async),
    ("async-fuel", Metering::Fuel, Model::Async),
];

fn engine_name(metering: Metering, model: Model) -> &'static str {
    let mut engines = ENGINES.iter();
    let engine = engines.find(|(_, of, for_model)| (*of, *for_model) == (metering, model));
    engine.expect("the table is complete").0
}

/// Runs as the compiling process: reads a component from standard input and writes the result to
/// standard output.
///
/// A program that names itself in `HostOptions::compiler` must call this before anything else if
/// its first argument is [`COMPILE_COMMAND`], with the remaining arguments.
///
/// # Errors
///
/// The reason why no result was written.
pub fn compile_worker(arguments: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let arguments: Vec<_> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let &[caller, engine, threads, memory, seconds, parent, priority] = &*arguments else {
        return Err(
            "this is an internal command, which kitbag starts to compile a component".into()
        );
    };
    if caller != build() {
        return Err(format!("this is kitbag {}, but the caller is `{caller}`", build()));
    }
    let numbers = (parent.parse(), threads.parse(), memory.parse(), seconds.parse());
    let (Ok(parent), Ok(threads), Ok(memory), Ok(seconds)) = numbers else {
        return Err("invalid arguments".into());
    };
    if io::stdin().is_terminal() {
        return Err("standard input is a terminal, but must be a component".into());
    }
    let known = ENGINES.iter().find(|(name, ..)| *name == engine);
    let Some(&(_, metering, model)) = known else {
        return Err(format!("invalid engine `{engine}`"));
    };
    match priority {
        LOW_PRIORITY => lower_priority(NICENESS),
        NORMAL_PRIORITY => {}
        other => return Err(format!("invalid priority `{other}`")),
    }
    close_inherited();
    limit_this_process(parent, limits(threads, memory, seconds))
        .map_err(|error| format!("the limits cannot be set: {error}"))?;
    let mut content = Vec::new();
    let mut input = io::stdin().lock().take(COMPONENT_BYTES.as_u64() + 1);
    input.read_to_end(&mut content).map_err(|error| error.to_string())?;
    let compiled =
        catch_unwind(AssertUnwindSafe(|| artifact(&content, (metering, model), None, threads)));
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

/// Returns the limits of this process.
fn limits(threads: usize, memory: u64, seconds: u64) -> ProcessLimits {
    let threads = threads as u64;
    let reserved = threads.saturating_mul(ADDRESSES_PER_THREAD + STACK_BYTES as u64);
    let (addresses, seconds) = (memory.saturating_add(reserved), seconds.saturating_mul(threads));
    ProcessLimits { memory, addresses, seconds }
}
