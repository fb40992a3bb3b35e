//! Settings of the user: most are in the user config only.

pub(super) mod allowed_leaks;
pub(super) mod approve;
pub(super) mod audit;
pub(super) mod network;
pub(super) mod output;
pub(super) mod people;
pub(super) mod registry;
pub(super) mod secret_files;
pub(super) mod secrets;
