//! The process environment, and limits.

use serde_json::Value;

use crate::bindings::wasi::cli::{environment, stderr, stdin, stdout};
use crate::bindings::wasi::clocks::monotonic_clock;
use crate::bindings::wasi::random::random::get_random_bytes;
use crate::bindings::wit_stream;
use crate::sentence::{count, list, refused, shown};
use crate::{Answer, flag_or, number};

/// Maximum number of bytes of one write.
const WRITE_BYTES: usize = 4096;

pub(crate) fn variables() -> String {
    let variables = environment::get_environment().into_iter();
    let mut variables: Vec<_> =
        variables.map(|(name, value)| shown(&format!("{name}={value}"))).collect();
    variables.sort();
    format!("environment: {}", list(&variables))
}

/// Without the name of the command and the attempt itself.
pub(crate) fn argv() -> String {
    let arguments: Vec<_> =
        environment::get_arguments().iter().skip(2).map(|argument| shown(argument)).collect();
    format!("argv: {}", list(&arguments))
}

pub(crate) fn cwd() -> String {
    let directory = environment::get_initial_cwd();
    format!("cwd: {}", directory.as_deref().map_or_else(|| "none".to_owned(), shown))
}

pub(crate) async fn stdin() -> Answer {
    let (stream, ended) = stdin::read_via_stream();
    let bytes = stream.collect().await;
    let length = count(bytes.len(), "byte", "bytes");
    Ok(match ended.await {
        Ok(()) => format!("stdin: {length}"),
        Err(code) => format!("stdin: {length}, then {}", refused(&code)),
    })
}

pub(crate) async fn print(arguments: &Value) -> Answer {
    let text = arguments["text"].as_str().unwrap_or_default();
    let to = arguments["to"].as_str().unwrap_or("stdout");
    let repeat = usize::try_from(arguments["repeat"].as_u64().unwrap_or(1)).unwrap_or(1);
    let streams: &[&str] = match to {
        "both" => &["stdout", "stderr"],
        "stderr" => &["stderr"],
        _ => &["stdout"],
    };
    let mut written = 0;
    for stream in streams {
        let (mut writer, reader) = wit_stream::new();
        let ended = match *stream {
            "stdout" => stdout::write_via_stream(reader),
            _ => stderr::write_via_stream(reader),
        };
        let at_once = (WRITE_BYTES / text.len().max(1)).max(1);
        let mut left = repeat;
        while left > 0 {
            let times = left.min(at_once);
            let piece = text.repeat(times).into_bytes();
            let length = piece.len();
            let unwritten = writer.write_all(piece).await;
            written += length - unwritten.len();
            if !unwritten.is_empty() {
                break;
            }
            left -= times;
        }
        drop(writer);
        if let Err(code) = ended.await {
            let written = count(written, "byte", "bytes");
            return Ok(format!("print: {written} to {to}, then {}", refused(&code)));
        }
    }
    Ok(format!("print: {} to {to}", count(written, "byte", "bytes")))
}

pub(crate) fn spin() -> Answer {
    let mut number = 0_u64;
    loop {
        number = std::hint::black_box(number.wrapping_add(1));
    }
}

pub(crate) async fn sleep(arguments: &Value) -> Answer {
    let milliseconds = number(arguments, "ms")?;
    monotonic_clock::wait_for(milliseconds.saturating_mul(1_000_000)).await;
    Ok(format!("sleep {milliseconds} ms: awake"))
}

pub(crate) fn allocate(arguments: &Value) -> Answer {
    let bytes = number(arguments, "bytes")?;
    let step = arguments["step"].as_u64().unwrap_or(bytes).max(1);
    let steps = bytes.div_ceil(step);
    let mut held = Vec::new();
    for index in 0..steps {
        let size = usize::try_from(step).map_err(|error| error.to_string())?;
        let mut block: Vec<u8> = Vec::new();
        if block.try_reserve_exact(size).is_err() {
            if flag_or(arguments, "abort", false) {
                std::process::abort();
            }
            return Ok(format!("allocate {bytes} bytes: refused in step {} of {steps}", index + 1));
        }
        block.resize(size, 1);
        held.push(std::hint::black_box(block));
    }
    Ok(format!("allocate {bytes} bytes: done"))
}

pub(crate) fn output(arguments: &Value) -> Answer {
    let bytes = usize::try_from(number(arguments, "bytes")?).map_err(|error| error.to_string())?;
    Ok("x".repeat(bytes))
}

pub(crate) fn random(arguments: &Value) -> Answer {
    let bytes = number(arguments, "bytes")?;
    let got = get_random_bytes(bytes).len();
    let noun = if bytes == 1 { "byte" } else { "bytes" };
    Ok(format!("random {bytes} {noun}: {}", count(got, "byte", "bytes")))
}
