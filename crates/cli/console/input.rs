//! Files and standard input as arguments: `@FILE` and `@-`.

use std::fs::File;
use std::io::{self, Read};

use kitbag::base::json::{self as strict, JsonBudget};
use kitbag::base::{ARGUMENTS_BYTES, ByteSize};

use crate::error::CliError;

/// Path that selects standard input.
const STDIN: &str = "-";

const STDIN_NAME: &str = "standard input";

/// Reads the files of arguments, up to the maximum total size of arguments.
pub(crate) struct Input {
    left: usize,
    is_stdin_read: bool,
}

pub(crate) struct Content<'a> {
    pub(crate) name: &'a str,
    pub(crate) bytes: Vec<u8>,
}

impl Input {
    pub(crate) fn new() -> Self {
        Self { left: ARGUMENTS_BYTES, is_stdin_read: false }
    }

    /// Reads a file, or standard input, which can be read only once.
    pub(crate) fn read<'a>(&mut self, path: &'a str) -> Result<Content<'a>, CliError> {
        let name = if path == STDIN { STDIN_NAME } else { path };
        let read = match path {
            STDIN if std::mem::replace(&mut self.is_stdin_read, true) => {
                return Err(CliError::Usage(format!("{STDIN_NAME} is used for two arguments")));
            }
            STDIN => self.limited(io::stdin().lock()),
            path => File::open(path).and_then(|file| self.limited(file)),
        };
        let bytes = read.map_err(|source| CliError::Read { path: name.into(), source })?;
        Ok(Content { name, bytes })
    }

    fn limited(&mut self, source: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        source.take(self.left as u64 + 1).read_to_end(&mut bytes)?;
        match self.left.checked_sub(bytes.len()) {
            Some(left) => self.left = left,
            None => {
                let limit = ByteSize::bytes(ARGUMENTS_BYTES as u64);
                return Err(io::Error::other(format!("arguments may have at most {limit}")));
            }
        }
        Ok(bytes)
    }

    /// Replaces `key=@FILE` with the content of the file, and `key:=@FILE` with its JSON. A string
    /// that begins with `@` is written as `@@`.
    pub(crate) fn pair(
        &mut self,
        (key, value): (String, String),
    ) -> Result<(String, String), CliError> {
        let is_json = key.ends_with(':');
        let Some(path) = value.strip_prefix('@') else { return Ok((key, value)) };
        if path.starts_with('@') && !is_json {
            return Ok((key, path.to_owned()));
        }
        let hint = |error| {
            let as_text = match is_json {
                true => String::new(),
                false => format!("; write a text that starts with `@` as `{key}=@{value}`"),
            };
            let hint = format!("`@` must be followed by a file, or `-` for {STDIN_NAME}{as_text}");
            CliError::Hinted { hint, error: Box::new(error) }
        };
        if path.is_empty() {
            return Err(hint(CliError::Usage(format!("`{key}=@` does not name a file"))));
        }
        let content = self.read(path).map_err(|error| match &error {
            CliError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                hint(error)
            }
            _ => error,
        })?;
        if is_json {
            strict::parse(&content.bytes, JsonBudget::ARGUMENTS).map_err(|error| {
                CliError::Usage(format!("`{}` is not JSON: {error}", content.name))
            })?;
        }
        Ok((key, content.text()?))
    }
}

impl Content<'_> {
    fn text(self) -> Result<String, CliError> {
        let name = self.name;
        String::from_utf8(self.bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            CliError::Usage(format!("`{name}` is not UTF-8 from byte {at} on"))
        })
    }
}
