//! Readers of the formats: each gives values of JSON, whose numbers keep their digits.

mod cells;
pub(crate) mod csv;
pub(crate) mod relaxed;
mod scalar;
pub(crate) mod toml;
pub(crate) mod yaml;
