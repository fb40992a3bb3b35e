//! Values with the layers that they come from.

pub(crate) mod limits;
pub(crate) mod origin;
pub(crate) mod path;
pub(crate) mod toolsets;
