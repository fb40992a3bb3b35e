//! The process environment of a tool: streams, variables, arguments, exit.

use kitbag_sdk::{Call, ErrorInfo, Stop};
use wasip2::cli;
use wasip2::io::streams::{OutputStream, StreamError};

use crate::arguments::Arguments;
use crate::files::stream_refusal;
use crate::reports::end;
use crate::sentence::{Refusal, count, list, shown};

/// Maximum number of bytes of one blocking write to a stream.
const WRITE_BYTES: usize = 4096;

pub(crate) fn print(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let text = arguments.text_or("text", "").as_bytes();
    let to = arguments.text_or("to", "stdout");
    let streams = match to {
        "stdout" => vec![cli::stdout::get_stdout()],
        "stderr" => vec![cli::stderr::get_stderr()],
        "both" => vec![cli::stdout::get_stdout(), cli::stderr::get_stderr()],
        _ => return Err(ErrorInfo::new("invalid arguments: `to` is not a stream").into()),
    };
    let repeat = arguments.number_or("repeat", 1);
    let mut written = 0;
    for stream in &streams {
        if let Err(error) = write(stream, text, repeat, &mut written) {
            let Refusal(refusal) = stream_refusal(error);
            return Ok(format!(
                "print: {} to {to}, then {refusal}",
                count(written, "byte", "bytes")
            ));
        }
    }
    end(call, arguments, format!("print: {} to {to}", count(written, "byte", "bytes")))
}

pub(crate) fn stdin(_: &Call, _: &Arguments) -> Result<String, Stop> {
    let stream = cli::stdin::get_stdin();
    let mut length = 0;
    loop {
        match stream.blocking_read(WRITE_BYTES as u64) {
            Ok(bytes) => length += bytes.len(),
            Err(StreamError::Closed) => break,
            Err(error) => {
                let Refusal(refusal) = stream_refusal(error);
                return Ok(format!("stdin: {}, then {refusal}", count(length, "byte", "bytes")));
            }
        }
    }
    Ok(format!("stdin: {}", count(length, "byte", "bytes")))
}

pub(crate) fn environment(_: &Call, _: &Arguments) -> Result<String, Stop> {
    let mut variables: Vec<String> = cli::environment::get_environment()
        .into_iter()
        .map(|(name, value)| shown(&format!("{name}={value}")))
        .collect();
    variables.sort();
    Ok(format!("environment: {}", list(&variables)))
}

pub(crate) fn argv(_: &Call, _: &Arguments) -> Result<String, Stop> {
    let arguments = cli::environment::get_arguments();
    let arguments: Vec<String> = arguments.iter().map(|argument| shown(argument)).collect();
    Ok(format!("argv: {}", list(&arguments)))
}

pub(crate) fn cwd(_: &Call, _: &Arguments) -> Result<String, Stop> {
    let directory = cli::environment::initial_cwd();
    Ok(format!("cwd: {}", directory.as_deref().map_or_else(|| "none".to_owned(), shown)))
}

/// Writes a text a number of times, in the largest possible pieces.
fn write(
    stream: &OutputStream,
    text: &[u8],
    repeat: u64,
    written: &mut usize,
) -> Result<(), StreamError> {
    if text.is_empty() {
        return Ok(());
    }
    let at_once = (WRITE_BYTES / text.len()).max(1) as u64;
    let mut left = repeat;
    while left > 0 {
        let times = left.min(at_once);
        for piece in text.repeat(times as usize).chunks(WRITE_BYTES) {
            stream.blocking_write_and_flush(piece)?;
            *written += piece.len();
        }
        left -= times;
    }
    Ok(())
}
