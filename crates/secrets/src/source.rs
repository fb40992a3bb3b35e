//! Where a value comes from.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use kitbag_contract::text::shown;
use kitbag_policy::{SecretName, SecretSource};
use zeroize::Zeroizing;

use crate::value::{SecretValue, ValueError};

/// Gives the value of a secret, at the moment of its use.
pub trait ReadSecret: Send + Sync {
    /// The value of the secret of this name.
    ///
    /// # Errors
    ///
    /// [`ReadError`] says why there is none, and shows nothing of it.
    fn read(&self, name: &SecretName) -> Result<SecretValue, ReadError>;
}

/// Reads secrets where the user's file says they are.
pub struct Sources {
    /// The source of each secret.
    pub sources: BTreeMap<SecretName, SecretSource>,
    /// What reads the store. `None`: there is no store.
    pub store: Option<Box<dyn ReadSecret>>,
    /// How long a command may take.
    pub command_time: Duration,
}

/// How long a command may take by default: long enough to unlock something.
pub const COMMAND_TIME: Duration = Duration::from_secs(60);

/// Why a value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is none.
    #[error("it has no value; set one with `kitbag secret set`")]
    Missing,
    /// The variable is not set.
    #[error("the variable `{}` is not set", shown(name))]
    NoVariable {
        /// The variable.
        name: String,
    },
    /// The command could not be started.
    #[error("`{}` cannot be started: {reason}", shown(program))]
    NotStarted {
        /// The program.
        program: String,
        /// Why not.
        reason: String,
    },
    /// The command failed.
    #[error("`{}` failed ({status}); run it by itself to see why", shown(program))]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
    },
    /// The command did not end in time.
    #[error("`{}` did not end within {} s", shown(program), time.as_secs())]
    TookTooLong {
        /// The program.
        program: String,
        /// How long it had.
        time: Duration,
    },
    /// What was read is no value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The store cannot be read.
    #[error("{reason}")]
    Store {
        /// Why not.
        reason: String,
    },
}

impl ReadSecret for Sources {
    fn read(&self, name: &SecretName) -> Result<SecretValue, ReadError> {
        match self.sources.get(name) {
            None => Err(ReadError::Missing),
            Some(SecretSource::Store) => self.store.as_ref().ok_or(ReadError::Missing)?.read(name),
            Some(SecretSource::Variable(name)) => read_variable(name),
            Some(SecretSource::Command(command)) => read_command(command, self.command_time),
        }
    }
}

/// Reads a value from a variable.
///
/// # Errors
///
/// [`ReadError`], where it is not set, or no value.
pub fn read_variable(name: &str) -> Result<SecretValue, ReadError> {
    use std::os::unix::ffi::OsStringExt;
    let missing = || ReadError::NoVariable { name: name.to_owned() };
    let value = std::env::var_os(name).ok_or_else(missing)?;
    Ok(SecretValue::new(value.into_vec())?)
}

