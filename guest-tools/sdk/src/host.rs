//! Reports during a call, and content in addition to its text.
//!
//! A tool that does not use this module does not import the interface `host` of the contract, and
//! runs on hosts without it. In a tool's own tests, which have no host, log and progress do nothing
//! and all content is accepted.
//!
//! ```
//! use kitbag_sdk::ErrorInfo;
//! use kitbag_sdk::host::{self, Content, Level, Media};
//!
//! fn plot(points: &[(f64, f64)]) -> Result<String, ErrorInfo> {
//!     let mut png = Vec::new();
//!     for (number, point) in points.iter().enumerate() {
//!         host::progress(number as f64, Some(points.len() as f64), Some("drawing"));
//! #       let _ = point;
//!         png.push(0);
//!     }
//!     host::log(Level::Info, &format!("{} points", points.len()));
//!     let image = Media { data: png, mime_type: "image/png".into() };
//!     host::emit(&Content::Image(image)).map_err(ErrorInfo::new)?;
//!     Ok("The plot is attached.".into())
//! }
//! # plot(&[(1.0, 2.0)]).unwrap();
//! ```

use alloc::string::String;

pub use crate::bindings::kitbag::tool::host::{
    Content, Level, Link, Media, Resource, ResourceBody,
};

use crate::bindings::kitbag::tool::host;

/// True if there is a host: everywhere except in a tool's own tests.
const HAS_HOST: bool = cfg!(target_arch = "wasm32");

/// Logs a message for the maintainer of the tool; the model does not see it.
pub fn log(level: Level, message: &str) {
    if HAS_HOST {
        host::log(level, message);
    }
}

/// Reports the progress of the call: the finished amount and, if known, the total amount, in any
/// unit. The finished amount must increase.
pub fn progress(done: f64, total: Option<f64>, message: Option<&str>) {
    if HAS_HOST {
        host::progress(done, total, message);
    }
}

/// Adds content to the answer, in order and before the text.
///
/// # Errors
///
/// The reason why the content was not accepted: over the output limit, an invalid MIME type, a URI
/// without a scheme. The call continues.
pub fn emit(content: &Content) -> Result<(), String> {
    if HAS_HOST { host::emit(content) } else { Ok(()) }
}
