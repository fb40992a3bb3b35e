//! Manifests that were written for other hosts, in kitbag's own terms.
//!
//! Each format is a file of its own: it knows the fields of that format and their meaning to
//! the host that it was made for. The result is a [`Manifest`]: requested grants, which grant
//! nothing, limits, and notes on every field that was dropped. A manifest never requests more than
//! its source says.
//!
//! These modules read texts and do no I/O.

mod capabilities_json;
mod credential;
mod extension_toml;
mod fields;
mod jp;
mod json;
mod manifest;
mod manifest_yaml;
mod node;
mod note;
mod policy_yaml;
mod rates;
mod requested_grants;
mod skill_toml;
mod toml_tree;
mod translate;
mod yaml;

pub(crate) use manifest::{Format, Manifest};

#[cfg(test)]
mod tests;
