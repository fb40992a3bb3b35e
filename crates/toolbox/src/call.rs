//! One call: its invocation, its caller and context, and its outcome.

pub(crate) mod caller;
pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod invocation;
pub(crate) mod json;
pub(crate) mod outcome;
pub(crate) mod scope;
