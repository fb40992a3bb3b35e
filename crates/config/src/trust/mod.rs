//! Trust in a workspace: the record, the owners of its files, and the review of edits.

pub(crate) mod content;
pub(crate) mod destinations;
pub(crate) mod examiner;
pub(crate) mod restrictions;
pub(crate) mod review;
pub(crate) mod workspace;
