//! Values with the layer that each comes from.

pub(crate) mod limits;
pub(crate) mod origin;
pub(crate) mod path;
pub(crate) mod toolsets;
