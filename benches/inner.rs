//! Inner calls that a tool makes, compared with direct calls of the same tool.
//!
//! `cargo bench --bench inner` prints the median of each and their ratio. Compare the ratio;
//! absolute times depend on the machine.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[allow(dead_code, reason = "for more than this benchmark")]
mod support;

use std::time::Duration;

use kitbag::Kitbag;
use serde_json::{Value, json};

use crate::support::workspace::{Workspace, guest, local_tool};
use crate::support::{call, median, time};

const ROUNDS: usize = 60;
/// The default limit for the inner calls of a call.
const CALLS: usize = 20;

fn main() {
    let workspace = Workspace::new("");
    // A workspace alone lets no tool call other tools.
    workspace.own_config(&format!(
        "{}[tools.relay]\nsource = \"local\"\nwasm = {:?}\n\
         grants.tools = {{ echo = \"echo\" }}\n",
        local_tool("echo"),
        guest("relay")
    ));
    let builder = Kitbag::builder()
        .workspace(workspace.root())
        .places(workspace.places())
        .trust_workspace(true);
    let kitbag = builder.build().unwrap();

    println!("{:12} {:>12} {:>22} {:>22}", "echo of", "direct", "inner", "inner, at once");
    for bytes in [100, 10_000] {
        let arguments = json!({ "text": "x".repeat(bytes) });
        let step = |step: &str, times: usize| json!({ step: { "tool": "echo", "arguments": arguments, "times": times } });
        let relay = |steps: Value| time(|| call(&kitbag, "relay", json!({ "steps": steps })));
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..ROUNDS {
            // Created beforehand, since the caller provides them.
            let ready = vec![arguments.clone(); CALLS];
            times[0]
                .push(time(|| ready.into_iter().for_each(|ready| call(&kitbag, "echo", ready))));
            // The outer call is not one of them.
            let nothing = relay(json!([step("call", 0)]));
            times[1].push(relay(json!([step("call", CALLS)])).saturating_sub(nothing));
            let at_once = relay(json!([step("start", CALLS), "finish"]));
            times[2].push(at_once.saturating_sub(nothing));
        }
        let [direct, inner, at_once] = times.map(|mut times| median(&mut times) / CALLS as u32);
        let ratio = |time: Duration| {
            format!("{time:.1?} = {:.2} x", time.as_secs_f64() / direct.as_secs_f64())
        };
        let direct = format!("{direct:.1?}");
        println!("{bytes:>10} B {direct:>12} {:>22} {:>22}", ratio(inner), ratio(at_once));
    }
}
