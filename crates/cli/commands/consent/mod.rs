//! Commands that change what a person approved.

pub(crate) mod add;
#[cfg(feature = "servers")]
pub(crate) mod login;
#[cfg(feature = "servers")]
pub(crate) mod logout;
pub(crate) mod remove;
pub(crate) mod servers;
pub(crate) mod trust;
pub(crate) mod update;
