//! Advice: the line of a file that would allow a request, phrased for its reader.

pub(crate) mod audience;
pub(crate) mod path_refusal;
pub(crate) mod places;
