//! Shared code of tools that work on files.
//!
//! [`Location`] is a path of the arguments with its guest path. [`explain`] describes why an
//! operation on it failed. [`list`] and [`stat`] add features that `std::fs` does not have over
//! WASI: they recognize secrets, and count names that are not Unicode. [`Decoded`] is a text with
//! the encoding of its file, [`Transcoder`] reads text of any length, and [`cut`] keeps an answer
//! within a limit.

#![forbid(unsafe_code)]

mod cut;
mod encoding;
mod entries;
mod error;
mod location;
mod nearest;
mod signature;
mod transcode;

pub use crate::cut::{cut, quoted, shown};
pub use crate::encoding::{Decoded, Encoding, decode, looks_binary};
#[cfg(target_family = "wasm")]
pub use crate::entries::wasi;
pub use crate::entries::{Granted, Kind, Listed, Stat, granted, list, stat, stat_link};
pub use crate::error::{check_changeable, explain, is_granted, is_sealed};
pub use crate::location::Location;
pub use crate::nearest::{nearest, nearest_paths};
pub use crate::transcode::Transcoder;
