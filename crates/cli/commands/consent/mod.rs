//! Commands that change what a person agreed to.

pub(crate) mod add;
pub(crate) mod remove;
pub(crate) mod trust;
pub(crate) mod update;
