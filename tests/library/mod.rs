//! The library, as a program embeds it.

mod bytes;
mod calls;
mod embedding;
mod native;
