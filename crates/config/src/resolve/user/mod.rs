//! Settings that are the user's: most are in the user config alone.

pub(super) mod allowed_leaks;
pub(super) mod approve;
pub(super) mod audit;
pub(super) mod network;
pub(super) mod output;
pub(super) mod secret_files;
pub(super) mod secrets;
