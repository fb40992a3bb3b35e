//! The values that an approval is bound to.

use std::fmt;

use kitbag_config::{Origin, Sourced, ToolSource};
use kitbag_host::Component;
use kitbag_policy::ApprovalRule;
use serde_json::{Map, Value};

use super::memory::Binding;
use super::screen;
use crate::call::context::CallContext;
use crate::call::outcome::PreparedCall;
use crate::registry::tool::Tool;

/// Returns the arguments that the answer "until the process ends" is bound to: those that the
/// conditions in the configuration name, if only such conditions ask, or else all arguments.
pub(super) fn bound_arguments(
    tool: &Tool,
    asking: &[Sourced<ApprovalRule>],
    arguments: &Map<String, Value>,
) -> BoundArguments {
    let named = asking.iter().map(|rule| match rule.origin {
        // A tool could name arguments that reveal nothing about the call.
        Origin::Tool => None,
        _ => rule.value.named_arguments(arguments),
    });
    match named.collect::<Option<Vec<_>>>() {
        Some(named) => BoundArguments::Named(named.into_iter().flatten().collect()),
        None => BoundArguments::All(screen::held(tool, arguments)),
    }
}

pub(super) enum BoundArguments {
    Named(Map<String, Value>),
    All(Map<String, Value>),
}

impl BoundArguments {
    pub(super) fn arguments(&self) -> &Map<String, Value> {
        match self {
            Self::Named(arguments) | Self::All(arguments) => arguments,
        }
    }
}

impl fmt::Display for BoundArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Named(_) => "named",
            Self::All(_) => "all",
        };
        write!(f, "{kind} {}", Value::Object(self.arguments().clone()))
    }
}

/// The values that every approval is bound to: the caller, the owner of the call, the tool and its
/// grants.
pub(super) struct Bound(blake3::Hasher);

impl Bound {
    pub(super) fn new(
        call: &PreparedCall,
        component: Option<&Component>,
        context: &CallContext,
    ) -> Self {
        let mut bound = Self(blake3::Hasher::new());
        bound.add(&context.caller.storage_name());
        bound.add(&format!("{:?}", context.owner));
        bound.add(&format!("{:?}", context.approver));
        bound.add(&context.depth.to_string());
        bound.add(call.tool.name.as_str());
        bound.add(&call.call.name);
        let component = component.and_then(Component::digest);
        bound.add(component.as_deref().unwrap_or_default());
        if let ToolSource::Script(script) = &call.tool.source {
            bound.add(&script.code);
        }
        if let ToolSource::Server(tool) = &call.tool.source {
            bound.add(&format!("{tool:?}"));
        }
        bound.add(&call.call.grants.lines(&[]).join("\n"));
        bound
    }

    /// Adds a part with its length, so that no part runs into the next one.
    fn add(&mut self, part: &str) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part.as_bytes());
    }

    pub(super) fn binding(&self, arguments: &str) -> Binding {
        let mut bound = Self(self.0.clone());
        bound.add(arguments);
        *bound.0.finalize().as_bytes()
    }
}
