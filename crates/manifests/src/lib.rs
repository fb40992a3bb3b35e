//! Manifests that were written for other hosts of tools, in kitbag's own terms.
//!
//! Each format is a file of its own: it knows the fields of that format and what they meant to
//! the host that it was made for. What comes of it is a [`Manifest`]: wishes, which grant nothing,
//! limits, and notes of all that has no meaning here. A manifest never asks for more than its
//! source says; what cannot be expressed is left out and noted.
//!
//! This crate reads texts and does no I/O.

mod capabilities_json;
mod fields;
mod json;
mod manifest;
mod manifest_yaml;
mod node;
mod note;
mod policy_yaml;
mod skill_toml;
mod toml_tree;
mod translate;
mod wishes;
mod yaml;

pub use manifest::{Format, Manifest};
pub use note::Note;
pub use wishes::{DirectoryWish, HttpWish, SecretWish, Wishes};
