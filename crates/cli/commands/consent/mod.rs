//! Commands that change what a person approved.

pub(crate) mod add;
pub(crate) mod remove;
pub(crate) mod servers;
pub(crate) mod trust;
pub(crate) mod update;
