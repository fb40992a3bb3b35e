//! Connections to servers inside the test's process, well-behaved and hostile.

mod calls;
mod fake;
mod hostile;
mod items;
mod lifecycle;
mod remote;
mod sign_in;
