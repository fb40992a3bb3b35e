//! Platform-specific code: file handles, metadata, users and permissions. Other modules and crates
//! use this module instead of system calls.
//!
//! Everything here works on every Unix, except for the parts that are specific to Linux and
//! tested. Every handle is a [`File`](std::fs::File): of a directory, of a link, or one that can be
//! neither read nor written.

mod entries;
mod error;
mod kernel;
pub(crate) mod open;
mod places;
pub(crate) mod stat;
mod user;

pub use entries::{Entries, Entry};
pub use error::{has_no_other_end, is_link_error, is_too_many_files, too_many_links};
pub(crate) use kernel::kernel_file_system;
pub(crate) use open::OpenAs;
pub use open::{
    create_private_directories, create_private_directory, nonblocking, open_at, open_directory,
    open_directory_following_links, open_following_links_at, private_file, read_again, read_link,
    with_private_mode,
};
pub(crate) use open::{open_root, open_without_links};
pub(crate) use places::program_file;
pub(crate) use stat::{FileKind, Stat};
pub use stat::{id_of_metadata, mode_of_metadata, owner_of_metadata};
pub(crate) use user::has_access_list;
pub use user::{
    effective_user, new_permissions, private_directory_permissions, private_permissions, real_user,
};
