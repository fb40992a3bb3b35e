//! Translates manifests of other hosts.
//!
//! Each format has its own file, which knows the fields of the format and their meaning to the
//! original host. The result is a [`Manifest`]: requested grants, which grant nothing, limits, and
//! notes on every field that was dropped. A manifest never requests more than its source does.
//!
//! These modules parse text and do no I/O.

mod act_component;
mod capabilities_json;
mod credential;
mod extension_toml;
mod fields;
mod hyper_mcp;
mod input_schema;
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
pub(crate) use note::Note;

#[cfg(test)]
mod tests;
