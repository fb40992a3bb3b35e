//! The command `probe-async`: the attempts of the tool `probe`, through WASI 0.3.0.
//!
//! Its first argument is the JSON that `probe` receives, and its output the same sentence, so that
//! one reviewed snapshot holds for both versions of WASI. It has the actions of `probe` for files,
//! the process, its limits and sockets: `preopens`, `read`, `write`, `append`, `truncate`,
//! `set-size`, `open`, `list`, `stat`, `lstat`, `readlink`, `mkdir`, `rmdir`, `remove`, `set-times`,
//! `symlink`, `link`, `rename`, `environment`, `argv`, `cwd`, `stdin`, `print`, `spin`, `sleep`,
//! `allocate`, `output`, `random`, `connect`, `udp` and `resolve`. One more, `request`, sends a
//! request to `url` with the `method` and the `headers`, and answers with the status or the error.

mod files;
mod network;
mod process;
mod sentence;

use serde_json::Value;

use crate::bindings::wasi::cli::{environment, stderr, stdout};

/// The command.
struct Probe;

#[expect(unsafe_code, reason = "generated")]
#[allow(
    clippy::all,
    unused_qualifications,
    clippy::undocumented_unsafe_blocks,
    reason = "generated"
)]
mod bindings {
    wit_bindgen::generate!({ world: "kitbag:probe-async/probe", generate_all });
    use super::Probe;
    export!(Probe);
}

/// The result of an attempt, or what is wrong with its arguments.
type Answer = Result<String, String>;

impl bindings::exports::wasi::cli::run::Guest for Probe {
    async fn run() -> Result<(), ()> {
        let arguments = environment::get_arguments();
        let arguments = arguments.get(1).map(String::as_str).unwrap_or_default();
        let answer = match serde_json::from_str(arguments) {
            Ok(arguments) => act(&arguments).await,
            Err(error) => Err(error.to_string()),
        };
        let (mut writer, reader) = bindings::wit_stream::new();
        match answer {
            Ok(answer) => {
                let written = stdout::write_via_stream(reader);
                writer.write_all(answer.into_bytes()).await;
                drop(writer);
                written.await.map_err(drop)
            }
            Err(error) => {
                let written = stderr::write_via_stream(reader);
                writer.write_all(error.into_bytes()).await;
                drop(writer);
                let _ = written.await;
                Err(())
            }
        }
    }
}

async fn act(arguments: &Value) -> Answer {
    let action = text(arguments, "do")?;
    match action {
        "environment" => Ok(process::variables()),
        "argv" => Ok(process::argv()),
        "cwd" => Ok(process::cwd()),
        "stdin" => process::stdin().await,
        "print" => process::print(arguments).await,
        "spin" => process::spin(),
        "sleep" => process::sleep(arguments).await,
        "allocate" => process::allocate(arguments),
        "output" => process::output(arguments),
        "random" => process::random(arguments),
        "connect" => network::connect(arguments).await,
        "udp" => network::udp(arguments).await,
        "resolve" => network::resolve(arguments).await,
        "request" => network::request(arguments).await,
        action => files::act(action, arguments).await,
    }
}

/// Returns a required string.
fn text<'a>(arguments: &'a Value, key: &str) -> Result<&'a str, String> {
    arguments[key].as_str().ok_or_else(|| format!("invalid arguments: `{key}` is not a text"))
}

/// Returns a required number.
fn number(arguments: &Value, key: &str) -> Result<u64, String> {
    arguments[key].as_u64().ok_or_else(|| format!("invalid arguments: `{key}` is not a number"))
}

/// Returns a boolean, or the default.
fn flag_or(arguments: &Value, key: &str, default: bool) -> bool {
    arguments[key].as_bool().unwrap_or(default)
}

/// Returns a list of strings; empty by default.
fn texts<'a>(arguments: &'a Value, key: &str) -> Vec<&'a str> {
    arguments[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
