//! Files that the program writes atomically and never through a link.

pub(crate) mod links;
pub(crate) mod new_file;
pub(crate) mod own_file;
pub(crate) mod replace;
pub(crate) mod save;
pub(crate) mod tables;
