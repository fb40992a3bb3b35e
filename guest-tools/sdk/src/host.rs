//! What a tool tells while it runs, and gives besides its text.
//!
//! A tool that uses nothing of this does not import the interface `host` of the
//! contract, and runs where there is none. Without a host, in a tool's own tests,
//! log and progress do nothing and everything is taken.
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

/// Whether there is a host: everywhere but in a tool's own tests.
const HAS_HOST: bool = cfg!(target_arch = "wasm32");

/// Logs a message for the person who looks after the tool; the model does not see it.
pub fn log(level: Level, message: &str) {
    if HAS_HOST {
        host::log(level, message);
    }
}

/// Tells how far the call is: so much done, of so much in all where that is
/// known, in any unit. What is done has to rise.
pub fn progress(done: f64, total: Option<f64>, message: Option<&str>) {
    if HAS_HOST {
        host::progress(done, total, message);
    }
}

/// Adds something to the answer, in this order and before the text.
///
/// # Errors
///
/// Says why it was not taken: over the output limit, no form of a MIME type, a
/// URI without a scheme. The call goes on.
pub fn emit(content: &Content) -> Result<(), String> {
    if HAS_HOST { host::emit(content) } else { Ok(()) }
}
