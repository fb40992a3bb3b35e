//! The server, over standard input and output and over HTTP.

mod definitions;
mod discovery;
mod http_clients;
mod serve;
mod servers;
