//! The server, over standard input and output and over HTTP.

mod definitions;
mod http_clients;
mod serve;
mod servers;
mod sign_in;
