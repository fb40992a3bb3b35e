//! Commands that call, show and check tools.

pub(crate) mod check;
pub(crate) mod describe;
pub(crate) mod eject;
pub(crate) mod findings;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod run;
pub(crate) mod script;
pub(crate) mod why;
