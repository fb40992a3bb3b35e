//! Opens paths safely, checks who could have written a file, and defines the paths that no tool may
//! change and the names that look like secrets.
//!
//! Configuration and host use the same functions, so that the path that is checked is the path that
//! is opened. Callers choose the paths and grants.

mod account;
mod git;
mod guard;
mod names;
mod open;
mod owner;
mod protected_names;
mod secrets;
pub mod sys;

pub use account::USUAL_PLACES;
pub use guard::{
    EntryChange, Guard, GuardTable, GuardedPaths, PrivateTable, Writable, repository_above,
};
pub use names::{fold, is_guarded, is_part_of_repository};
pub use open::{Link, Located, OpenError, canonical, check_file_system, locate, open};
pub use owner::{
    Distrust, OwnerError, Owners, distrust, distrust_owner, distrust_place, is_group_writable,
};
pub use protected_names::ProtectedNames;
pub use secrets::SecretNames;
pub use sys::open::OpenAs;
pub use sys::stat::{FileKind, Stat};
