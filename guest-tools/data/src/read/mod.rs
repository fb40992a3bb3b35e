//! Readers of the formats: each gives values of JSON, whose numbers keep their digits.

pub(crate) mod csv;
pub(crate) mod json;
mod scalar;
pub(crate) mod toml;
pub(crate) mod yaml;
