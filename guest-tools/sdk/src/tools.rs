//! Calls of other tools, by the aliases that were granted to the tool.
//!
//! A tool that does not use this module does not import the interface `tools` of the contract. In a
//! tool's own tests, which have no host, there are no tools.
//!
//! ```
//! use kitbag_sdk::{ErrorInfo, json, tools};
//!
//! fn both() -> Result<(String, String), ErrorInfo> {
//!     let first = tools::start("search", &json!({ "pattern": "fn main" }))?;
//!     let second = tools::start("search", &json!({ "pattern": "fn test" }))?;
//!     Ok((first.finish()?.text, second.finish()?.text))
//! }
//! # assert!(both().is_err());
//! ```

use alloc::string::ToString;
use alloc::vec::Vec;

use serde_json::Value;

use crate::bindings::kitbag::tool::tools;
use crate::bindings::kitbag::tool::types::ErrorInfo;
use crate::bindings::wasi::io::poll;

pub use crate::bindings::kitbag::tool::tools::{Answer, ToolInfo};

/// True if there is a host: everywhere except in a tool's own tests.
const HAS_HOST: bool = cfg!(target_arch = "wasm32");

/// A started call. Dropping it cancels the call.
pub struct Pending(tools::Pending);

/// Returns the tools that can be called.
pub fn list() -> Vec<ToolInfo> {
    if HAS_HOST { tools::list() } else { Vec::new() }
}

/// Returns the tool with this alias, if it can be called.
pub fn find(alias: &str) -> Option<ToolInfo> {
    if HAS_HOST { tools::find(alias) } else { None }
}

/// Makes a call and waits for its end.
///
/// # Errors
///
/// The error of the tool, or the reason why the call was not made.
pub fn call(alias: &str, arguments: &Value) -> Result<Answer, ErrorInfo> {
    call_json(alias, &arguments.to_string())
}

/// Like [`call`], with arguments as JSON text.
///
/// # Errors
///
/// As for [`call`].
pub fn call_json(alias: &str, arguments: &str) -> Result<Answer, ErrorInfo> {
    if HAS_HOST { tools::call(alias, arguments) } else { Err(no_host()) }
}

/// Starts a call. A few calls run concurrently, and others wait.
///
/// # Errors
///
/// The reason why the call was not started.
pub fn start(alias: &str, arguments: &Value) -> Result<Pending, ErrorInfo> {
    start_json(alias, &arguments.to_string())
}

/// Like [`start`], with arguments as JSON text.
///
/// # Errors
///
/// As for [`start`].
pub fn start_json(alias: &str, arguments: &str) -> Result<Pending, ErrorInfo> {
    if HAS_HOST { tools::start(alias, arguments).map(Pending) } else { Err(no_host()) }
}

/// Waits until one of these calls has ended, and returns its index.
///
/// # Panics
///
/// If `calls` is empty.
pub fn wait(calls: &[&Pending]) -> usize {
    let ready: Vec<_> = calls.iter().map(|call| call.0.subscribe()).collect();
    let ready: Vec<_> = poll::poll(&ready.iter().collect::<Vec<_>>());
    ready.first().map_or(0, |index| *index as usize)
}

impl Pending {
    /// Returns true if the call has ended, so that [`finish`](Self::finish) does not wait.
    pub fn has_ended(&self) -> bool {
        self.0.subscribe().ready()
    }

    /// Waits for the end of the call.
    ///
    /// # Errors
    ///
    /// The error of the tool, or the reason why the call could not end.
    pub fn finish(self) -> Result<Answer, ErrorInfo> {
        self.0.finish()
    }
}

fn no_host() -> ErrorInfo {
    ErrorInfo::new("no host is available to call a tool")
}
