//! Everything through [`kitbag_config::load`], on directories that exist.

mod aliases;
mod ceilings;
mod diagnostics;
mod discovery;
mod documents;
mod environment;
mod files;
mod format;
mod grant_layers;
mod grants;
mod hostile;
mod http;
mod layers;
mod limits;
mod network;
mod parameters;
mod rates;
mod rows;
mod secret_files;
mod secrets;
mod server;
mod support;
mod tools;
mod toolsets;
mod topics;
mod trust;
