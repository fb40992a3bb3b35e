//! A tool that returns its arguments unchanged. The benchmarks use it to measure the overhead of a
//! call.

use crate::bindings::kitbag::tool::types::{Context, Outcome};

struct Echo;

impl bindings::Guest for Echo {
    fn run(_: Context, _: String, arguments: String, _: String) -> Outcome {
        Outcome::Success(arguments)
    }
}

#[expect(unsafe_code, clippy::too_many_arguments, reason = "generated")]
mod bindings {
    use super::Echo;

    wit_bindgen::generate!({ world: "tool", path: "../../wit" });

    export!(Echo with_types_in self);
}
