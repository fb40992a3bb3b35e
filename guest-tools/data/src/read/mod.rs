//! Readers of the formats. Each returns JSON values whose numbers keep their digits.

mod cells;
pub(crate) mod csv;
pub(crate) mod dialects;
mod scalar;
pub(crate) mod toml;
pub(crate) mod yaml;
