//! The protection of a model and its user from the content of answers.

pub(crate) mod annotations;
mod guest_texts;
pub(crate) mod masking;
pub(crate) mod random;
