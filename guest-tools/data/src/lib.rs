//! The tools `query_data`, `validate_data` and `patch_data`: what is in a JSON document, whether
//! it fits a schema, and what it is with a change.
//!
//! [`source`] reads the document, of which numbers keep their digits and objects their order;
//! [`pointer`] says where in its text something stands.

#![forbid(unsafe_code)]

mod describe;
mod patch;
mod pointer;
mod query;
mod source;
#[cfg(test)]
mod tests;
mod validate;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use serde_json::Value;

/// The component.
struct Data;

kitbag_sdk::export!(Data);

impl Tool for Data {
    type Arguments = Value;

    fn describe() -> Description {
        Description::tools(describe::tools())
    }

    fn run(call: &Call, _: Value) -> Result<String, Stop> {
        let answer = match call.name() {
            "query_data" => query::run(call, &call.arguments()?)?,
            "validate_data" => validate::run(call, &call.arguments()?)?,
            "patch_data" => patch::run(call, call.arguments()?)?,
            name => return Err(ErrorInfo::new(format!("there is no tool `{name}` here")).into()),
        };
        Ok(answer)
    }
}
