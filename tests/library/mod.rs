//! The library, as a program embeds it.

mod bytes;
mod calls;
mod library;
mod native;
