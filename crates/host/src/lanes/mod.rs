//! The ways to call a component.

pub(crate) mod agent;
pub(crate) mod functions;

use kitbag_contract::Context;

/// What a call hands to a lane.
pub(crate) struct Parameters<'a> {
    pub(crate) context: Context,
    /// The component's own name of the tool.
    pub(crate) name: &'a str,
    /// A JSON object.
    pub(crate) arguments: &'a str,
    /// A JSON object with the answers received, keyed by question.
    pub(crate) answers: &'a str,
}
