//! Opening what a path names without being led elsewhere, who else could have
//! written it, and the rules of what no tool changes and of what looks like a secret.
//!
//! Configuration and host use the same functions, so what one checks is what
//! the other opens. Which paths are named, and what a tool is granted, is left
//! to them.

mod account;
mod git;
mod guard;
mod names;
mod open;
mod owner;
mod protected;
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
pub use protected::ProtectedNames;
pub use secrets::SecretNames;
pub use sys::open::OpenAs;
pub use sys::stat::{FileKind, Stat};
