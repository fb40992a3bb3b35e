//! One call: its invocation, caller, context and outcome.

pub(crate) mod caller;
pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod invocation;
pub(crate) mod json;
pub(crate) mod outcome;
pub(crate) mod scope;
