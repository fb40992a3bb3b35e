//! Settings that are the user's: most are in the user config alone.

mod allowed_leaks;
mod approve;
mod audit;
mod network;
mod output;
mod secret_files;
mod secrets;