/// Reads a value from the standard output of a command. It gets no standard input, and what
/// it says on standard error is left out, since that may show the value.
///
/// # Errors
///
/// [`ReadError`], where it fails, takes too long, or writes no value.
pub fn read_command(command: &[String], time: Duration) -> Result<SecretValue, ReadError> {
    let program = command.first().cloned().unwrap_or_default();
    // Not where kitbag was started, which may be a workspace: some programs read its files.
    let directory = std::env::home_dir().filter(|home| home.is_dir());
    let mut child = Command::new(&program)
        .args(command.iter().skip(1))
        .current_dir(directory.as_deref().unwrap_or(Path::new("/")))
        .env_remove("KITBAG_PASSPHRASE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| ReadError::NotStarted {
            program: program.clone(),
            reason: error.to_string(),
        })?;
    let deadline = Instant::now() + time;
    let took_too_long = |child: &mut Child| {
        end(child);
        Err(ReadError::TookTooLong { program: program.clone(), time })
    };
    let mut output = child.stdout.take().ok_or(ReadError::Missing)?;
    let (sender, receiver) = mpsc::channel();
    // What it started may hold its output open, so that this thread outlives it.
    thread::spawn(move || {
        // A line end, and one byte more than fits.
        let most = SecretValue::MOST_BYTES as u64 + 3;
        let mut bytes = Zeroizing::new(Vec::with_capacity(most as usize));
        let read = output.by_ref().take(most).read_to_end(&mut bytes);
        // The reader may have gone.
        let _ = sender.send(read.map(|_| bytes));
    });
    let bytes = match receiver.recv_timeout(time) {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => {
            end(&mut child);
            return Err(ReadError::Failed { program, status: error.to_string() });
        }
        Err(_) => return took_too_long(&mut child),
    };
    if bytes.len() as u64 > SecretValue::MOST_BYTES as u64 + 2 {
        // It may write on without end.
        end(&mut child);
        return Err(ValueError::TooLong.into());
    }
    let mut pause = Duration::from_micros(100);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() >= deadline => return took_too_long(&mut child),
            // Its output has ended, so that it is about to end as well.
            Ok(None) => thread::sleep(pause),
            Err(error) => return Err(ReadError::Failed { program, status: error.to_string() }),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    if !status.success() {
        return Err(ReadError::Failed { program, status: status.to_string() });
    }
    Ok(SecretValue::new(bytes.to_vec())?)
}

/// Ends a command that is of no use any more.
fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, time: Duration) -> Result<String, ReadError> {
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        read_command(&command, time).map(|value| value.reveal().to_owned())
    }

    #[test]
    fn a_command_gives_what_it_writes() {
        let minute = Duration::from_secs(60);
        assert_eq!(shell("echo a-long-value; echo noise >&2", minute).unwrap(), "a-long-value");
        // It has no standard input to wait for.
        assert_eq!(shell("cat; echo a-long-value", minute).unwrap(), "a-long-value");
        let short = ReadError::Value(ValueError::TooShort { bytes: 3 });
        assert_eq!(shell("echo abc", minute), Err(short));
        let endless = ReadError::Value(ValueError::TooLong);
        assert_eq!(shell("yes", minute), Err(endless));
        let failed = shell("echo a-long-value; exit 3", minute).unwrap_err().to_string();
        assert_eq!(failed, "`/bin/sh` failed (exit status: 3); run it by itself to see why");
        let absent = read_command(&["/nowhere/at-all".to_owned()], minute).map(|_| ());
        let reason = "No such file or directory (os error 2)".to_owned();
        let program = "/nowhere/at-all".to_owned();
        assert_eq!(absent, Err(ReadError::NotStarted { program, reason }));
    }

    #[test]
    fn a_command_that_goes_on_is_ended() {
        let time = Duration::from_millis(50);
        let program = "/bin/sh".to_owned();
        let expected = ReadError::TookTooLong { program, time };
        assert_eq!(shell("exec sleep 600", time), Err(expected.clone()));
        // One that has written its value and does not end has not succeeded.
        assert_eq!(shell("echo a-long-value; exec sleep 600 >&-", time), Err(expected));
    }

    #[test]
    fn each_secret_has_its_source() {
        let name = |text: &str| SecretName::new(text).unwrap();
        let command = ["/bin/echo", "of-the-command"].map(str::to_owned).to_vec();
        let sources = [
            (name("command"), SecretSource::Command(command)),
            (name("variable"), SecretSource::Variable("CARGO_MANIFEST_DIR".into())),
            (name("unset"), SecretSource::Variable("NO_SUCH_VARIABLE".into())),
            (name("store"), SecretSource::Store),
        ];
        let sources = Sources { sources: sources.into(), store: None, command_time: COMMAND_TIME };
        let read = |text: &str| {
            let value = sources.read(&name(text));
            value.map_or_else(|error| error.to_string(), |value| value.reveal().to_owned())
        };
        assert_eq!(read("command"), "of-the-command");
        assert_eq!(read("variable"), env!("CARGO_MANIFEST_DIR"));
        assert_eq!(read("unset"), "the variable `NO_SUCH_VARIABLE` is not set");
        let missing = "it has no value; set one with `kitbag secret set`";
        assert_eq!(read("store"), missing);
        assert_eq!(read("unknown"), missing);
    }
}
