//! The repository itself: documentation, snapshots, and rules for the code.

mod documentation;
mod fuzzing;
mod house;
mod snapshots;
mod tools_page;
